"""INSTRUCTION, step8, step1: the processor's own step of a CRC-32C, over eight bytes or one."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba.core.extending import intrinsic

from penstock.compiled.shipped import LEVELS

# numba carries types for some of its names only.
config: Any = numba.config
types: Any = numba.types


def instruction() -> str:
    """Which instruction set the checksum uses here: "sse4.2", "arm64" or "" for tables."""
    if config.CPU_NAME in LEVELS:
        return "sse4.2"
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


def _step8(typing: Any, crc: Any, value: Any) -> Any:
    return types.uint64(types.uint64, types.uint64), lambda _, b, __, args: _emit(b, args[0], args[1], 8)


def _step1(typing: Any, crc: Any, value: Any) -> Any:
    return types.uint64(types.uint64, types.uint64), lambda _, b, __, args: _emit(b, args[0], args[1], 1)


step8: Any = intrinsic(_step8)
step1: Any = intrinsic(_step1)
