"""The tables by which files are decoded side by side: how far a look goes, and where memory ends."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from tests.image.codes import AC_SYMBOLS, DC_SYMBOLS, ZEROS, Table, tables

from penstock.image.jpeg.kernels import codes
from penstock.image.jpeg.kernels import looks as nears
from penstock.image.jpeg.kernels.looks import ENDED, LONGER, long_table


def test_a_table_of_longer_codes_ends_where_its_memory_does():
    table = Table(AC_SYMBOLS, 5, 13)
    kept = np.array([1] * 5 + [0] * 7 + [157, 0, 0, 0, *table.symbols])
    memory = np.full(LONGER + 1000, 9, np.uint16)
    long_table(kept, table.codes[table.symbols[5]][0] << 3, memory[:LONGER])
    assert (memory[LONGER:] == 9).all()
    used = [13 + (symbol & 15) for symbol in table.symbols[5:69]]
    np.testing.assert_array_equal(memory[:LONGER] & 63, np.repeat(used, 8))


def test_no_look_at_needed_coefficients_leaves_the_values_of_its_lane():
    """Those look furthest that begin behind a block, where a code of one bit stands for sixteen zeros."""
    made, entries = codes.new_tables(), np.zeros(1 << codes.LOOK, np.int32)
    table = Table((ZEROS, *(each for each in AC_SYMBOLS if each != ZEROS)), 1, 9)
    content = np.frombuffer(table.segment(0)[5:], np.uint8)
    assert codes.prepare(content.ctypes.data, 3, made)
    nears.near_table(made[1][3 << codes.LOOK : 4 << codes.LOOK], entries)
    step, zeros = int((entries >> nears._STEP & 31).max()), int((entries >> nears._ZEROS & 15).max())
    assert (step, zeros) == (16, 15)
    furthest = ENDED + (nears.LOOKS - 1) * nears._FARTHEST + max(zeros, nears._FARTHEST - 1)
    assert furthest < nears.DEEP


@settings(max_examples=30)
@example(Table((9, *(each for each in AC_SYMBOLS if each != 9)), 1, 9))  # values that an entry has no room for
@example(Table((ZEROS, 8), 0, 1))
@example(Table((ZEROS, 7, *(each for each in AC_SYMBOLS if each not in (ZEROS, 7))), 2, 10))
@given(tables(AC_SYMBOLS))
def test_an_entry_for_needed_coefficients_tells_what_its_bits_say_code_by_code(table):
    made, entries = codes.new_tables(), np.zeros(1 << codes.LOOK, np.int32)
    content = np.frombuffer(table.segment(0)[5:], np.uint8)
    assert codes.prepare(content.ctypes.data, 3, made)
    nears.near_table(made[1][3 << codes.LOOK : 4 << codes.LOOK], entries)
    for i, entry in enumerate(entries.tolist()):
        bits = np.uint64(i << (64 - codes.LOOK))
        used, run, value, ends = codes.single(bits, 3, made)
        if entry in (nears._WAITS, nears._ENDS):
            assert ends if entry == nears._ENDS else used == 0 or used > codes.LOOK or abs(value) > 255
            continue
        found, expected, at, left = np.zeros(64, np.int64), np.zeros(64, np.int64), 1, entry & 63
        place = nears._keep(1, entry, found)
        while at < place:
            used, run, value, ends = codes.single(bits, 3, made)
            assert used
            assert not ends
            expected[at + run] = value
            at, left, bits = at + run + 1, left - used, bits << np.uint64(used)
        assert (at, left) == (place, 0)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("what", ["all", "long", "resting"])
def test_first_coefficients_are_read_in_all_lanes_that_have_a_file_or_in_none(what):
    """A lane without a file must not go on: nothing bounds the bits behind it."""
    table = Table(DC_SYMBOLS, 0, 4)
    kept = np.array([*([0] * 3), 12, *([0] * 12), *DC_SYMBOLS])
    firsts = np.zeros(1 << nears.FIRST_LOOK, np.int16)
    nears.first_table(kept, firsts)
    code, length = table.codes[11 if what == "long" else 3]
    bits = np.array([*([0x35, 0] * 8), code << (8 - length) | 0b101 << 1, 0, *([0] * 14)], np.uint8)
    starts = np.array([0, 0, 0, ENDED if what == "resting" else 0])
    positions = (bits.ctypes.data + np.array([0, 0, 0, 16])) * 8
    at, before, values = np.full(4, 9), np.arange(4) * 100, np.full(4 * nears.DEEP, 7, np.int16)
    unchanged = [each.copy() for each in (positions, at, before, values)]
    read = nears.look_first(positions, starts, at, np.zeros(4, np.int64), firsts, before, values)
    assert read == (what != "long")
    if read:
        last = (0, 300, ENDED) if what == "resting" else (7, 305, 1)
        np.testing.assert_array_equal(positions - unchanged[0], [7, 7, 7, last[0]])
        np.testing.assert_array_equal(before, [-5, 95, 195, last[1]])
        np.testing.assert_array_equal(values[:: nears.DEEP], before)
        np.testing.assert_array_equal(at, [1, 1, 1, last[2]])
    else:
        for found, before_it in zip((positions, at, before, values), unchanged, strict=True):
            np.testing.assert_array_equal(found, before_it)
