"""TensorSpec: penstock's, with TensorFlow's dtypes and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block import spec as _block
from penstock.compat.dtypes import DType, as_dtype, plain
from penstock.compat.values import CONVERSIONS, TensorShape

_SHAPE, _DTYPE = (vars(_block.TensorSpec)[name] for name in ("shape", "dtype"))


class _SpecType(type):
    """The metaclass: penstock's own specs count as instances."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _block.TensorSpec)


class TensorSpec(_block.TensorSpec, metaclass=_SpecType):
    """Shape and dtype of a leaf of an element. `None` is a variable extent.

    >>> TensorSpec([None, 3], "float32").shape.as_list(), TensorSpec((), "string").dtype
    ([None, 3], tf.string)
    """

    __slots__ = ()

    def __init__(self, shape: Any = None, dtype: Any = "float32", name: Any = None) -> None:
        known = _block.TensorSpec(shape, plain(dtype))
        _SHAPE.__set__(self, known.shape)
        _DTYPE.__set__(self, known.dtype)

    @staticmethod
    def from_tensor(tensor: Any, name: Any = None) -> TensorSpec:
        """Return the spec of a value."""
        return TensorSpec(np.shape(tensor), tensor.dtype)

    def _plain(self) -> _block.TensorSpec:
        return _block.TensorSpec(_SHAPE.__get__(self), _DTYPE.__get__(self))

    @property
    def shape(self) -> Any:
        found = _SHAPE.__get__(self)
        return None if found is None else TensorShape(found)

    @property
    def dtype(self) -> DType:
        return as_dtype(_DTYPE.__get__(self))

    def is_compatible_with(self, other: Any) -> bool:
        """Return True if a value or spec `other` has this dtype and fits this shape."""
        shape = self.shape
        return bool(self.dtype == other.dtype and (shape is None or shape.is_compatible_with(other.shape)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _block.TensorSpec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash(self._plain())

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name=None)"

    def __reduce__(self) -> Any:
        return TensorSpec, (_SHAPE.__get__(self), self.dtype)


CONVERSIONS[_block.TensorSpec] = lambda spec: TensorSpec(spec.shape, spec.dtype)
