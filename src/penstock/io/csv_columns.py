"""From the positions of fields to columns of values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.io.csv_format import CsvColumn
from penstock.io.csv_reader import KERNELS
from penstock.io.csv_rows import field_bytes
from penstock.io.csv_values import plain_float, plain_int

_GOOD, _BAD, _UNSURE = 0, 1, 2


def column_of_fields(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, column: CsvColumn, na_value: bytes
) -> tuple[Column, np.ndarray]:
    """The values of one column of a chunk, and where a field is none: bool (rows,)."""
    missing = _missing(buffer, starts, lengths, na_value)
    if column.dtype is bytes:
        bad = missing if column.default is None else np.zeros(len(starts), bool)
        return _byte_strings(buffer, starts, lengths, missing, column.default or b""), bad
    values, states = _numbers(buffer, starts, lengths, column)
    bad = (states != _GOOD) | (lengths < 0)
    if missing.any():
        bad[missing] = column.default is None
        values[missing] = 0 if column.default is None else column.default
    with np.errstate(over="ignore"):
        return DenseColumn(values.astype(column.dtype, copy=False)), bad


def _missing(buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, na_value: bytes) -> np.ndarray:
    missing: np.ndarray = lengths == 0
    if na_value:
        rows = np.flatnonzero(np.where(lengths < 0, ~lengths, lengths) >= len(na_value))
        if b'"' in na_value or (lengths < 0).any():
            view = buffer.data
            same = [field_bytes(view, s, n) == na_value for s, n in zip(starts[rows], lengths[rows], strict=True)]
            missing[rows[np.array(same, bool)]] = True
        else:
            rows = rows[lengths[rows] == len(na_value)]
            for i, byte in enumerate(na_value):
                rows = rows[buffer[starts[rows] + i] == byte]
            missing[rows] = True
    return missing


def _byte_strings(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, missing: np.ndarray, default: bytes
) -> BytesColumn:
    """Zero-copy but for what does not stand in the file as it is: defaults, and fields with doubled quotes."""
    doubled = np.flatnonzero((lengths < 0) & ~missing)
    if not len(doubled) and not missing.any():
        return BytesColumn((buffer,), starts, lengths)
    view = buffer.data
    pieces = [default, *(field_bytes(view, int(starts[i]), int(lengths[i])) for i in doubled)]
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    begins = np.cumsum(sizes) - sizes
    starts, lengths, which = starts.copy(), lengths.copy(), np.zeros(len(starts), np.int32)
    starts[doubled], lengths[doubled], which[doubled] = begins[1:], sizes[1:], 1
    starts[missing], lengths[missing], which[missing] = 0, len(default), 1
    return BytesColumn((buffer, np.frombuffer(b"".join(pieces), np.uint8)), starts, lengths, which)


def _numbers(
    buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray, column: CsvColumn
) -> tuple[np.ndarray, np.ndarray]:
    """(values, states) of all fields; those of missing ones mean nothing."""
    dtype = np.dtype(column.dtype)
    kernels = KERNELS.ready()
    states = np.full(len(starts), _UNSURE, np.uint8)
    number: Callable[[bytes], float | None]
    if dtype.kind == "i":
        high = (1 << (8 * dtype.itemsize - 1)) - 1
        low = -high - 1
        number = partial(plain_int, low=low, high=high)
        values = np.zeros(len(starts), np.int64)
        if kernels is not None:
            kernels.ints(buffer, starts, lengths, low, high, values, states)
    else:
        single = dtype == np.float32
        number = partial(plain_float, single=single)
        values = np.zeros(len(starts), np.float64)
        if kernels is not None:
            kernels.floats(buffer, starts, lengths, single, values, states)
    view = buffer.data
    for row in np.flatnonzero(states == _UNSURE).tolist():
        found = number(field_bytes(view, int(starts[row]), int(lengths[row])))
        states[row] = _BAD if found is None else _GOOD
        values[row] = 0 if found is None else found
    return values, states
