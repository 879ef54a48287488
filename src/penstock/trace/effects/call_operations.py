"""What the instructions around functions do: making, calling and leaving them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.trace.effects.instructions import Instruction
from penstock.trace.effects.stack import is_null, pop
from penstock.trace.effects.values import OWN, Arguments, Cell, Cells, Inner, Known, Value, outside, union

if TYPE_CHECKING:
    from penstock.trace.effects.interpreter import Frame

_NEW_CALLS = sys.version_info >= (3, 14)  # CALL_FUNCTION_EX always finds four values
_DEFAULTS, _KEYWORDS, _ANNOTATIONS, _CLOSURE = 1, 2, 4, 8


def make_function(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    code = stack.pop()
    cells: Value = stack.pop() if step.arg & _CLOSURE else ()
    pop(stack, bool(step.arg & _ANNOTATIONS))
    defaults = pop(stack, bool(step.arg & _KEYWORDS) + bool(step.arg & _DEFAULTS))
    known = next(atom.object for atom in code if isinstance(atom, Known))
    stack.append((Inner(known, _closure(cells), outside(union((), *defaults))),))


def set_function_attribute(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    function, attribute = stack.pop(), stack.pop()
    (inner,) = function
    assert isinstance(inner, Inner)
    if step.arg == _CLOSURE:
        inner = Inner(inner.code, _closure(attribute), inner.defaults)
    elif step.arg in (_DEFAULTS, _KEYWORDS):
        inner = Inner(inner.code, inner.cells, union(inner.defaults, outside(attribute)))
    stack.append((inner,))


def keyword_names(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.keywords = step.value if isinstance(step.value, tuple) else frame.code.co_consts[step.arg]


def call(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    names = frame.keywords
    frame.keywords = ()
    if step.name == "CALL_KW":
        names = next(atom.object for atom in stack.pop() if isinstance(atom, Known))
    given = pop(stack, step.arg)
    function, first = pop(stack, 2)
    if is_null(function):
        function = first
    elif not is_null(first):
        given = [first, *given]
    count = len(given) - len(names)
    arguments = Arguments(given[:count], dict(zip(names, given[count:], strict=True)))
    stack.append(frame.world.call(frame, function, arguments))


def call_with_all(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    named = stack.pop() if _NEW_CALLS or step.arg & 1 else ()
    given = stack.pop()
    function, first = pop(stack, 2)
    if is_null(function):
        function = first
    rest = union(OWN, frame.world.each(frame, given))
    if named and not is_null(named):
        rest = union(rest, frame.world.each(frame, named, values=True))
    stack.append(frame.world.call(frame, function, Arguments(rest=rest)))


def gives(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.given = union(frame.given, stack.pop())
    if step.name == "YIELD_VALUE":
        stack.append(OWN)


def gives_constant(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.given = union(frame.given, OWN)


def _closure(value: Value) -> tuple[Cell, ...]:
    return next((atom.cells for atom in value if isinstance(atom, Cells)), ())
