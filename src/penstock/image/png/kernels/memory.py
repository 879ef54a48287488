"""Loads and stores of several bytes of an array at once, which LLVM does not combine. The callers check the bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

U: Any = np.uint64
S: Any = np.int64
W: Any = np.uint32
B: Any = np.uint8
SLACK = 512  # bytes after a buffer that may be accessed: more than the longest match and a vector


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return a pointer to eight bytes at the element args[1] of the array args[0]."""
    array: Any = arrayobj.make_array
    data = array(signature.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())


def _loading() -> Any:
    @intrinsic
    def load(typing: Any, array: Any, index: Any) -> Any:
        """Load eight bytes at `index` as a little-endian number. The caller checks the bounds."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_pointer(context, builder, signature, args))
            value.align = 1
            return value

        return types.uint64(array, types.int64), generate

    return load


def _storing() -> Any:
    @intrinsic
    def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
        """Store `value` to the eight bytes at `index`. The caller checks the bounds."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], _pointer(context, builder, signature, args)).align = 1
            return context.get_dummy_value()

        return types.none(array, types.int64, types.uint64), generate

    return store


load_word, store_word = _loading(), _storing()


def _lanes(kind: int) -> Any:
    return ir.VectorType(ir.IntType(kind), 4)


def _widening() -> Any:
    @intrinsic
    def widen(typing: Any, array: Any, index: Any) -> Any:
        """Load four bytes at `index` as four lanes of 16 bits. The caller checks the bounds."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.bitcast(_pointer(context, builder, signature, args), _lanes(8).as_pointer())
            value = builder.load(place)
            value.align = 1
            return builder.bitcast(builder.zext(value, _lanes(16)), ir.IntType(64))

        return types.uint64(array, types.int64), generate

    return widen


def _narrowing() -> Any:
    @intrinsic
    def narrow(typing: Any, array: Any, index: Any, value: Any) -> Any:
        """Store the lanes of `value` as four bytes at `index`. The caller checks the bounds."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lanes = builder.trunc(builder.bitcast(args[2], _lanes(16)), _lanes(8))
            place = builder.bitcast(_pointer(context, builder, signature, args), _lanes(8).as_pointer())
            builder.store(lanes, place).align = 1
            return context.get_dummy_value()

        return types.none(array, types.int64, types.uint64), generate

    return narrow


def _guessing() -> Any:
    @intrinsic
    def add_paeth(typing: Any, value: Any, left: Any, up: Any, corner: Any) -> Any:
        """Decode filter 4 for four lanes of 16 bits at once."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value, left, up, corner = (builder.bitcast(lanes, _lanes(16)) for lanes in args)
            thrice = builder.add(corner, builder.add(corner, corner))
            bound = builder.sub(thrice, builder.add(left, up))
            less = builder.icmp_signed("<", left, up)
            low, high = builder.select(less, left, up), builder.select(less, up, left)
            inner = builder.select(builder.icmp_signed("<=", high, bound), low, corner)
            guess = builder.select(builder.icmp_signed("<=", bound, low), high, inner)
            found = builder.and_(builder.add(value, guess), ir.Constant(_lanes(16), [255] * 4))
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(*(types.uint64,) * 4), generate

    return add_paeth


widen, narrow, add_paeth = _widening(), _narrowing(), _guessing()
