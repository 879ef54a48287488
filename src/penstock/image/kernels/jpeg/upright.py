"""Between two rows of a plane, before there are pixels: 7 bits of weight, rounded to bytes."""

from __future__ import annotations

from penstock.image.kernels.jpeg.vectors import I8, I16, Code, vector_step

SAMPLES, WEIGHTS = 32, 128  # of one step; that stand for 1


def _upright(code: Code) -> None:
    _, above, below, weight, _, to = code.args
    b = code.builder
    top, bottom = (code.widened(code.load(code.at(0, at), SAMPLES), I16, signed=False) for at in (above, below))
    share = code.splat(b.trunc(weight, I16), SAMPLES)
    mixed = b.add(b.mul(top, code.all(WEIGHTS, top)), b.mul(b.sub(bottom, top), share))
    rounded = b.lshr(b.add(mixed, code.all(WEIGHTS // 2, mixed)), code.all(7, mixed))
    code.store(code.narrowed(rounded, I8), code.at(4, to))


upright = vector_step(_upright, "aiiiai")
"""upright(samples, above, below, weight, lines, to): SAMPLES samples between two rows of a plane."""
