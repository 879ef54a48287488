"""The inverse DCT of a block's lowest coefficients: 4 × 4, 2 × 2 or 1 sample in place of 8 × 8.

It is the transform of that many points, in integers, which keeps more of what is fine than the mean of an area does.
Coefficients lie row by row in 4 columns; what a row of blocks holds beside them is not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.image.kernels.jpeg.vectors import I8, I32, Code, vector_step

LANES = 16  # samples of a row that one step makes, so LANES // side blocks
APART = 20  # coefficients from one block to the next: 16, and what is not needed
_BITS = 2  # that numbers have behind the point between the passes


def _times(code: Code, vector: Any, factor: float) -> Any:
    b = code.builder
    product = b.add(b.mul(vector, code.all(round(factor * 8192), vector)), code.all(4096, vector))
    return b.ashr(product, code.all(13, vector))


def _pass(code: Code, v: list[Any]) -> list[Any]:
    """One dimension, √8 times as large."""
    b = code.builder
    if len(v) == 1:
        return v
    if len(v) == 2:
        return [b.add(v[0], v[1]), b.sub(v[0], v[1])]
    outer, inner = b.add(v[0], v[2]), b.sub(v[0], v[2])
    p = b.add(_times(code, v[1], 1.306563), _times(code, v[3], 0.541196))
    q = b.sub(_times(code, v[1], 0.541196), _times(code, v[3], 1.306563))
    return [b.add(outer, p), b.add(inner, q), b.sub(inner, q), b.sub(outer, p)]


def _transposed(code: Code, rows: list[Any]) -> list[Any]:
    """Each block's values with rows and columns exchanged."""
    step = 1
    while step < len(rows):
        upper = [lane if not lane & step else LANES + lane - step for lane in range(LANES)]
        lower = [lane + step if not lane & step else LANES + lane for lane in range(LANES)]
        for i in (i for i in range(len(rows)) if not i & step):
            top, bottom = rows[i], rows[i + step]
            rows[i], rows[i + step] = code.shuffled(top, bottom, upper), code.shuffled(top, bottom, lower)
        step *= 2
    return rows


def _lowered(side: int) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        b = code.builder
        _, at, _, factors_at, _, to, stride = code.args
        rows = []
        for row in range(side):
            parts = [code.load(code.at(0, code.offset(at, APART * i + 4 * row)), side) for i in range(LANES // side)]
            factors = [code.load(code.at(2, code.offset(factors_at, 4 * row)), side)] * len(parts)
            while len(parts) > 1:
                parts = [code.both(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
                factors = [code.both(*factors[i : i + 2]) for i in range(0, len(factors), 2)]
            wide = [code.widened(vector, I32, signed=True) for vector in (parts[0], factors[0])]
            product = b.mul(*wide)
            rows.append(b.shl(product, code.all(_BITS, product)))
        rows = _transposed(code, _pass(code, _transposed(code, _pass(code, rows))))
        for row in rows:
            rounded = b.ashr(b.add(row, code.all(4 << _BITS, row)), code.all(3 + _BITS, row))
            level = code.clamped(b.add(rounded, code.all(128, rounded)), 0, 255)
            code.store(code.narrowed(level, I8), code.at(4, to))
            to = b.add(to, stride)

    return write


lowered_4, lowered_2, lowered_1 = (vector_step(_lowered(side), "aiaiaii") for side in (4, 2, 1))
"""lowered_4(coefficients, at, factors, factors_at, samples, to, stride): LANES // 4 blocks beside each other."""
