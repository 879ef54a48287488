r"""Numbers as CSV files hold them: what is one, and which.

Spaces (also `\t\n\v\f\r`) around a number are allowed, a plus sign too. Floats are decimal, or one of inf, infinity and
nan in any case. As absl's SimpleAtoi, SimpleAtof and SimpleAtod, with which TensorFlow reads them.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

_SPACE = b" \t\n\v\f\r"
_INT = re.compile(rb"[+-]?[0-9]+")
_FLOAT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NAMED = re.compile(rb"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_MOST_DIGITS = 4000  # fewer than Python converts at once; a longer integer that fits begins with zeros


def plain_int(text: bytes, low: int, high: int) -> int | None:
    """The integer that `text` is, if it is one from `low` to `high`.

    >>> plain_int(b" +7 ", -128, 127), plain_int(b"128", -128, 127), plain_int(b"7.0", -128, 127)
    (7, None, None)
    """
    text = text.strip(_SPACE)
    if not _INT.fullmatch(text):
        return None
    digits = text.lstrip(b"+-").lstrip(b"0") or b"0"
    if len(digits) > _MOST_DIGITS:
        return None
    value = -int(digits) if text[:1] == b"-" else int(digits)
    return value if low <= value <= high else None


def plain_float(text: bytes, *, single: bool) -> float | None:
    """The number nearest to `text` among the floats, or with `single` among those that are float32.

    >>> plain_float(b"1e3", single=False), plain_float(b".5", single=True), plain_float(b"1_0", single=False)
    (1000.0, 0.5, None)
    """
    text = text.strip(_SPACE)
    if _NAMED.fullmatch(text):
        return float(text)
    if not _FLOAT.fullmatch(text):
        return None
    return _nearest_single(text) if single else float(text)


def _nearest_single(text: bytes) -> float:
    """Rounded once: rounding to float64 first goes wrong for numbers close to the middle of two float32."""
    double = float(text)
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(double)
    if not _is_between(double):
        return float(near)
    exact, middle = Decimal(text.decode()), Decimal(double)
    if exact == middle:
        return float(near)
    with np.errstate(over="ignore", under="ignore"):
        if exact > middle:
            return float(near if float(near) > double else np.nextafter(near, np.float32(np.inf)))
        return float(near if float(near) < double else np.nextafter(near, np.float32(-np.inf)))


def _is_between(double: float) -> bool:
    """Whether `double` lies exactly between two neighbouring float32."""
    if abs(double) < 2.0**-126:  # where float32 are 2**-149 apart
        return (double * 2.0**150) % 2 == 1
    return int(np.float64(double).view(np.uint64)) & 0x1FFFFFFF == 0x10000000
