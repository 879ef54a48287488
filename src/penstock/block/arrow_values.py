"""Arrow arrays without nulls as numpy arrays, and back: numbers, byte strings and lists.

Data is copied only if needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn
from penstock.block.spec import dtype_name
from penstock.errors import DataLossError, InvalidTypeError

Array = Any  # a pyarrow.Array: pyarrow is imported when the first array is created

_TEMPORAL = "mM"


def is_strings(kind: Any) -> bool:
    """Return True if an Arrow type holds byte strings or strings."""
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_string_view(kind)
        or types.is_binary_view(kind)
    )


def numbers_of(array: Array) -> np.ndarray:
    """Return a numeric, boolean or temporal array as a numpy array. Booleans and days are copied.

    `to_numpy` returns the same, but imports pandas if pandas is installed.
    """
    import pyarrow as pa

    kind, types = array.type, pa.types
    if types.is_boolean(kind):
        first = array.offset % 8
        bits = np.frombuffer(array.buffers()[1] or b"", np.uint8, offset=array.offset // 8)
        return np.unpackbits(bits, count=first + len(array), bitorder="little")[first:].view(bool)
    if types.is_date32(kind):
        return numbers_of(array.view(pa.int32())).astype("datetime64[D]")
    if types.is_time(kind):
        return numbers_of(array.view(f"int{kind.bit_width}")).astype(f"timedelta64[{kind.unit}]")
    dtype = np.dtype(f"datetime64[{kind.unit}]" if types.is_timestamp(kind) else kind.to_pandas_dtype())
    found = np.frombuffer(array.buffers()[1] or b"", dtype, len(array), array.offset * dtype.itemsize)
    found.flags.writeable = False
    return found


def strings_of(array: Array) -> BytesColumn:
    """Return byte strings or strings as positions in Arrow's own buffer."""
    import pyarrow as pa

    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary())
    buffers = array.buffers()
    data = np.frombuffer(b"" if buffers[-1] is None else buffers[-1], np.uint8)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        starts = (array.offset + np.arange(len(array), dtype=np.int64)) * width
        return BytesColumn((data,), starts, np.full(len(array), width, np.int64))
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    places = np.frombuffer(buffers[1], np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return BytesColumn((data,), places[:-1].astype(np.int64), _lengths(places).astype(np.int64))


def _lengths(places: np.ndarray) -> np.ndarray:
    """Return the differences of neighbouring offsets. Arrow itself checks only the first and the last offset."""
    found: np.ndarray = np.diff(places)
    if len(found) and found.min() < 0:
        number = int(found.argmin())
        message = f"Item {number} of a column ends at {places[number + 1]}, before it begins at {places[number]}."
        raise DataLossError(message, hint="Bytes of the data were changed: write or copy it again.")
    return found


def items_of(array: Array) -> Array:
    """Return the values of fixed-size lists without nulls.

    `flatten` returns the same, but imports pyarrow.compute.
    """
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def lists_of(array: Array) -> tuple[np.ndarray, Array]:
    """Return (offsets, values) of an array of lists.

    List i is `values[offsets[i] : offsets[i + 1]]`; offsets start at 0.
    """
    import pyarrow as pa

    if pa.types.is_fixed_size_list(array.type):
        return np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size, array.flatten()
    if hasattr(array, "sizes"):  # list views may lie in any order; pyarrow casts them wrongly
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(numbers_of(array.sizes), out=offsets[1:])
        return offsets, array.flatten()
    offsets = numbers_of(array.offsets).astype(np.int64)
    _lengths(offsets)
    first = int(offsets[0])
    return offsets - first, array.values.slice(first, int(offsets[-1]) - first)


def objects_of(strings: BytesColumn) -> np.ndarray:
    """Return a read-only object array of `bytes`."""
    flat = BytesColumn(strings.buffers, strings.starts.reshape(-1), strings.lengths.reshape(-1))
    found = np.empty(len(flat), object)
    found[:] = flat.values()
    found.flags.writeable = False
    return found.reshape(strings.starts.shape)


# -- to Arrow


def stored(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in a dtype that Arrow has.

    Complex numbers become pairs along a new last axis, times become integers.
    """
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array)
        real = np.float32 if array.dtype.itemsize == 8 else np.float64
        return array.view(real).reshape(*array.shape, 2)
    return array.view(np.int64) if array.dtype.kind in _TEMPORAL else array


def restored(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the array that was passed to `stored`."""
    if dtype.kind == "c":
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape[:-1])
    return array.view(dtype) if dtype.kind in _TEMPORAL else array


def stored_type(dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the (Arrow type, extra dimensions) for values of a dtype.

    An unsupported dtype raises InvalidTypeError.
    """
    import pyarrow as pa

    if dtype is bytes:
        return pa.large_binary(), ()
    empty = stored(np.empty(0, dtype))
    if empty.dtype.kind not in "biuf" or empty.dtype.itemsize > 8 or dtype.itemsize > 16:
        message = f"Values of dtype {dtype_name(dtype)} cannot be stored."
        hint = "Convert them first: to bool, an integer, float16 to float64, complex, datetime64 or bytes."
        raise InvalidTypeError(message, hint=hint)
    return pa.from_numpy_dtype(empty.dtype), empty.shape[1:]


def numbers_array(flat: np.ndarray) -> Array:
    """Return a 1-D numpy array as an Arrow array.

    `pyarrow.array` returns the same, but imports pandas if pandas is installed.
    """
    import pyarrow as pa

    kind = pa.from_numpy_dtype(flat.dtype)
    native = flat.astype(flat.dtype.newbyteorder("="), copy=False)
    data = np.packbits(native, bitorder="little") if native.dtype == bool else np.ascontiguousarray(native)
    return pa.Array.from_buffers(kind, len(flat), [None, pa.py_buffer(data)])


def strings_array(column: BytesColumn) -> Array:
    """Return byte strings as a large_binary array, in C order. Strings that are not contiguous are copied."""
    import pyarrow as pa

    data, starts, lengths = column.packed()
    if not np.array_equal(starts[1:], starts[:-1] + lengths[:-1]):
        data = np.frombuffer(b"".join(column.views()), np.uint8)
        starts = np.cumsum(lengths) - lengths
    places = np.empty(len(starts) + 1, np.int64)
    places[:-1] = starts
    places[-1] = starts[-1] + lengths[-1] if len(starts) else 0
    buffers = [None, pa.py_buffer(places), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(starts), buffers)


def list_array(lengths: Sequence[int] | np.ndarray, values: Array) -> Array:
    """Return lists of the given lengths over `values`, as a large_list array."""
    import pyarrow as pa

    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeListArray.from_arrays(numbers_array(offsets), values)


def fixed_array(count: int, size: int, values: Array) -> Array:
    """Return `count` lists of `size` values each."""
    import pyarrow as pa

    kind = pa.list_(values.type, size)
    return pa.FixedSizeListArray.from_buffers(kind, count, [None], children=[values])
