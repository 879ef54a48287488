"""The wire format: integers of 1 to 10 bytes, what has a length, what is unknown; and memory by its address."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

from penstock.compiled.kernel import helper, inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.loads import load64

U = np.uint64
_CONTINUED, _PAYLOAD = 0x8080808080808080, 0x7F7F7F7F7F7F7F7F


@uncounted
@helper
def _long_varint(buffer: Any, at: Any, stop: Any) -> Any:
    """`varint` for more than one byte."""
    value = U(0)
    shift = U(0)
    last = min(stop, at + 10)
    while at < last:
        byte = U(buffer[U(at)])
        at += 1
        value |= (byte & U(127)) << shift
        if byte < U(128):
            return value, at
        shift += U(7)
    return U(0), -1


@uncounted
@helper
def varint(buffer: Any, at: Any, stop: Any) -> Any:
    """(value, next position), or (0, -1) where it does not end before `stop` or within 10 bytes.

    Most have one byte; apart from the loop for the others this is small enough for LLVM to inline.
    """
    if at < stop and buffer[U(at)] < 128:
        return U(buffer[U(at)]), at + 1
    return _long_varint(buffer, at, stop)


@uncounted
@inlined
def short_varint(buffer: Any, at: Any, size: Any) -> Any:
    """(True, value) of a varint of 1 to 8 bytes that is exactly `size` long; the caller has checked eight bytes."""
    shift = U(64) - (U(size) << U(3))
    word = load64(buffer, at) << shift  # its last byte is the highest, below it there are zeros
    continued = word & U(_CONTINUED)
    fits = continued == (U(_CONTINUED) >> U(8)) & (U(0xFFFFFFFFFFFFFFFF) << shift)
    word = (word >> shift) & U(_PAYLOAD)
    word = (word & U(0x007F007F007F007F)) | ((word & U(0x7F007F007F007F00)) >> U(1))
    word = (word & U(0x00003FFF00003FFF)) | ((word & U(0x3FFF00003FFF0000)) >> U(2))
    return fits, (word & U(0x0FFFFFFF)) | ((word & U(0x0FFFFFFF00000000)) >> U(4))


@uncounted
@helper
def span(buffer: Any, at: Any, stop: Any) -> Any:
    """(start, end) of the bytes that a length announces, or (0, -1)."""
    size, at = varint(buffer, at, stop)
    if at < 0 or size > U(stop - at):
        return 0, -1
    return at, at + np.int64(size)


@uncounted
@helper
def skip(buffer: Any, at: Any, stop: Any, tag: Any) -> Any:
    """The position after an unknown field, or -1."""
    kind = tag & U(7)
    if tag < U(8) or tag > U(0xFFFFFFFF):
        return -1
    if kind == U(0):
        return varint(buffer, at, stop)[1]
    if kind == U(2):
        return span(buffer, at, stop)[1]
    if kind == U(1):
        return at + 8 if stop - at >= 8 else -1
    if kind == U(5):
        return at + 4 if stop - at >= 4 else -1
    return -1


# numba carries types for some of its names only.
make_array: Any = arrayobj.make_array
populate_array: Any = arrayobj.populate_array
_BYTES: Any = types.Array(types.uint8, 1, "C", readonly=True)


def _bytes_at(typing: Any, address: Any, size: Any) -> Any:
    """The `size` bytes from `address` on as an array; the caller holds what they are in."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(_BYTES)(context, builder)
        data = builder.inttoptr(args[0], array.data.type)
        one = context.get_constant(types.intp, 1)
        populate_array(array, data, [args[1]], [one], one, None)
        return array._getvalue()

    return _BYTES(types.int64, types.int64), generate


def _address_of(typing: Any, buffer: Any) -> Any:
    """The address of an array's first byte."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(array.data, context.get_value_type(types.int64))

    return types.int64(buffer), generate


bytes_at: Any = intrinsic(_bytes_at)
address_of: Any = intrinsic(_address_of)
