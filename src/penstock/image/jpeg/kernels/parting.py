"""part_scan, write_scan: a scan of several components as scans of one each, coded bits for coded bits.

Imported inside functions only: numba takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, kernel

WHOLE, DC_FIRST, DC_BIT = 0, 1, 2  # what a scan holds of each block
LOOK = 16  # bits that a table is asked with
DC_CODE = 5  # bits of every code that write_scan uses for a size


@helper
def _peek(data: Any, at: Any, length: Any) -> Any:
    """`length` bits from bit `at` on, which lie in `data`, as three bytes behind them do."""
    value = np.int64(0)
    for i in range(4):
        value = value << 8 | np.int64(data[(at >> 3) + i])
    return value >> (32 - (at & 7) - length) & ((1 << length) - 1)


@kernel
def part_scan(
    data: Any, starts: Any, ends: Any, units: Any, restart: int, factors: Any, dc: Any, ac: Any, mode: int, blocks: Any
) -> bool:
    """Fill `blocks` (count, 3): each block's DC, and where its coded AC begin and end; whether all could be read.

    `data` are the scan's bytes, of intervals from the bits `starts` to `ends`; `units` how many lie below and beside
    each other. `dc` and `ac` give what a component's next 16 bits begin with: length << 8 | symbol, or 0. The blocks of
    a component lie row by row, behind those of the components before it.
    """
    count = factors.shape[0]
    before = np.zeros(count, np.int64)
    interval = 0
    at, end = starts[0], ends[0]
    for unit in range(units[0] * units[1]):
        if restart and unit and unit % restart == 0:
            interval += 1
            at, end = starts[interval], ends[interval]
            before[:] = 0
        base = 0
        for c in range(count):
            across, down = factors[c, 0], factors[c, 1]
            wide = units[1] * across
            for j in range(down):
                for i in range(across):
                    row = unit // units[1] * down + j
                    block = blocks[base + row * wide + unit % units[1] * across + i]
                    if mode == DC_BIT:
                        if at + 1 > end:
                            return False
                        block[0] = _peek(data, at, 1)
                        at += 1
                        continue
                    entry = dc[c, _peek(data, at, LOOK)]
                    size = entry & 255
                    at += entry >> 8
                    if entry == 0 or size > 15 or at + size > end:
                        return False
                    if size:
                        value = _peek(data, at, size)
                        before[c] += value if value >> (size - 1) else value - (1 << size) + 1
                        at += size
                    block[0] = before[c]
                    block[1] = at
                    k = 1 if mode == WHOLE else 64
                    while k < 64:
                        entry = ac[c, _peek(data, at, LOOK)]
                        run, size = entry >> 4 & 15, entry & 15
                        at += (entry >> 8) + size
                        if entry == 0 or at > end:
                            return False
                        if size:
                            k += run + 1
                        elif run == 15:
                            k += 16
                        else:
                            break
                    block[2] = at
            base += units[0] * down * wide
    return True


@kernel
def write_scan(data: Any, blocks: Any, rows: int, columns: int, wide: int, mode: int, out: Any) -> int:
    """Write the first `rows` and `columns` of blocks of one component, `wide` in a row, to the zeros of `out`.

    The sizes of DC have codes of 5 bits each, their own numbers. The result says how many bits it took; 0 if a
    difference has more bits than there are sizes for.
    """
    to = 0
    before = np.int64(0)
    for row in range(rows):
        for column in range(columns):
            block = blocks[row * wide + column]
            if mode == DC_BIT:
                bits, length = block[0], 1
            else:
                difference = block[0] - before
                before = block[0]
                size = 0
                while abs(difference) >> size:
                    size += 1
                if size > 15:
                    return 0
                bits = difference if difference >= 0 else difference + (1 << size) - 1
                bits, length = size << size | bits, DC_CODE + size
            for i in range(length - 1, -1, -1):
                out[to >> 3] |= (bits >> i & 1) << (7 - (to & 7))
                to += 1
            for at in range(block[1], block[2]):
                out[to >> 3] |= (data[at >> 3] >> (7 - (at & 7)) & 1) << (7 - (to & 7))
                to += 1
    return to


def warm_up() -> None:
    """Compile both; the types are always the same."""
    few, places, table = np.zeros(8, np.uint8), np.zeros(1, np.int64), np.zeros((1, 1 << LOOK), np.int32)
    blocks = np.zeros((1, 3), np.int64)
    one = np.ones((1, 2), np.int64)
    part_scan(few, places, places, one[0], 0, one, table, table, WHOLE, blocks)
    write_scan(few, blocks, 1, 1, 1, DC_FIRST, few.copy())
