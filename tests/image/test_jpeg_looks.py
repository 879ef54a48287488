"""The tables by which files are decoded side by side: how far a look goes, and where memory ends."""

import numpy as np
from tests.image.codes import AC_SYMBOLS, ZEROS, Table

from penstock.image.kernels.jpeg import codes, nears
from penstock.image.kernels.jpeg.looks import ENDED, LONGER, long_table
from penstock.image.kernels.jpeg.places import IN_PLACES


def test_a_table_of_longer_codes_ends_where_its_memory_does():
    table = Table(AC_SYMBOLS, 5, 13)
    kept = np.array([1] * 5 + [0] * 7 + [157, 0, 0, 0, *table.symbols])
    memory = np.full(LONGER + 1000, 9, np.uint16)
    long_table(kept, table.codes[table.symbols[5]][0] << 3, memory[:LONGER])
    assert (memory[LONGER:] == 9).all()
    used = [13 + (symbol & 15) for symbol in table.symbols[5:69]]
    np.testing.assert_array_equal(memory[:LONGER] & 63, np.repeat(used, 8))


def test_no_look_at_needed_coefficients_leaves_the_table_of_places():
    """Those look furthest that begin behind a block, where a code of one bit stands for sixteen zeros."""
    tables, entries = codes.new_tables(), np.zeros(1 << codes.LOOK, np.int64)
    table = Table((ZEROS, *(each for each in AC_SYMBOLS if each != ZEROS)), 1, 9)
    content = np.frombuffer(table.segment(0)[5:], np.uint8)
    assert codes.prepare(content.ctypes.data, 3, tables)
    nears.near_table(tables[1][3 << codes.LOOK : 4 << codes.LOOK], entries)
    step, first, last = (int((entries >> at & 255).max()) for at in (codes.STEP, codes.ZEROS, nears._LAST_AT))
    assert step == 32
    assert ENDED + (nears.LOOKS - 1) * step + max(first, last) < IN_PLACES
