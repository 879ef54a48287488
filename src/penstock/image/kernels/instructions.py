"""Single instructions that numba does not make of Python: choices without branches, into which LLVM would move work.

Imported by modules of kernels only, as numba itself.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.extending import intrinsic


@intrinsic
def _pick(typing: Any, condition: Any, yes: Any, no: Any) -> Any:
    """`yes if condition else no`, both computed."""
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


# As those who call them see them, without numba's own first argument.
pick: Any = _pick
larger, smaller = _comparison(">"), _comparison("<")  # the second of two float32 where they do not compare
floor, whole = _rounding("llvm.floor"), _rounding("llvm.trunc")  # the next number below; a number without its fraction
