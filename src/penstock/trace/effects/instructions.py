"""The instructions of a piece of code, alike for all interpreters that penstock runs on."""

from __future__ import annotations

import dis
import re
import weakref
from dataclasses import dataclass
from types import CodeType
from typing import Any


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of the machine: `after` is where it goes on, `target` where it may jump to, with `jump` values more."""

    opcode: int
    name: str
    arg: int
    value: Any
    spelled: str
    after: int
    target: int | None
    jump: int


@dataclass(frozen=True, slots=True)
class Handler:
    """Where an error between two places goes on, and with how many values on the stack."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


@dataclass(frozen=True, slots=True)
class Instructions:
    """The instructions by their offsets, and the handlers of errors."""

    at: dict[int, Instruction]
    handlers: tuple[Handler, ...]


_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_read: weakref.WeakKeyDictionary[CodeType, Instructions] = weakref.WeakKeyDictionary()


def instructions(code: CodeType) -> Instructions:
    """What a piece of code is made of; read once."""
    found = _read.get(code)
    if found is None:
        found = _read[code] = _decoded(code)
    return found


def _decoded(code: CodeType) -> Instructions:
    bytecode = dis.Bytecode(code)
    steps = list(bytecode)
    at: dict[int, Instruction] = {}
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        target, more = None, 0
        if step.opcode in _JUMPS:
            target = step.argval
            more = dis.stack_effect(step.opcode, step.arg, jump=True)
        after = step.offset + 2 if following is None else following.offset
        arg = 0 if step.arg is None else step.arg
        at[step.offset] = Instruction(
            step.opcode, step.opname, arg, step.argval, step.argrepr, after, target, more
        )  # fmt: skip
    handlers = tuple(
        Handler(entry.start, entry.end, entry.target, entry.depth, entry.lasti)
        for entry in bytecode.exception_entries  # type: ignore[attr-defined]
    )
    return Instructions(at, handlers)


_PAIR = re.compile("(LOAD|STORE)_FAST(?:_BORROW)?")


def parts(name: str) -> list[str]:
    """What an instruction on two local variables does, in its order: LOAD or STORE."""
    return _PAIR.findall(name)
