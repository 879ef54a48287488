"""Slices of the arrays in `.npy` and `.npz` files. The header is parsed by NEP 1, without numpy's loader."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.leaf import as_leaf
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import Context, DataLossError, InvalidArgumentError, InvalidTypeError, PenstockError, annotate
from penstock.functions.definition import parsed_expression
from penstock.io import storage
from penstock.sources.row_files import RowFile, RowFilesSource

if TYPE_CHECKING:
    import zipfile

# b"\\x93NUMPY" | u8 major | u8 minor | u16le (major 1) or u32le length | a Python dict literal of that length | data

_MAGIC = b"\x93NUMPY"
_KEYS = {"descr", "fortran_order", "shape"}
HEADER_LIMIT = 1 << 16  # bytes to read for the header; numpy warns at 10,000


@dataclass(frozen=True)
class NpyHeader:
    """The offset, dtype, shape and memory order of the array in a `.npy` file."""

    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool

    @property
    def nbytes(self) -> int:
        return int(self.dtype.itemsize) * prod(self.shape)

    def array(self, content: np.ndarray) -> np.ndarray:
        """Return the array over the bytes (uint8) after the header, without a copy."""
        flat = content[: self.nbytes].view(self.dtype) if self.nbytes else np.empty(0, self.dtype)
        return flat.reshape(self.shape[::-1]).T if self.fortran_order else flat.reshape(self.shape)


def read_npy_header(head: bytes, file: str, at: int = 0) -> NpyHeader:
    """Parse the header in the first bytes of a file, or of a member that begins at byte `at` of a file.

    Raises DataLossError for an invalid header, and InvalidTypeError for pickled objects.
    """
    if head[:6] != _MAGIC:
        message = "The file does not begin with a .npy header."
        raise DataLossError(message, hint="NumpyDataset reads what np.save and np.savez write.", file=file, offset=at)
    width = 2 if head[6:7] == b"\x01" else 4
    start = 8 + width
    length = int.from_bytes(head[8:start], "little")
    if len(head) < 8 or head[6] not in (1, 2, 3) or start + length > len(head):
        message = f"The .npy header is cut short, or of an unknown version: {head[6:start]!r}."
        raise DataLossError(message, file=file, offset=at)
    text = head[start : start + length]
    try:
        found = ast.literal_eval(parsed_expression(text.decode("utf-8" if head[6] == 3 else "latin1").lstrip(" \t")))
        dtype, shape = _checked(found)
    except Exception as error:  # numpy's dtypes and Python's parser may raise any exception
        message = f"The .npy header is damaged: {text!r:.80}"
        raise DataLossError(message, file=file, offset=at) from error
    if dtype.hasobject:
        message = f"The array holds Python objects (dtype {dtype}), which are stored as pickles."
        hint = "Pickles can run code and are never loaded; save numbers or fixed-width strings instead."
        raise InvalidTypeError(message, hint=hint, file=file)
    count = prod(shape)
    if count and not dtype.itemsize:
        message = f"The array of shape {shape} has items of no bytes ({dtype}): nothing says how many there are."
        raise InvalidTypeError(message, hint="Save numbers or byte strings.", file=file)
    if prod(extent for extent in shape if extent) * max(dtype.itemsize, 1) > np.iinfo(np.int64).max:
        message = f"The array of shape {shape} is larger than any memory."
        raise DataLossError(message, file=file, offset=at)
    return NpyHeader(start + length, dtype, shape, found["fortran_order"])


def _checked(found: Any) -> tuple[np.dtype, tuple[int, ...]]:
    if not isinstance(found, dict) or set(found) != _KEYS or not isinstance(found["fortran_order"], bool):
        raise ValueError
    shape = found["shape"]
    if not isinstance(shape, tuple) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise ValueError
    return np.lib.format.descr_to_dtype(found["descr"]), shape


_LOCAL_HEADER = 30  # bytes of a zip member's local header, before its name
_MOST_TIMES = 1032  # highest ratio of deflate compression


@dataclass(frozen=True)
class NumpySource(RowFilesSource):
    """Slices along the first axis: of the array of a `.npy` file, or of all arrays of a `.npz` file together."""

    mmap: bool = True

    kind: ClassVar[str] = "NumpyDataset"

    def open_rows(self, name: str) -> RowFile:
        whole = storage.map_file_or_none(name) if self.mmap else None
        with _reading(name), storage.open_read(name) as file:
            head = file.read(HEADER_LIMIT)
            if head[:2] == b"PK":
                return ArrayRows(name, _members(file, name, whole))
            content = np.frombuffer(head + file.read(), np.uint8) if whole is None else whole
            return ArrayRows(name, npy_array(content, name))


class ArrayRows(RowFile):
    """Arrays that are sliced together. They are mapped or in memory, and read-only."""

    def __init__(self, name: str, arrays: Any) -> None:
        self._name = name
        self._arrays, self._structure = flatten(arrays)
        paths = self._structure.paths()
        for path, array in zip(paths, self._arrays, strict=True):
            if not array.ndim:
                message = f"The array{path and ' ' + path} is a single value: it has no first axis to be cut along."
                raise InvalidArgumentError(message, file=name)
        sizes = {len(array) for array in self._arrays}
        if len(sizes) > 1:
            named = ", ".join(f"{p} has {len(array)}" for p, array in zip(paths, self._arrays, strict=True))
            message = f"All arrays of a file need the same extent along the first axis: {named}."
            raise InvalidArgumentError(message, file=name)
        self.size = sizes.pop() if sizes else 0
        self.spec = self._structure.build([TensorSpec(array.shape[1:], array.dtype) for array in self._arrays])

    def part(self, start: int, stop: int) -> Block:
        return self._block([array[start:stop] for array in self._arrays], stop - start)

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._block([array[rows] for array in self._arrays], len(rows))

    def _block(self, parts: list[np.ndarray], size: int) -> Block:
        origin = Origin.of_file(self._name, np.full(size, -1))
        with _reading(self._name):
            return Block(self._structure, [_column(part) for part in parts], size, origin)


def _column(part: np.ndarray) -> Column:
    leaf = as_leaf(part)
    if leaf.dtype == object:
        return BytesColumn.from_values(leaf.reshape(-1).tolist(), leaf.shape[1:], len(leaf))
    return DenseColumn(np.require(leaf, requirements=("C", "A")))


def npy_array(content: np.ndarray, name: str, at: int = 0) -> Any:
    """Return the array in the content of a `.npy` file at byte `at`.

    A structured array becomes a dict of its fields.
    """
    header = read_npy_header(content[:HEADER_LIMIT].tobytes(), name, at)
    data = content[header.offset :]
    if len(data) < header.nbytes:
        message = f"The array is cut short: it has {header.nbytes} bytes, and {len(data)} are left."
        raise DataLossError(message, hint="Write or copy the file again.", file=name, offset=at + header.offset)
    array = header.array(data)
    names = header.dtype.names
    return array if names is None else {field: array[field] for field in names}


def _members(file: BinaryIO, name: str, mapped: np.ndarray | None) -> dict[str, Any]:
    """Return the arrays of a `.npz` file. Uncompressed arrays point into the mapped file."""
    import zipfile

    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.header_offset + info.compress_size > size:
                message = f"member {info.filename} states {info.compress_size} bytes in a file of {size}"
                raise zipfile.BadZipFile(message)
        return {
            info.filename.removesuffix(".npy"): npy_array(*_content(archive, info, name, mapped))
            for info in archive.infolist()
        }


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Add the file to errors of the block.

    Exceptions of zipfile, zlib and numpy become errors that it cannot be read.
    """
    try:
        yield
    except (PenstockError, MemoryError) as error:
        annotate(error, Context(file=name))
        raise
    except Exception as error:
        message = f"The file cannot be read: {error}"
        raise DataLossError(message, hint="Write or copy the file again.", file=name) from error


def _content(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, mapped: np.ndarray | None
) -> tuple[np.ndarray, str, int]:
    import zipfile

    at = info.header_offset
    times = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _MOST_TIMES}.get(info.compress_type)
    if times is not None and info.file_size > times * info.compress_size:
        member = info.filename
        message = f"member {member} states {info.file_size} bytes, which {info.compress_size} packed ones cannot hold"
        raise zipfile.BadZipFile(message)
    if mapped is None or info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        return np.frombuffer(archive.read(info), np.uint8), name, at
    local = mapped[at : at + _LOCAL_HEADER].tobytes()
    start = at + _LOCAL_HEADER + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    if local[:4] != b"PK\x03\x04":
        message = f"member {info.filename} does not begin where the directory says"
        raise zipfile.BadZipFile(message)
    return mapped[start : start + info.file_size], name, start
