"""DType: the class of `tf.float32`, a name for a numpy dtype with some properties."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from penstock.errors import InvalidTypeError

# numpy's names. Text is an object array of bytes.
_NAMES = {
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128", "bool")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bfloat16": "bfloat16",  # numpy has it if ml_dtypes is installed
    "string": "object",
}


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """An element type under TensorFlow's name. numpy takes it as a dtype, and it equals the numpy dtype it names.

    >>> DType("float32") == np.float32, np.zeros(2, DType("int32")).dtype, DType("uint8").max
    (True, dtype('int32'), 255)
    """

    name: str

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype. numpy reads this attribute wherever it accepts a dtype."""
        if self.name == "bfloat16":
            return np.dtype(_ml_dtypes().bfloat16)
        return np.dtype(_NAMES[self.name])

    @property
    def as_numpy_dtype(self) -> Any:
        return self.dtype.type

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def is_floating(self) -> bool:
        return self.dtype.kind == "f" or self.name == "bfloat16"

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.kind == "u"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def size(self) -> int:
        return self.dtype.itemsize

    @property
    def max(self) -> Any:
        return self._limits.max

    @property
    def min(self) -> Any:
        return self._limits.min

    @property
    def _limits(self) -> Any:
        if self.name == "bfloat16":
            return _ml_dtypes().finfo(self.dtype)
        return np.finfo(self.dtype) if self.is_floating else np.iinfo(self.dtype)

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        try:
            return self.name == as_dtype(other).name
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"


def _ml_dtypes() -> Any:
    return import_module("ml_dtypes")


DTYPES = {name: DType(name) for name in _NAMES}


def as_dtype(dtype: Any) -> DType:
    """Return the DType of a name, a numpy dtype or a Python type, like `tf.as_dtype`.

    >>> as_dtype("float32"), as_dtype(np.int64), as_dtype(bytes)
    (tf.float32, tf.int64, tf.string)

    Raises InvalidTypeError for anything else.
    """
    if type(dtype) is DType:
        return dtype
    return _of_numpy(dtype) if isinstance(dtype, np.dtype) else _as_dtype(dtype)


def _as_dtype(dtype: Any) -> DType:
    if dtype in (bytes, str):
        return DTYPES["string"]
    if dtype is int:
        return DTYPES["int32"]
    if dtype is float:
        return DTYPES["float32"]
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is not None and found.kind in "SUO":
        return DTYPES["string"]
    if found is None or found.name not in DTYPES:
        raise InvalidTypeError(f"{dtype!r:.60} is no dtype of an element.", hint=f"There are {', '.join(DTYPES)}.")
    return DTYPES[found.name]


_of_numpy = functools.cache(_as_dtype)


def plain(dtype: Any) -> Any:
    """Return the dtype for penstock: a numpy dtype, or bytes for text.

    >>> plain(as_dtype("string")), plain("int32")
    (<class 'bytes'>, dtype('int32'))
    """
    found = as_dtype(dtype)
    return bytes if found.name == "string" else found.dtype


def plain_nest(types: Any) -> Any:
    """Apply `plain` to each dtype of a nest. Lists become tuples, as in the nest of an element."""
    if isinstance(types, dict):
        return {name: plain_nest(item) for name, item in types.items()}
    if isinstance(types, (tuple, list)):
        return tuple(map(plain_nest, types))
    return plain(types)
