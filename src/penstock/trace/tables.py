"""Arrays among stand-ins: a function as one whose own arrays can be asked for items at places of an element.

An array of numpy's takes no stand-in for an index, and `np.array` none for a number. The function is therefore called
again in a form of its own: the same code, where arrays it reads are of a class that knows stand-ins, and `np` is numpy
with a few functions in which they are known too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.functions.ownership import is_users
from penstock.trace.graph import GraphBuilder
from penstock.trace.items import is_table
from penstock.trace.tracer import Tracer, holds_stand_ins, listed, looked_up, made


class Table(np.ndarray):
    """An array that a function reads or makes, which can be asked for an item by a stand-in."""

    def __getitem__(self, index: Any) -> Any:
        if holds_stand_ins(index):
            return looked_up(self.view(np.ndarray), index)
        return super().__getitem__(index)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        into = kwargs.get("out")
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))
        return _table(result) if into is None else into[0] if len(into) == 1 else into

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _table(func(*_plain(args), **_plain(kwargs)))


def _plain(value: Any) -> Any:
    """The same with numpy's arrays in place of ours."""
    if type(value) is Table:
        return value.view(np.ndarray)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return {name: _plain(item) for name, item in value.items()} if type(value) is dict else value


def _table(value: Any) -> Any:
    return value.view(Table) if type(value) is np.ndarray and value.dtype.kind in "biufc" else value


def among_stand_ins(function: Any, builder: GraphBuilder) -> Callable[..., Any] | None:
    """The function in the form that knows stand-ins; None where that would be no other."""
    among = _Among(builder)
    if type(function) is FunctionType:
        found = among.of(function)
        return None if found is function else found
    if type(function) is partial:
        called = among_stand_ins(function.func, builder) or function.func
        given, named = among.of(function.args), among.of(function.keywords)
        same = called is function.func and given is function.args and named is function.keywords
        return None if same else partial(called, *given, **named)
    owner = function.__self__ if type(function) is MethodType else function
    method = function.__func__ if type(function) is MethodType else vars(type(function)).get("__call__")
    inner = among_stand_ins(method, builder) if type(method) is FunctionType else None
    return None if inner is None else MethodType(inner, owner)


class _Among:
    """Values as they are among stand-ins: the same one for the same."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._numpy = _Numpy(builder)
        self._known: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        known = self._known.get(id(value))
        if known is None:
            self._known[id(value)] = value, value  # as it is where it refers to itself
            known = self._known[id(value)] = value, self._found(value)
        return known[1]

    def _found(self, value: Any) -> Any:
        kind = type(value)
        if value is np:
            return self._numpy
        if kind is np.ndarray:
            return _table(value)
        if kind in (tuple, list):
            return self._changed(value, kind(map(self.of, value)), zip(value, map(self.of, value), strict=True))
        if kind is dict:
            made = {key: self.of(item) for key, item in value.items()}
            return self._changed(value, made, ((item, made[key]) for key, item in value.items()))
        if kind is FunctionType and is_users(value):
            return self._function(value)
        return self._numpy.like(value) if callable(value) else value

    @staticmethod
    def _changed(value: Any, made: Any, pairs: Iterator[tuple[Any, Any]]) -> Any:
        return value if all(old is new for old, new in pairs) else made

    def _function(self, function: FunctionType) -> FunctionType:
        used = function.__globals__
        names = {name: used[name] for name in _names(function.__code__) if name in used}
        globals_ = {name: self.of(value) for name, value in names.items()}
        cells = [_content(cell) for cell in function.__closure__ or ()]
        closure = [self.of(value) for value in cells]
        defaults, named = self.of(function.__defaults__), self.of(function.__kwdefaults__)
        pairs = [*((names[name], globals_[name]) for name in names), *zip(cells, closure, strict=True)]
        pairs += [(function.__defaults__, defaults), (function.__kwdefaults__, named)]
        if all(old is new for old, new in pairs):
            return function
        globals_["__builtins__"] = used.get("__builtins__", __builtins__)
        own = tuple(map(CellType, closure))
        result = FunctionType(function.__code__, globals_, function.__name__, defaults, own)
        result.__kwdefaults__ = named
        return result


def _content(cell: CellType) -> Any:
    return cell.cell_contents


def _names(code: CodeType) -> set[str]:
    """The names that code looks up, and code inside it."""
    inside = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inside)


class _Numpy:
    """numpy, where functions that make arrays make such as know stand-ins."""

    def __init__(self, builder: GraphBuilder) -> None:
        own = {name: self._tables(getattr(np, name)) for name in ("eye", "identity", "arange", "linspace")}
        own |= {name: self._made(getattr(np, name), builder) for name in ("zeros", "ones", "full")}
        own |= {"array": _array, "asarray": _asarray}
        self._own: Mapping[str, Any] = own
        self._by_id = {id(getattr(np, name)): function for name, function in own.items()}

    def __getattr__(self, name: str) -> Any:
        return self._own[name] if name in self._own else getattr(np, name)

    def like(self, function: Any) -> Any:
        """What stands for a function of numpy's."""
        return self._by_id.get(id(function), function)

    @staticmethod
    def _tables(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _table(function(*_plain(args), **_plain(kwargs)))

    @staticmethod
    def _made(function: Callable[..., Any], builder: GraphBuilder) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            array = function(*_plain(args), **_plain(kwargs))
            return made(builder, array) if is_table(array) else array

        return make


def _array(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if type(value) is Tracer and value.ndim and not kwargs:
        return value.copy("K") if dtype is None or value.dtype == dtype else value.astype(dtype)
    if type(value) in (tuple, list) and not kwargs and holds_stand_ins(value):
        return listed(_plain(value), None if dtype is None else np.dtype(dtype))
    return _table(np.array(_plain(value), dtype, **kwargs))


def _asarray(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if type(value) is Tracer and value.ndim and not kwargs and (dtype is None or value.dtype == dtype):
        return value
    if holds_stand_ins(value):
        return _array(value, dtype, **kwargs)
    return _table(np.asarray(_plain(value), dtype, **kwargs))
