"""Columns: the values of one leaf for all elements of a Block, in the most compact layout.

- `DenseColumn`: one array with the elements along axis 0;
- `BytesColumn`: byte strings as positions in shared buffers, zero-copy from a mapped file;
- `ListColumn`: a list of values: arrays of different shapes, or of different ranks if a signature allows it,
  or of sparse tensors, ragged tensors or nested data sets.

A column must not be changed: stages create new columns, and columns may be shared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from penstock.block.arena import ARENA, SMALLEST
from penstock.block.leaf import as_leaf, utf8
from penstock.block.spec import LeafSpec, TensorSpec, dtype_name, spec_of
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError

_MANY, _SHORT = 64, 64  # at least so many byte strings of at most so many bytes are created in one call of numpy
_EACH = 8  # byte strings per buffer, from which they are cut out one buffer at a time
_COPIED = 1 << 16  # bytes
_CLOSE = 256  # bytes per string, up to which one copy of the whole range is faster
_STACKED = 1 << 14  # bytes of a value, up to which values of one shape are stored contiguously before they are batched


class Column(ABC):
    """The values of one leaf for every element of a Block."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the data, as counted against the buffers' budgets."""

    @abstractmethod
    def spec(self) -> LeafSpec:
        """Return the spec that all elements satisfy; dimensions that differ are None."""

    @abstractmethod
    def values(self) -> list[Any]:
        """Return the value of every element as the user sees it."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Column: ...

    @abstractmethod
    def take(self, rows: np.ndarray) -> Column:
        """Return the elements at the int64 positions `rows`, in that order; positions may repeat."""

    def followed_by(self, others: Sequence[Column]) -> Column | None:
        """Return this column followed by the others, or None if that would copy elements."""
        return None

    @abstractmethod
    def batched(self, size: int) -> Column | None:
        """Return a column with every `size` neighbours as one element, or None if that needs a copy (see `stack`)."""

    @abstractmethod
    def unbatched(self, lengths: Sequence[int]) -> Column:
        """Return a column of the slices along each element's first axis; `lengths` are the extents of these axes."""


class DenseColumn(Column):
    """Elements along axis 0 of one array. Scalars are a 1-D array."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def spec(self) -> TensorSpec:
        return TensorSpec(self.array.shape[1:], self.array.dtype)

    def values(self) -> list[Any]:
        return list(self.array)

    def in_c_order(self) -> DenseColumn:
        """Return the column with elements in C order, as functions receive them; see `settle`."""
        whole = self.array.ndim == 1 or self.array.flags.c_contiguous
        return self if whole else DenseColumn(np.ascontiguousarray(self.array))

    def slice(self, start: int, stop: int) -> DenseColumn:
        return DenseColumn(self.array[start:stop])

    def take(self, rows: np.ndarray) -> DenseColumn:
        array = self.array
        if len(rows) * array[:1].nbytes < SMALLEST:
            return DenseColumn(array.take(rows, axis=0))
        out = ARENA.empty((len(rows), *array.shape[1:]), array.dtype)
        return DenseColumn(array.take(rows, axis=0, out=out, mode="clip"))  # mode="raise" would copy twice

    def batched(self, size: int) -> DenseColumn:
        shape = self.array.shape
        return DenseColumn(self.array.reshape(shape[0] // size, size, *shape[1:]))

    def unbatched(self, lengths: Sequence[int]) -> DenseColumn:
        shape = self.array.shape
        return DenseColumn(self.array.reshape(shape[0] * shape[1], *shape[2:]))


class BytesColumn(Column):
    """Byte strings as (buffer, start, length). After `batched`, an element is an array of byte strings.

    `starts`, `lengths` and `which` have shape (n, *shape): n elements, each an array of `shape` byte strings.
    `which` is the index of the buffer. It is None while there is only one buffer.
    """

    __slots__ = ("buffers", "lengths", "starts", "which")

    def __init__(
        self,
        buffers: tuple[np.ndarray, ...],
        starts: np.ndarray,
        lengths: np.ndarray,
        which: np.ndarray | None = None,
    ) -> None:
        self.buffers = buffers
        self.starts = starts
        self.lengths = lengths
        self.which = which

    @classmethod
    def from_values(cls, values: Sequence[bytes], shape: tuple[int, ...] = (), count: int | None = None) -> BytesColumn:
        """Copy byte strings into a column; with `shape`, `values` contains the strings of every element in C order.

        `count` is the number of elements. It is needed if the elements contain no strings.
        """
        return cls._of(values, b"".join(values), (-1 if count is None else count, *shape))

    @classmethod
    def from_texts(cls, values: Sequence[str]) -> BytesColumn:
        """Copy strings into a column as UTF-8. If all are ASCII, one call encodes them all."""
        whole = "".join(values)
        if whole.isascii():
            return cls._of(values, whole.encode(), (-1,))
        try:
            return cls.from_values([*map(str.encode, values)])
        except UnicodeEncodeError:
            return cls.from_values([*map(utf8, values)])  # `utf8` raises an error that names the invalid character

    @classmethod
    def _of(cls, values: Sequence[bytes] | Sequence[str], whole: bytes, shape: tuple[int, ...]) -> BytesColumn:
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        starts = np.cumsum(lengths) - lengths
        return cls((np.frombuffer(whole, np.uint8),), starts.reshape(shape), lengths.reshape(shape))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def nbytes(self) -> int:
        return int(self.lengths.sum())

    def spec(self) -> TensorSpec:
        return TensorSpec(self.starts.shape[1:], bytes)

    def values(self) -> list[Any]:
        short = self._short()
        shape = self.starts.shape[1:]
        if not shape:
            return self._flat_values() if short is None else short.tolist()
        if short is None:
            found = np.empty(self.starts.size, object)
            found[:] = self._flat_values()
        else:
            found = short.astype(object)
        return list(found.reshape(self.starts.shape))

    def _short(self) -> np.ndarray | None:
        """Return the byte strings as a fixed-width numpy array, which numpy converts to `bytes` objects faster.

        The result is None if the strings are few, long, in many buffers, or contain zeros, which numpy strips from the
        end.
        """
        starts, lengths = self.starts.reshape(-1), self.lengths.reshape(-1)
        if len(starts) < _MANY or not 0 < (width := int(np.maximum.reduce(lengths))) <= _SHORT:
            return None
        try:
            if self.which is None:
                found = _cut(self.buffers[0], starts, width)
            elif len(self.buffers) * _EACH > len(starts):
                return None
            else:
                found = np.empty(len(starts), f"S{width}")
                which = self.which.reshape(-1)
                for number in used_numbers(which).tolist():
                    rows = np.flatnonzero(which == number)
                    found[rows] = _cut(self.buffers[number], starts[rows], width)
        except IndexError:
            return None
        content = found.view(np.uint8)
        content &= _ends(width)[lengths].view(np.uint8)
        return found if np.count_nonzero(content) == np.add.reduce(lengths) else None

    def _flat_values(self) -> list[bytes]:
        starts = self.starts.reshape(-1)
        if self.which is None:
            return (
                byte_strings(self.buffers[0], starts, self.lengths.reshape(-1)) if self.buffers else [b""] * len(starts)
            )
        stops = (starts + self.lengths.reshape(-1)).tolist()
        views = [buffer.data for buffer in self.buffers]
        which = self.which.reshape(-1).tolist()
        return [bytes(views[w][a:b]) for w, a, b in zip(which, starts.tolist(), stops, strict=True)]

    def slice(self, start: int, stop: int) -> BytesColumn:
        which = None if self.which is None else self.which[start:stop]
        return BytesColumn(self.buffers, self.starts[start:stop], self.lengths[start:stop], which)

    def take(self, rows: np.ndarray) -> BytesColumn:
        which = None if self.which is None else self.which[rows]
        return BytesColumn(self.buffers, self.starts[rows], self.lengths[rows], which).compacted()

    def batched(self, size: int) -> BytesColumn:
        shape = (len(self) // size, size, *self.starts.shape[1:])
        which = None if self.which is None else self.which.reshape(shape)
        return BytesColumn(self.buffers, self.starts.reshape(shape), self.lengths.reshape(shape), which)

    def unbatched(self, lengths: Sequence[int]) -> BytesColumn:
        shape = (self.starts.shape[0] * self.starts.shape[1], *self.starts.shape[2:])
        which = None if self.which is None else self.which.reshape(shape)
        return BytesColumn(self.buffers, self.starts.reshape(shape), self.lengths.reshape(shape), which)

    def compacted(self) -> BytesColumn:
        """Return the same column without buffers that no element uses, so that they can be freed."""
        if self.which is None or len(self.buffers) <= 2 * max(len(self), 8):
            return self
        used = used_numbers(self.which)
        places = np.zeros(len(self.buffers), np.int32)
        places[used] = range(len(used))
        buffers = tuple(self.buffers[i] for i in used.tolist())
        return BytesColumn(buffers, self.starts, self.lengths, places[self.which])

    def packed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (buffer, starts, lengths) with all strings in one buffer. Strings in several buffers are copied."""
        starts, lengths = self.starts.reshape(-1), self.lengths.reshape(-1)
        if self.which is None:
            return (self.buffers[0] if self.buffers else np.empty(0, np.uint8)), starts, lengths
        return self._joined(), np.cumsum(lengths) - lengths, lengths

    def apart(self) -> BytesColumn:
        """Return the same strings in a buffer that contains nothing else."""
        starts = np.cumsum(self.lengths.reshape(-1)) - self.lengths.reshape(-1)
        return BytesColumn((self._joined(),), starts.reshape(self.starts.shape), self.lengths.copy())

    def _joined(self) -> np.ndarray:
        starts, ends = self.starts.reshape(-1), (self.starts + self.lengths).reshape(-1)
        if self.which is None and len(starts) and np.array_equal(starts[1:], ends[:-1]):
            return self.buffers[0][starts[0] : ends[-1]].copy()
        return np.frombuffer(b"".join(self.views()), np.uint8)

    def views(self) -> list[memoryview]:
        """Return the byte strings as views of their buffers, for decoders that read in place."""
        views = [buffer.data for buffer in self.buffers]
        starts = self.starts.reshape(-1)
        stops = (starts + self.lengths.reshape(-1)).tolist()
        which = [0] * len(stops) if self.which is None else self.which.reshape(-1).tolist()
        return [views[w][a:b] for w, a, b in zip(which, starts.tolist(), stops, strict=True)]


class ListColumn(Column):
    """One Python value per element."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    @property
    def nbytes(self) -> int:
        return sum(getattr(item, "nbytes", 64) for item in self.items)

    def spec(self) -> LeafSpec:
        # creating a spec costs microseconds, and most items share theirs
        distinct: dict[Any, int] = {}
        for row, item in enumerate(self.items):
            distinct.setdefault((type(item), getattr(item, "dtype", None), getattr(item, "shape", None)), row)
        rows = iter(distinct.values())
        found = first = spec_of(self.items[next(rows)])
        for row in rows:
            spec = spec_of(self.items[row])
            wider = found.relax(spec, any_rank=True)
            if wider is None:
                raise _mixed(first, spec, row)
            found = wider
        return found

    def values(self) -> list[Any]:
        return list(self.items)

    def slice(self, start: int, stop: int) -> ListColumn:
        return ListColumn(self.items[start:stop])

    def take(self, rows: np.ndarray) -> ListColumn:
        items = self.items
        return ListColumn([items[i] for i in rows.tolist()])

    def batched(self, size: int) -> None:
        return None

    def unbatched(self, lengths: Sequence[int]) -> Column:
        rows: list[Any] = []
        items = self.items
        first = items[0]
        small = _are_arrays(items) and first.dtype != object and first[0].nbytes < _STACKED
        if small and all(item.shape[1:] == first.shape[1:] for item in items):
            return concat([DenseColumn(item) for item in items])
        for item in items:
            rows.extend(item)
        return column_of([as_leaf(row) for row in rows])


def _are_arrays(items: Sequence[Any]) -> bool:
    """Return True for numpy arrays of one dtype."""
    dtype = getattr(items[0], "dtype", None)
    return all(type(item) is np.ndarray and item.dtype == dtype for item in items)


def _mixed(first: LeafSpec, other: LeafSpec, row: int | None) -> InvalidTypeError:
    def kind(spec: LeafSpec) -> str:
        if isinstance(spec, TensorSpec):
            return f"{dtype_name(spec.dtype)} of rank {len(spec.shape)}"
        return repr(spec)

    message = (
        f"Elements of one data set keep their dtype and rank: the first has {kind(first)}, this one {kind(other)}."
    )
    hint = "Convert in the function, for example np.float32(value), so that every path returns the same."
    return InvalidTypeError(message, hint=hint, context=Context(element=row))


def column_of(values: list[Any], *, any_rank: bool = False) -> Column:
    """Build a column from converted leaf values (see `as_leaf`); the values determine the layout.

    All values have the same rank, unless `any_rank` is True.

    >>> column_of([np.zeros(2), np.float64(1)], any_rank=True).spec()
    TensorSpec(shape=None, dtype=float64)
    """
    if any_rank and len({getattr(value, "ndim", 0) for value in values}) > 1:
        several = ListColumn(list(values))
        several.spec()  # raises an error if dtypes differ
        return several
    first = values[0]
    kind = type(first)
    if kind is bytes:
        for row, value in enumerate(values):
            if type(value) is not bytes:
                raise _mixed(spec_of(first), spec_of(value), row)
        return BytesColumn.from_values(values)
    if isinstance(first, np.generic):
        for row, value in enumerate(values):
            if type(value) is kind:
                continue
            if not isinstance(value, np.generic) or value.dtype != first.dtype:  # int64 has two type objects in numpy
                raise _mixed(spec_of(first), spec_of(value), row)
        return DenseColumn(np.array(values, first.dtype))
    if not isinstance(first, np.ndarray):
        for row, value in enumerate(values):
            if type(value) is not kind or getattr(value, "dtype", None) != getattr(first, "dtype", None):
                raise _mixed(spec_of(first), spec_of(value), row)
        return ListColumn(list(values))
    same = True
    for row, value in enumerate(values):
        if type(value) is not np.ndarray or value.dtype != first.dtype or value.ndim != first.ndim:
            raise _mixed(spec_of(first), spec_of(value), row)
        same = same and value.shape == first.shape
    if first.dtype == object and same:
        flat = [item for value in values for item in value.reshape(-1).tolist()]
        return BytesColumn.from_values(flat, first.shape, len(values))
    if same and (len(values) > 1 and first.nbytes < _STACKED):
        return DenseColumn(np.stack(values))
    if same and len(values) == 1:
        return DenseColumn(first[None])
    return ListColumn(list(values))  # `batch` stacks them later, directly into the buffer of the batch


def byte_strings(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    """Return copies of strings. String i is `buffer[starts[i] : starts[i] + lengths[i]]`.

    Short strings that lie close together are cut out of one copy of the whole range, which takes half the time.
    """
    stops = starts + lengths
    if len(starts) >= _MANY and (total := int(lengths.sum())) <= len(starts) * _CLOSE:
        first, last = int(starts.min()), int(stops.max())
        if last - first <= 2 * total:
            whole = buffer[first:last].tobytes()
            return [whole[a:b] for a, b in zip((starts - first).tolist(), (stops - first).tolist(), strict=True)]
    view = buffer.data
    return [bytes(view[a:b]) for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]


def _cut(buffer: np.ndarray, starts: np.ndarray, width: int) -> np.ndarray:
    """Return the `width` bytes from each start on, as fixed-width numpy strings.

    After the end of the buffer come zeros.

    Raises:
        IndexError: If the padding with zeros would copy a large part of the buffer.
    """
    found: np.ndarray
    if len(buffer) >= width:
        try:
            found = _windows(buffer, width)[starts]
        except IndexError:
            if len(buffer) - (first := int(starts.min())) > _COPIED:
                raise
            buffer, starts = buffer[first:], starts - first
        else:
            return found
    found = _windows(np.concatenate([buffer, np.zeros(width, np.uint8)]), width)[starts]
    return found


def _windows(buffer: np.ndarray, width: int) -> np.ndarray:
    """Return the `width` bytes from each byte on, as fixed-width numpy strings."""
    return np.ndarray((len(buffer) - width + 1,), f"S{width}", buffer, strides=(1,))


@cache
def _ends(width: int) -> np.ndarray:
    """Return a mask for each length up to `width`, as fixed-width numpy strings. The mask keeps the first bytes."""
    kept = np.tri(width + 1, width, -1, np.uint8) * np.uint8(255)
    return kept.view(f"S{width}").reshape(-1)


def used_numbers(which: np.ndarray) -> np.ndarray:
    """Return the distinct numbers of an array of non-negative integers, in ascending order.

    `np.unique` is slower. It also releases the interpreter lock and then waits for it while another thread computes.

    >>> used_numbers(np.array([[3, 1], [1, 3]]))
    array([1, 3])
    """
    return np.flatnonzero(np.bincount(which.reshape(-1)))


def concat(columns: Sequence[Column]) -> Column:
    """Join columns, one after the other. If the shapes differ, the kinds of column may differ too."""
    if len(columns) == 1:
        return columns[0]
    if all(isinstance(column, DenseColumn) for column in columns):
        arrays = [column.array for column in columns if isinstance(column, DenseColumn)]
        if all(a.shape[1:] == arrays[0].shape[1:] for a in arrays):
            if any(a.dtype != arrays[0].dtype for a in arrays):
                other = next(a for a in arrays if a.dtype != arrays[0].dtype)
                raise _mixed(columns[0].spec(), DenseColumn(other).spec(), None)
            return DenseColumn(_side_by_side(arrays))
    if all(isinstance(column, BytesColumn) for column in columns):
        strings = [column for column in columns if isinstance(column, BytesColumn)]
        if all(c.starts.shape[1:] == strings[0].starts.shape[1:] for c in strings):
            return _concat_bytes(strings)
    found = columns[0].followed_by(columns[1:])
    if found is not None:
        return found
    items = [column.values() for column in columns]
    # inside one column, all values have one kind, except that ranks may differ
    firsts = [values[0] for values in items]
    if not _are_arrays(firsts):
        kinds = [*map(spec_of, firsts)]
        for kind in kinds[1:]:
            if kinds[0].relax(kind, any_rank=True) is None:
                raise _mixed(kinds[0], kind, None)
    return ListColumn([value for values in items for value in values])


def _side_by_side(arrays: list[np.ndarray]) -> np.ndarray:
    """Join arrays. Return a view if they are neighbours in read-only memory, like the arrays of a cache."""
    first = arrays[0]
    owner = first.base
    if not isinstance(owner, np.ndarray) or not owner.flags.c_contiguous or first.dtype.hasobject:
        return _copied_together(arrays)
    begin = address = first.ctypes.data
    for array in arrays:
        if array.base is not owner or array.flags.writeable or not array.flags.c_contiguous:
            return _copied_together(arrays)
        if array.ctypes.data != address:
            return _copied_together(arrays)
        address += array.nbytes
    if address == begin:  # arrays without bytes have meaningless addresses
        return _copied_together(arrays)
    shape = (sum(map(len, arrays)), *first.shape[1:])
    found: np.ndarray = np.ndarray(shape, first.dtype, owner, begin - owner.ctypes.data)
    found.flags.writeable = False
    return found


def _copied_together(arrays: list[np.ndarray]) -> np.ndarray:
    first = arrays[0]
    shape = (sum(map(len, arrays)), *first.shape[1:])
    return np.concatenate(arrays, out=ARENA.empty(shape, np.result_type(first, first)))


def _concat_bytes(columns: Sequence[BytesColumn]) -> BytesColumn:
    buffers = {id(buffer): buffer for column in columns for buffer in column.buffers}
    starts = np.concatenate([column.starts for column in columns])
    lengths = np.concatenate([column.lengths for column in columns])
    if len(buffers) == 1:
        return BytesColumn(tuple(buffers.values()), starts, lengths)
    numbers = {address: number for number, address in enumerate(buffers)}
    if {len(column.buffers) for column in columns} == {1}:
        one_each = np.array([numbers[id(column.buffers[0])] for column in columns], np.int32)
        merged = one_each.repeat([column.starts.size for column in columns]).reshape(starts.shape)
        return BytesColumn(tuple(buffers.values()), starts, lengths, merged).compacted()
    which = []
    for column in columns:
        local = np.array([numbers[id(buffer)] for buffer in column.buffers] or [0], np.int32)
        which.append(np.full(column.starts.shape, local[0]) if column.which is None else local[column.which])
    return BytesColumn(tuple(buffers.values()), starts, lengths, np.concatenate(which)).compacted()


def shape_mismatch(row: int, shape: tuple[int, ...], wanted: tuple[int, ...], path: str) -> InvalidArgumentError:
    """Return the error for a batch whose elements differ in shape; its `context.element` is the row."""
    component = f" in component {path}" if path else ""
    message = f"Element {row} of the batch has shape {shape}{component}, the batch has {wanted}."
    hint = "Use padded_batch, or give every element the same shape first (image.resize, a crop, padding)."
    if len(shape) != len(wanted):
        hint = "A batch holds elements of one rank: reshape them to it in a map, or keep those of one with filter."
    return InvalidArgumentError(message, hint=hint, context=Context(element=row))
