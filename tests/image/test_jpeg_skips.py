"""The tables that skip codes: an entry never goes further, or elsewhere, than the codes one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.jpegs import jpeg

from penstock.image.jpeg.kernels.codes import FAR, KEPT, MOST, OVER, SKIP_LOOK, SYMBOLS, new_skips, prepare_skips

LONGEST_CODE, BEHIND = 16, 20


def ac_tables(contents):
    """The counts and symbols of each AC table of a file, as `codes.prepare` keeps them."""
    at = 2
    while contents[at + 1] != 0xDA:
        length = int.from_bytes(contents[at + 2 : at + 4], "big")
        if contents[at + 1] == 0xC4:
            body = contents[at + 4 : at + 2 + length]
            while body:
                count = sum(body[1:17])
                if body[0] >> 4:
                    kept = np.zeros(KEPT + 1, np.int64)
                    kept[: SYMBOLS + count] = list(body[1 : 17 + count])
                    yield kept
                body = body[17 + count :]
        at += 2 + length


TABLES = [kept for each in (jpeg("420", 48, 64), jpeg("optimised", 48, 64, 30)) for kept in ac_tables(each)]


@pytest.fixture(scope="module")
def entries():
    """Of each of TABLES."""
    made = []
    for kept in TABLES:
        skips = new_skips()
        prepare_skips(1, kept, skips)
        made.append(skips[1][1 << SKIP_LOOK : 2 << SKIP_LOOK].astype(np.int64))
    return made


def codes(kept):
    """Symbols by the bits of their codes."""
    found, code, symbol = {}, 0, SYMBOLS
    for length in range(1, LONGEST_CODE + 1):
        for _ in range(kept[length - 1]):
            found[format(code, f"0{length}b")] = int(kept[symbol])
            code, symbol = code + 1, symbol + 1
        code <<= 1
    return found


def one_by_one(known, bits):
    """(bits used, positions gone on, whether the block has ended) behind each code of a string of bits."""
    used = far = 0
    while True:
        lengths = [n for n in range(1, LONGEST_CODE + 1) if bits[used : used + n] in known]
        if not lengths:
            return
        symbol = known[bits[used : used + lengths[0]]]
        run, size = symbol >> 4, symbol & 15
        used += lengths[0] + size
        if size == 0 and run != 15:
            yield used, far, True
            return
        far += run + 1
        yield used, far, False


@given(st.integers(0, len(TABLES) - 1), st.integers(0, 2**SKIP_LOOK - 1), st.integers(0, 2**BEHIND - 1))
def test_an_entry_stops_where_a_code_does(entries, which, look, behind):
    entry = int(entries[which][look])
    used, far, over = entry & 63, (entry >> FAR) & 63, bool(entry >> OVER)
    seen = format(look, f"0{SKIP_LOOK}b")
    stops = list(one_by_one(codes(TABLES[which]), seen + format(behind, f"0{BEHIND}b")))
    if used:
        assert used <= MOST
        assert (used, far, over) in stops
    else:
        assert over
        first = stops[0][0] if stops else LONGEST_CODE
        assert first > SKIP_LOOK


def test_entries_tell_of_several_codes(entries):
    """Else they would be right, and slow."""
    used = np.concatenate(entries) & 63
    assert used.mean() > SKIP_LOOK * 2 / 3
    assert (used > SKIP_LOOK).any()


def test_a_table_is_kept_while_the_codes_are_the_same():
    skips = new_skips()
    prepare_skips(0, TABLES[0], skips)
    skips[1][0] = 77
    prepare_skips(0, TABLES[0], skips)
    assert skips[1][0] == 77
    prepare_skips(0, TABLES[1], skips)
    assert skips[1][0] != 77
