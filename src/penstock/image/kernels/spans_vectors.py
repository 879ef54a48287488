"""The vectors of resizing by weighted sums, which LLVM does not find by itself; their callers check the places.

A vector holds the same value of LANES rows.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from penstock.image.kernels.jpeg.vectors import F32, Code, vector_step

LANES = 8  # rows at a time: an AVX2 register of float32

_LONG, _FLOATS = ir.IntType(64), ir.VectorType(F32, LANES)


def _turn(code: Code) -> None:
    at, stride, to, to_stride = (code.args[position] for position in (1, 2, 4, 5))
    b = code.builder
    numbers = [ir.Constant(_LONG, r) for r in range(LANES)]
    rows = [code.load(code.at(0, b.add(at, b.mul(stride, r))), LANES) for r in numbers]
    for width in (4, 2, 1):  # swap the off-diagonal halves, then those of the halves, then single values
        low = [lane if not lane & width else lane - width + LANES for lane in range(LANES)]
        high = [lane + width if not lane & width else lane + LANES for lane in range(LANES)]
        for r in range(LANES):
            if not r & width:
                pair = rows[r], rows[r + width]
                rows[r], rows[r + width] = (code.shuffled(*pair, lanes) for lanes in (low, high))
    for r, row in zip(numbers, rows, strict=True):
        code.store(row, code.at(3, b.add(to, b.mul(to_stride, r))))


turn = vector_step(_turn, "aiiaii")
"""turn(src, at, stride, dst, to, to_stride): transpose LANES x LANES floats.

Row r of `src` begins at `at + r * stride`, of `dst` at `to + r * to_stride`.
"""


def _sum(together: int) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        lanes, weights, out = 0, 3, 7
        at, stride, first, taps, factor, to = (code.args[position] for position in (1, 2, 4, 5, 6, 8))
        b = code.builder
        before = b.block
        loop, after = (b.append_basic_block(name) for name in ("taps", "summed"))
        b.branch(loop)  # there is at least one
        b.position_at_end(loop)
        tap, place = b.phi(_LONG), b.phi(_LONG)
        totals = [b.phi(_FLOATS) for _ in range(together)]
        weight = code.splat(b.load(code.at(weights, b.add(first, tap))), LANES)
        sums = []
        for c, total in enumerate(totals):
            value = code.load(code.at(lanes, code.offset(place, c * LANES)), LANES)
            sums.append(b.fadd(total, b.fmul(weight, value)))
        next_tap, next_place = code.offset(tap, 1), b.add(place, stride)
        b.cbranch(b.icmp_signed("<", next_tap, taps), loop, after)
        starts = [(tap, ir.Constant(_LONG, 0), next_tap), (place, at, next_place)]
        starts += [(total, ir.Constant(_FLOATS, [0.0] * LANES), sums[c]) for c, total in enumerate(totals)]
        for variable, start, following in starts:
            variable.add_incoming(start, before)
            variable.add_incoming(following, loop)
        b.position_at_end(after)
        scale = code.splat(factor, LANES)
        for c, total in enumerate(sums):
            code.store(b.fmul(total, scale), code.at(out, code.offset(to, c * LANES)))

    return write


sum_one, sum_three, sum_four = (vector_step(_sum(together), "aiiaiifai") for together in (1, 3, 4))
"""sum_three(lanes, at, stride, weights, first, taps, factor, out, to): sum up `taps` pixels of LANES rows.

The first of three channels lies at `lanes[at]`, those of the next pixel `stride` further; the weights begin at
`weights[first]`; the sums, times `factor`, go to `out[to]` and behind it. `sum_one` and `sum_four` do so for one
channel, and for four.
"""
