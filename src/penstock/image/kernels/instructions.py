"""Building blocks of kernels: instructions, vectors, checks of sizes, arithmetic on values.

A choice in Python compiles to branches, into which LLVM moves work. LLVM does not find the vectors of a `vector_step`
by itself. A `vector_step` is a function of a few dozen instructions, which reads and writes at positions that its
caller has checked. Like numba, this module is imported only by modules of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic
from numba.core.imputils import impl_ret_borrowed

from penstock.image.kernels import ADD, DIVIDE, MULTIPLY
from penstock.native.kernel import helper


@intrinsic
def _pick(typing: Any, condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes if condition else no`, with both computed."""
    return yes(types.boolean, yes, yes), lambda context, builder, signature, args: builder.select(*args)


def _comparison(sign: str) -> Any:
    @intrinsic
    def chosen(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(sign, *args), *args)

        return types.float32(types.float32, types.float32), generate

    return chosen


def _rounding(name: str) -> Any:
    @intrinsic
    def rounded(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.call(builder.module.declare_intrinsic(name, [args[0].type]), args)

        return value(value), generate

    return rounded


@intrinsic
def _writable(typing: Any, array: Any) -> Any:
    """Return a read-only array as a writable one, so that a helper is compiled once for both kinds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, builder, signature.return_type, args[0])

    return array.copy(readonly=False)(array), generate


# The types that callers see, without numba's own first argument.
pick: Any = _pick
writable: Any = _writable
larger, smaller = _comparison(">"), _comparison("<")  # the second of two float32 where they do not compare
floor, whole = _rounding("llvm.floor"), _rounding("llvm.trunc")  # the next number below; a number without its fraction


@helper
def images_in(size, height, width, channels):
    """Return the number of images in `size` values, or -1 if it is not whole. No product can overflow."""
    if height <= 0 or width <= 0 or channels <= 0:
        return -1
    if channels > size or width > size // channels or height > size // (width * channels):
        return -1
    count = size // (height * width * channels)
    return count if count * height * width * channels == size else -1


@helper
def fits(size, count, height, width, channels):
    """Return True if `size` values are exactly `count` images, at least one."""
    return count > 0 and images_in(size, height, width, channels) == count


@helper
def calculate(codes, numbers, values):
    """Change `values` by the operations `codes` in order.

    Each has its row of `numbers`, at least as long as `values`.
    """
    count = np.uint64(values.size)
    for k in range(codes.size):
        code, row = codes[k], numbers[k]
        if code == MULTIPLY:
            for j in range(count):
                values[j] = values[j] * row[j]
        elif code == DIVIDE:
            for j in range(count):
                values[j] = values[j] / row[j]
        elif code == ADD:
            for j in range(count):
                values[j] = values[j] + row[j]
        else:
            for j in range(count):
                values[j] = values[j] - row[j]


I8, I16, I32, F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()


class Code:
    """Writes the instructions of one vector step."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args

    def at(self, array: int, index: Any) -> Any:
        """Return a pointer to an element of the argument `array`."""
        data = self.context.data_model_manager[self.signature.args[array]].get_field_position("data")
        return self.builder.gep(self.builder.extract_value(self.args[array], data), [index])

    def offset(self, index: Any, by: int) -> Any:
        return self.builder.add(index, ir.Constant(ir.IntType(64), by))

    def load(self, pointer: Any, lanes: int) -> Any:
        element = pointer.type.pointee
        vector = self.builder.load(self.builder.bitcast(pointer, ir.VectorType(element, lanes).as_pointer()))
        vector.align = max(1, int(element.width) // 8) if isinstance(element, ir.IntType) else 4
        return vector

    def store(self, vector: Any, pointer: Any) -> None:
        element = vector.type.element
        stored = self.builder.store(vector, self.builder.bitcast(pointer, vector.type.as_pointer()))
        stored.align = max(1, int(element.width) // 8) if isinstance(element, ir.IntType) else 4

    def shuffled(self, first: Any, second: Any, lanes: Sequence[int]) -> Any:
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
        return self.builder.shuffle_vector(first, second, mask)

    def unused(self, kind: Any) -> Any:
        return ir.Constant(kind, ir.Undefined)

    def both(self, first: Any, second: Any) -> Any:
        return self.shuffled(first, second, range(2 * first.type.count))

    def splat(self, value: Any, lanes: int) -> Any:
        kind = ir.VectorType(value.type, lanes)
        first = self.builder.insert_element(self.unused(kind), value, ir.Constant(I32, 0))
        return self.shuffled(first, self.unused(kind), [0] * lanes)

    def all(self, value: int, like: Any) -> Any:
        return ir.Constant(like.type, [value] * like.type.count)

    def widened(self, vector: Any, element: Any, *, signed: bool) -> Any:
        kind = ir.VectorType(element, vector.type.count)
        return self.builder.sext(vector, kind) if signed else self.builder.zext(vector, kind)

    def high_product(self, vector: Any, factor: int) -> Any:
        """Return (vector * factor) >> 16 of signed 16-bit lanes."""
        wide = self.widened(vector, I32, signed=True)
        shifted = self.builder.ashr(self.builder.mul(wide, self.all(factor, wide)), self.all(16, wide))
        return self.builder.trunc(shifted, vector.type)

    def clamped(self, vector: Any, low: int, high: int) -> Any:
        b = self.builder
        least, most = self.all(low, vector), self.all(high, vector)
        vector = b.select(b.icmp_signed("<", vector, least), least, vector)
        return b.select(b.icmp_signed(">", vector, most), most, vector)

    def narrowed(self, vector: Any, element: Any) -> Any:
        return self.builder.trunc(vector, ir.VectorType(element, vector.type.count))


def vector_step(write: Callable[[Code], None], arguments: str) -> Any:
    """Return an intrinsic whose arguments are arrays (a), positions (i) and float32 numbers (f)."""

    def step(typing: Any, *given: Any) -> Any:
        kinds = {"i": types.int64, "f": types.float32}
        signature = types.none(*(kinds.get(a, kind) for a, kind in zip(arguments, given, strict=True)))

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            write(Code(context, builder, signature, args))
            return context.get_dummy_value()

        return signature, generate

    names = ["typing", *(f"argument_{i}" for i in range(len(arguments)))]
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    step.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return intrinsic(step)
