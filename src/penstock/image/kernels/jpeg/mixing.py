"""The two halves of a bilinear resize: along a row of pixels, and between two rows; the order of `reference`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from penstock.image.kernels.jpeg.vectors import F32, Code, vector_step

STEP = 4  # pixels


def _along(code: Code) -> None:
    column, to = code.args[4], code.args[6]
    b = code.builder

    def pixels(positions: int) -> Any:
        parts = []
        for k in range(STEP):
            index = b.load(code.at(positions, code.offset(column, k)))
            parts.append(code.load(code.at(0, index), 4))
        whole = code.both(code.both(parts[0], parts[1]), code.both(parts[2], parts[3]))
        return b.uitofp(whole, ir.VectorType(F32, 4 * STEP))

    weights = code.load(code.at(3, column), STEP)
    across = code.shuffled(weights, weights, [lane // 4 for lane in range(4 * STEP)])
    left, right = pixels(1), pixels(2)
    code.store(b.fadd(left, b.fmul(b.fsub(right, left), across)), code.at(5, to))


along = vector_step(_along, "aaaaiai")
"""along(rgbx, left, right, weights, column, floats, to): STEP pixels between two of a row each, four values a pixel."""


def _between(divide: bool) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        _, above, below, weight, factor, _, to = code.args
        b = code.builder
        top, bottom = (code.load(code.at(0, at), 4 * STEP) for at in (above, below))
        mixed = b.fadd(top, b.fmul(b.fsub(bottom, top), code.splat(weight, 4 * STEP)))
        result = (b.fdiv if divide else b.fmul)(mixed, code.splat(factor, 4 * STEP))
        result = code.shuffled(result, result, [4 * i + c for i in range(STEP) for c in range(3)])
        code.store(result, code.at(5, to))

    return write


between_times = vector_step(_between(divide=False), "aiiffai")
"""between_times(floats, above, below, weight, factor, out, to): STEP pixels between two rows, times `factor`."""

between_over = vector_step(_between(divide=True), "aiiffai")
"""between_over: the same, divided by `factor`."""
