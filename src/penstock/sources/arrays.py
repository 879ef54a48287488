"""Sources without files.

Ranges, single elements, slices of arrays, the Block of a window, counters and random numbers.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of
from penstock.block.fixed import fixed_array, fixed_column
from penstock.block.leaf import NESTED, as_leaf
from penstock.block.spec import TensorSpec, as_dtype, dtype_name
from penstock.block.structure import LEAF, Structure, refuse_none
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.keys import draws
from penstock.sources.source import IndexedSource, Reader, Source

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1  # of int64


@dataclass(frozen=True)
class RangeSource(IndexedSource):
    """The integers of a Python range, in a chosen dtype."""

    range: range
    dtype: np.dtype

    @property
    def label(self) -> str:
        return f"range({self.range.start}, {self.range.stop}, {self.range.step})"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), self.dtype)

    @property
    def cardinality(self) -> int:
        return len(self.range)

    def small(self) -> tuple[Any, int] | None:
        return self.in_memory()

    def rows(self, start: int, stop: int) -> Block:
        part = self.range[start:stop]
        if not (0 <= part.start <= part.stop <= _MOST or self._fits_int64):
            return self._block(np.array(list(part), object))
        return self._block(np.arange(part.start, part.stop, part.step))

    def rows_at(self, indices: np.ndarray) -> Block:
        if not self._fits_int64:
            return self._block(np.array([self.range[i] for i in indices.tolist()], object))
        return self._block(self.range.start + indices * self.range.step)

    @cached_property
    def _fits_int64(self) -> bool:
        return all(_LEAST <= end <= _MOST for end in (self.range.start, self.range.stop))

    def _block(self, numbers: np.ndarray) -> Block:
        return Block.single(DenseColumn(numbers.astype(self.dtype, copy=False)))


@dataclass(frozen=True, eq=False)
class ArraysSource(IndexedSource):
    """Slices along axis 0 of the arrays that a user passes. Only byte strings are copied."""

    structure: Structure
    columns: tuple[Column, ...] = field(repr=False)
    size: int
    name: str = "from_tensor_slices"

    @property
    def label(self) -> str:
        return self.name

    @property
    def spec(self) -> Any:
        return self.structure.build([column.spec() for column in self.columns])

    @property
    def cardinality(self) -> int:
        return self.size

    def small(self) -> tuple[Any, int] | None:
        return self.in_memory()

    def rows(self, start: int, stop: int) -> Block:
        parts = (column.slice(start, stop) for column in self.columns)
        columns = [part.in_c_order() if isinstance(part, DenseColumn) else part for part in parts]
        return Block(self.structure, columns, stop - start)

    def rows_at(self, indices: np.ndarray) -> Block:
        return Block(self.structure, [column.take(indices) for column in self.columns], len(indices))


def slices_source(structure: Structure, leaves: Sequence[Any]) -> ArraysSource:
    """Return a source of slices along the first axis of each leaf. A list of data sets has one data set per element."""
    columns: list[Column] = []
    sizes: list[int] = []
    for path, leaf in zip(structure.paths(), leaves, strict=True):
        if isinstance(leaf, (list, tuple)) and leaf and all(hasattr(type(item), NESTED) for item in leaf):
            columns.append(ListColumn(list(leaf)))
            sizes.append(len(leaf))
            continue
        if type(leaf) is list and set(map(type, leaf)) == {str}:
            columns.append(BytesColumn.from_texts(leaf))
            sizes.append(len(leaf))
            continue
        value = as_leaf(leaf)
        where = f" {path}" if path else ""
        if hasattr(type(value), NESTED):
            message = f"from_tensor_slices cuts along the first axis; component{where} is a data set."
            raise InvalidArgumentError(
                message, hint="For one element, use from_tensors; a list of data sets gives each."
            )
        if not isinstance(value, np.ndarray):
            message = f"from_tensor_slices cuts along the first axis; component{where} is a scalar: {value!r:.60}."
            raise InvalidArgumentError(message, hint="For one element as it is, use from_tensors.")
        if value.dtype == object:
            flat = value.reshape(-1).tolist()
            columns.append(BytesColumn.from_values(flat, value.shape[1:], len(value)))
        else:
            columns.append(DenseColumn(fixed_array(value)))  # read-only, because the array is read in every epoch
        sizes.append(len(value))
    if len(set(sizes)) > 1:
        named = ", ".join(f"{p or 'value'} has {n}" for p, n in zip(structure.paths(), sizes, strict=True))
        message = f"All components need the same extent along the first axis: {named}."
        raise InvalidArgumentError(message)
    if not sizes:
        message = "from_tensor_slices needs at least one component."
        raise InvalidArgumentError(message)
    return ArraysSource(structure, tuple(columns), sizes[0])


def single_source(structure: Structure, leaves: Sequence[Any]) -> ArraysSource:
    """Return a source of one element, the given nest."""
    refuse_none(structure)
    columns = [fixed_column(column_of([as_leaf(leaf)])) for leaf in leaves]
    return ArraysSource(structure, tuple(columns), 1, "from_tensors")


def strings_source(values: Sequence[str], name: str) -> ArraysSource:
    """Return a source of file names as bytes, which may be invalid UTF-8."""
    column = BytesColumn.from_values([os.fsencode(value) for value in values])
    return ArraysSource(LEAF, (column,), len(values), name)


@dataclass(frozen=True, eq=False)
class BlockSource(IndexedSource):
    """The elements of one Block, with their origins. The Block is read many times, see `read_only`."""

    holds_spec: ClassVar[bool] = True
    block: Block = field(repr=False)
    name: str

    @property
    def label(self) -> str:
        return self.name

    @property
    def spec(self) -> Any:
        return self.block.structure.build(self.block.specs())

    @property
    def cardinality(self) -> int:
        return self.block.size

    def small(self) -> tuple[Any, int] | None:
        return self.in_memory()

    def rows(self, start: int, stop: int) -> Block:
        return self.block.slice(start, stop)

    def rows_at(self, indices: np.ndarray) -> Block:
        return self.block.take(indices)


def read_only(block: Block) -> Block:
    """Return the Block with read-only views of its arrays, without a copy."""
    return block.with_columns(block.structure, [fixed_column(column) for column in block.columns])


_BITS = 32  # of a random number: tf.data's range
_MASK = (1 << 64) - 1


class EndlessSource(Source):
    """A Source that computes element n from the number n."""

    @property
    def cardinality(self) -> int:
        return -1

    @abstractmethod
    def numbers(self, start: int, count: int) -> np.ndarray:
        """Return the elements from number `start` on."""

    def open(self, position: int | None = None) -> Reader:
        return _EndlessReader(self, position or 0)


class _EndlessReader(Reader):
    def __init__(self, source: EndlessSource, at: int) -> None:
        self._source = source
        self._at = at

    def read(self, max_elements: int) -> Block:
        found = self._source.numbers(self._at, max_elements)
        self._at += max_elements
        return Block.single(DenseColumn(found))

    def position(self) -> int:
        return self._at


@dataclass(frozen=True)
class RandomSource(EndlessSource):
    """Uniform int64 below 2**32, from a key and the element's number."""

    key: int
    label: str = "random"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), np.int64)

    def numbers(self, start: int, count: int) -> np.ndarray:
        return draws(self.key, start, count, 1 << _BITS)


@dataclass(frozen=True)
class CounterSource(EndlessSource):
    """`start + n * step`; integers wrap around at the ends of their dtype."""

    start: Any
    step: Any
    dtype: np.dtype

    def __post_init__(self) -> None:
        kind = self.dtype.kind
        for name in ("start", "step"):
            object.__setattr__(self, name, _number(name, getattr(self, name), self.dtype))
        if kind in "iu" and not np.iinfo(self.dtype).min <= self.start <= np.iinfo(self.dtype).max:
            message = f"start must fit {self.dtype}, got start={self.start}."
            raise InvalidArgumentError(message, hint="Choose a wider dtype.")

    @property
    def label(self) -> str:
        return f"counter({self.start}, {self.step})"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), self.dtype)

    def numbers(self, start: int, count: int) -> np.ndarray:
        if self.dtype.kind == "f":
            numbers: np.ndarray = self.start + np.arange(start, start + count) * self.step
        else:  # the lower bits of a result modulo 2**64 are right for every narrower integer
            counts = np.arange(start, start + count, dtype=np.uint64)
            numbers = counts * np.uint64(self.step & _MASK) + np.uint64(self.start & _MASK)
        return numbers.astype(self.dtype)


def _number(name: str, value: Any, dtype: np.dtype) -> int | float:
    whole = dtype.kind in "iu"
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds):
        wanted = "an integer" if whole else "a number"
        message = f"{name} must be {wanted} for a counter of {dtype}, got {name}={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message, hint="dtype= says what the elements are.")
    return int(value) if whole else float(value)


def counter_source(start: Any, step: Any, dtype: Any) -> CounterSource:
    """Return a counter with a user's arguments, after a check of the dtype."""
    found = as_dtype(dtype)
    if found is bytes or found.kind not in "iuf":
        message = f"A counter gives integers or floating-point numbers, got dtype={dtype_name(found)}."
        raise InvalidTypeError(message, hint="For example np.int64 or np.float32.")
    return CounterSource(start, step, found)
