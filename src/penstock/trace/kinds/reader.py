"""Reads a function's code with the kinds of its arguments, and finds what it compares, spells and widens.

Nothing is called. Every branch is taken, each with its own variables, and where two meet a value keeps its kind only
if both agree: what is found holds whenever that line is reached. An instruction that is not known ends the reading of
that piece of code. A function that asks for the type of anything is not read for text: it may be prepared for both.
"""

from __future__ import annotations

import builtins
import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec, spec_of
from penstock.block.structure import flatten
from penstock.errors import TextWarning
from penstock.forked import new_lock
from penstock.functions import uses
from penstock.functions.code import Instruction, instructions
from penstock.functions.machine import Machine
from penstock.functions.ownership import is_users
from penstock.trace.kinds import operations
from penstock.trace.kinds.values import (
    Constant,
    Inner,
    Kind,
    Method,
    Mismatch,
    Nest,
    Null,
    Number,
    Slice,
    Spelled,
    SpelledText,
    Widened,
    is_mutable,
    joined,
    kind_of_spec,
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
    names = {step.name for code in reading.codes for step in instructions(code).at.values()}
    if "MATCH_CLASS" in names or any(_ASKS.intersection(code.co_names) for code in reading.codes):
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
        self.settling = 0  # nested pieces of code whose variables are not known yet

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooMuch

    def function(self, function: Any, arguments: list[Kind], depth: int) -> Kind:
        """What a function gives; None where that is not known."""
        if not isinstance(function, functools.partial):
            function, owner = uses.plain(function)
            arguments = arguments if owner is None else [Constant(owner), *arguments]
        if not isinstance(function, FunctionType) or depth > _DEEPEST or not is_users(function):
            return None
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        variables: dict[str, Kind] = {}
        variables.update({name: Constant(value) for name, value in uses.defaults(function).items()})
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
            return _Frame(self, code, variables, names, cells, depth).run()
        except _TooMuch:
            return None


class _Unknown(Exception):
    """An instruction of which is not known what it does."""


class _Frame(Machine):
    NULL = Null()
    UNKNOWN = None
    SLICE = Slice()
    BY_PLACE = True

    def __init__(
        self,
        reading: _Reading,
        code: CodeType,
        variables: dict[str, Kind],
        names: dict[str, Any],
        cells: dict[str, CellType],
        depth: int,
    ) -> None:
        super().__init__(code, variables)
        self._reading = reading
        self._names_outside = names
        self._cells = cells
        self._depth = depth
        self._lines = {2 * i: first or 0 for i, (first, *_) in enumerate(code.co_positions())}
        self._given: list[Kind] = []

    def run(self) -> Kind:
        self._reading.settling += 1
        try:
            self.go_through()
        except _Unknown:
            return None
        finally:
            self._reading.settling -= 1
        self._given.clear()
        settled = sorted(self.seen.items(), key=lambda known: known[0])
        if not self._reading.settling:  # now it is known what values may be: once more, to see what is found
            for offset, state in settled:
                self.step(offset, *state)
        else:
            for offset, (stack, _) in settled:
                if self.steps.at[offset].name in ("RETURN_VALUE", "RETURN_CONST"):
                    self._given.append(stack[-1] if self.steps.at[offset].name == "RETURN_VALUE" else None)
        return functools.reduce(joined, self._given) if self._given else None

    def where(self) -> str:
        return f"{self.code.co_filename}:{self._lines.get(self.at, 0)}"

    def add(self, finding: Mismatch | SpelledText | None) -> None:
        if finding is not None and not self._reading.settling and finding not in self._reading.found:
            self._reading.found.append(finding)

    def spend(self) -> None:
        self._reading.spend()

    def refuse(self, name: str) -> None:
        raise _Unknown

    def joined(self, old: Kind, new: Kind) -> Kind:
        return joined(old, new)

    # -- names

    def constant(self, value: Any) -> Kind:
        return Constant(value)

    def constant_of(self, value: Kind) -> Any:
        return value.value if isinstance(value, Constant) else ()

    def load(self, variable: str) -> Kind:
        return self.variables.get(variable)

    def store(self, variable: str, value: Kind) -> None:
        self.variables[variable] = value

    def load_shared(self, variable: str) -> Kind:
        if variable not in self._cells:  # what the code inside may assign to is not known
            return None if self._reassigned(variable) else self.variables.get(variable)
        try:
            return Constant(self._cells[variable].cell_contents)
        except ValueError:
            return None

    def _reassigned(self, name: str) -> bool:
        return any(
            step.name == "STORE_DEREF" and step.value == name
            for inner in self.code.co_consts
            if isinstance(inner, CodeType)
            for step in instructions(inner).at.values()
        )

    def store_shared(self, variable: str, value: Kind) -> None:
        self.variables[variable] = value

    def named(self, name: str) -> Kind:
        nothing = object()
        value = self._names_outside.get(name, getattr(builtins, name, nothing))
        return None if value is nothing else Constant(value)

    def module(self, name: str) -> Kind:
        module = sys.modules.get(name)
        return None if module is None else Constant(module)

    # -- attributes, items, operators

    def attribute(self, owner: Kind, name: str) -> Kind:
        return operations.attribute(owner, name)

    def compared(self, left: Kind, right: Kind, operator: str) -> Kind:
        sign = next((sign for sign in ("==", "!=") if sign in operator), None)
        if sign is not None:
            self.add(operations.compared(left, right, sign, self.where()))
        self._used(left, right)
        return None

    def contained(self, value: Kind, container: Kind) -> Kind:
        self.add(operations.contained(value, container, "in", self.where()))
        self._used(value)
        return None

    def combined(self, left: Kind, right: Kind, operator: str) -> Kind:
        return operations.binary(left, right, operator.removesuffix("="), self.where())

    def item(self, owner: Kind, key: Kind) -> Kind:
        if key != self.SLICE:
            self.add(operations.contained(key, owner, "[]", self.where()))
            self._used(key)
        return operations.item(owner, key)

    def each(self, value: Kind) -> Kind:
        return operations.items(value)

    def iterated(self, value: Kind) -> None:
        """The iterator stands for what it goes through."""

    def items_matched(self, value: Kind) -> Kind:
        return None

    def unpacked(self, value: Kind, count: int, *, starred: bool) -> list[Kind]:
        if starred:
            return [None] * count
        if isinstance(value, Nest) and value.in_order and len(value.kinds) == count:
            return [*reversed(value.kinds)]
        return [operations.items(value)] * count

    def change_attribute(self, owner: Kind, name: str, value: Kind | None) -> None:
        self._forget()

    def change_item(self, owner: Kind, value: Kind | None) -> None:
        self._forget()

    def change_global(self, name: str) -> None:
        """It is read as it is now."""

    def _forget(self) -> None:
        """Something may have been written to: dicts and lists may hold other kinds than before."""
        self.stack[:] = [None if is_mutable(kind) else kind for kind in self.stack]
        for name, kind in self.variables.items():
            if is_mutable(kind):
                self.variables[name] = None

    # -- containers and text

    def built(self, kind: type, values: Sequence[Kind]) -> Kind:
        if kind is tuple:
            return Nest((), tuple(values), in_order=True)
        self._used(*values)
        return Nest(tuple(range(len(values))), tuple(values), in_order=False) if kind is list else None

    def added(self, container: Kind, values: Sequence[Kind]) -> Kind:
        return None

    def extended(self, container: Kind, value: Kind, *, mapping: bool) -> Kind:
        held = getattr(value, "value", None)
        if isinstance(container, Nest) and type(held) is tuple:
            return self.built(list, [*container.kinds, *map(Constant, held)])
        return container if mapping else None

    def built_mapping(self, keys: Sequence[Kind], values: Sequence[Kind]) -> Kind:
        known = tuple(kind.value if isinstance(kind, Constant) else object() for kind in keys)
        return Nest(known, tuple(values), in_order=False)

    def text(self, step: Instruction, values: Sequence[Kind]) -> Kind:
        if step.name == "BUILD_STRING":
            return Spelled() if Spelled() in values else None
        converted = step.name == "FORMAT_VALUE" and step.arg & 3  # {x!r} asks for the quotes
        return None if converted or step.name == "BUILD_INTERPOLATION" else operations.spelled(values[0])

    # -- functions

    def function(self, code: CodeType, cells: Kind | None, defaults: Sequence[Kind]) -> Kind:
        return Inner(code)

    def returned(self, value: Kind) -> None:
        self._used(value)
        self._given.append(value)

    def called_with_all(self, function: Kind, given: Kind, named: Kind | None) -> Kind:
        self._forget()
        return None

    def called(self, function: Kind, given: list[Kind], named: dict[str, Kind]) -> Kind:
        found = self._result(function, given, [*named.values()])
        everything = (*given, *named.values())
        reads = isinstance(function, Constant) and any(function.value is one for one in (np.array, np.asarray, np.isin))
        if (any(map(is_mutable, everything)) and not reads) or (
            isinstance(function, Method) and function.name not in _READS
        ):
            self._forget()
        return found

    def _result(self, function: Kind, arguments: list[Kind], named: list[Kind]) -> Kind:
        if isinstance(function, Method):
            if isinstance(function.owner, Constant) and not isinstance(function.owner.value, ModuleType):
                self.add(operations.contained(next(iter(arguments), None), function.owner, function.name, self.where()))
            given = operations.called_method(function, arguments, named)
            if function.name not in _SAYS and given is None:
                self._used(*arguments, *named)
            return given
        if isinstance(function, Inner):
            code = function.code
            variables = dict(zip(code.co_varnames[: code.co_argcount], arguments, strict=False))
            return self._reading.code(code, variables, self._names_outside, {}, self._depth + 1)
        if not isinstance(function, Constant):
            self._used(*arguments, *named)
            return None
        value = function.value
        if isinstance(value, (FunctionType, MethodType)) and is_users(getattr(value, "__func__", value)):
            return None if named else self._reading.function(value, arguments, self._depth + 1)
        if value is np.isin and len(arguments) > 1:
            self.add(operations.compared(arguments[0], arguments[1], "==", self.where()))
        raised = isinstance(value, type) and issubclass(value, BaseException)
        if not raised and uses.attribute(value, "__name__") not in _SAYS:
            self._used(*arguments, *named)
        return operations.called_library(value, arguments, named)

    def _used(self, *values: Kind) -> None:
        """A value leaves for others, who will find `b'…'` in it."""
        for value in values:
            if isinstance(value, Spelled):
                self.add(SpelledText(self.where()))
            elif isinstance(value, Nest):
                self._used(*value.kinds)


_LOCK = new_lock()
_READ: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()  # by their code, and what they are given
_TOLD: set[str] = set()  # the lines of which the process has been warned


def warn_of_text(function: Callable[..., Any], block: Block) -> None:
    """A TextWarning for each line on which the function compares texts of these elements with str, once in a process.

    Elements without text cost a look at their specs. With text the function is read, once for each kind of element.
    """
    specs = block.specs()
    if _have_text(specs):
        element = block.structure.build(specs)
        _warn(function, specs, element if block.structure.unpacks else (element,))


def warn_of_text_in(function: Callable[..., Any], *arguments: Any) -> None:
    """The same of a function that is about to be called with these arguments, elements or states."""
    leaves, structure = flatten(arguments)
    specs = [spec_of(leaf) for leaf in leaves]
    if _have_text(specs):
        _warn(function, specs, structure.build(specs))


def _have_text(specs: Sequence[LeafSpec]) -> bool:
    return any(getattr(spec, "dtype", None) is bytes for spec in specs)


def _warn(function: Callable[..., Any], specs: Sequence[LeafSpec], arguments: Sequence[Any]) -> None:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return
    with _LOCK:
        read_with = _READ.setdefault(code, set())
        if tuple(specs) in read_with:
            return
        read_with.add(tuple(specs))
    for found in _mismatches(function, arguments):
        with _LOCK:
            if found.where in _TOLD:
                continue
            _TOLD.add(found.where)
        file, _, line = found.where.rpartition(":")
        message = f"The function {found.message}. Text is bytes, as in tf.data: write {found.mended}."
        warnings.warn_explicit(message, TextWarning, file, int(line))


def _mismatches(function: Callable[..., Any], arguments: Sequence[Any]) -> list[Any]:
    try:
        return [one for one in read(function, [*map(kind_of_spec, arguments)]) if isinstance(one, Mismatch)]
    except Exception:  # code that is read may hold anything
        return []
