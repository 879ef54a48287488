r"""The header of a `.npy` file: what NEP 1 says about it, read without numpy's loader, which may unpickle.

b"\\x93NUMPY" | u8 major | u8 minor | u16le (major 1) or u32le length | a Python dict literal of that length | data
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from penstock.errors import DataLossError, InvalidTypeError
from penstock.functions.definition import parsed_expression

_MAGIC = b"\x93NUMPY"
_KEYS = {"descr", "fortran_order", "shape"}
HEADER_LIMIT = 1 << 16  # bytes read in search of the header; numpy warns at 10,000


@dataclass(frozen=True)
class NpyHeader:
    """Where the array of a `.npy` file begins, and what it is."""

    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool

    @property
    def nbytes(self) -> int:
        return int(self.dtype.itemsize) * prod(self.shape)

    def array(self, content: np.ndarray) -> np.ndarray:
        """The array over the bytes (uint8) behind the header, without a copy."""
        flat = content[: self.nbytes].view(self.dtype) if self.nbytes else np.empty(0, self.dtype)
        return flat.reshape(self.shape[::-1]).T if self.fortran_order else flat.reshape(self.shape)


def read_npy_header(head: bytes, file: str, at: int = 0) -> NpyHeader:
    """The header in the first bytes of a file (or of a member of one, which begins at byte `at`).

    Raises DataLossError for what is no header, InvalidTypeError for pickled objects.
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
    except Exception as error:  # of any kind: numpy's dtypes and Python's parser raise what they like
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
