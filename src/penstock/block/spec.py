"""Specs: shape and dtype of a leaf, known before the first element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError

DType = Any  # np.dtype, or the class `bytes`
Shape = tuple[int | None, ...]


def as_dtype(dtype: Any) -> DType:
    """Normalise a user's dtype: `bytes` and `str` mean byte strings, everything else is a numpy dtype.

    >>> as_dtype("float32"), as_dtype(str)
    (dtype('float32'), <class 'bytes'>)
    """
    if dtype in (bytes, str, "string", "bytes"):
        return bytes
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise InvalidTypeError(f"dtype must be a numpy dtype or bytes, got {dtype!r}.") from error
    return bytes if found.kind in "SUOT" else found.newbyteorder("=")


def dtype_name(dtype: DType) -> str:
    """Return the name of a dtype for reprs and errors: `int64`, `bytes`."""
    return "bytes" if dtype is bytes else str(np.dtype(dtype))


class _Shaped:
    """The spec of a value with a shape and a dtype; a shape of None leaves the rank open."""

    __slots__ = ()
    __penstock_leaf__ = True

    shape: Any
    dtype: Any

    def __init__(self, shape: Sequence[int | None] | None, dtype: Any = np.float32) -> None:
        found = None if shape is None else tuple(None if d is None else int(d) for d in shape)
        object.__setattr__(self, "shape", found)
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={dtype_name(self.dtype)})"

    def of_shape(self, shape: Shape | None, deeper: int = 0) -> Self:
        """Return the same spec with another shape; `deeper` is the number of added ragged dimensions."""
        return type(self)(shape, self.dtype)

    def as_value(self) -> TensorSpec | RaggedTensorSpec | SparseTensorSpec:
        """Return the spec of the value outside a RaggedTensor."""
        found: Any = self
        return found

    def relax(self, other: LeafSpec, *, any_rank: bool = False) -> Self | None:
        """Return the narrowest spec that both satisfy, or None. With `any_rank`, ranks may differ."""
        if not isinstance(other, type(self)) or self.dtype != other.dtype:
            return None
        if self.shape is None or other.shape is None:
            return self.of_shape(None)
        if len(self.shape) != len(other.shape):
            return self.of_shape(None) if any_rank else None
        return self.of_shape(tuple(a if a == b else None for a, b in zip(self.shape, other.shape, strict=True)))

    def admits(self, value: Any) -> bool:
        """Return True if a converted leaf value satisfies this spec."""
        wanted = self.as_value()
        return wanted.relax(spec_of(value)) == wanted

    def batched(self, size: int | None) -> Self:
        """Return the spec of a batch of such values."""
        return self if self.shape is None else self.of_shape((size, *self.shape), 1)

    def unbatched(self) -> Self:
        """Return the spec of a slice along the first axis."""
        return self if self.shape is None else self.of_shape(self.shape[1:], -1)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TensorSpec(_Shaped):
    """Shape and dtype of a leaf of an element.

    Args:
        shape: Shape, with None for a dimension that differs between elements. In the signature of `from_generator` or
            `map_fn`, None in place of the shape means any shape and rank.
        dtype: A numpy dtype, or `bytes`. Default: float32.

    Example:
        >>> TensorSpec((None, 3), np.float32)
        TensorSpec(shape=(None, 3), dtype=float32)
    """

    shape: Shape
    dtype: DType

    @property
    def open_rank(self) -> bool:
        """True if the rank is unknown. No spec in a plan has an open rank, see `Scan.spec`."""
        return self.shape is None

    @property
    def fixed(self) -> bool:
        """True if every extent is known."""
        return self.shape is not None and None not in self.shape


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SparseTensorSpec(_Shaped):
    """Shape and dtype of a SparseTensor.

    Args:
        shape: Shape, with None for a dimension that differs between elements; or None for an unknown shape.
        dtype: A numpy dtype, or `bytes`. Default: float32.

    Example:
        >>> SparseTensorSpec((None, 4), np.int64)
        SparseTensorSpec(shape=(None, 4), dtype=int64)
    """

    value_type: ClassVar[type] = SparseTensor

    shape: Shape | None
    dtype: DType


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RaggedTensorSpec(_Shaped):
    """Shape and dtype of a RaggedTensor, or of rows that become one.

    Args:
        shape: Shape, with None for a dimension that differs between rows or elements.
        dtype: A numpy dtype, or `bytes`. Default: float32.
        row_splits_dtype: Dtype of the row splits: int32 or int64. Default: int64.
        ragged_rank: Number of ragged dimensions after the outermost one. By default, all dimensions up to the last
            None. Values of rank 0 are arrays: slices of a RaggedTensor, which `batch` makes a RaggedTensor again.

    Raises:
        InvalidTypeError: If `row_splits_dtype` is another dtype.

    Example:
        >>> RaggedTensorSpec((None, None), np.int64)
        RaggedTensorSpec(shape=(None, None), dtype=int64, ragged_rank=1, row_splits_dtype=int64)
    """

    value_type: ClassVar[type] = RaggedTensor

    shape: Shape
    dtype: Any
    row_splits_dtype: np.dtype
    ragged_rank: int

    def __init__(
        self,
        shape: Sequence[int | None] | None,
        dtype: Any = np.float32,
        row_splits_dtype: Any = np.int64,
        ragged_rank: int | None = None,
    ) -> None:
        splits = as_dtype(row_splits_dtype)
        if splits not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise InvalidTypeError(f"row_splits_dtype must be int32 or int64, got {dtype_name(splits)}.")
        if ragged_rank is None:
            ragged_rank = max((axis for axis, dim in enumerate(shape or ()) if dim is None), default=shape is None)
        _Shaped.__init__(self, shape, dtype)
        object.__setattr__(self, "row_splits_dtype", splits)
        object.__setattr__(self, "ragged_rank", int(ragged_rank))

    def __repr__(self) -> str:
        splits = f"ragged_rank={self.ragged_rank}, row_splits_dtype={dtype_name(self.row_splits_dtype)}"
        return f"{_Shaped.__repr__(self)[:-1]}, {splits})"

    def of_shape(self, shape: Shape | None, deeper: int = 0) -> RaggedTensorSpec:
        return RaggedTensorSpec(shape, self.dtype, self.row_splits_dtype, self.ragged_rank + deeper)

    def as_value(self) -> RaggedTensorSpec | TensorSpec:
        return self if self.ragged_rank else TensorSpec(self.shape, self.dtype)


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """Spec of a leaf that is not a tensor: a nested data set."""

    __penstock_leaf__ = True

    value_type: type
    dtype: DType = None

    def __repr__(self) -> str:
        return f"{self.value_type.__name__}Spec()"

    def relax(self, other: LeafSpec, *, any_rank: bool = False) -> ValueSpec | None:
        return self if self == other else None

    def admits(self, value: Any) -> bool:
        return spec_of(value) == self

    def batched(self, size: int | None) -> ValueSpec:
        return self


LeafSpec = TensorSpec | RaggedTensorSpec | SparseTensorSpec | ValueSpec


def spec_of(value: Any) -> LeafSpec:
    """Return the exact spec of one converted leaf value."""
    if type(value) is bytes:
        return TensorSpec((), bytes)
    if isinstance(value, (np.ndarray, np.generic)):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, SparseTensor):
        return SparseTensorSpec(value.shape, value.dtype)
    if isinstance(value, RaggedTensor):
        return RaggedTensorSpec(value.shape, value.dtype, value.row_splits.dtype, value.ragged_rank)
    return ValueSpec(type(value))


def any_extent(leaf: LeafSpec) -> LeafSpec:
    """Return the spec of a leaf with all extents None: one element determines only rank and dtype of the others."""
    return leaf if isinstance(leaf, ValueSpec) or leaf.shape is None else leaf.of_shape((None,) * len(leaf.shape))


# Element types exist for type checkers only and are not checked at run time. A `Dataset` without brackets has elements
# of any type. The type is covariant because a data set is read-only: a `Dataset[np.int64]` is also a
# `Dataset[np.integer[Any]]`.

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # defaults are in typing from Python 3.13 on; checkers bring this module

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)
