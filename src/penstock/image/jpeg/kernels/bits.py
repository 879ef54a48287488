"""Reading a file at an address: bytes, and the bits of coded data.

The state of a reader is four numbers: the address of the next byte; a word of 64 bits with the next bit on top; the
number of valid bits in the word; and the number of valid bits that are filler after a marker or the end. All reads are
before `end`.

The reader takes addresses because the files of a Block lie in several buffers. The caller checks the bounds. In a
library of checked kernels, each read also calls `penstock_checked_read`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic

from penstock.native.kernel import CHECKED, helper

FILLED = 56  # minimum of valid bits after `fill`

ZERO, _EIGHT, _63 = np.uint64(0), np.uint64(8), np.uint64(63)
_ENOUGH = np.uint64(FILLED)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


_LONG = ir.IntType(64)


def _look(builder: Any, address: Any, size: int) -> None:
    """In checked kernels, call the function at `penstock_checked_read` with the address and the size."""
    if CHECKED in os.environ:
        known = builder.module.globals.get("penstock_checked_read") or ir.GlobalVariable(
            builder.module, _LONG, "penstock_checked_read"
        )
        place = builder.load(known)
        with builder.if_then(builder.icmp_unsigned("!=", place, ir.Constant(_LONG, 0))):
            function = builder.inttoptr(place, ir.FunctionType(ir.VoidType(), [_LONG, _LONG]).as_pointer())
            builder.call(function, [address, ir.Constant(_LONG, size)])


def _byte(typing: Any, address: Any) -> Any:
    """Return the byte at an address that the caller has checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _look(builder, args[0], 1)
        value = builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return builder.zext(value, ir.IntType(64))

    return types.int64(types.int64), generate


byte: Any = intrinsic(_byte)


def _eight(typing: Any, address: Any) -> Any:
    """Return the eight bytes at an address that the caller has checked, the first one uppermost."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _look(builder, args[0], 8)
        value = builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))
        value.align = 1
        return builder.bswap(value) if sys.byteorder == "little" else value

    return types.uint64(types.int64), generate


eight_bytes: Any = intrinsic(_eight)


@helper
def fill(at, end, bits, count, missing):
    """Add bytes until there are at least FILLED bits, and at most 63."""
    if at + 8 <= end:
        more = eight_bytes(at)
        if (~more - _ONES) & more & _TOPS == ZERO:  # no byte is 0xFF
            return at + np.int64((_63 - count) >> np.uint64(3)), bits | more >> count, count | _ENOUGH, missing
    return _fill_slowly(at, end, bits, count, missing)


@helper
def _fill_slowly(at, end, bits, count, missing):
    while count < _ENOUGH:
        value = 0
        step = 0
        if at < end:
            value = byte(at)
            step = 1
            if value == 0xFF:  # data if a zero follows, else a marker
                step = 2 if at + 1 < end and byte(at + 1) == 0 else 0
        if step == 0:
            value = 0
            missing += _EIGHT
        at += step
        bits |= np.uint64(value) << (_ENOUGH - count)
        count += _EIGHT
    return at, bits, count, missing


@helper
def signed(bits, size):
    """Return the signed number in the first `size` bits, at least one."""
    negative = ~(np.int64(bits) >> 63)
    return np.int64(bits >> (np.uint64(64) - size)) + (negative & ((np.int64(-1) << np.int64(size)) + 1))


@helper
def at_marker(at, end, count, missing, kind):
    """Return True if all bits up to the marker at `at` were used, and it is the marker `kind`."""
    if count < missing or count - missing >= _EIGHT or at + 2 > end:
        return False
    return byte(at) == 0xFF and byte(at + 1) == kind
