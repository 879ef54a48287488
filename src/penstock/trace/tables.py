"""Arrays that can be indexed by tracers, and a form of a function that uses such arrays.

An array of numpy does not take a tracer as an index, and `np.array` does not take one as a number. The function is
therefore called again in another form, with the same code. In this form, the arrays that it reads have a class that
supports tracers, and `np` is numpy with a few functions that support them too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations
from types import CellType, FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np

from penstock.functions.code import names as names_in
from penstock.functions.ownership import is_users
from penstock.trace.graph import Const, Graph, GraphBuilder, NotTraceable
from penstock.trace.items import is_table
from penstock.trace.purity import TOO_LARGE
from penstock.trace.statements import straightened
from penstock.trace.tracer import Tracer, holds_stand_ins, listed, looked_up, made


class Table(np.ndarray):
    """An array that a function reads or creates, and that can be indexed by a tracer."""

    own = False  # True if the function created the array, so that each element needs a new one

    def __array_finalize__(self, of: Any) -> None:
        self.own = getattr(of, "own", False)

    def __getitem__(self, index: Any) -> Any:
        if holds_stand_ins(index):
            return looked_up(self.view(np.ndarray), index)
        return super().__getitem__(index)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        into = kwargs.get("out")
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))
        return _made(result) if into is None else into[0] if len(into) == 1 else into

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = func(*_plain(args), **_plain(kwargs))  # the arguments are views: a returned argument owns no memory
        return _made(result) if type(result) is np.ndarray and result.flags.owndata else _table(result)


def _plain(value: Any) -> Any:
    """Return a value with plain arrays of numpy in place of tables."""
    if type(value) is Table:
        return value.view(np.ndarray)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return {name: _plain(item) for name, item in value.items()} if type(value) is dict else value


def _table(value: Any) -> Any:
    return value.view(Table) if type(value) is np.ndarray and value.dtype.kind in "biufc" else value


def _made(value: Any) -> Any:
    """Return an array that the function created as a table."""
    table = _table(value)
    if type(table) is Table:
        table.own = True
    return table


def of_each_element(leaves: Sequence[Any], builder: GraphBuilder) -> list[Any]:
    """Return the leaves of a result, with tracers in place of the arrays of constants that the function created."""
    ours = [leaf for leaf in leaves if type(leaf) is Table]
    if any(np.may_share_memory(first, second) for first, second in combinations(ours, 2)):
        return list(leaves)
    return [made(builder, leaf.view(np.ndarray)) if _is_kept(leaf) else leaf for leaf in leaves]


def _is_kept(leaf: Any) -> bool:
    return type(leaf) is Table and leaf.own and is_table(leaf)


def holds_tables(graph: Graph) -> bool:
    """Return True if a graph contains a table. Its results would be tables as well."""
    given = (operand.value for one in graph.equations for operand in one.operands if isinstance(operand, Const))
    left: list[Any] = [*given, *(one.params for one in graph.equations)]
    while left:
        value = left.pop()
        if isinstance(value, (Table, Live)):
            return True
        if isinstance(value, (tuple, list, Mapping)):
            left.extend(value.values() if isinstance(value, Mapping) else value)
    return False


class Live:
    """An array too large to be watched for changes. The graph may only look up items in it, each time it runs."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array if type(array) is np.ndarray else array.view(np.ndarray)  # a memory map

    def __getitem__(self, index: Any) -> Any:
        if not holds_stand_ins(index):
            self._no()
        return looked_up(Const(self._array), index)

    def __len__(self) -> int:
        return len(self._array)  # the length is watched

    def _no(self, *args: Any) -> NoReturn:
        raise NotTraceable(f"it uses {TOO_LARGE} for more than looking up items")

    __getattr__ = __iter__ = __bool__ = __contains__ = __array__ = __str__ = __repr__ = __format__ = _no
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _no


def among_stand_ins(
    function: Any, builder: GraphBuilder, live: Collection[np.ndarray] = ()
) -> Callable[..., Any] | None:
    """Return the form of a function that supports tracers and `live` arrays, or None if it would be the same."""
    among = _TracedAmong(builder, live)
    found = among.called(function)
    return found if among.changed else None


class Among:
    """Copies functions with some values replaced. All uses of a value get the same replacement."""

    def __init__(self, known: dict[int, tuple[Any, Any]]) -> None:
        self._known = known
        self.changed = bool(known)  # True if a value was replaced

    def leaf(self, value: Any) -> Any:
        """Return the replacement of a value that is not a list, tuple, dict or function of the user."""
        return value

    def form(self, function: FunctionType) -> FunctionType:
        """Return the function whose code is used."""
        return function

    def called(self, function: Any) -> Any:
        """Return the copy of a function, a method, a partial or a callable object."""
        if type(function) is partial:
            return partial(self.called(function.func), *self.of(function.args), **self.of(function.keywords))
        if type(function) is MethodType:
            return MethodType(self.of(function.__func__), self.owner(function.__self__))
        method = vars(type(function)).get("__call__")
        if type(function) is not FunctionType and type(method) is FunctionType:
            return MethodType(self.of(method), self.owner(function))
        return self.of(function)

    def owner(self, value: Any) -> Any:
        """Return the replacement of an object whose method is called."""
        return value

    def of(self, value: Any) -> Any:
        known = self._known.get(id(value))
        if known is None:
            self._known[id(value)] = value, value  # if the value refers to itself, that reference stays
            known = self._known[id(value)] = value, self._found(value)
        return known[1]

    def _found(self, value: Any) -> Any:
        kind = type(value)
        if kind in (tuple, list, dict):
            items = value.items() if kind is dict else enumerate(value)
            made = {key: self.of(item) for key, item in items}
            if all(made[key] is item for key, item in (value.items() if kind is dict else enumerate(value))):
                return value
            return made if kind is dict else kind(made.values())
        if kind is FunctionType and is_users(value):
            return self._function(value)
        found = self.leaf(value)
        self.changed = self.changed or found is not value
        return found

    def _function(self, function: FunctionType) -> FunctionType:
        used, own = function.__globals__, self.form(function)
        names: dict[str, Any] = {"__builtins__": used.get("__builtins__", __builtins__)}
        self.changed = self.changed or own is not function
        cells = tuple(CellType() for _ in own.__closure__ or ())
        made = FunctionType(own.__code__, names, function.__name__, None, cells)
        self._known[id(function)] = function, made  # a recursive function calls its copy
        names.update((name, self.of(used[name])) for name in names_in(own.__code__) if name in used)
        for cell, held in zip(cells, own.__closure__ or (), strict=True):
            with suppress(ValueError):  # the cell is still empty
                cell.cell_contents = self.of(held.cell_contents)
        made.__defaults__, made.__kwdefaults__ = self.of(function.__defaults__), self.of(function.__kwdefaults__)
        return made


class _TracedAmong(Among):
    """Copies a function for tracers: its arrays become tables, and `np` supports tracers."""

    def __init__(self, builder: GraphBuilder, live: Collection[np.ndarray]) -> None:
        super().__init__({id(array): (array, Live(array)) for array in live})
        self._numpy = _TracedNumpy(builder)

    def form(self, function: FunctionType) -> FunctionType:
        return straightened(function)

    def leaf(self, value: Any) -> Any:
        if value is np:
            return self._numpy
        if type(value) is np.ndarray:
            return _table(value)
        return self._numpy.like(value) if callable(value) else value


class _TracedNumpy:
    """numpy with functions that create arrays for tracers."""

    def __init__(self, builder: GraphBuilder) -> None:
        own = {name: self._tables(getattr(np, name)) for name in ("eye", "identity", "arange", "linspace")}
        own |= {name: self._filled(getattr(np, name), builder) for name in ("zeros", "ones", "full")}
        own |= {"array": _array, "asarray": _asarray}
        self._own: Mapping[str, Any] = own
        self._by_id = {id(getattr(np, name)): function for name, function in own.items()}

    def __getattr__(self, name: str) -> Any:
        return self._own[name] if name in self._own else getattr(np, name)

    def like(self, function: Any) -> Any:
        """Return the replacement of a function of numpy, or the function itself."""
        return self._by_id.get(id(function), function)

    @staticmethod
    def _tables(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _made(function(*_plain(args), **_plain(kwargs)))

    @staticmethod
    def _filled(function: Callable[..., Any], builder: GraphBuilder) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            array = function(*_plain(args), **_plain(kwargs))
            return made(builder, array) if is_table(array) else array

        return make


def _array(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if type(value) is Tracer and value.ndim and not kwargs:
        return value.copy("K") if dtype is None or value.dtype == dtype else value.astype(dtype)
    if type(value) in (tuple, list) and not kwargs and holds_stand_ins(value):
        return listed(_plain(value), None if dtype is None else np.dtype(dtype))
    found = np.array(_plain(value), dtype, **kwargs)
    return _table(found) if kwargs else _made(found)


def _asarray(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if type(value) is Tracer and value.ndim and not kwargs and (dtype is None or value.dtype == dtype):
        return value
    if holds_stand_ins(value):
        return _array(value, dtype, **kwargs)
    return _table(np.asarray(_plain(value), dtype, **kwargs))
