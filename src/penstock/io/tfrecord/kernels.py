"""Compiled kernels: CRC-32C, and the scan over the framing of a mapped file. Imports numba: import it lazily.

`framing.plain_records` and the crc32c package define what they give. The checksum uses the processor's own instruction
(SSE 4.2 on x86-64, CRC on ARM64), else eight bytes at a time through tables (slicing-by-8, Kounavis and Berry 2005).
All helpers stand in this file: numba's cache does not notice a change in another one.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding
import numba
import numba.extending
import numpy as np
from llvmlite import ir

from penstock.io.tfrecord.framing import (
    EVERYTHING,
    FINE,
    LENGTHS,
    SHORT_BODY,
    SHORT_HEADER,
    WRONG_DATA,
    WRONG_LENGTH,
)

# numba carries types for some of its names only.
config: Any = numba.config
types: Any = numba.types
intrinsic: Any = numba.extending.intrinsic

U = np.uint64
F = TypeVar("F", bound=Callable[..., Any])


def _njit(*signature: Any, forceinline: bool = False) -> Callable[[F], F]:
    """Compiled without counting references to arrays, of which these functions make none."""
    jit: Any = numba.njit
    made: Callable[[F], F] = jit(*signature, nogil=True, cache=True, forceinline=forceinline, _nrt=False)
    return made


_BUFFER = types.Array(types.uint8, 1, "C", readonly=True)
_INTS = types.Array(types.int64, 1, "C")


def _tables() -> np.ndarray:
    """Row k, column b: what byte b does to the checksum k bytes later. uint64 (8, 256)."""
    rows = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        rows[0, byte] = crc
    for k in range(1, 8):
        rows[k] = rows[0][(rows[k - 1] & U(255)).astype(np.int64)] ^ (rows[k - 1] >> U(8))
    return rows


_TABLES = _tables()


def instruction() -> str:
    """Which instruction set the checksum uses here: "sse4.2", "arm64" or "" for tables."""
    if config.CPU_NAME or config.CPU_FEATURES is not None:
        return ""  # numba was told to compile for another machine
    features = llvmlite.binding.get_host_cpu_features()
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64") and features.get("sse4.2"):
        return "sse4.2"
    if machine in ("aarch64", "arm64") and features.get("crc"):
        return "arm64"
    return ""


INSTRUCTION = instruction()
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _emit(builder: Any, crc: Any, value: Any, width: int) -> Any:
    """LLVM code for one step over `width` bytes; `crc` and `value` are 64 bits wide."""
    crc32 = builder.trunc(crc, _I32)
    if INSTRUCTION == "arm64":
        name, kind = ("llvm.aarch64.crc32cx", _I64) if width == 8 else ("llvm.aarch64.crc32cb", _I32)
        step = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(_I32, [_I32, kind]))
        return builder.zext(builder.call(step, [crc32, value if width == 8 else builder.trunc(value, _I32)]), _I64)
    if width == 8:
        step = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.64.64", fnty=ir.FunctionType(_I64, [_I64, _I64]))
        return builder.call(step, [crc, value])
    step = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.32.8", fnty=ir.FunctionType(_I32, [_I32, _I8]))
    return builder.zext(builder.call(step, [crc32, builder.trunc(value, _I8)]), _I64)


@intrinsic
def _step8(typing: Any, crc: Any, value: Any) -> Any:
    return types.uint64(types.uint64, types.uint64), lambda _, b, __, args: _emit(b, args[0], args[1], 8)


@intrinsic
def _step1(typing: Any, crc: Any, value: Any) -> Any:
    return types.uint64(types.uint64, types.uint64), lambda _, b, __, args: _emit(b, args[0], args[1], 1)


@_njit(forceinline=True)
def _load64(buffer: Any, at: Any) -> Any:
    """Eight bytes, little-endian; the caller has checked the bounds. LLVM makes one load of it."""
    return (
        U(buffer[at])
        | U(buffer[at + U(1)]) << U(8)
        | U(buffer[at + U(2)]) << U(16)
        | U(buffer[at + U(3)]) << U(24)
        | U(buffer[at + U(4)]) << U(32)
        | U(buffer[at + U(5)]) << U(40)
        | U(buffer[at + U(6)]) << U(48)
        | U(buffer[at + U(7)]) << U(56)
    )


@_njit(forceinline=True)
def _load32(buffer: Any, at: Any) -> Any:
    return U(buffer[at]) | U(buffer[at + U(1)]) << U(8) | U(buffer[at + U(2)]) << U(16) | U(buffer[at + U(3)]) << U(24)


@_njit()
def crc_by_tables(buffer: Any, start: Any, stop: Any) -> Any:
    """CRC-32C of buffer[start:stop] on any processor; the caller has checked the bounds."""
    crc = U(0xFFFFFFFF)
    at = start
    while stop - at >= U(8):
        word = _load64(buffer, at) ^ crc
        crc = (
            _TABLES[7, word & U(255)]
            ^ _TABLES[6, (word >> U(8)) & U(255)]
            ^ _TABLES[5, (word >> U(16)) & U(255)]
            ^ _TABLES[4, (word >> U(24)) & U(255)]
            ^ _TABLES[3, (word >> U(32)) & U(255)]
            ^ _TABLES[2, (word >> U(40)) & U(255)]
            ^ _TABLES[1, (word >> U(48)) & U(255)]
            ^ _TABLES[0, word >> U(56)]
        )
        at += U(8)
    while at < stop:
        crc = _TABLES[0, (crc ^ U(buffer[at])) & U(255)] ^ (crc >> U(8))
        at += U(1)
    return crc ^ U(0xFFFFFFFF)


def _behind_zeros(count: int) -> np.ndarray:
    """Row k, column b: what byte k of a checksum, being b, becomes when `count` zero bytes follow. uint64 (4, 256)."""
    rows = np.arange(256, dtype=np.uint64) << (U(8) * np.arange(4, dtype=np.uint64)[:, None])
    for _ in range(count):
        rows = _TABLES[0][(rows & U(255)).astype(np.int64)] ^ (rows >> U(8))
    return rows


_LANE = 256  # bytes
_BEHIND_LANE = _behind_zeros(_LANE)


@_njit(forceinline=True)
def _behind_lane(crc: Any) -> Any:
    return (
        _BEHIND_LANE[0, crc & U(255)]
        ^ _BEHIND_LANE[1, (crc >> U(8)) & U(255)]
        ^ _BEHIND_LANE[2, (crc >> U(16)) & U(255)]
        ^ _BEHIND_LANE[3, crc >> U(24)]
    )


if INSTRUCTION:

    @_njit()
    def crc(buffer: Any, start: Any, stop: Any) -> Any:
        """CRC-32C of buffer[start:stop] by the processor's instruction; the caller has checked the bounds.

        The instruction gives its result after three cycles and can begin one in each, so three lanes go side by side.
        """
        found = U(0xFFFFFFFF)
        at = start
        lane = U(_LANE)
        while stop - at >= U(3) * lane:
            second = third = U(0)
            end = at + lane
            while at < end:
                found = _step8(found, _load64(buffer, at))
                second = _step8(second, _load64(buffer, at + lane))
                third = _step8(third, _load64(buffer, at + U(2) * lane))
                at += U(8)
            found = _behind_lane(_behind_lane(found) ^ second) ^ third
            at += U(2) * lane
        while stop - at >= U(8):
            found = _step8(found, _load64(buffer, at))
            at += U(8)
        while at < stop:
            found = _step1(found, U(buffer[at]))
            at += U(1)
        return found ^ U(0xFFFFFFFF)

else:
    crc = crc_by_tables


@_njit()
def _matches(buffer: Any, start: Any, stop: Any) -> Any:
    """Whether the four bytes at `stop` are the masked checksum of buffer[start:stop]."""
    found = crc(buffer, start, stop)
    rotated = ((found >> U(15)) | (found << U(17))) & U(0xFFFFFFFF)
    return (rotated + U(0xA282EAD8)) & U(0xFFFFFFFF) == _load32(buffer, stop)


@_njit()
def _record(buffer: Any, at: Any, check: Any) -> Any:
    """(status, length of the data) of the record whose header begins at `at`, which is not past the end."""
    room = buffer.size - at
    if room < 12:
        return SHORT_HEADER, 0
    begin = U(at)
    length = _load64(buffer, begin)
    if check >= LENGTHS and not _matches(buffer, begin, begin + U(8)):
        return WRONG_LENGTH, 0
    if room < 16 or length > U(room - 16):
        return SHORT_BODY, 0
    if check >= EVERYTHING and not _matches(buffer, begin + U(12), begin + U(12) + length):
        return WRONG_DATA, 0
    return FINE, np.int64(length)


@_njit(types.UniTuple(types.int64, 3)(_BUFFER, types.int64, types.int64, types.int64, _INTS, _INTS))
def scan(buffer: Any, at: Any, max_bytes: Any, check: Any, starts: Any, lengths: Any) -> Any:
    """Fill `starts` and `lengths` with records from `at` on; returns (records, next position, status).

    Stops when the arrays are full, at the end, after `max_bytes` of data, or in front of the first damaged record.
    """
    count = 0
    taken = 0
    while count < starts.size and at < buffer.size and (taken < max_bytes or count == 0):
        status, length = _record(buffer, at, check)
        if status != FINE:
            return count, at, status
        starts[count] = at + 12
        lengths[count] = length
        count += 1
        taken += length
        at += length + 16
    return count, at, FINE


@_njit(types.UniTuple(types.int64, 2)(_BUFFER, types.int64))
def find_record(buffer: Any, at: Any) -> Any:
    """Where the next record begins, from `at` on, and its status.

    FINE is a record whose both checksums match, SHORT_BODY one with a good header that the buffer does not hold to its
    end. SHORT_HEADER stands for none, at the first place where a header would not fit.
    """
    while buffer.size - at >= 12:
        status, _ = _record(buffer, at, EVERYTHING)
        if status in (FINE, SHORT_BODY):
            return at, status
        at += 1
    return at, SHORT_HEADER


@_njit()
def gather(buffer: Any, offsets: Any, check: Any, starts: Any, lengths: Any) -> Any:
    """The records whose headers begin at `offsets`; returns (records before the first damaged one, its status)."""
    for i in range(offsets.size):
        at = offsets[i]
        if at < 0 or at >= buffer.size:
            return i, SHORT_HEADER
        status, length = _record(buffer, at, check)
        if status != FINE:
            return i, status
        starts[i] = at + 12
        lengths[i] = length
    return offsets.size, FINE
