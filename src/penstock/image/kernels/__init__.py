"""Constants and helpers that all compiled kernels share, with their plain versions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Codes of operations, and float32 constants. A Python number would turn a float32 into a float64.

BRIGHTNESS, SATURATION, HUE, CONTRAST = range(4)  # of colours
MULTIPLY, DIVIDE, ADD, SUBTRACT = range(4)  # arithmetic with a number for each channel
CALCULATE = (np.multiply, np.divide, np.add, np.subtract)  # the plain versions, by these codes
LEFT_RIGHT, UP_DOWN = 1, 2  # bits of a flip

BAD_ARGUMENT = 1  # status: sizes that do not fit, or a place outside the source; nothing useful was written


ZERO, HALF, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(value) for value in (0, 0.5, 1, 2, 3, 4, 5, 6))
TINY = np.float32(1e-9)  # a divisor that replaces 0
TOP = np.float32(255)  # the highest level
PER_LEVEL = np.float32(1 / 255)  # factor from a level to a number up to 1
LEVELS = np.float32(255.5)  # factor back to a level, before truncation
LEVEL = np.float32(255.5 / 255)  # factor of both conversions


def constants(
    steps: Sequence[tuple[int, tuple[float, ...]]], width: int, channels: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return arithmetic as arrays for a kernel: its codes, and the numbers of each channel, repeated along a row.

    >>> constants([(ADD, (1, 2, 3))], 2, 3)
    (array([2]), array([[1., 2., 3., 1., 2., 3.]], dtype=float32))
    """
    numbers = np.array([numbers[:channels] for _, numbers in steps], np.float32).reshape(-1, channels)
    return np.array([code for code, _ in steps], np.int64), np.tile(numbers, width)


LINE = 12  # numbers of a line for each of four channels


def line_of(levels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the values that kernels resize in place of 0 to 255, (channels, 256), as a flat table or as a line.

    A line is a slope in two parts and what is added. With `every` value times the first part, which is exact, plus it
    times the second, plus what is added, all in float32, a kernel computes the levels to the last bit. Lines are found
    for three channels whose slope is a float32, or 1 by a number of 16 bits.

    >>> line_of(np.tile(np.arange(256, dtype=np.float32) / np.float32(255), (3, 1))).size == LINE
    True
    """
    begin, every, bits = levels[:, :1], np.arange(256, dtype=np.float32), np.int32  # of which -0.0 is not 0.0
    with np.errstate(all="ignore"):
        fraction, exponent = np.frexp(255 / (levels[:, 255:].astype(np.float64) - begin))
        for slope in (levels[:, 1:2].astype(np.float64), 1 / np.ldexp(np.rint(fraction * (1 << 16)), exponent - 16)):
            high = (slope.astype(np.float32).view(bits) & -(1 << 8)).view(np.float32)
            low = (slope - high).astype(np.float32)
            found = every * high + every * low + begin
            if len(levels) == 3 and np.array_equal(found.view(bits), levels.view(bits)):
                return np.pad(np.hstack((high, low, begin)).T, ((0, 0), (0, 1))).reshape(-1)
    return np.array(levels, np.float32).reshape(-1)
