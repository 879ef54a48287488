"""The fast kernels: the numbers of `reference`, bit for bit, compiled and run without the GIL.

Imported inside functions only: numba takes a third of a second to load. No fast-math flag is used: with them the same
source compiled afresh and loaded from the cache differ in the last bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

BAD_ARGUMENT = 1  # status: sizes that do not fit, or a tap outside the source; nothing was written

WIDE = 2  # pixels per vector step: 8 lanes fill an AVX2 register; 4 pixels gain 3 % and leave a longer scalar rest
LANES = 4  # values loaded per pixel; a pixel of three channels has one too many


def _lerp_pixels(divide: bool) -> Any:
    """Build the intrinsic that computes `WIDE` neighbouring pixels of 3 or 4 channels in one vector.

    LLVM does not find this vector by itself, and its scalar code takes twice the time. The caller must have checked
    that LANES values can be read at each tap and that (WIDE - 1) * channels + LANES values can be written at `at`.
    """

    @intrinsic
    def lerp_pixels(
        typing: Any,
        src: Any,
        top: Any,
        bottom: Any,
        left: Any,
        right: Any,
        x_weight: Any,
        column: Any,
        y_weight: Any,
        factor: Any,
        dst: Any,
        at: Any,
        channels: Any,
    ) -> Any:
        size = types.int64
        weight = types.float32
        signature = types.none(src, size, size, left, right, x_weight, size, weight, weight, dst, size, size)
        return signature, lambda context, builder, signature, args: _generate(context, builder, signature, args, divide)

    return lerp_pixels


def _generate(context: Any, builder: Any, signature: Any, args: Any, divide: bool) -> Any:
    src, top, bottom, left, right, x_weight, column, y_weight, factor, dst, at, channels = args
    src_type, dst_type = signature.args[0].dtype, signature.args[9].dtype
    float_vector = ir.VectorType(ir.FloatType(), WIDE * LANES)

    def data(position: int, value: Any) -> Any:
        array: Any = arrayobj.make_array
        return array(signature.args[position])(context, builder, value).data

    def constant(value: int) -> Any:
        return ir.Constant(ir.IntType(64), value)

    def shuffled(value: Any, other: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(value, other, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes))

    def unused(kind: Any) -> Any:
        return ir.Constant(kind, ir.Undefined)

    def splat(value: Any) -> Any:
        first = builder.insert_element(unused(float_vector), value, ir.Constant(ir.IntType(32), 0))
        return shuffled(first, unused(float_vector), [0] * (WIDE * LANES))

    def pixels(row: Any, taps: Any) -> Any:
        """WIDE pixels of one source row, as floats."""
        parts = []
        for k in range(WIDE):
            index = builder.add(row, builder.load(builder.gep(taps, [builder.add(column, constant(k))])))
            kind = ir.VectorType(context.get_data_type(src_type), LANES)
            part = builder.load(builder.bitcast(builder.gep(source, [index]), kind.as_pointer()))
            part.align = src_type.bitwidth // 8
            parts.append(part)
        both = shuffled(parts[0], parts[1], list(range(WIDE * LANES)))
        return both if src_type == types.float32 else builder.uitofp(both, float_vector)

    def lerp(a: Any, b: Any, weight: Any) -> Any:
        return builder.fadd(a, builder.fmul(builder.fsub(b, a), weight))

    source, target = data(0, src), data(9, dst)
    left, right = data(3, left), data(4, right)
    pair = ir.VectorType(ir.FloatType(), WIDE)
    weights = builder.load(builder.bitcast(builder.gep(data(5, x_weight), [column]), pair.as_pointer()))
    weights.align = 4
    across = shuffled(weights, unused(pair), [lane // LANES for lane in range(WIDE * LANES)])
    above = lerp(pixels(top, left), pixels(top, right), across)
    below = lerp(pixels(bottom, left), pixels(bottom, right), across)
    scale = builder.fdiv if divide else builder.fmul
    result = scale(lerp(above, below, splat(y_weight)), splat(factor))
    if dst_type == types.uint8:
        result = builder.fptosi(result, ir.VectorType(ir.IntType(32), WIDE * LANES))
        result = builder.trunc(result, ir.VectorType(ir.IntType(8), WIDE * LANES))
    for k in range(WIDE):  # in order: the lane too many of one pixel is written over by the next
        part = shuffled(result, unused(result.type), list(range(LANES * k, LANES * (k + 1))))
        place = builder.gep(target, [builder.add(at, builder.mul(channels, constant(k)))])
        builder.store(part, builder.bitcast(place, part.type.as_pointer())).align = dst_type.bitwidth // 8
    return context.get_dummy_value()


_lerp_pixels_times = _lerp_pixels(divide=False)
_lerp_pixels_over = _lerp_pixels(divide=True)


@njit(nogil=True, cache=True)
def _inside(taps: Any, size: int) -> bool:
    inside = True
    for i in range(taps.size):
        inside = inside and 0 <= taps[i] < size
    return inside


@njit(nogil=True, cache=True)
def resize_bilinear(
    src: Any,
    height: int,
    width: int,
    channels: int,
    y_low: Any,
    y_high: Any,
    y_weight: Any,
    x_low: Any,
    x_high: Any,
    x_weight: Any,
    factor: Any,
    divide: bool,
    dst: Any,
) -> int:
    """Resize each image of the flat `src` into the flat `dst`, times or divided by `factor`; 0 or BAD_ARGUMENT.

    `src` is flat uint8 or float32, `dst` flat float32 or uint8 (truncated); the taps are those of `bilinear_taps`.
    """
    out_height = y_low.size
    out_width = x_low.size
    if height <= 0 or width <= 0 or channels <= 0 or out_height == 0 or out_width == 0:
        return BAD_ARGUMENT
    # Step by step, so that no product can overflow.
    if channels > src.size or width > src.size // channels or height > src.size // (width * channels):
        return BAD_ARGUMENT
    row_size = width * channels
    image_size = height * row_size
    out_row = out_width * channels
    count = src.size // image_size
    if (
        src.size != count * image_size
        or dst.size != count * out_height * out_row
        or y_high.size != out_height
        or y_weight.size != out_height
        or x_high.size != out_width
        or x_weight.size != out_width
        or not (_inside(y_low, height) and _inside(y_high, height))
        or not (_inside(x_low, width) and _inside(x_high, width))
    ):
        return BAD_ARGUMENT
    left = np.empty(out_width, np.int64)
    right = np.empty(out_width, np.int64)
    for j in range(out_width):
        left[j] = x_low[j] * channels
        right[j] = x_high[j] * channels
    for i in range(count * out_height):
        image = (i // out_height) * image_size
        i_tap = i % out_height
        top = image + y_low[i_tap] * row_size
        bottom = image + y_high[i_tap] * row_size
        wy = y_weight[i_tap]
        at = i * out_row
        done = 0
        # Vectors load LANES values at the last pixel of a source row: that must not leave `src`.
        if (channels == 3 or channels == 4) and max(top, bottom) + row_size - channels + LANES <= src.size:
            # The row's last pixel is never part of a vector, so the lane too many stays inside the row.
            for j in range(0, out_width - WIDE, WIDE):
                to = at + j * channels
                if divide:
                    _lerp_pixels_over(src, top, bottom, left, right, x_weight, j, wy, factor, dst, to, channels)
                else:
                    _lerp_pixels_times(src, top, bottom, left, right, x_weight, j, wy, factor, dst, to, channels)
                done = j + WIDE
        for j in range(done, out_width):
            for c in range(channels):
                # Unsigned indices: numba would otherwise test each for counting from the end.
                tl = np.uint64(top + left[j] + c)
                tr = np.uint64(top + right[j] + c)
                bl = np.uint64(bottom + left[j] + c)
                br = np.uint64(bottom + right[j] + c)
                a = np.float32(src[tl])
                b = np.float32(src[bl])
                a = a + (np.float32(src[tr]) - a) * x_weight[j]
                b = b + (np.float32(src[br]) - b) * x_weight[j]
                value = a + (b - a) * wy
                dst[np.uint64(at + j * channels + c)] = value / factor if divide else value * factor
    return 0


def warm_up() -> None:
    """Compile for what most pipelines do: photographs to float32."""
    pixels = np.zeros(12, np.uint8)
    pixels.flags.writeable = False
    taps = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.float32)
    for array in taps:
        array.flags.writeable = False
    resize_bilinear(pixels, 2, 2, 3, *taps, *taps, np.float32(1), False, np.zeros(3, np.float32))
