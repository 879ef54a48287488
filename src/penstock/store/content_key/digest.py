"""Digester: digests of values by their content.

`FileVersions` caches the size and time of each file that a plan reads, so that each file is checked once.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import os
import struct
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.leaf import NESTED
from penstock.functions.code import pieces_of, words
from penstock.functions.ownership import is_users
from penstock.functions.uses import held
from penstock.hints import redacted
from penstock.io import storage
from penstock.sources.arrays import ArraysSource
from penstock.sources.source import Source
from penstock.trace.purity import may_draw

FileVersion = tuple[str, int, int | str]  # name, size, and modification time in nanoseconds or the ETag of a server

_MOST_LISTED = 10_000  # files listed for an entry
_AT_ONCE = 16  # parallel requests to servers


class FileVersions:
    """The versions found so far, by name of the file."""

    def __init__(self) -> None:
        self.found: dict[str, FileVersion] = {}

    def of(self, names: Sequence[str]) -> list[FileVersion]:
        """Return the versions of files. A file that is missing, or whose server does not answer, has the size -1."""
        new = [name for name in dict.fromkeys(names) if name not in self.found]
        remote = [name for name in new if storage.is_url(name)]
        if len(remote) > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_AT_ONCE, "penstock-etags") as asking:
                self._keep(remote, asking.map(_version, remote))
            new = [name for name in new if name not in self.found]
        self._keep(new, map(_version, new))
        return [self.found[name] for name in names]

    def listed(self) -> tuple[FileVersion, ...]:
        """Return the versions found so far, or nothing if there are more than 10,000."""
        return tuple(self.found.values()) if len(self.found) <= _MOST_LISTED else ()

    def _keep(self, names: Iterable[str], versions: Iterable[FileVersion]) -> None:
        self.found.update(zip(names, versions, strict=True))


def _version(name: str) -> FileVersion:
    try:
        return redacted(name), *storage.version(name)
    except Exception:  # a file that cannot be checked cannot be read either
        return redacted(name), -1, ""


def is_step(value: Any) -> bool:
    """Return True for a node of a plan. Its fields are the parameters of the step."""
    return hasattr(type(value), "changes_elements") and hasattr(type(value), "with_inputs")


def named_files(source: Any) -> tuple[str, ...]:
    """Return the files that a source reads, or whose names are its elements.

    Byte strings count as names if the first one is an existing file.
    """
    files = getattr(source, "files", ())
    if isinstance(files, tuple) and files and all(isinstance(name, str) for name in files):
        return files
    columns = source.columns if isinstance(source, ArraysSource) else ()
    return tuple(name for column in columns if isinstance(column, BytesColumn) for name in _names_in(column))


def _names_in(column: BytesColumn) -> list[str]:
    flat = BytesColumn(column.buffers, column.starts.reshape(-1), column.lengths.reshape(-1))
    if not len(flat) or not _is_file(flat.slice(0, 1).values()[0]):
        return []
    return [os.fsdecode(name) for name in flat.values()]


def _is_file(name: bytes) -> bool:
    text = os.fsdecode(name)
    return storage.is_url(text) or ("\0" not in text and len(text) < 4096 and Path(text).is_file())


def files_of(plan: Any) -> tuple[FileVersion, ...]:
    """Return the current versions of the files that a plan reads, or whose names are its elements.

    If there are more than 10,000 files, the result is empty.
    """
    names = [name for node in plan.walk() for name in named_files(getattr(node, "source", None))]
    versions = FileVersions()
    if len(names) <= _MOST_LISTED:
        versions.of(names)
    return versions.listed()


def mapped_file(array: np.ndarray) -> np.memmap[Any, Any] | None:
    """Return the mapped file that contains an array, or None.

    Size and time of the file stand for its content, which may be large.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.filename is not None:
            return base
        base = base.base
    return None


PLAIN = (int, float, complex, str, bytes, bool, range, type(None), np.generic, np.dtype)
# position and inputs of a step; a live object of a process; a counter; parameters of scheduling
_NOT_TELLING = words("where input parts store tally executor num_parallel_calls vectorise")
# Modules in which classes of penstock were defined when existing entries were written. Their names are part of keys.
_KNOWN_AS = {
    f"penstock.{place}": f"penstock.{before}"
    for place, before in {
        "block.scan_state.InitialState": "block.carried.InitialState",
        "block.spec.RaggedTensorSpec": "block.ragged_spec.RaggedTensorSpec",
        "dataset.map_fn_lift.AnyShape": "dataset.map_fn_signature.AnyShape",
        "dataset.map_fn_lift.Signature": "dataset.map_fn_signature.Signature",
        "io.compression.TFRecordOptions": "io.tfrecord.options.TFRecordOptions",
        "io.example.SequenceExample": "io.sequence_example.SequenceExample",
        "plan.grouping.Reducer": "plan.reducer.Reducer",
        "plan.indexing.Provenance": "block.provenance.Provenance",
        "sources.arrays.BlockSource": "sources.held.BlockSource",
        "sources.arrow.ArrowSource": "sources.arrow_ipc.ArrowSource",
        "sources.arrow.TableSource": "sources.arrow_table.TableSource",
        "sources.fixed.FixedLengthRowsSource": "sources.fixed_rows.FixedLengthRowsSource",
        "sources.json_kinds.JsonLeaf": "sources.json_leaf.JsonLeaf",
        "sources.source.SlicedSource": "sources.sliced.SlicedSource",
        "store.chunk.Chunk": "io.saved.chunk.Chunk",
        "store.manifest.Manifest": "io.saved.manifest.Manifest",
        "store.saved_source.SavedSource": "sources.saved.SavedSource",
        "trace.lift.RandomOp": "trace.random_op.RandomOp",
        "dataset.make_datasets.CsvFiles": "dataset.make_csv.CsvFiles",
        "sources.arrays.CounterSource": "sources.counting.CounterSource",
        "sources.arrays.RandomSource": "sources.counting.RandomSource",
        "sources.indexed_records.ArrayRecordSource": "sources.array_record.ArrayRecordSource",
    }.items()
}


def telling(node: Any) -> dict[str, Any]:
    """Return the parameters that count for the key, by name, without those that are None."""
    given = {field.name: getattr(node, field.name) for field in fields(node) if field.name not in _NOT_TELLING}
    found = {name: value for name, value in given.items() if value is not None}
    functions = [value for value in found.values() if callable(value)]
    if "salt" in found and functions and not any(map(may_draw, functions)):
        del found["salt"]  # only random numbers depend on it
    return found


def digest_of(pieces: Iterable[str]) -> str:
    """Return 32 hexadecimal digits for a sequence of strings."""
    found = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        found.update(piece.encode(errors="surrogatepass") + b"\1")
    return found.hexdigest()


class Digester:
    """Computes digests of values. A value that contains itself counts as its distance to the outer occurrence."""

    def __init__(self) -> None:
        self.files = FileVersions()
        self.saw_code = False
        self._done: dict[int, tuple[Any, str]] = {}  # with the value itself, because the id of a freed object is reused
        self._within: list[int] = []

    def of(self, value: Any) -> str:
        """Return 32 hexadecimal digits that differ for values that may lead to different results."""
        if isinstance(value, PLAIN) and not is_users(type(value)):
            return digest_of([_plain(value)])
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._within:
            return digest_of(["within", str(self._within[::-1].index(id(value)))])
        self._within.append(id(value))
        try:
            found = digest_of(self._pieces(value))
        finally:
            self._within.pop()
        self._done[id(value)] = value, found
        return found

    def code(self, function: FunctionType) -> str:
        """Return the digest of a function without the objects that it uses. Names of modules count."""
        self.saw_code = True
        modules = (f"{use.name} {use.value}" for use in held(function) if use.kind == "module")
        return digest_of([*self._code(function), *modules])

    def _code(self, function: FunctionType) -> Iterator[str]:
        for piece in pieces_of(function):
            if isinstance(piece, CodeType):
                yield piece.co_code.hex()
                yield repr((piece.co_names, piece.co_varnames, piece.co_flags))
            else:
                yield self._piece(piece)

    def versions(self, names: tuple[str, ...]) -> str:
        """Return the digest of files: of their names, sizes and times."""
        return digest_of(repr(version) for version in self.files.of(names))

    def _piece(self, value: Any) -> str:
        return _plain(value) if isinstance(value, PLAIN) and not is_users(type(value)) else self.of(value)

    def _all(self, kind: str, values: Iterable[Any]) -> Iterator[str]:
        yield kind
        yield from map(self._piece, values)

    def _pieces(self, value: Any) -> Iterator[str]:
        match value:
            case _ if is_step(value):
                return self._node(value)
            case _ if type(value) in _CONTENTS:
                return self._all(_kind(value), _CONTENTS[type(value)](value))
            case tuple() | list() | dict() | set() | frozenset() | np.ndarray() if is_users(type(value)):
                return self._object(value)
            case np.ndarray():
                return self._array(value)
            case Column():
                return self._column(value)
            case FunctionType():
                return self._function(value)
            case MethodType():
                return self._all("method", (value.__self__, value.__func__))
            case functools.partial():
                return self._all("partial", (value.func, value.args, value.keywords))
            case tuple() | list():
                return self._all(_kind(value), value)
            case set() | frozenset():
                return iter([_kind(value), *sorted(map(self._piece, value))])
            case dict():
                return self._all(_kind(value), (part for pair in value.items() for part in pair))
            case type():
                return self._class(value)
            case ModuleType():
                return iter(["module", value.__name__])
            case Source():
                return self._source(value)
            case _ if hasattr(type(value), NESTED):
                return self._all("data set", (getattr(value, NESTED),))
            case _ if hasattr(type(value), "__arrow_c_stream__") and hasattr(value, "to_batches"):
                return self._table(value)
            case _ if hasattr(type(value), "__dlpack__") and not is_users(type(value)):
                return self._array_of_others(value)
            case _ if is_dataclass(value) and not is_users(type(value)):
                return self._all(_kind(value), (getattr(value, field.name) for field in fields(value)))
            case _:
                return self._object(value)

    def _node(self, node: Any) -> Iterator[str]:
        if not node.changes_elements:
            node = node.input
        told = (part for pair in telling(node).items() for part in pair)
        yield from self._all(type(node).__name__, (*told, *node.inputs))

    def _source(self, source: Source) -> Iterator[str]:
        version = getattr(source, "version", None)  # stands for content that would take long to read
        if version is not None:
            yield from self._all(_kind(source), (version, source.label))
        elif is_dataclass(source):
            yield from self._all(_kind(source), (getattr(source, field.name) for field in fields(source)))
        else:
            yield from self._object(source)
        yield self.of(type(source))
        yield self.versions(named_files(source))

    def _array(self, array: np.ndarray) -> Iterator[str]:
        yield f"array {array.shape} {array.dtype}"
        mapped = mapped_file(array)
        if mapped is not None:
            yield f"{array.strides} {array.ctypes.data - mapped.ctypes.data} {mapped.offset}"
            yield self.versions((str(mapped.filename),))
        elif array.dtype.hasobject:
            yield from self._all("objects", array.reshape(-1).tolist())
        else:
            if not array.flags.c_contiguous:
                yield f"{array.strides}"
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            yield hashlib.blake2b(content, digest_size=16).hexdigest()

    def _table(self, table: Any) -> Iterator[str]:
        """Digest the bytes of each batch, so that a slice of a long table counts only by its own rows."""
        yield f"table {table.schema}"
        for batch in table.to_batches():
            yield hashlib.blake2b(batch.serialize(), digest_size=16).hexdigest()

    def _array_of_others(self, value: Any) -> Iterator[str]:
        """Digest the numbers of an array of another library. A copy might include its memory address."""
        numbers = _numbers(value)
        if numbers is None:
            return self._object(value)
        return self._all("array", (type(value), str(getattr(value, "dtype", "")), numbers))

    def _column(self, column: Column) -> Iterator[str]:
        if isinstance(column, DenseColumn):
            return self._array(column.array)
        if isinstance(column, BytesColumn):
            return self._all("bytes", column.packed())
        return self._all("column", column.values())

    def _function(self, function: FunctionType) -> Iterator[str]:
        yield self.code(function)
        for use in held(function):
            if use.kind != "module":
                yield f"{use.kind} {use.name}"
                yield self._piece(use.value)

    def _class(self, kind: type) -> Iterator[str]:
        """Digest a class: a class of the user by its whole content, any other class by its name."""
        yield _named(kind)
        if not is_users(kind):
            return
        yield from self._all("bases", kind.__bases__)
        if is_users(type(kind)):
            yield self.of(type(kind))
        for name, value in sorted(vars(kind).items()):
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if isinstance(value, property):
                yield from self._all(name, (value.fget, value.fset))
            elif isinstance(value, FunctionType) or not name.startswith(("__", "_abc_")):
                yield from self._all(name, (value,))

    def _object(self, value: Any) -> Iterator[str]:
        """Digest an object: its class, and everything that a copy of it would contain."""
        yield self.of(type(value))
        copies = any(is_users(place) and not _COPYING.isdisjoint(vars(place)) for place in type(value).__mro__)
        if copies or isinstance(value, np.ndarray):  # a copy may lack some of the attributes
            yield from self._all("attributes", (getattr(value, "__dict__", None),))
        try:
            wrapped = getattr(value, "__wrapped__", None)
            parts = "wrapped" if wrapped is not None else value.__reduce_ex__(2)
        except Exception:
            # Last, because the functions registered in copyreg depend on the imports so far, such as penstock's own for
            # Blocks.
            yield from self._registered(value)
            return
        if wrapped is not None:  # by functools.cache or numba
            yield self.of(wrapped)
        elif isinstance(parts, str):
            yield parts
        else:
            yield from self._all("object", (*parts[:3], *map(_read_out, parts[3:])))

    def _registered(self, value: Any) -> Iterator[str]:
        """Digest the content that a function registered in `copyreg` copies, such as regular expressions and ufuncs."""
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            parts: Any = None if reduce is None else reduce(value)
        except Exception:  # the object cannot be copied
            parts = None
        if parts is None and type(value).__module__.partition(".")[0] not in _WITHOUT_CONTENT:
            yield f"{_HERE} {id(value)}"  # another run then does not find the entry of this one
        elif isinstance(parts, str):
            yield parts
        elif parts is not None:
            yield from self._all("object", parts[1:3])


_HERE = os.urandom(8).hex()
_WITHOUT_CONTENT = words("builtins threading _thread io _io socket _socket penstock")  # generators, locks, files
_COPYING = words("__reduce__ __reduce_ex__ __getstate__")
_CONTENTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {  # content of types that cannot be copied, or not completely
    memoryview: lambda value: (value.format, value.shape, value.tobytes()),
    struct.Struct: lambda value: (value.format,),
    MappingProxyType: lambda value: (dict(value),),
    defaultdict: lambda value: (value.default_factory, dict(value)),
    weakref.ref: lambda value: (value(),),
    ContextVar: lambda value: (repr(value).rpartition(" at ")[0],),  # its name and default
}


def _numbers(value: Any) -> np.ndarray | None:
    """Return the content of an array of another library, or None if numpy cannot convert it."""
    try:
        value = value.detach().cpu() if hasattr(value, "detach") else value  # a torch tensor
        found = np.asarray(value if "bfloat16" not in str(value.dtype) else value.float())
    except Exception:
        return None
    return None if found.dtype.hasobject else found


def _kind(value: Any) -> str:
    return _named(type(value))


def _named(kind: type) -> str:
    name = f"{kind.__module__}.{kind.__qualname__}"
    return _KNOWN_AS.get(name, name)


def _plain(value: Any) -> str:
    return f"{type(value).__name__}:{value!r}"


def _read_out(part: Any) -> Any:
    """Return iterators as lists: the items of lists and dicts come one by one."""
    return list(part) if isinstance(part, Iterator) else part
