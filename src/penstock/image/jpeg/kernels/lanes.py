"""Files of one kind side by side, each in a lane: to samples at a fraction of their size, as `decode_small` makes them.

    files → windows of coded bits → the lowest coefficients, a block of each lane at a time → rows of samples

Lanes take each step of a block together, so that the processor is never without work while one of them waits, and has
to foresee as much for all of them as it otherwise has for one. How large its picture is, and which tables it has, is
each lane's own. A file that is not as it should be is given up: `decode_small` says what is to be done with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, maker, rarely
from penstock.image.jpeg.kernels.bits import byte
from penstock.image.jpeg.kernels.codes import LOOK, single
from penstock.image.jpeg.kernels.headers import ACROSS, COMPONENTS, DOWN, HEIGHT, QUANT, SCAN, WIDTH
from penstock.image.jpeg.kernels.looks import (
    DEEP,
    ENDED,
    FIRST_LOOK,
    LANES,
    LONGER,
    LOOKED,
    PAST,
    bits_at,
    look,
    look_first,
    look_long,
    look_near,
    look_near_alone,
    look_up_to_end,
)
from penstock.image.jpeg.kernels.planes import MOST_BLOCKS, lay_out_unit, new_numbers
from penstock.image.jpeg.kernels.small import (
    APART,
    FURTHEST,
    IN_PLACES,
    PLACES,
    UNUSED,
    lower_rows,
    placed,
    small_layout,
)
from penstock.image.jpeg.kernels.windows import (
    LIMIT,
    close_window,
    entries_at,
    is_at_end,
    is_beyond,
    new_sets,
    new_windows,
    open_window,
    refill,
    release,
    take_set,
)

COST = 3  # a block of all lanes takes as long as so many of files one by one
_FILE, _SET, _LEFT, _ROW, _WHOLE = 0, 1, 2, 3, 4  # of each lane; _LEFT is units of its row, and _ROW a row of units
_FIRST, _NEAR, _SKIPS, _LONG, _LONG_FROM, _END = 0, 1, 2, 3, 4, 5  # of `tables`, for each component and lane
_NONE, _NEVER = -1, 1 << 62


@maker
def new_lanes(in_row: int) -> Any:
    """Lanes without files, for pictures of up to `in_row` coefficients in a row of units."""
    rarely()
    positions, starts, at = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    before, tables = np.zeros((3, LANES), np.int64), np.zeros((6, 3, LANES), np.int64)
    state = positions, starts, at, before, np.zeros(LANES * DEEP, np.int16), tables
    windows, sets, about = new_windows(LANES), new_sets(LANES + 1), np.zeros((5, LANES), np.int64)
    coefficients = np.zeros(LANES * in_row, np.int16)
    places, steps = np.zeros((MOST_BLOCKS, LANES), np.int64), np.zeros((MOST_BLOCKS, LANES), np.int64)
    factors, used = np.zeros((LANES, 3 * 64), np.int16), np.zeros((LANES, 6), np.int64)
    lanes = state, windows, sets, about, coefficients, places, steps, factors, used, new_numbers()
    for lane in range(LANES):
        _rest(lane, lanes)
    return lanes


@helper
def _rest(lane: int, lanes: Any) -> None:
    """Let a lane without a file do nothing."""
    rarely()
    (positions, starts, _, _, _, _), windows, _, about, coefficients, places, steps, _, _, _ = lanes
    about[_FILE, lane], about[_LEFT, lane], about[_WHOLE, lane] = _NONE, _NEVER, 1
    starts[lane] = ENDED
    positions[lane] = close_window(lane, windows)
    places[:, lane], steps[:, lane] = lane * (coefficients.size // LANES), 0


@helper
def file_of(lane: int, lanes: Any) -> Any:
    """The file that a lane has, -1 for none; and, once it was given by `walk`, whether its samples are there."""
    about = lanes[3]
    return about[_FILE, lane], about[_WHOLE, lane] == 1


@helper
def is_worth_it(table: Any, cost: int, lanes: Any) -> bool:
    """Whether to go on to the end of all pictures takes less than to decode them one by one from their beginning.

    A step of all lanes takes as long as `cost` blocks of files one by one.
    """
    rarely()
    about = lanes[3]
    longest = total = 0
    for lane in range(LANES):
        if about[_FILE, lane] != _NONE:
            header = table[about[_FILE, lane]]
            units_x = (header[WIDTH] + 8 * header[ACROSS] - 1) // (8 * header[ACROSS])
            units_y = (header[HEIGHT] + 8 * header[DOWN] - 1) // (8 * header[DOWN])
            longest = max(longest, (units_y - about[_ROW, lane]) * units_x)
            total += units_y * units_x
    return total >= cost * longest


@helper
def _begin_row(lane: int, header: Any, sides: Any, lanes: Any) -> None:
    _, _, _, about, coefficients, places, steps, _, _, numbers = lanes
    blocks, colour_blocks, _, _, _, _ = small_layout(header, sides)
    _, _, begins, apart, _, _ = numbers
    for b in range(lay_out_unit(header, blocks, colour_blocks, numbers)):
        places[b, lane] = lane * (coefficients.size // LANES) + begins[b] * APART
        steps[b, lane] = apart[b] * APART
    about[_LEFT, lane] = (header[WIDTH] + 8 * header[ACROSS] - 1) // (8 * header[ACROSS])


@helper
def enter(lane: int, file: int, start: int, size: int, header: Any, sides: Any, lanes: Any) -> bool:
    """Give a free lane a file of `size` bytes at `start`; False if it has no codes."""
    rarely()
    (positions, starts, _, before, _, tables), windows, sets, about, _, _, _, factors, used, _ = lanes
    number = take_set(start, header, factors[lane], used[lane], sets)
    if number < 0:
        return False
    for i in range(header[COMPONENTS]):
        coded = used[lane, 3 + i]
        tables[_FIRST, i, lane] = (3 * number + used[lane, i]) << FIRST_LOOK
        tables[_END, i, lane] = sets[8][number, coded - 3]
        table = 3 * number + coded - 3
        tables[_NEAR, i, lane], tables[_SKIPS, i, lane] = table << LOOK, table << LOOKED
        tables[_LONG, i, lane], tables[_LONG_FROM, i, lane] = table * LONGER, sets[2][number, coded, LOOKED]
        for k in range(25):
            place = PLACES[4 * IN_PLACES + k]
            if place != UNUSED:
                factors[lane, i * 64 + place] = byte(start + header[QUANT + i] + k)
        before[i, lane] = 0
    positions[lane] = open_window(lane, start + header[SCAN], start + size, windows)
    starts[lane] = 0
    about[_FILE, lane], about[_SET, lane], about[_ROW, lane], about[_WHOLE, lane] = file, number, 0, 1
    _begin_row(lane, header, sides, lanes)
    return True


@helper
def leave(lane: int, lanes: Any) -> None:
    """Make a lane free."""
    release(lanes[3][_SET, lane], lanes[2])
    _rest(lane, lanes)


@helper
def _code(lane: int, component: int, state: Any, about: Any, used: Any, sets: Any, to_end: bool) -> None:
    """A code by itself, or all up to the block's end; the lane's file is given up if there is no such code."""
    positions, starts, at, before, values, _ = state
    made_of, entries, limits, shifts, _, _, _, _, _, _ = sets
    position, k, number = positions[lane], at[lane], about[_SET, lane]
    tables = (
        made_of[number],
        entries[entries_at(number, 0) : entries_at(number + 1, 0)],
        limits[number],
        shifts[number],
    )
    while True:
        n, run, value, ends = single(bits_at(position), used[lane, component if k == 0 else 3 + component], tables)
        if k == 0:
            before[component, lane] += value
            values[lane * DEEP] = before[component, lane]
            k = 1
        else:
            if not ends:
                values[lane * DEEP + k + run] = value
            k = ENDED if ends else min(k + run + 1, ENDED)
        if n == 0:
            about[_WHOLE, lane] = 0
            starts[lane] = k = ENDED
        position += n
        if k == ENDED or not to_end:
            break
    positions[lane] = position
    at[lane] = k


@helper
def _behind_unit(lane: int, header: Any, sides: Any, samples: Any, begin: int, lanes: Any) -> bool:
    """Fill a lane's window, end its row, or both; whether its file is at its end, or given up."""
    (positions, _, _, _, _, _), windows, _, about, coefficients, _, _, factors, _, _ = lanes
    position = positions[lane]
    if about[_WHOLE, lane] == 0 or is_beyond(lane, position, windows):
        about[_WHOLE, lane] = 0
        return True
    if position > windows[1][LIMIT, lane]:
        positions[lane] = position = refill(lane, position, windows)
    if about[_LEFT, lane]:
        return False
    at = lane * (coefficients.size // LANES)
    lower_rows(header, sides, about[_ROW, lane], coefficients, at, factors[lane], samples, begin)
    about[_ROW, lane] += 1
    if about[_ROW, lane] * 8 * header[DOWN] < header[HEIGHT]:
        _begin_row(lane, header, sides, lanes)
        return False
    position = refill(lane, position, windows)
    about[_WHOLE, lane] = 1 if is_at_end(lane, position, windows) else 0
    return True


@helper
def walk(table: Any, sides: Any, samples: Any, lanes: Any) -> Any:
    """Go on until files are at their end: the lanes that have them, a bit each; 0 if no lane has a file.

    `samples` has as much room for each lane. `leave` and `enter` say how such a lane goes on.
    """
    state, windows, sets, about, coefficients, places, steps, _, used, numbers = lanes
    positions, starts, at, before, values, tables = state
    firsts, nears, skips, longs, limits = sets[4], sets[5], sets[6], sets[7], windows[1][LIMIT]
    components, room = numbers[1], samples.size // LANES
    in_unit, ended, some = 0, 0, False
    for i in range(LANES):
        if about[_FILE, i] != _NONE:
            header = table[about[_FILE, i]]
            in_unit, some = header[ACROSS] * header[DOWN] + header[COMPONENTS] - 1, True
    while some and not ended:
        for block in range(in_unit):
            b, component = np.uint64(block), components[block]
            c, side = np.uint64(component), sides[0] if component == 0 else sides[1]
            needed, where, far, dc = FURTHEST[side], places[b], steps[b], before[c]
            first, near, skip, end = tables[_FIRST, c], tables[_NEAR, c], tables[_SKIPS, c], tables[_END, c]
            long, long_from = tables[_LONG, c], tables[_LONG_FROM, c]
            if not look_first(positions, starts, at, first, firsts, dc, values):
                for i in range(LANES):
                    at[i] = starts[i]
                    if at[i] == 0:
                        _code(i, component, state, about, used, sets, False)
            left, last = LANES if needed else 0, 0
            while left:
                if left == 1:
                    waiting = look_near_alone(last, positions, at, near, end, nears, values)
                else:
                    waiting = look_near(positions, at, near, end, nears, values)
                for i in range(LANES if waiting else 0):
                    if waiting >> i & 1 and at[i] <= needed:
                        _code(i, component, state, about, used, sets, False)
                left = 0
                for i in range(LANES):
                    if at[i] <= needed:
                        left, last = left + 1, i
            while min(at[0], at[1], at[2], at[3]) < ENDED:
                waiting = look(positions, at, skip, end, skips, skips.size - (1 << LOOKED))
                for i in range(LANES if waiting else 0):
                    past = waiting >> i & PAST != 0
                    if past:
                        look_up_to_end(i, skip[i], skips, positions, at)
                    left_over = waiting >> i & 1 and not look_long(i, long[i], long_from[i], longs, positions, at)
                    if past or left_over:
                        _code(i, component, state, about, used, sets, past)
            for i in range(LANES):
                placed(values, i * DEEP, coefficients, where[i])
                where[i] += far[i]
        for i in range(LANES):
            about[_LEFT, i] -= 1
            goes_on = about[_LEFT, i] and about[_WHOLE, i] and positions[i] <= limits[i]
            if not goes_on and _behind_unit(i, table[about[_FILE, i]], sides, samples, i * room, lanes):
                ended |= 1 << i
    return ended
