"""A machine that goes through code with what is known of values in place of values, and stops at what is visible.

It takes every branch. A local variable is whatever is stored into it anywhere, so a loop is gone through until nothing
new is found. An instruction that it does not know is taken for visible.
"""

from __future__ import annotations

import heapq
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any

from penstock.functions.code import Instruction, instructions, parts, words
from penstock.functions.effects.operations import OPERATIONS, pop
from penstock.functions.effects.values import OWN, Cell, Value, Visible, union

if TYPE_CHECKING:
    from penstock.functions.effects.calling import Calling

Stack = tuple[Value, ...]
_MOST_ROUNDS = 6  # until what local variables may be has settled
NOTHING = words(
    """NOP RESUME CACHE EXTENDED_ARG PRECALL MAKE_CELL COPY_FREE_VARS NOT_TAKEN JUMP_FORWARD JUMP_BACKWARD
    JUMP_BACKWARD_NO_INTERRUPT SETUP_ANNOTATIONS DELETE_FAST DELETE_DEREF LIST_TO_TUPLE RAISE_VARARGS RERAISE"""
)
ENDS = words("RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE")
EFFECTS: dict[str, tuple[int, int]] = {  # instructions on own values: how many they take and give
    name: effect
    for effect, names in {
        (0, 1): """GET_LEN MATCH_MAPPING MATCH_SEQUENCE LOAD_ASSERTION_ERROR LOAD_COMMON_CONSTANT LOAD_SMALL_INT
            RETURN_GENERATOR PUSH_EXC_INFO WITH_EXCEPT_START""",
        (1, 0): "POP_TOP POP_EXCEPT POP_ITER",
        (1, 1): """UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL CONVERT_VALUE FORMAT_SIMPLE
            CHECK_EXC_MATCH""",
        (2, 1): "COMPARE_OP IS_OP FORMAT_WITH_SPEC CALL_INTRINSIC_2 BUILD_TEMPLATE",
        (3, 1): "MATCH_CLASS",
    }.items()
    for name in words(names)
} | {"END_FOR": (2, 0) if sys.version_info < (3, 13) else (1, 0)}


class Frame:
    """One call of a piece of code: its variables, and what it has given."""

    def __init__(
        self,
        code: CodeType,
        names: dict[str, Any],
        variables: dict[str, Value],
        outer: tuple[Cell, ...],
        world: Calling,
        *,
        imported: bool = False,
    ) -> None:
        self.code = code
        self.names = names
        self.imported = imported
        self.world = world
        self.given: Value = ()
        self._steps = instructions(code)
        self.variables = variables
        self.cells = {name: Cell(variables.get(name, ())) for name in code.co_cellvars}
        self.cells.update(zip(code.co_freevars, outer, strict=False))
        self.keywords: tuple[str, ...] = ()
        self.changed = False
        self._seen: dict[int, Stack] = {}
        self._waiting: list[int] = []

    def run(self) -> Value:
        """What the code may return; Visible where somebody could notice that it ran."""
        for _ in range(_MOST_ROUNDS):
            self.changed = False
            self._seen = {}
            self._go(0, ())
            while self._waiting:
                offset = heapq.heappop(self._waiting)
                self._step(offset, self._seen[offset])
            if not self.changed:
                break
        return self.given

    # -- the order of things

    def _go(self, offset: int, stack: Stack) -> None:
        seen = self._seen.get(offset)
        if seen is not None:
            merged = tuple(union(a, b) for a, b in zip(seen, stack, strict=False))
            if all(set(a) == set(b) for a, b in zip(merged, seen, strict=False)):
                return
            stack = merged
        self._seen[offset] = stack
        heapq.heappush(self._waiting, offset)

    def _step(self, offset: int, before: Stack) -> None:
        self.world.spend()
        step = self._steps.at[offset]
        for handler in self._steps.handlers:
            if handler.start <= offset < handler.end and handler.target not in self._seen:
                self._go(handler.target, before[: handler.depth] + (OWN,) * (1 + handler.lasti))
        stack = list(before)
        name = step.name
        if name == "FOR_ITER":
            stack.append(self.world.each(self, stack[-1]))
        else:
            self._do(step, stack)
        if step.target is not None:
            self._go(step.target, self._at_target(step, before))
        if name in ENDS or (name.startswith("JUMP_") and "_IF_" not in name and step.target is not None):
            return
        self._go(step.after, tuple(stack))

    def _at_target(self, step: Instruction, before: Stack) -> Stack:
        more = step.jump
        if more < 0:
            return before[:more]
        return before + (OWN,) * more

    # -- single instructions

    def _do(self, step: Instruction, stack: list[Value]) -> None:
        name = step.name
        handler = OPERATIONS.get(name)
        if handler is not None:
            handler(self, step, stack)
        elif name in EFFECTS:
            takes, gives = EFFECTS[name]
            pop(stack, takes)
            stack.extend([OWN] * gives)
        elif name.startswith("POP_JUMP_"):
            stack.pop()
        elif name.startswith("JUMP_IF_"):
            stack.pop()  # where it does not jump
        elif "_FAST_" in name and isinstance(step.value, tuple):
            for what, variable in zip(parts(name), step.value, strict=True):
                if what == "LOAD":
                    self.load(variable, stack)
                else:
                    self.store(variable, stack.pop())
        elif name not in NOTHING:
            raise Visible(_WHY.get(name, f"does what is not looked into ({name})"))

    def load(self, variable: str, stack: list[Value]) -> None:
        if variable in self.cells:
            stack.append((self.cells[variable],))
        else:
            stack.append(self.variables.get(variable) or OWN)

    def store(self, variable: str, value: Value) -> None:
        if variable in self.cells:  # the cell itself, put back behind a comprehension
            return
        old = self.variables.get(variable, ())
        new = union(old, value)
        if set(new) != set(old):
            self.variables[variable] = new
            self.changed = True


_WHY = {
    "LOAD_NAME": "defines a class",
    "LOAD_BUILD_CLASS": "defines a class",
    "GET_AWAITABLE": "is a coroutine",
    "LOAD_SUPER_ATTR": "uses super()",
    "GET_YIELD_FROM_ITER": "yields from another generator",
}
