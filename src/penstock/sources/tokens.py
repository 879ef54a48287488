"""Windows over files of tokens: raw files, `.npy` files, and Megatron's pairs of `.bin` and `.idx`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError
from penstock.hints import redacted
from penstock.io import storage
from penstock.sources.numpy_files import HEADER_LIMIT, npy_array, read_npy_header
from penstock.sources.row_files import RowFile, RowFilesSource

DOCUMENTS = ("ignore", "segment_ids", "stop")

# An index is: magic | u64 version | u8 code of the dtype | u64 sequences | u64 bounds of documents. Then it has the i32
# length and the i64 start byte of each sequence. Then it has the i64 number of the first sequence of each document; the
# last number is the number of all sequences. One byte per sequence may follow.

_HEADER = Struct("<9sQBQQ")
_MAGIC = b"MMIDIDX\0\0"
_CODES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
_AGAIN = "Write or copy both files again."
_LOG = logging.getLogger("penstock.sources")
_MUCH = 20  # a warning is issued if more than one token in this number is left out


class Tokens(NamedTuple):
    """The tokens of a file, which begin at byte `offset`, and the token number of each end of a document."""

    values: np.ndarray
    offset: int
    bounds: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class TokensSource(RowFilesSource):
    """Windows of `length` tokens, `step` tokens apart. With `shift`, each comes with the window one token later."""

    dtype: str | None
    length: int
    step: int
    shift: bool = False
    documents: str = "ignore"
    offset: int = 0

    kind: ClassVar[str] = "TokenDataset"

    def open_rows(self, name: str) -> RowFile:
        tokens = self._tokens(name)
        rows = _Windows(name, tokens, self)
        total = len(tokens.values)
        if rows.left_out and name not in self._told:
            self._told.add(name)
            level = logging.WARNING if rows.left_out * _MUCH > total else logging.INFO
            message = "%s: %s of the %s tokens of %s fill no window and are left out"
            _LOG.log(level, message, self.kind, f"{rows.left_out:,}", f"{total:,}", redacted(name))
        return rows

    @cached_property
    def _told(self) -> set[str]:
        return set()

    def _tokens(self, name: str) -> Tokens:
        known = name.endswith((".npy", ".idx"))
        if known and self.offset:
            message = f"offset={self.offset} skips the header of a raw file; this file says where its tokens begin."
            raise InvalidArgumentError(message, hint="Leave offset out.", file=name)
        if self.documents != "ignore" and not name.endswith(".idx"):
            message = f"documents={self.documents!r} needs the bounds of documents, which only a Megatron index has."
            hint = "Give the path of the .idx file beside the .bin file."
            raise InvalidArgumentError(message, hint=hint, file=name)
        found = _npy(name) if name.endswith(".npy") else _megatron(name) if known else self._raw(name)
        if self.dtype is not None and found.values.dtype.newbyteorder("=") != np.dtype(self.dtype).newbyteorder("="):
            message = f"The tokens of this file are {found.values.dtype}, not {np.dtype(self.dtype)}."
            raise InvalidTypeError(message, hint="Give dtype=None to take it from the file.", file=name)
        return found

    def _raw(self, name: str) -> Tokens:
        if self.dtype is None:
            message = "A raw file does not say which dtype its tokens have."
            raise InvalidArgumentError(message, hint="Give dtype, for nanoGPT's files np.uint16.", file=name)
        content = storage.all_bytes(name)
        dtype = np.dtype(self.dtype)
        more = (len(content) - self.offset) % dtype.itemsize
        if more or len(content) < self.offset:
            message = f"{len(content)} bytes are no header of {self.offset} bytes and a whole number of {dtype} tokens."
            hint = "Are dtype and offset right? Else the file was cut short, or something was added to it."
            raise DataLossError(message, hint=hint, file=name, offset=max(len(content) - more, 0))
        return Tokens(content[self.offset :].view(dtype), self.offset)


class _Windows(RowFile):
    """The windows of one file. No window crosses the end of a file, or the end of a document if windows stop there."""

    def __init__(self, name: str, tokens: Tokens, source: TokensSource) -> None:
        self._name = name
        self._tokens = tokens
        self._step, self._shift = source.step, source.shift
        needed = source.length + source.shift
        values, bounds = tokens.values, tokens.bounds
        ends = bounds if source.documents == "stop" and bounds is not None else np.array([0, len(values)])
        self._begins, sizes = ends[:-1], np.diff(ends)  # bounds of stretches that contain their windows
        counts = np.maximum((sizes - needed) // self._step + 1, 0)
        self._before = np.cumsum(counts) - counts
        self.size = int(counts.sum())
        self.left_out = len(values) - int(np.minimum((counts - 1) * self._step + needed, sizes)[counts > 0].sum())
        self._windows = np.lib.stride_tricks.sliding_window_view(values, source.length) if self.size else values
        self._dtype = values.dtype.newbyteorder("=")
        self._bounds = np.unique(bounds) if source.documents == "segment_ids" and bounds is not None else None
        window = TensorSpec((source.length,), self._dtype)
        marks = TensorSpec((source.length,), np.int32)
        inputs: Any = window
        if self._bounds is not None:
            inputs = {"tokens": window, "segment_ids": marks, "positions": marks}
        self.spec = (inputs, window) if source.shift else inputs
        self._structure = flatten(self.spec)[1]

    def part(self, start: int, stop: int) -> Block:
        if len(self._begins) > 1:
            return self.rows_at(np.arange(start, stop))
        step = self._step
        return self._block(slice(start * step, (stop - 1) * step + 1, step), np.arange(start, stop) * step)

    def rows_at(self, rows: np.ndarray) -> Block:
        if len(self._begins) > 1:
            stretch = np.searchsorted(self._before, rows, side="right") - 1
            starts = self._begins[stretch] + (rows - self._before[stretch]) * self._step
        else:
            starts = rows * self._step
        return self._block(starts, starts)

    def _block(self, which: slice | np.ndarray, starts: np.ndarray) -> Block:
        """Return the windows that begin at these tokens. `which` selects them from all windows."""
        leaves = [self._taken(self._windows, which)]
        if self._bounds is not None:
            leaves += segments(self._bounds, starts, leaves[0].shape[1])
        if self._shift:
            leaves.append(self._taken(self._windows[1:], which))
        offsets = self._tokens.offset + starts * self._dtype.itemsize
        columns = [DenseColumn(leaf) for leaf in leaves]
        return Block(self._structure, columns, len(starts), Origin.of_file(self._name, offsets))

    def _taken(self, windows: np.ndarray, which: slice | np.ndarray) -> np.ndarray:
        return np.require(windows[which], self._dtype, ("C", "A"))


def segments(bounds: np.ndarray, starts: np.ndarray, length: int) -> list[np.ndarray]:
    """Return the numbers of the documents in each window, from 1 on, and the positions in them.

    >>> [part.tolist() for part in segments(np.array([0, 3, 9]), np.array([1]), 5)]
    [[[1, 1, 2, 2, 2]], [[0, 1, 0, 1, 2]]]
    """
    first, last = (np.searchsorted(bounds, at, side="right") for at in (starts, starts + length - 1))
    counts = last - first  # documents that begin after the first token
    rows = np.repeat(np.arange(len(starts)), counts)
    places = bounds[np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts - first, counts)] - starts[rows]
    ids = np.zeros((len(starts), length), np.int32)
    begins = np.zeros_like(ids)
    ids[:, 0] = ids[rows, places] = 1
    begins[rows, places] = places
    np.cumsum(ids, axis=1, out=ids)
    np.maximum.accumulate(begins, axis=1, out=begins)
    return [ids, np.arange(length, dtype=np.int32) - begins]


def _npy(name: str) -> Tokens:
    content = storage.all_bytes(name)
    array = npy_array(content, name)
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        is_it = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "of several fields"
        message = f"Tokens are integers in an array of one axis; the array of this file is {is_it}."
        raise InvalidTypeError(message, hint="Save tokens.reshape(-1), or read rows with NumpyDataset.", file=name)
    return Tokens(array, read_npy_header(content[:HEADER_LIMIT].tobytes(), name).offset)


def _megatron(name: str) -> Tokens:
    """Return the tokens of the `.bin` file that belongs to an index."""
    content = storage.all_bytes(name)
    head = content[: _HEADER.size].tobytes().ljust(_HEADER.size, b"\0")
    magic, version, code, sequences, documents = _HEADER.unpack(head)
    if magic != _MAGIC or version != 1:
        message = f"The file does not begin as a Megatron index of version 1: {head[:17]!r}."
        raise DataLossError(message, hint="The raw tokens are in the .bin file.", file=name, offset=0)
    if code not in _CODES:
        message = f"The index names the dtype {code}, which is none of integers: {sorted(_CODES)}."
        raise DataLossError(message, file=name, offset=17)
    size = _HEADER.size + 12 * sequences + 8 * documents
    if len(content) not in (size, size + sequences):
        message = (
            f"The index of {sequences} sequences and {documents} bounds has {size} bytes; the file has {len(content)}."
        )
        raise DataLossError(message, hint=_AGAIN, file=name, offset=min(size, len(content)))
    at = _HEADER.size + 4 * sequences
    lengths = content[_HEADER.size : at].view("<i4").astype(np.int64)
    pointers = content[at : at + 8 * sequences].view("<i8")
    bounds = content[at + 8 * sequences : size].view("<i8")
    dtype = np.dtype(_CODES[code])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    wrong = np.flatnonzero((pointers != ends[:-1] * dtype.itemsize) | (lengths < 0))
    if len(wrong):
        message = f"Sequence {wrong[0]} of the index does not begin where the one before it ends."
        raise DataLossError(message, hint=_AGAIN, file=name, offset=at + 8 * int(wrong[0]))
    if not documents or bounds[0] != 0 or bounds[-1] != sequences or (np.diff(bounds) < 0).any():
        message = f"The bounds of documents do not ascend from 0 to {sequences}, the number of sequences."
        raise DataLossError(message, hint=_AGAIN, file=name, offset=at + 8 * sequences)
    data = name.removesuffix(".idx") + ".bin"
    raw = storage.all_bytes(data)
    wanted = int(ends[-1]) * dtype.itemsize
    if len(raw) != wanted:
        message = f"The index beside this file names {ends[-1]} tokens of {dtype}, {wanted} bytes; it has {len(raw)}."
        raise DataLossError(message, hint=_AGAIN, file=data, offset=min(len(raw), wanted))
    return Tokens(raw.view(dtype), 0, ends[bounds])
