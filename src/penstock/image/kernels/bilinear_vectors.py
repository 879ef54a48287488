"""The vectors of bilinear resizing, none of which LLVM finds in loops by itself; their callers check the places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic

from penstock.image.kernels.jpeg.vectors import F32, I8, I32, Code, vector_step

LANES = 4  # values made from one window, or loaded per pixel; a pixel of three channels has one too many
WINDOW = 16  # bytes of a source row that LANES values are picked from
STEP = 2  # windows or pixels at a time: 8 lanes fill an AVX2 register


def _picker(context: Any) -> tuple[str, int]:
    """The instruction that picks bytes by a table (255 picks nothing: 0), and how many windows it takes at once."""
    triple, _, features = context.codegen().magic_tuple()
    known = features.split(",")
    if "+avx2" in known:
        return "llvm.x86.avx2.pshuf.b", 2
    if "+ssse3" in known:
        return "llvm.x86.ssse3.pshuf.b.128", 1
    if triple.startswith(("aarch64", "arm64")):
        return "llvm.aarch64.neon.tbl1.v16i8", 1
    return "", 0


@intrinsic
def _can_pick(typing: Any) -> Any:
    """Whether the processor can do what `lerp_windows` is made of."""
    return types.boolean(), lambda context, *_: ir.Constant(ir.IntType(1), bool(_picker(context)[0]))


can_pick: Any = _can_pick  # as those who call it see it, without numba's own first argument


def _between(builder: Any, low: Any, high: Any, weight: Any) -> Any:
    return builder.fadd(low, builder.fmul(builder.fsub(high, low), weight))


def _joined(code: Code, parts: list[Any]) -> Any:
    return code.both(*parts) if len(parts) == 2 else parts[0]


def _lerp_windows(code: Code) -> None:
    src, base, low, high, weights, out = 0, 2, 3, 4, 5, 7
    start, window = code.args[1], code.args[6]
    b = code.builder
    name, at_once = _picker(code.context)
    if not name:  # compiled, but not reached
        return
    table = ir.VectorType(I8, WINDOW * at_once)
    pick = b.module.declare_intrinsic(name, (), ir.FunctionType(table, [table, table]))
    integers, floats = (ir.VectorType(kind, LANES * at_once) for kind in (I32, F32))
    for first in range(0, STEP, at_once):
        lane = b.mul(code.offset(window, first), ir.Constant(ir.IntType(64), LANES))
        windows = []
        for k in range(first, first + at_once):
            offset = b.load(code.at(base, code.offset(window, k)))
            place = b.bitcast(code.at(src, b.add(start, offset)), I8.as_pointer())  # not reached with floats
            windows.append(code.load(place, WINDOW))
        both = _joined(code, windows)
        picks = [b.bitcast(code.load(code.at(of, lane), LANES * at_once), table) for of in (low, high)]
        chosen = [b.bitcast(b.call(pick, [both, each]), integers) for each in picks]
        left, right = (b.sitofp(values, floats) for values in chosen)
        share = code.load(code.at(weights, lane), LANES * at_once)
        code.store(_between(b, left, right, share), code.at(out, lane))


lerp_windows = vector_step(_lerp_windows, "aiaaaaia")
"""lerp_windows(src, start, base, low, high, weight, window, out): interpolate STEP windows, from `window` on.

They lie along the row that begins at `start`; the results go to `out`. WINDOW bytes can be read at `start + base[...]`.
"""


def _expect_write(code: Code) -> None:
    b, pointer = code.builder, I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
    prefetch = b.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    place = b.bitcast(code.at(0, code.args[1]), pointer)
    b.call(prefetch, [place, *(ir.Constant(I32, value) for value in (1, 3, 1))])  # to write, to keep, data


expect_write = vector_step(_expect_write, "ai")
"""expect_write(array, at): tell the processor to fetch what its caches do not hold of `array[at]`, to be written.

Without it, results in memory not used for a while cost a third more.
"""


def _lerp_pixels(kind: str) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        src, weights, out = 0, 3, 10
        pixel, channels, top, bottom, y_weight, factor = code.args[4:10]
        at = code.args[11]
        b = code.builder
        floats = ir.VectorType(F32, LANES * STEP)
        offsets = [[b.load(code.at(taps, code.offset(pixel, k))) for k in range(STEP)] for taps in (1, 2)]
        shares = code.load(code.at(weights, pixel), STEP)
        across = code.shuffled(shares, shares, [lane // LANES for lane in range(LANES * STEP)])

        def along(start: Any) -> Any:
            ends = []
            for pair in offsets:
                both = _joined(code, [code.load(code.at(src, b.add(start, offset)), LANES) for offset in pair])
                ends.append(both if both.type.element == F32 else b.uitofp(both, floats))
            return _between(b, ends[0], ends[1], across)

        result = along(top)
        if kind != "row":
            scale = b.fmul if kind == "times" else b.fdiv
            across_rows = code.splat(y_weight, LANES * STEP)
            result = scale(_between(b, result, along(bottom), across_rows), code.splat(factor, LANES * STEP))
        if code.signature.args[out].dtype == types.uint8:
            result = code.narrowed(b.fptosi(result, ir.VectorType(I32, LANES * STEP)), I8)
        for k in range(STEP):
            place = code.at(out, b.add(at, b.mul(channels, ir.Constant(ir.IntType(64), k))))
            code.store(code.shuffled(result, result, list(range(LANES * k, LANES * (k + 1)))), place)

    return write


lerp_row, lerp_times, lerp_over = (vector_step(_lerp_pixels(kind), "aaaaiiiiffai") for kind in ("row", "times", "over"))
"""lerp_times(src, left, right, weight, pixel, channels, top, bottom, y_weight, factor, out, at): STEP pixels.

They begin with number `pixel`, between the source rows that begin at `top` and `bottom`; times `factor` they go to
`out` from `at` on. `lerp_over` divides by `factor`; `lerp_row` stays on the row at `top`, and scales nothing. LANES
values can be read at each tap, and written for each pixel: the lane too many of one is written over by the next.
"""
