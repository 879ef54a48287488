"""Frame: one call of a piece of code, gone through with what is known of values, which stops at what is visible.

A local variable is whatever is stored into it anywhere, so a loop is gone through until nothing new is found. An
instruction that is not gone through is taken for visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from penstock.functions.code import Instruction
from penstock.functions.effects.values import (
    NULL,
    OWN,
    Arguments,
    Cell,
    Cells,
    Inner,
    Known,
    Made,
    Value,
    Visible,
    change,
    holding,
    outside,
    union,
)
from penstock.functions.machine import Machine

if TYPE_CHECKING:
    from penstock.functions.effects.calling import Calling

_MOST_ROUNDS = 6  # until what local variables may be has settled
_WHY = {
    "LOAD_NAME": "defines a class",
    "LOAD_BUILD_CLASS": "defines a class",
    "GET_AWAITABLE": "is a coroutine",
    "LOAD_SUPER_ATTR": "uses super()",
    "GET_YIELD_FROM_ITER": "yields from another generator",
    "PRINT_EXPR": "prints",
}
_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "@": "matmul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
_COMPARISONS = {  # and what the other side is asked; the longer ones first
    "==": ("eq", "eq"),
    "!=": ("ne", "ne"),
    "<=": ("le", "ge"),
    ">=": ("ge", "le"),
    "<": ("lt", "gt"),
    ">": ("gt", "lt"),
}
_UNARY = {"UNARY_POSITIVE": "__pos__", "UNARY_NEGATIVE": "__neg__", "UNARY_INVERT": "__invert__"}


class Frame(Machine):
    """One call of a piece of code: its variables, and what it has given."""

    NULL = NULL
    UNKNOWN = OWN
    SLICE = (Made(slice),)
    BY_PLACE = False

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
        super().__init__(code, variables)
        self.names = names
        self.imported = imported
        self.world = world
        self.given: Value = ()
        self.cells = {name: Cell(variables.get(name, ())) for name in code.co_cellvars}
        self.cells.update(zip(code.co_freevars, outer, strict=False))
        self.changed = False

    def run(self) -> Value:
        """What the code may return; Visible where somebody could notice that it ran."""
        for _ in range(_MOST_ROUNDS):
            self.changed = False
            self.go_through()
            if not self.changed:
                break
        return self.given

    def spend(self) -> None:
        self.world.spend()

    def refuse(self, name: str) -> None:
        raise Visible(_WHY.get(name, f"does what is not looked into ({name})"))

    def joined(self, old: Value, new: Value) -> Value:
        return union(old, new)

    def equal(self, one: Value, other: Value) -> bool:
        return set(one) == set(other)

    # -- names

    def constant(self, value: Any) -> Value:
        return (Known(value, "a constant"),)

    def constant_of(self, value: Value) -> Any:
        return next((atom.object for atom in value if isinstance(atom, Known)), None)

    def load(self, variable: str) -> Value:
        return (self.cells[variable],) if variable in self.cells else self.variables.get(variable) or OWN

    def store(self, variable: str, value: Value) -> None:
        if variable in self.cells:  # the cell itself, put back behind a comprehension
            return
        old = self.variables.get(variable, ())
        new = union(old, value)
        if not self.equal(new, old):
            self.variables[variable] = new
            self.changed = True

    def load_shared(self, variable: str) -> Value:
        return self.cells[variable].value or OWN

    def store_shared(self, variable: str, value: Value) -> None:
        cell = self.cells[variable]
        if not cell.own:
            message = f"assigns to `{variable}` of the function around it"
            raise Visible(message)
        new = union(cell.value, value)
        if not self.equal(new, cell.value):
            cell.value = new
            self.changed = True

    def named(self, name: str) -> Value:
        return self.world.named(self, name)

    def module(self, name: str) -> Value:
        return self.world.module(name)

    def change_global(self, name: str) -> None:
        message = f"assigns to the global `{name}`"
        raise Visible(message)

    # -- attributes, items, operators

    def attribute(self, owner: Value, name: str) -> Value:
        return self.world.attribute(self, owner, name)

    def change_attribute(self, owner: Value, name: str, value: Value | None) -> None:
        change(owner, lambda spelled: f"assigns to an attribute, {name}, of {spelled}")
        self.world.attribute_set(self, owner, name, value)
        if value is not None:
            self.world.put(self, value)

    def item(self, owner: Value, key: Value) -> Value:
        return self.world.item(self, owner, key)

    def change_item(self, owner: Value, value: Value | None) -> None:
        change(owner, lambda spelled: f"writes into {spelled}")
        if value is None:
            self.world.operator(self, owner, "__delitem__", OWN)
        else:
            self.world.operator(self, owner, "__setitem__", OWN, value)
            self.world.put(self, value)

    def each(self, value: Value) -> Value:
        return self.world.each(self, value)

    def unpacked(self, value: Value, count: int, *, starred: bool) -> list[Value]:
        return [self.each(value)] * count

    def iterated(self, value: Value) -> None:
        self.world.operator(self, value, "__iter__")

    def combined(self, left: Value, right: Value, operator: str) -> Value:
        plain = operator.removesuffix("=")
        given = self._reflected(_OPERATORS.get(plain, ""), left, right)
        if plain == "%":  # which may write a text
            self.world.shown(self, right)
        if operator.endswith("="):
            given = union(given, self.world.operator(self, left, f"__i{_OPERATORS.get(plain, '')}__", right))
            change(left, lambda spelled: f"changes {spelled} ({operator})")
            return union(given, self.world.filled(left, outside(self.each(right))))
        return union(given, self.world.combined(left, right))

    def _reflected(self, name: str, left: Value, right: Value) -> Value:
        """What an operator of a class of the user's gives, wherever it stands."""
        given = self.world.operator(self, left, f"__{name}__", right)
        return union(given, self.world.operator(self, right, f"__r{name}__", left))

    def compared(self, left: Value, right: Value, operator: str) -> Value:
        name, other = next((names for sign, names in _COMPARISONS.items() if operator.startswith(sign)), ("", ""))
        given = self.world.operator(self, left, f"__{name}__", right)
        return union(OWN, given, self.world.operator(self, right, f"__{other}__", left))

    def asked(self, value: Value, step: Instruction) -> None:
        if step.name == "CONVERT_VALUE":
            self.world.shown(self, value)
        elif step.name in _UNARY:
            self.world.operator(self, value, _UNARY[step.name])
        else:
            self.world.operator(self, value, "__bool__")
            self.world.operator(self, value, "__len__")

    def contained(self, value: Value, container: Value) -> Value:
        self.world.operator(self, container, "__contains__", value)
        self.world.operator(self, container, "__iter__")
        self.world.operator(self, union(value, self.world.held(container)), "__eq__", OWN)
        return OWN

    def items_matched(self, value: Value) -> Value:
        return holding(tuple, [self.world.each(self, value, values=True)])

    def managed(self, value: Value) -> None:
        self.world.managed(self, value)

    # -- containers

    def built(self, kind: type, values: Sequence[Value]) -> Value:
        cells = [atom for value in values if len(value) == 1 for atom in value if isinstance(atom, Cell)]
        if kind is tuple and values and len(cells) == len(values):
            return (Cells(tuple(cells)),)
        return holding(kind, values)

    def built_mapping(self, keys: Sequence[Value], values: Sequence[Value]) -> Value:
        return holding(dict, [*keys, *values])

    def added(self, container: Value, values: Sequence[Value]) -> Value:
        return self.world.filled(container, outside(union(*values)))

    def extended(self, container: Value, value: Value, *, mapping: bool) -> Value:
        return self.world.filled(container, outside(self.world.each(self, value, values=mapping)))

    def text(self, step: Instruction, values: Sequence[Value]) -> Value:
        for value in values:
            self.world.shown(self, value)
        return OWN

    # -- functions

    def function(self, code: CodeType, cells: Value | None, defaults: Sequence[Value]) -> Value:
        return self.function_with((Inner(code),), cells, defaults)

    def function_with(self, function: Value, cells: Value | None, defaults: Sequence[Value]) -> Value:
        (inner,) = function
        assert isinstance(inner, Inner)
        shared = next((atom.cells for atom in cells or () if isinstance(atom, Cells)), inner.cells)
        return (Inner(inner.code, shared, union(inner.defaults, outside(union((), *defaults)))),)

    def called(self, function: Value, given: list[Value], named: dict[str, Value]) -> Value:
        return self.world.call(self, function, Arguments(given, named))

    def called_with_all(self, function: Value, given: Value, named: Value | None) -> Value:
        rest = union(OWN, self.world.each(self, given))
        if named is not None:
            rest = union(rest, self.world.each(self, named, values=True))
        return self.world.call(self, function, Arguments(rest=rest))

    def returned(self, value: Value) -> None:
        self.given = union(self.given, value)
