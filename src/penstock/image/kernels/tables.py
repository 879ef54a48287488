"""Results by tables of 256 entries for each channel: parts of the kernels that compute as Pillow."""

from __future__ import annotations

import numpy as np

from penstock.native.kernel import inlined

_u = np.uint64


@inlined
def fits_result(table, out, planes, rows, columns, channels):
    """Return True if table and result have the shapes of an image. `out` is (channels, rows, columns) with `planes`."""
    if planes:
        fits = out.shape[0] == channels and out.shape[1] == rows and out.shape[2] == columns
    else:
        fits = out.shape[0] == rows and out.shape[1] == columns and out.shape[2] == channels
    return bool(fits and table.shape[0] == channels and table.shape[1] == 256)


@inlined
def look_up(row, at, columns, table, c, out, y, planes):
    """Write the table's values for a channel of row `y`, whose `columns` bytes begin at `at`."""
    count, first, channel, to = _u(columns), _u(at), _u(c), _u(y)
    if planes:
        for j in range(count):
            out[channel, to, j] = table[channel, row[first + j]]
    else:
        for j in range(count):
            out[to, j, channel] = table[channel, row[first + j]]
