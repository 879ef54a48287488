"""Conversion of samples to pixels: interpolated colour, colour conversion, and the two steps of a bilinear resize."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from penstock.image.jpeg.kernels import ACROSS, COMPONENTS, DOWN, HEIGHT
from penstock.image.jpeg.kernels.planes import MARGIN, layout
from penstock.image.kernels.instructions import F32, I8, I16, I32, Code, vector_step
from penstock.native.kernel import helper

PIXELS = 32  # pixels per step


def _rgbx(code: Code, luma: Any, cb: Any, cr: Any, out: Any) -> None:
    """Compute PIXELS pixels from 16-bit lanes of luma and centred colour, with JFIF's formulas rounded like jdcolor."""
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
        """Interpolate over two rows and two columns with a triangle: weights 9, 3, 3, 1."""
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

`near` and `far` are the two rows of colour to blend. `even` and `odd` are added before the division by 16.
"""


def _packed(code: Code) -> None:
    _, at, _, to = code.args
    four = code.load(code.at(0, at), 4 * PIXELS)
    three = code.shuffled(four, four, [4 * i + c for i in range(PIXELS) for c in range(3)])
    code.store(three, code.at(2, to))


packed = vector_step(_packed, "aiai")
"""packed(rgbx, at, rgb, to): PIXELS pixels without their fourth values."""


@helper
def row_of_pixels(header, samples, y, left, right, rgbx):
    """Write columns `left` to `right` of row `y`, at their places, as red, green, blue and an unused fourth byte.

    `rgbx` has room for PIXELS more than the width.
    """
    _, _, stride, colour_stride, plane, colour_plane = layout(header)
    left -= left % 2
    luma = y * stride + MARGIN
    if header[COMPONENTS] == 1:
        for x in range(left, right):
            value = samples[np.uint64(luma + x)]
            for c in range(3):
                rgbx[np.uint64(4 * x + c)] = value
        return
    near, far = y, y
    if header[DOWN] == 2:
        near = y >> 1
        far = min(max(near + 1 if y & 1 else near - 1, 0), (header[HEIGHT] + 1) // 2 - 1)
    cb_near, cb_far = plane + MARGIN + near * colour_stride, plane + MARGIN + far * colour_stride
    cr_near, cr_far = cb_near + colour_plane, cb_far + colour_plane
    if header[ACROSS] == 1:
        for x in range(left, right, PIXELS):
            colour_full(samples, luma + x, cb_near + x, cr_near + x, rgbx, 4 * x)
        return
    even, odd = (8, 7) if header[DOWN] == 2 else (4, 8)
    for x in range(left, right, PIXELS):
        h = x >> 1
        colour_half(samples, luma + x, cb_near + h, cb_far + h, cr_near + h, cr_far + h, even, odd, rgbx, 4 * x)


STEP = 4  # pixels


def _along(code: Code) -> None:
    """Do the same with a line. Its slope, in two parts, and its start are the last arguments, four values each."""
    column, to = code.args[4], code.args[6]
    b = code.builder
    numbers = [code.load(code.at(7, ir.Constant(ir.IntType(64), 4 * k)), 4) for k in range(3) if len(code.args) > 7]
    line = [code.shuffled(four, four, [lane % 4 for lane in range(4 * STEP)]) for four in numbers]

    def pixels(positions: int) -> Any:
        parts = []
        for k in range(STEP):
            index = b.load(code.at(positions, code.offset(column, k)))
            parts.append(code.load(code.at(0, index), 4))
        whole = code.both(code.both(parts[0], parts[1]), code.both(parts[2], parts[3]))
        levels = whole if whole.type.element == F32 else b.uitofp(whole, ir.VectorType(F32, 4 * STEP))
        if not line:
            return levels
        return b.fadd(b.fadd(b.fmul(levels, line[0]), b.fmul(levels, line[1])), line[2])

    weights = code.load(code.at(3, column), STEP)
    across = code.shuffled(weights, weights, [lane // 4 for lane in range(4 * STEP)])
    left, right = pixels(1), pixels(2)
    code.store(b.fadd(left, b.fmul(b.fsub(right, left), across)), code.at(5, to))


along = vector_step(_along, "aaaaiai")
"""along(pixels, left, right, weights, column, floats, to): STEP pixels between two of a row each, of four values.

The values are bytes or float32.
"""

along_line = vector_step(_along, "aaaaiaia")
"""along_line(…, line): value c is first times `line[c]`, plus it times `line[4 + c]`, plus `line[8 + c]`."""


def _between(code: Code) -> None:
    _, above, below, weight, _, to = code.args
    b = code.builder
    top, bottom = (code.load(code.at(0, at), 4 * STEP) for at in (above, below))
    mixed = b.fadd(top, b.fmul(b.fsub(bottom, top), code.splat(weight, 4 * STEP)))
    three = code.shuffled(mixed, mixed, [4 * i + c for i in range(STEP) for c in range(3)])
    code.store(three, code.at(4, to))


between = vector_step(_between, "aiifai")
"""between(floats, above, below, weight, out, to): STEP pixels between two rows, as three values each."""


def _apart(code: Code) -> None:
    at, _, to, plane = code.args[1:]
    values = code.load(code.at(0, at), 3 * STEP)
    for c in range(3):
        of_plane = code.shuffled(values, values, [3 * i + c for i in range(STEP)])
        place = code.builder.add(to, code.builder.mul(plane, ir.Constant(ir.IntType(64), c)))
        code.store(of_plane, code.at(2, place))


apart = vector_step(_apart, "aiaii")
"""apart(line, at, out, to, plane): STEP pixels of three values each, each channel in a plane of `plane` values."""
