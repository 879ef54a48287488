"""What is known about a leaf before it is there: its shape and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError

DType = Any  # np.dtype, or the class `bytes`
Shape = tuple[int | None, ...]


def as_dtype(dtype: Any) -> DType:
    """Normalise a dtype as a user writes it: `bytes` and `str` are byte strings, anything else is numpy's.

    >>> as_dtype("float32"), as_dtype(str)
    (dtype('float32'), <class 'bytes'>)
    """
    if dtype in (bytes, str, "string", "bytes"):
        return bytes
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        message = f"dtype must be a numpy dtype or bytes, got {dtype!r}."
        raise InvalidTypeError(message) from error
    return bytes if found.kind in "SUOT" else found.newbyteorder("=")


def dtype_name(dtype: DType) -> str:
    """The name of a dtype in reprs and errors: `int64`, `bytes`."""
    return "bytes" if dtype is bytes else str(np.dtype(dtype))


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of a leaf; `None` stands for a dimension that differs between elements.

    >>> TensorSpec((None, 3), np.float32)
    TensorSpec(shape=(None, 3), dtype=float32)

    As the signature of a generator, and in that of `map_fn`, `TensorSpec(None, dtype)` leaves the shape and its rank
    open: elements of the generator may differ in rank.
    """

    __penstock_leaf__ = True

    shape: Shape
    dtype: DType

    def __init__(self, shape: Sequence[int | None] | None, dtype: Any = np.float32) -> None:
        found = None if shape is None else tuple(None if d is None else int(d) for d in shape)
        object.__setattr__(self, "shape", found)
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={dtype_name(self.dtype)})"

    def relax(self, other: LeafSpec, *, any_rank: bool = False) -> TensorSpec | None:
        """The narrowest spec that both satisfy, or None when dtype or rank differ; with `any_rank` ranks may."""
        if not isinstance(other, TensorSpec) or self.dtype != other.dtype:
            return None
        if self.open_rank or other.open_rank:
            return TensorSpec(None, self.dtype)
        if len(self.shape) != len(other.shape):
            return TensorSpec(None, self.dtype) if any_rank else None
        return TensorSpec([a if a == b else None for a, b in zip(self.shape, other.shape, strict=True)], self.dtype)

    @property
    def open_rank(self) -> bool:
        """Whether nothing is known of the shape; no spec in a plan is like that, see `Scan.spec`."""
        return self.shape is None

    @property
    def fixed(self) -> bool:
        """Whether every extent is known."""
        return self.shape is not None and None not in self.shape

    def admits(self, value: Any) -> bool:
        """Whether a converted leaf value satisfies this spec."""
        found = spec_of(value)
        return isinstance(found, TensorSpec) and self.admits_spec(found)

    def admits_spec(self, found: TensorSpec) -> bool:
        if self.open_rank:
            return bool(found.dtype == self.dtype)
        return (
            found.dtype == self.dtype
            and len(found.shape) == len(self.shape)
            and all(want is None or want == have for want, have in zip(self.shape, found.shape, strict=True))
        )

    def batched(self, size: int | None) -> TensorSpec:
        return self if self.open_rank else TensorSpec((size, *self.shape), self.dtype)


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """Spec of a leaf that is no plain array: a sparse or ragged tensor, or a nested data set."""

    __penstock_leaf__ = True

    kind: type
    dtype: DType = None

    def __repr__(self) -> str:
        return f"{self.kind.__name__}Spec({'' if self.dtype is None else 'dtype=' + dtype_name(self.dtype)})"

    @property
    def value_type(self) -> type:
        """The class of the values."""
        return self.kind

    def relax(self, other: LeafSpec, *, any_rank: bool = False) -> ValueSpec | None:
        return self if self == other else None

    def admits(self, value: Any) -> bool:
        return spec_of(value) == self

    def batched(self, size: int | None) -> ValueSpec:
        return self


LeafSpec = TensorSpec | ValueSpec


def spec_of(value: Any) -> LeafSpec:
    """The exact spec of one converted leaf value."""
    if type(value) is bytes:
        return TensorSpec((), bytes)
    if isinstance(value, (np.ndarray, np.generic)):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, (SparseTensor, RaggedTensor)):
        return ValueSpec(type(value), as_dtype(value.dtype))
    return ValueSpec(type(value))


def any_extent(leaf: LeafSpec) -> LeafSpec:
    """The spec of a leaf with open extents: what one element tells of others is their rank and dtype."""
    if not isinstance(leaf, TensorSpec) or leaf.shape is None:
        return leaf
    return TensorSpec([None] * len(leaf.shape), leaf.dtype)


# The type of an element is for type checkers: nothing looks at it while a program runs. A `Dataset` without brackets
# has elements of any type. It is covariant, as a data set is only read: a `Dataset[np.int64]` may stand where a
# `Dataset[np.integer[Any]]` is asked for.

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # defaults are in typing from Python 3.13 on; checkers bring this module

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class RaggedTensorSpec:
    """Shape and dtype of a RaggedTensor, or of rows that become one; `None` stands for a dimension that differs.

    >>> RaggedTensorSpec((None,), np.int64)
    RaggedTensorSpec(shape=(None,), dtype=int64, row_splits_dtype=int64)

    Raises InvalidTypeError for another `row_splits_dtype` than int32 and int64.
    """

    __penstock_leaf__ = True

    shape: Shape
    dtype: Any
    row_splits_dtype: np.dtype

    def __init__(self, shape: Sequence[int | None], dtype: Any = np.float32, row_splits_dtype: Any = np.int64) -> None:
        splits = as_dtype(row_splits_dtype)
        if splits not in (np.dtype(np.int32), np.dtype(np.int64)):
            message = f"row_splits_dtype must be int32 or int64, got {dtype_name(splits)}."
            raise InvalidTypeError(message)
        object.__setattr__(self, "shape", tuple(None if d is None else int(d) for d in shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "row_splits_dtype", splits)

    def __repr__(self) -> str:
        names = f"dtype={dtype_name(self.dtype)}, row_splits_dtype={dtype_name(self.row_splits_dtype)}"
        return f"RaggedTensorSpec(shape={self.shape}, {names})"
