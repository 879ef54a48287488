"""record: the header and the checksums of one record.

CRC-32C is computed with the processor's instruction (SSE 4.2, ARM64's CRC).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core.extending import intrinsic

from penstock.io.kernels.loads import bits32, load64
from penstock.io.tfrecord.framing import (
    EVERYTHING,
    FINE,
    LENGTHS,
    SHORT_BODY,
    SHORT_HEADER,
    WRONG_DATA,
    WRONG_LENGTH,
)
from penstock.native.kernel import has_feature, helper, inlined

types: Any = numba.types


_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _emit(builder: Any, crc: Any, value: Any, width: int) -> Any:
    """Generate the LLVM code of one step over `width` bytes. `crc` and `value` are 64 bits wide."""
    crc32 = builder.trunc(crc, _I32)
    if has_feature("crc"):
        name, kind = ("llvm.aarch64.crc32cx", _I64) if width == 8 else ("llvm.aarch64.crc32cb", _I32)
        step = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(_I32, [_I32, kind]))
        return builder.zext(builder.call(step, [crc32, value if width == 8 else builder.trunc(value, _I32)]), _I64)
    if width == 8:
        step = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.64.64", fnty=ir.FunctionType(_I64, [_I64, _I64]))
        return builder.call(step, [crc, value])
    step = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.32.8", fnty=ir.FunctionType(_I32, [_I32, _I8]))
    return builder.zext(builder.call(step, [crc32, builder.trunc(value, _I8)]), _I64)


def _step8(typing: Any, crc: Any, value: Any) -> Any:
    return types.uint64(types.uint64, types.uint64), lambda _, b, __, args: _emit(b, args[0], args[1], 8)


def _step1(typing: Any, crc: Any, value: Any) -> Any:
    return types.uint64(types.uint64, types.uint64), lambda _, b, __, args: _emit(b, args[0], args[1], 1)


step8: Any = intrinsic(_step8)
step1: Any = intrinsic(_step1)


U = np.uint64

LANE = 256  # bytes of a lane, see `_behind_lane`


def _behind(count: int) -> np.ndarray:
    """Return row k, column b: the effect of `count` zero bytes on a checksum whose byte k is b. uint64 (4, 256)."""
    rows = np.arange(256, dtype=np.uint64) << (U(8) * np.arange(4, dtype=np.uint64)[:, None])
    for _ in range(8 * count):
        rows = np.where(rows & U(1), (rows >> U(1)) ^ U(0x82F63B78), rows >> U(1))
    return rows


BEHIND_LANE = _behind(LANE)


@inlined
def _behind_lane(crc):
    """Return a checksum after a lane of zeros."""
    return (
        BEHIND_LANE[0, crc & U(255)]
        ^ BEHIND_LANE[1, (crc >> U(8)) & U(255)]
        ^ BEHIND_LANE[2, (crc >> U(16)) & U(255)]
        ^ BEHIND_LANE[3, crc >> U(24)]
    )


@helper
def crc_of(buffer, start, stop):
    """Return the CRC-32C of buffer[start:stop]. The caller has checked the bounds.

    The instruction has a latency of three cycles, and one can start in each cycle. So three lanes run in parallel.
    """
    found = U(0xFFFFFFFF)
    at = start
    lane = U(LANE)
    while stop - at >= U(3) * lane:
        second = third = U(0)
        end = at + lane
        while at < end:
            found = step8(found, load64(buffer, at))
            second = step8(second, load64(buffer, at + lane))
            third = step8(third, load64(buffer, at + U(2) * lane))
            at += U(8)
        found = _behind_lane(_behind_lane(found) ^ second) ^ third
        at += U(2) * lane
    while stop - at >= U(8):
        found = step8(found, load64(buffer, at))
        at += U(8)
    while at < stop:
        found = step1(found, U(buffer[at]))
        at += U(1)
    return found ^ U(0xFFFFFFFF)


@helper
def _matches(buffer, start, stop):
    """Return True if the four bytes at `stop` are the masked checksum of buffer[start:stop]."""
    found = crc_of(buffer, start, stop)
    rotated = ((found >> U(15)) | (found << U(17))) & U(0xFFFFFFFF)
    return (rotated + U(0xA282EAD8)) & U(0xFFFFFFFF) == U(bits32(buffer, stop))


@helper
def record(buffer, at, check):
    """Return (status, length of the data) of the record whose header begins at `at`. `at` is not past the end."""
    room = buffer.size - at
    if room < 12:
        return SHORT_HEADER, 0
    begin = U(at)
    length = load64(buffer, begin)
    if check >= LENGTHS and not _matches(buffer, begin, begin + U(8)):
        return WRONG_LENGTH, 0
    if room < 16 or length > U(room - 16):
        return SHORT_BODY, 0
    if check >= EVERYTHING and not _matches(buffer, begin + U(12), begin + U(12) + length):
        return WRONG_DATA, 0
    return FINE, np.int64(length)
