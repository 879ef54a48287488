"""What the compiled kernels of all folders share, and their plain versions with them."""

from __future__ import annotations

import numpy as np

# These are what operations are known by, and float32 to calculate with: a Python number would make float64 of what it
# meets.

BRIGHTNESS, SATURATION, HUE, CONTRAST = range(4)  # of colours
MULTIPLY, DIVIDE, ADD, SUBTRACT = range(4)  # arithmetic with a number for each channel
LEFT_RIGHT, UP_DOWN = 1, 2  # bits of a flip


ZERO, HALF, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(value) for value in (0, 0.5, 1, 2, 3, 4, 5, 6))
TINY = np.float32(1e-9)  # a divisor in place of nothing
TOP = np.float32(255)  # the highest level
PER_LEVEL = np.float32(1 / 255)  # a level as a number up to 1 ...
LEVELS = np.float32(255.5)  # ... and back, before the fraction is dropped
LEVEL = np.float32(255.5 / 255)  # there and back in one
