"""From luma and colour to pixels: interpolated and rounded as libjpeg does, bit for bit."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from penstock.image.kernels.jpeg.vectors import I8, I16, I32, Code, vector_step

PIXELS = 32  # of one step


def _rgbx(code: Code, luma: Any, cb: Any, cr: Any, out: Any) -> None:
    """PIXELS pixels from 16-bit lanes of luma and centred colour: the formulas of JFIF as jdcolor rounds them."""
    b = code.builder
    one = code.all(1, luma)

    def share(vector: Any, factor: int) -> Any:
        """(vector * factor + 32768) >> 16."""
        return b.ashr(b.add(code.high_product(b.add(vector, vector), factor), one), one)

    red = b.add(luma, b.add(cr, share(cr, 26345)))
    blue = b.add(luma, b.add(b.add(cb, cb), share(cb, -14942)))
    wide_cb, wide_cr = (code.widened(vector, I32, signed=True) for vector in (cb, cr))
    mixed = b.add(b.mul(wide_cb, code.all(-22554, wide_cb)), b.mul(wide_cr, code.all(18734, wide_cr)))
    mixed = b.ashr(b.add(mixed, code.all(32768, mixed)), code.all(16, mixed))
    green = b.sub(b.add(luma, b.trunc(mixed, luma.type)), cr)
    r, g, bl = (code.narrowed(code.clamped(vector, 0, 255), I8) for vector in (red, green, blue))
    alternate = [lane for i in range(PIXELS) for lane in (i, PIXELS + i)]
    pairs = ir.VectorType(I16, PIXELS)
    rg = b.bitcast(code.shuffled(r, g, alternate), pairs)
    bx = b.bitcast(code.shuffled(bl, code.all(0, bl), alternate), pairs)
    code.store(b.bitcast(code.shuffled(rg, bx, alternate), ir.VectorType(I8, 4 * PIXELS)), out)


def _samples(code: Code, index: Any, lanes: int) -> Any:
    return code.widened(code.load(code.at(0, index), lanes), I16, signed=False)


def _colour_full(code: Code) -> None:
    _, luma_at, cb_at, cr_at, _, to = code.args
    luma, cb, cr = (_samples(code, at, PIXELS) for at in (luma_at, cb_at, cr_at))
    cb, cr = (code.builder.sub(vector, code.all(128, vector)) for vector in (cb, cr))
    _rgbx(code, luma, cb, cr, code.at(4, to))


def _colour_half(code: Code) -> None:
    b = code.builder
    _, luma_at, cb_near, cb_far, cr_near, cr_far, even, odd, _, to = code.args

    def interpolated(near: Any, far: Any) -> Any:
        """A triangle over two rows and two columns: weights 9, 3, 3, 1."""
        left, here, right = (
            b.add(b.mul(value, code.all(3, value)), _samples(code, code.offset(far, by), PIXELS // 2))
            for by, value in ((by, _samples(code, code.offset(near, by), PIXELS // 2)) for by in (-1, 0, 1))
        )
        weighty = b.mul(here, code.all(3, here))
        halves: list[Any] = []
        for side, bias in ((left, even), (right, odd)):
            rounding = code.splat(b.trunc(bias, I16), PIXELS // 2)
            halves.append(b.lshr(b.add(b.add(weighty, side), rounding), code.all(4, here)))
        together = code.shuffled(
            halves[0], halves[1], [lane for i in range(PIXELS // 2) for lane in (i, PIXELS // 2 + i)]
        )
        return b.sub(together, code.all(128, together))

    cb, cr = interpolated(cb_near, cb_far), interpolated(cr_near, cr_far)
    _rgbx(code, _samples(code, luma_at, PIXELS), cb, cr, code.at(8, to))


colour_full = vector_step(_colour_full, "aiiiai")
"""colour_full(samples, luma_at, cb_at, cr_at, rgbx, to): colour sampled as often as luma."""

colour_half = vector_step(_colour_half, "aiiiiiiiai")
"""colour_half(samples, luma_at, cb_near, cb_far, cr_near, cr_far, even, odd, rgbx, to): half as often along the row.

`near` and `far` are the two rows of colour to mix; `even` and `odd` what is added before the division by 16.
"""


def _packed(code: Code) -> None:
    _, at, _, to = code.args
    four = code.load(code.at(0, at), 4 * PIXELS)
    three = code.shuffled(four, four, [4 * i + c for i in range(PIXELS) for c in range(3)])
    code.store(three, code.at(2, to))


packed = vector_step(_packed, "aiai")
"""packed(rgbx, at, rgb, to): PIXELS pixels without their fourth values."""
