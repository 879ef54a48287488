"""Arithmetic with a number for each value. Imported by modules of kernels only, as numba itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.image.kernels.codes import ADD, DIVIDE, MULTIPLY


@helper
def calculate(codes: Any, numbers: Any, values: Any) -> None:
    """Change `values` by the operations `codes` in order; each has its row of `numbers`, as long at least."""
    count = np.uint64(values.size)
    for k in range(codes.size):
        code, row = codes[k], numbers[k]
        if code == MULTIPLY:
            for j in range(count):
                values[j] = values[j] * row[j]
        elif code == DIVIDE:
            for j in range(count):
                values[j] = values[j] / row[j]
        elif code == ADD:
            for j in range(count):
                values[j] = values[j] + row[j]
        else:
            for j in range(count):
                values[j] = values[j] - row[j]
