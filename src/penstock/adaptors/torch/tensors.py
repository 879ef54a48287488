"""From numpy values to torch tensors, over the same memory where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.adaptors.columns import check_there, checked_names
from penstock.adaptors.conversion import Conversion
from penstock.block.structure import Structure
from penstock.errors import InvalidArgumentError, InvalidTypeError

_AS_BITS = {"bfloat16": np.int16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}  # of ml_dtypes: bits alike
_NAMES = {"bool", "complex64", "complex128", "float16", "float32", "float64", *_AS_BITS}
_NAMES |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


class Tensors(Conversion):
    """Tensors on the CPU of the leaves of an element; `cast` gives them the dtype that was asked for."""

    value = "tensor of torch"

    def __init__(self, torch: Any, dtype: Any, as_numpy: Any, spec: Any) -> None:
        self._torch, self._from_numpy = torch, torch.from_numpy
        self._floats, self._dtypes = _dtypes(torch, dtype)
        super().__init__(as_numpy, spec)

    def _learn(self, structure: Structure) -> None:
        super()._learn(structure)
        check_there("dtype", self._dtypes, self.names)

    def holds(self, dtype: np.dtype) -> bool:
        return dtype.name in _NAMES and dtype.isnative

    def convert(self, array: np.ndarray, number: int) -> Any:
        if not array.flags.c_contiguous and min(array.strides) < 0:
            array = array.copy()
        if array.dtype.kind == "V":
            name = array.dtype.name
            return self._from_numpy(array.view(_AS_BITS[name])).view(getattr(self._torch, name))
        return self._from_numpy(array)

    @property
    def casts(self) -> bool:
        return bool(self._dtypes) or self._floats is not None

    def cast(self, tensor: Any, number: int) -> Any:
        """The tensor in the dtype that was asked for: it is on its device by now, where that is quicker."""
        wanted = self._dtypes.get(self.names[number]) if self._dtypes else None
        if wanted is None and self._floats is not None and tensor.is_floating_point():
            wanted = self._floats
        return tensor if wanted is None else tensor.to(wanted)


def _dtypes(torch: Any, dtype: Any) -> tuple[Any, dict[str, Any]]:
    """The dtype of all floating-point columns, and those of single columns."""
    if isinstance(dtype, Mapping):
        checked_names("dtype", list(dtype))
        return None, {name: _dtype(torch, wanted) for name, wanted in dtype.items()}
    if dtype is None:
        return None, {}
    found = _dtype(torch, dtype)
    if not found.is_floating_point:
        message = f"dtype={dtype!r} is for all floating-point columns, and no dtype of floating-point numbers."
        raise InvalidArgumentError(message, hint='For a single column write dtype={"label": torch.int32}.')
    return found, {}


def _dtype(torch: Any, dtype: Any) -> Any:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if isinstance(found, torch.dtype):
        return found
    message = f"dtype must be a dtype of torch, got {dtype!r}."
    raise InvalidTypeError(message, hint='Such as torch.bfloat16, "bfloat16", or {"image": torch.float16}.')
