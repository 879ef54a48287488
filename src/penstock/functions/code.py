"""Code objects in one form for all supported interpreters: their instructions, and the code inside them."""

from __future__ import annotations

import dis
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction. `after` is the offset of the next instruction, `target` the offset to which it jumps."""

    opcode: int
    name: str
    arg: int
    value: Any
    spelled: str
    after: int
    target: int | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Instructions:
    """The instructions of a code object by offset, and its `steps`: the instructions that do something, in order."""

    at: dict[int, Instruction]
    steps: tuple[Instruction, ...]


_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_read: weakref.WeakKeyDictionary[CodeType, Instructions] = weakref.WeakKeyDictionary()


def instructions(code: CodeType) -> Instructions:
    """Return the instructions of a code object. They are decoded once."""
    found = _read.get(code)
    if found is None:
        found = _read[code] = _decoded(code)
    return found


def _decoded(code: CodeType) -> Instructions:
    found = list(dis.get_instructions(code))
    at: dict[int, Instruction] = {}
    for step, following in zip(found, [*found[1:], None], strict=True):
        after = step.offset + 2 if following is None else following.offset
        line = None if step.positions is None else step.positions.lineno
        target = step.argval if step.opcode in _JUMPS else None
        at[step.offset] = Instruction(
            step.opcode, step.opname, step.arg or 0, step.argval, step.argrepr, after, target, line
        )
    return Instructions(at, tuple(chain.from_iterable(map(_singly, at.values()))))


_SILENT = ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "RESUME", "NOP", "PRECALL", "NOT_TAKEN")


def _singly(step: Instruction) -> Iterator[Instruction]:
    """Yield the steps of an instruction. Newer interpreters combine two steps in one (STORE_FAST_LOAD_FAST)."""
    if isinstance(step.value, tuple) and "_FAST_" in step.name:
        for what, variable in zip(_PAIR.findall(step.name), step.value, strict=True):
            yield replace(step, name=f"{what}_FAST", value=variable, arg=0)
    elif step.name not in _SILENT:
        yield step


def steps(code: CodeType) -> tuple[Instruction, ...]:
    """Return the steps of a code object, in order."""
    return instructions(code).steps


def never_ends(code: CodeType) -> bool:
    """Return True if the code has an endless loop: an instruction from which no return or raise can be reached.

    >>> never_ends(compile("while True: pass", "", "exec"))
    True
    """
    found = instructions(code)
    ends = {at for at, step in found.at.items() if step.name.startswith(("RETURN", "RAISE", "RERAISE"))}
    count = 0
    while count < len(ends):
        count = len(ends)
        ends.update(
            at
            for at, step in reversed(found.at.items())
            if step.target in ends or (step.after in ends and not step.name.startswith(_ALWAYS))
        )
    return len(ends) < len(found.at)


_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")  # these always jump


_PAIR = re.compile("(LOAD|STORE)_FAST(?:_BORROW)?")


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def pieces(code: CodeType, first: int = 0) -> Iterator[Any]:
    """Yield the input of a digest of code: the code, and its constants in order. Inner code yields its own pieces."""
    yield code
    for value in code.co_consts[first:]:
        if isinstance(value, CodeType):
            yield from pieces(value)
        else:
            yield value


def pieces_of(function: FunctionType) -> Iterator[Any]:
    """Yield the pieces of a function's code without its docstring."""
    return pieces(function.__code__, int(_is_documented(function)))


def _is_documented(function: FunctionType) -> bool:
    """Return True if the first constant is the docstring, and no instruction loads it."""
    code = function.__code__
    if function.__doc__ is None or code.co_consts[:1] != (function.__doc__,):
        return False
    return not any(step.opcode in dis.hasconst and step.arg == 0 for step in steps(code))


def words(text: str) -> frozenset[str]:
    """Return the words of a string. The tables of names are such strings."""
    return frozenset(text.split())


def names(code: CodeType) -> set[str]:
    """Return the names that a code object, and the code inside it, looks up in modules and objects."""
    return {name for one in codes(code) for name in one.co_names}
