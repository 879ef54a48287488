"""The inverse DCT: libjpeg's fast or its accurate integer one, with the integers of libjpeg-turbo's vector code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.image.kernels.instructions import I8, I16, I32, Code, vector_step

WIDE = 2  # blocks in one vector: 16 lanes of 16 bits fill an AVX2 register
SAMPLES = 8 * WIDE


def _transposed(code: Code, rows: list[Any]) -> list[Any]:
    """Return each block's 8 × 8 values with rows and columns exchanged. Blocks stay in their own 8 lanes."""
    for step in (1, 2, 4):  # exchange the off-diagonal blocks of `step` rows and columns
        upper = [lane if not lane & step else SAMPLES + lane - step for lane in range(SAMPLES)]
        lower = [lane + step if not lane & step else SAMPLES + lane for lane in range(SAMPLES)]
        for i in (i for i in range(8) if not i & step):
            top, bottom = rows[i], rows[i + step]
            rows[i], rows[i + step] = code.shuffled(top, bottom, upper), code.shuffled(top, bottom, lower)
    return rows


def _dct_pass(code: Code, v: list[Any]) -> list[Any]:
    """Run one dimension of the transform of Arai, Agui and Nakajima, like jidctfst."""
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


def _accurate_pass(code: Code, v: list[Any], shift: int) -> list[Any]:
    """Run one dimension of the transform of Loeffler, Ligtenberg and Moschytz, like jidctint.

    Products have 32 bits. Results are divided by `2 ** shift`, and limited to 16 bits.
    """
    b = code.builder

    def wide(vector: Any) -> Any:
        return code.widened(vector, I32, signed=True)

    def mixed(one: Any, first: int, two: Any, second: int) -> Any:
        """one * first + two * second, where 8192 stands for 1."""
        return b.add(b.mul(one, code.all(first, one)), b.mul(two, code.all(second, two)))

    def both(one: Any, two: Any) -> tuple[Any, Any]:
        """Return the limited sum and difference."""
        half = code.all(1 << (shift - 1), one)
        found = (b.ashr(b.add(each, half), code.all(shift, each)) for each in (b.add(one, two), b.sub(one, two)))
        return tuple(code.narrowed(code.clamped(each, -32768, 32767), I16) for each in found)

    even, odd = (b.shl(wide(each), code.all(13, wide(each))) for each in (b.add(v[0], v[4]), b.sub(v[0], v[4])))
    one, two, three, five, six, seven = (wide(v[i]) for i in (1, 2, 3, 5, 6, 7))
    outer, inner = mixed(two, 10703, six, 4433), mixed(two, 4433, six, -10704)
    z3, z4 = wide(b.add(v[7], v[3])), wide(b.add(v[5], v[1]))
    z3, z4 = mixed(z3, -6436, z4, 9633), mixed(z3, 9633, z4, 6437)
    pairs = [
        both(b.add(even, outer), b.add(mixed(seven, -7373, one, 4926), z4)),
        both(b.add(odd, inner), b.add(mixed(five, -20995, three, 4177), z3)),
        both(b.sub(odd, inner), b.add(mixed(five, -4176, three, -20995), z4)),
        both(b.sub(even, outer), b.add(mixed(seven, -4927, one, -7373), z3)),
    ]
    return [first for first, _ in pairs] + [second for _, second in reversed(pairs)]


def _inverse(*, accurate: bool) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        builder = code.builder
        _, at, _, quant_at, _, to, stride = code.args
        rows = []
        for i in range(8):
            factors = code.load(code.at(2, code.offset(quant_at, 8 * i)), 8)
            row = code.load(code.at(0, code.offset(at, SAMPLES * i)), SAMPLES)
            rows.append(builder.mul(row, code.both(factors, factors)))
        for shift in (11, 18):
            found = _accurate_pass(code, rows, shift) if accurate else _dct_pass(code, rows)
            rows = _transposed(code, found)
        for row in rows:
            shifted = code.clamped(row if accurate else builder.ashr(row, code.all(5, row)), -128, 127)
            code.store(code.narrowed(builder.add(shifted, code.all(128, shifted)), I8), code.at(4, to))
            to = builder.add(to, stride)

    return write


fast_idct, accurate_idct = (vector_step(_inverse(accurate=accurate), "aiaiaii") for accurate in (False, True))
"""fast_idct(coefficients, at, factors, factors_at, samples, to, stride): `WIDE` blocks beside each other."""
