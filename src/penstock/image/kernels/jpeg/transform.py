"""The inverse DCT: libjpeg's fast integer one, in the 16-bit integers of libjpeg-turbo's vector code."""

from __future__ import annotations

from typing import Any

from penstock.image.kernels.jpeg.vectors import I8, Code, vector_step

WIDE = 2  # blocks in one vector: 16 lanes of 16 bits fill an AVX2 register
SAMPLES = 8 * WIDE


def _transposed(code: Code, rows: list[Any]) -> list[Any]:
    """Each block's 8 × 8 values with rows and columns exchanged; blocks stay in their own 8 lanes."""
    for step in (1, 2, 4):  # exchange the off-diagonal blocks of `step` rows and columns
        upper = [lane if not lane & step else SAMPLES + lane - step for lane in range(SAMPLES)]
        lower = [lane + step if not lane & step else SAMPLES + lane for lane in range(SAMPLES)]
        for i in (i for i in range(8) if not i & step):
            top, bottom = rows[i], rows[i + step]
            rows[i], rows[i + step] = code.shuffled(top, bottom, upper), code.shuffled(top, bottom, lower)
    return rows


def _dct_pass(code: Code, v: list[Any]) -> list[Any]:
    """One dimension of the transform of Arai, Agui and Nakajima, as jidctfst has it."""
    add, sub = code.builder.add, code.builder.sub

    def times(vector: Any, factor: int) -> Any:
        """(vector * factor) >> 8, where 256 stands for 1."""
        return code.high_product(code.builder.shl(vector, code.all(2, vector)), factor << 6)

    even, odd = add(v[0], v[4]), sub(v[0], v[4])
    outer = add(v[2], v[6])
    inner = sub(times(sub(v[2], v[6]), 362), outer)
    a0, a3, a1, a2 = add(even, outer), sub(even, outer), add(odd, inner), sub(odd, inner)
    z13, z10, z11, z12 = add(v[5], v[3]), sub(v[5], v[3]), add(v[1], v[7]), sub(v[1], v[7])
    b7 = add(z11, z13)
    z5 = times(add(z10, z12), 473)
    b6 = sub(add(sub(times(z10, -413), z10), z5), b7)
    b5 = sub(times(sub(z11, z13), 362), b6)
    b4 = add(sub(times(z12, 277), z5), b5)
    return [add(a0, b7), add(a1, b6), add(a2, b5), sub(a3, b4), add(a3, b4), sub(a2, b5), sub(a1, b6), sub(a0, b7)]


def _idct(code: Code) -> None:
    builder = code.builder
    _, at, _, quant_at, _, to, stride = code.args
    rows = []
    for i in range(8):
        factors = code.load(code.at(2, code.offset(quant_at, 8 * i)), 8)
        row = code.load(code.at(0, code.offset(at, SAMPLES * i)), SAMPLES)
        rows.append(builder.mul(row, code.both(factors, factors)))
    rows = _transposed(code, _dct_pass(code, _transposed(code, _dct_pass(code, rows))))
    for row in rows:
        shifted = code.clamped(builder.ashr(row, code.all(5, row)), -128, 127)
        code.store(code.narrowed(builder.add(shifted, code.all(128, shifted)), I8), code.at(4, to))
        to = builder.add(to, stride)


idct = vector_step(_idct, "aiaiaii")
"""idct(coefficients, at, factors, factors_at, samples, to, stride): `WIDE` blocks beside each other."""
