"""vector_step: a few dozen vector instructions as one function that kernels call.

LLVM does not find these vectors in loops by itself. A step reads and writes at positions that its caller has checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic
from numba.np import arrayobj

I8, I16, I32, F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()


class Code:
    """Writes the instructions of one vector step."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args

    def at(self, array: int, index: Any) -> Any:
        """A pointer to an element of the argument `array`."""
        make: Any = arrayobj.make_array
        made = make(self.signature.args[array])(self.context, self.builder, self.args[array])
        return self.builder.gep(made.data, [index])

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
        """(vector * factor) >> 16 of signed 16-bit lanes."""
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
    """An intrinsic whose arguments are arrays (a), positions (i) and float32 numbers (f)."""

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
