"""A digest of a plan and of the data in it: what tells two snapshots apart."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from sysconfig import get_path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.leaf import NESTED
from penstock.io import storage
from penstock.plan.node import Node, parameters
from penstock.sources.source import Source

_PLAIN = (int, float, complex, str, bytes, bool, range, type(None), np.generic, np.dtype)


def content_key(*values: Any) -> str:
    """32 hexadecimal digits that differ for plans, and other values, that may give different elements.

    Beyond what `fingerprint` sees these are the contents of arrays, the sizes and times of local files that a source
    names or an array maps, the fields of objects, data sets, and for functions also the global values and the functions
    that they use, except those of packages. What a function reads from elsewhere is not seen.
    """
    digest = _Digest()
    for value in values:
        digest.add(value)
    return digest.hash.hexdigest()


class _Digest:
    """A hash of values; one that comes again, perhaps inside itself, counts by its number."""

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, Any]] = {}  # its number, and itself: an id is free again when nobody holds it

    def text(self, *parts: Any) -> None:
        self.hash.update("\0".join(map(str, parts)).encode(errors="surrogatepass") + b"\1")

    def add(self, value: Any) -> None:
        if isinstance(value, _PLAIN):
            self.text(type(value).__name__, repr(value))
            return
        if id(value) in self._seen:
            self.text("again", self._seen[id(value)][0])
            return
        self._seen[id(value)] = len(self._seen), value
        self._add(value)

    def _all(self, name: str, values: Iterable[Any]) -> None:
        whole = list(values)
        self.text(name, len(whole))
        for value in whole:
            self.add(value)

    def _add(self, value: Any) -> None:
        match value:
            case Node():
                self.text(type(value).__name__)
                self._all("step", (part for pair in parameters(value).items() if pair[0] != "store" for part in pair))
                for below in value.inputs:
                    self.add(below)
            case np.ndarray():
                self._array(value)
            case Column():
                self._column(value)
            case FunctionType():
                self._function(value)
            case MethodType():
                self._all("method", (value.__self__, value.__func__))
            case functools.partial():
                self._all("partial", (value.func, value.args, value.keywords))
            case tuple() | list():
                self._all(type(value).__name__, value)
            case set() | frozenset():
                self._all("set", sorted(map(repr, value)))
            case dict():
                self._all("dict", (part for pair in value.items() for part in pair))
            case type():
                self.text(value.__module__, value.__qualname__)
            case ModuleType():
                self.text(value.__name__)
            case _ if getattr(value, NESTED, None) is not None:
                self.add(getattr(value, NESTED))
            case _ if is_dataclass(value):
                self.text(type(value).__qualname__)
                self._all("fields", (getattr(value, field.name) for field in fields(value)))
                if isinstance(value, Source):
                    self._files(getattr(value, "files", ()))
            case _:
                self._object(value)

    def _array(self, array: np.ndarray) -> None:
        self.text("array", array.shape, array.dtype)
        mapped = _map_of(array)
        if mapped is not None:
            self.text(array.strides, array.ctypes.data - mapped.ctypes.data, mapped.offset)
            self._files((str(mapped.filename),))
        elif array.dtype.hasobject:
            self._all("objects", array.reshape(-1).tolist())
        else:
            self.hash.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _column(self, column: Column) -> None:
        if isinstance(column, DenseColumn):
            self._array(column.array)
        elif isinstance(column, BytesColumn):
            data, starts, lengths = column.packed()
            for array in (data, starts, lengths):
                self._array(array)
        else:
            self._all("column", column.values())

    def _function(self, function: Callable[..., Any]) -> None:
        assert isinstance(function, FunctionType)
        names: set[str] = set()
        self._code(function.__code__, names)
        self._all("defaults", (function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not set yet
                continue
            self.add(content)
        if not _of_a_library(function):
            for name in sorted(names & function.__globals__.keys()):
                self.text(name)
                self.add(function.__globals__[name])

    def _code(self, code: CodeType, names: set[str]) -> None:
        """The code, and into `names` what it may use of the module's values."""
        names.update(code.co_names)
        self.text(code.co_code.hex(), code.co_names, code.co_varnames)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, names)
            else:
                self.add(constant)

    def _files(self, files: Any) -> None:
        for name in files if isinstance(files, tuple) else ():
            if isinstance(name, str) and not storage.is_url(name) and storage.exists(name):
                found = Path(name).stat()
                self.text("file", name, found.st_size, found.st_mtime_ns)

    def _object(self, value: Any) -> None:
        """What copying it would take along; of what cannot be copied its class."""
        self.text(type(value).__module__, type(value).__qualname__)
        call = vars(type(value)).get("__call__")
        if isinstance(call, FunctionType):
            self.add(call)
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:  # by functools.cache, or numba
            self.add(wrapped)
            return
        try:
            parts = value.__reduce_ex__(2)
        except Exception:
            return
        self._all("object", [parts] if isinstance(parts, str) else [part for part in parts if not _one_pass(part)])


def _map_of(array: np.ndarray) -> np.memmap[Any, Any] | None:
    """The mapped file that an array is part of: its size and time stand for the content, which may be large."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.filename is not None:
            return base
        base = base.base
    return None


def _of_a_library(function: FunctionType) -> bool:
    """Whether a function comes with Python, penstock or another package: what it uses is its own business."""
    paths = (get_path(name) for name in ("stdlib", "purelib", "platlib"))
    return (function.__module__ or "").partition(".")[0] == "penstock" or function.__code__.co_filename.startswith(
        tuple(paths)
    )


def _one_pass(value: Any) -> bool:
    return hasattr(value, "__next__")
