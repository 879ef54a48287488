"""Reads a function's code with the kinds of its arguments, and finds what it compares, spells and widens.

Nothing is called. Every branch is taken, each with its own variables, and where two meet a value keeps its kind only
if both agree: what is found holds whenever that line is reached. An instruction that is not known ends the reading of
that piece of code. A function that asks for the type of anything is not read for text: it may be prepared for both.
"""

from __future__ import annotations

import builtins
import dis
import functools
import heapq
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.functions.code import Instruction, instructions, parts
from penstock.functions.effects.interpreter import EFFECTS, ENDS, NOTHING
from penstock.functions.ownership import is_users
from penstock.functions.uses import defaults, plain
from penstock.trace.kinds.findings import Mismatch, SpelledText
from penstock.trace.kinds.operations import (
    attribute,
    binary,
    called_library,
    called_method,
    compared,
    contained,
    item,
    items,
    spelled,
)
from penstock.trace.kinds.values import (
    Constant,
    Inner,
    Kind,
    Method,
    Nest,
    Null,
    Number,
    Slice,
    Spelled,
    Widened,
    is_mutable,
    joined,
)

_MOST_STEPS = 5_000
_DEEPEST = 4
_ASKS = frozenset(("isinstance", "issubclass", "type", "hasattr", "singledispatch", "__class__"))
_READS = frozenset(("get", "keys", "values", "items", "count", "index", "decode", "split", "strip", "lower", "upper"))
_SAYS = frozenset(("print", "debug", "info", "warning", "error", "exception", "critical", "log", "warn", "write"))
Finding = Mismatch | SpelledText | Widened


def read(function: Callable[..., Any], arguments: list[Kind]) -> list[Finding]:
    """What is found in a function that gets arguments of these kinds."""
    reading = _Reading()
    wide = list(_widened(reading.function(function, arguments, 0)))
    if any(_ASKS.intersection(code.co_names) or _matches_classes(code) for code in reading.codes):
        return [*wide]
    both = {constant for code in reading.codes for constant in _constants(code.co_consts)}
    texts = [one for one in reading.found if not isinstance(one, Mismatch) or one.encoded not in both]
    return [*texts, *wide]


def _widened(given: Kind) -> Iterator[Widened]:
    """The operations that made float64 of what a function gives."""
    if isinstance(given, Number) and given.widened is not None:
        yield given.widened
    elif isinstance(given, Nest):
        for kind in given.kinds:
            yield from _widened(kind)


def _matches_classes(code: CodeType) -> bool:
    return any(step.name == "MATCH_CLASS" for step in instructions(code).at.values())


def _constants(values: Any) -> Iterator[bytes]:
    for value in values:
        if isinstance(value, bytes):
            yield value
        elif isinstance(value, (tuple, frozenset)):
            yield from _constants(value)


class _TooMuch(Exception):
    """More steps than are gone through."""


class _Reading:
    def __init__(self) -> None:
        self.found: list[Mismatch | SpelledText] = []
        self.codes: list[CodeType] = []
        self.left = _MOST_STEPS
        self.settling = (
            0  # pieces of code, each inside the other, of which is not known yet what their variables may be
        )

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooMuch

    def function(self, function: Any, arguments: list[Kind], depth: int) -> Kind:
        """What a function gives; None where that is not known."""
        if not isinstance(function, functools.partial):
            function, owner = plain(function)
            arguments = arguments if owner is None else [Constant(owner), *arguments]
        if not isinstance(function, FunctionType) or depth > _DEEPEST or not is_users(function):
            return None
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        variables: dict[str, Kind] = {}
        variables.update({name: Constant(value) for name, value in defaults(function).items()})
        variables.update(zip(names, arguments, strict=False))
        if code.co_flags & 0x04:  # *args
            place = code.co_argcount + code.co_kwonlyargcount
            rest = tuple(arguments[len(names) :])
            variables[code.co_varnames[place]] = Nest((), rest, in_order=True)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
        return self.code(code, variables, function.__globals__, cells, depth)

    def code(
        self, code: CodeType, variables: dict[str, Kind], names: dict[str, Any], cells: dict[str, CellType], depth: int
    ) -> Kind:
        self.codes.append(code)
        if code.co_flags & (0x20 | 0x80 | 0x100 | 0x200):  # generators and coroutines
            return None
        try:
            return _Frame(self, code, names, cells, depth).run(variables)
        except _TooMuch:
            return None


class _Unknown(Exception):
    """An instruction of which is not known what it does."""


class _Frame:
    def __init__(
        self, reading: _Reading, code: CodeType, names: dict[str, Any], cells: dict[str, CellType], depth: int
    ) -> None:
        self._reading = reading
        self._code = code
        self._names = names
        self._cells = cells
        self._depth = depth
        self._steps = instructions(code)
        self._lines = {step.offset: step.positions.lineno or 0 for step in dis.get_instructions(code) if step.positions}
        self._keywords: tuple[str, ...] = ()
        self._at = 0
        self._seen: dict[int, tuple[tuple[Kind, ...], dict[str, Kind]]] = {}
        self._waiting: list[int] = []
        self._given: list[Kind] = []

    def run(self, variables: dict[str, Kind]) -> Kind:
        self._go(0, (), variables)
        self._reading.settling += 1
        try:
            while self._waiting:
                offset = heapq.heappop(self._waiting)
                self._step(offset, *self._seen[offset])
        except _Unknown:
            return None
        finally:
            self._reading.settling -= 1
        self._given.clear()
        if not self._reading.settling:  # now it is known what values may be: once more, to see what is found
            for offset, state in sorted(self._seen.items(), key=lambda known: known[0]):
                self._step(offset, *state)
        else:
            for offset, state in self._seen.items():
                if self._steps.at[offset].name == "RETURN_VALUE":
                    self._given.append(state[0][-1])
        if not self._given:
            return None
        return functools.reduce(joined, self._given)

    def where(self) -> str:
        return f"{self._code.co_filename}:{self._lines.get(self._at, 0)}"

    def add(self, finding: Mismatch | SpelledText | None) -> None:
        if finding is not None and not self._reading.settling and finding not in self._reading.found:
            self._reading.found.append(finding)

    def _go(self, offset: int, stack: tuple[Kind, ...], variables: dict[str, Kind]) -> None:
        seen = self._seen.get(offset)
        if seen is not None:
            stack = tuple(joined(a, b) for a, b in zip(seen[0], stack, strict=False))
            variables = {name: joined(kind, variables.get(name)) for name, kind in seen[1].items()}
            if (stack, variables) == seen:
                return
        self._seen[offset] = stack, dict(variables)
        if offset not in self._waiting:
            heapq.heappush(self._waiting, offset)

    def _step(self, offset: int, before: tuple[Kind, ...], variables: dict[str, Kind]) -> None:
        self._reading.spend()
        self._at = offset
        step = self._steps.at[offset]
        variables = dict(variables)
        for handler in self._steps.handlers:
            if handler.start <= offset < handler.end:
                self._go(handler.target, before[: handler.depth] + (None,) * (1 + handler.lasti), variables)
        stack = list(before)
        if step.name == "FOR_ITER":
            stack.append(items(stack[-1]))
        else:
            self._do(step, stack, variables)
        if step.target is not None:
            jumped = before[: step.jump] if step.jump < 0 else before + (None,) * step.jump
            self._go(step.target, jumped, variables)
        if step.name in ENDS or (step.name.startswith("JUMP_") and "_IF_" not in step.name and step.target is not None):
            return
        self._go(step.after, tuple(stack), variables)

    # -- single instructions

    def _do(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        name = step.name
        doing = getattr(self, f"_do_{_ALIKE.get(name, name).lower()}", None)
        if doing is not None:
            doing(step, stack, variables)
        elif name in EFFECTS:
            takes, gives = EFFECTS[name]
            _pop(stack, takes)
            stack.extend([None] * gives)
        elif name.startswith(("POP_JUMP_", "JUMP_IF_")):
            stack.pop()
        elif "_FAST_" in name and isinstance(step.value, tuple):
            for what, variable in zip(parts(name), step.value, strict=True):
                if what == "LOAD":
                    stack.append(variables.get(variable))
                else:
                    variables[variable] = stack.pop()
        elif name not in NOTHING:
            raise _Unknown

    def _do_load_fast(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack.append(variables.get(step.value))

    def _do_store_fast(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        variables[step.value] = stack.pop()

    def _do_load_deref(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        if step.value in self._cells:
            try:
                stack.append(Constant(self._cells[step.value].cell_contents))
            except ValueError:
                stack.append(None)
        else:  # what the code inside may assign to is not known
            stack.append(None if self._reassigned(step.value) else variables.get(step.value))

    def _reassigned(self, name: str) -> bool:
        return any(
            step.opname == "STORE_DEREF" and step.argval == name
            for inner in self._code.co_consts
            if isinstance(inner, CodeType)
            for step in dis.get_instructions(inner)
        )

    def _do_store_deref(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        variables[step.value] = stack.pop()

    def _do_load_const(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack.append(Constant(step.value))

    def _do_load_global(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        nothing = object()
        value = self._names.get(step.value, getattr(builtins, step.value, nothing))
        kind = None if value is nothing else Constant(value)
        self._callable(kind, stack, null=bool(step.arg & 1))

    def _do_load_attr(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        kind = attribute(stack.pop(), step.value)
        plain = step.name == "LOAD_ATTR" and (sys.version_info < (3, 12) or not step.arg & 1)
        self._callable(kind, stack, null=not plain)

    def _callable(self, kind: Kind, stack: list[Kind], *, null: bool) -> None:
        if not null:
            stack.append(kind)
        elif sys.version_info < (3, 13):
            stack.extend((Null(), kind))
        else:
            stack.extend((kind, Null()))

    def _do_push_null(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack.append(Null())

    def _do_compare_op(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        left, right = _pop(stack, 2)
        sign = next((sign for sign in ("==", "!=") if sign in step.spelled), None)
        if sign is not None:
            self.add(compared(left, right, sign, self.where()))
        self._used(left, right)
        stack.append(None)

    def _do_contains_op(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        value, container = _pop(stack, 2)
        self.add(contained(value, container, "in", self.where()))
        self._used(value)
        stack.append(None)

    def _do_binary_op(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        left, right = _pop(stack, 2)
        if step.spelled == "[]":
            stack.append(self._item(left, right))
        else:
            stack.append(binary(left, right, step.spelled.removesuffix("="), self.where()))

    def _do_binary_subscr(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        owner, key = _pop(stack, 2)
        stack.append(self._item(owner, key))

    def _item(self, owner: Kind, key: Kind) -> Kind:
        self.add(contained(key, owner, "[]", self.where()))
        self._used(key)
        return item(owner, key)

    def _do_binary_slice(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        owner, _, _ = _pop(stack, 3)
        stack.append(item(owner, Slice()))

    def _do_build_slice(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        _pop(stack, step.arg)
        stack.append(Slice())

    def _do_build_tuple(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack.append(Nest((), tuple(_pop(stack, step.arg)), in_order=True))

    def _do_build_map(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        values = _pop(stack, 2 * step.arg)
        keys = tuple(kind.value if isinstance(kind, Constant) else object() for kind in values[::2])
        stack.append(Nest(keys, tuple(values[1::2]), in_order=False))

    def _do_build_const_key_map(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        *values, keys = _pop(stack, step.arg + 1)
        stack.append(Nest(keys.value, tuple(values), in_order=False) if isinstance(keys, Constant) else None)

    def _do_format(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        """`{x}` in an f-string; `{x!r}` asks for the quotes."""
        converted = step.name == "FORMAT_VALUE" and step.arg & 3
        values = _pop(
            stack, 1 + bool(step.name == "FORMAT_WITH_SPEC" or (step.name == "FORMAT_VALUE" and step.arg & 4))
        )
        stack.append(None if converted else spelled(values[0]))

    def _do_build_string(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        values = _pop(stack, step.arg)
        stack.append(Spelled() if Spelled() in values else None)

    def _do_copy(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack.append(stack[-step.arg])

    def _do_swap(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]

    def _do_get_iter(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        """The iterator stands for what it goes through."""

    def _do_unpack_sequence(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        value = stack.pop()
        if isinstance(value, Nest) and value.in_order and len(value.kinds) == step.arg:
            stack.extend(reversed(value.kinds))
        else:
            stack.extend([items(value)] * step.arg)

    def _do_store_subscr(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        _pop(stack, {"STORE_SUBSCR": 3, "DELETE_SUBSCR": 2, "STORE_SLICE": 4, "STORE_ATTR": 2}.get(step.name, 1))
        if step.name != "STORE_GLOBAL":
            _forget(stack, variables)

    def _do_list_append(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        _pop(stack, 2 if step.name == "MAP_ADD" else 1)

    def _do_build_list(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        self._used(*_pop(stack, step.arg))
        stack.append(None)

    def _do_import_name(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        _pop(stack, 2)
        module = sys.modules.get(step.value.partition(".")[0])
        stack.append(None if module is None else Constant(module))

    def _do_import_from(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        stack.append(attribute(stack[-1], step.value))

    def _do_make_function(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        code = stack.pop()
        taken = bin(step.arg & 15).count("1") if sys.version_info < (3, 13) else 0
        _pop(stack, taken)
        stack.append(Inner(code.value) if isinstance(code, Constant) else None)

    def _do_set_function_attribute(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        function, _ = stack.pop(), stack.pop()
        stack.append(function)

    def _do_kw_names(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        self._keywords = step.value if isinstance(step.value, tuple) else self._code.co_consts[step.arg]

    def _do_call(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        names, self._keywords = self._keywords, ()
        if step.name == "CALL_KW":
            last = stack.pop()
            names = last.value if isinstance(last, Constant) else ()
        given = _pop(stack, step.arg)
        function, first = _pop(stack, 2)
        if isinstance(function, Null):
            function = first
        elif not isinstance(first, Null):
            given = [first, *given]
        count = len(given) - len(names)
        found = self._call(function, given[:count], given[count:])
        if any(map(is_mutable, given)) or (isinstance(function, Method) and function.name not in _READS):
            _forget(stack, variables)
        stack.append(found)

    def _do_call_function_ex(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        _forget(stack, variables)
        _pop(stack, (4 if sys.version_info >= (3, 14) else 3 + (step.arg & 1)))
        stack.append(None)

    def _do_return_value(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        value = stack.pop()
        self._used(value)
        self._given.append(value)

    def _do_return_const(self, step: Instruction, stack: list[Kind], variables: dict[str, Kind]) -> None:
        self._given.append(None)

    # -- calls

    def _call(self, function: Kind, arguments: list[Kind], named: list[Kind]) -> Kind:
        if isinstance(function, Method):
            if isinstance(function.owner, Constant) and not isinstance(function.owner.value, ModuleType):
                self.add(contained(next(iter(arguments), None), function.owner, function.name, self.where()))
            given = called_method(function, arguments, named)
            if function.name not in _SAYS and given is None:
                self._used(*arguments, *named)
            return given
        if isinstance(function, Inner):
            code = function.code
            variables = dict(zip(code.co_varnames[: code.co_argcount], arguments, strict=False))
            return self._reading.code(code, variables, self._names, {}, self._depth + 1)
        if not isinstance(function, Constant):
            self._used(*arguments, *named)
            return None
        value = function.value
        if isinstance(value, (FunctionType, MethodType)) and is_users(getattr(value, "__func__", value)):
            return None if named else self._reading.function(value, arguments, self._depth + 1)
        raised = isinstance(value, type) and issubclass(value, BaseException)
        if not raised and getattr(value, "__name__", "") not in _SAYS:
            self._used(*arguments, *named)
        return called_library(value, arguments, named)

    def _used(self, *values: Kind) -> None:
        """A value leaves for others, who will find `b'…'` in it."""
        for value in values:
            if isinstance(value, Spelled):
                self.add(SpelledText(self.where()))
            elif isinstance(value, Nest):
                self._used(*value.kinds)


def _forget(stack: list[Kind], variables: dict[str, Kind]) -> None:
    """Something may have been written to: dicts and lists may hold other kinds than before."""
    stack[:] = [None if is_mutable(kind) else kind for kind in stack]
    for name, kind in variables.items():
        if is_mutable(kind):
            variables[name] = None


def _pop(stack: list[Kind], count: int) -> list[Kind]:
    if not count:
        return []
    found = stack[-count:]
    del stack[-count:]
    return found


_ALIKE = {
    **dict.fromkeys(("LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR", "LOAD_CLOSURE"), "LOAD_FAST"),
    **dict.fromkeys(("LOAD_CONST_IMMORTAL", "LOAD_SMALL_INT"), "LOAD_CONST"),
    "LOAD_METHOD": "LOAD_ATTR",
    **dict.fromkeys(("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"), "FORMAT"),
    **dict.fromkeys(("DELETE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL"), "STORE_SUBSCR"),
    **dict.fromkeys(("SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"), "LIST_APPEND"),
    "BUILD_SET": "BUILD_LIST",
    "CALL_KW": "CALL",
}
