"""The float32 numbers that kernels calculate with: a Python number would make float64 of what it meets."""

import numpy as np

ZERO, HALF, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(value) for value in (0, 0.5, 1, 2, 3, 4, 5, 6))
TINY = np.float32(1e-9)  # a divisor in place of nothing
TOP = np.float32(255)  # the highest level
PER_LEVEL = np.float32(1 / 255)  # a level as a number up to 1 ...
LEVELS = np.float32(255.5)  # ... and back, before the fraction is dropped
LEVEL = np.float32(255.5 / 255)  # there and back in one
