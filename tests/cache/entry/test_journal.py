"""The journal: what is read of one that is torn, damaged, or still being written."""

from dataclasses import replace

import pytest

from penstock.io.saved.chunk import Chunk
from penstock.io.saved.journal import NAME, Commit, Journal, text_of


def commit(number):
    chunk = Chunk(f"chunks/{number}.arrow", 0, 10, 10, 100, (number,))
    return Commit((chunk,), 10 * number + 10, ["state", number, {"a": 0.5}], "made", {"nest": None})


COMMITS = [commit(number) for number in range(3)]
TEXT = text_of(COMMITS)
ENDS = [0, *(len(text_of(COMMITS[: number + 1])) for number in range(3))]


@pytest.fixture
def journal(tmp_path):
    def write(content):
        (tmp_path / NAME).write_bytes(content)
        return Journal(str(tmp_path))

    return write


def test_none_is_empty(tmp_path):
    found = Journal(str(tmp_path))
    found.refresh()
    assert (found.commits, found.elements, found.end) == ([], 0, 0)


def test_torn_at_every_byte_it_is_as_long_as_its_whole_lines(journal):
    for size in range(len(TEXT) + 1):
        found = journal(TEXT[:size])
        found.refresh()
        whole = sum(end <= size for end in ENDS) - 1
        assert found.commits == COMMITS[:whole]
        assert found.end == ENDS[whole]


def test_a_flipped_bit_anywhere_ends_it_in_front_of_its_line(journal):
    for place in range(len(TEXT)):
        content = bytearray(TEXT)
        content[place] ^= 1 << place % 8
        found = journal(bytes(content))
        found.refresh()
        whole = sum(end <= place for end in ENDS) - 1
        assert found.commits == COMMITS[:whole], place


def test_it_grows_while_it_is_read(journal):
    found = journal(b"")
    for size in range(len(TEXT) + 1):
        journal(TEXT[:size])
        found.refresh()
    assert found.commits == COMMITS


def test_one_that_was_cut_off_or_written_anew_is_read_from_its_start(journal):
    found = journal(TEXT)
    found.refresh()
    journal(TEXT[: ENDS[1]])
    found.refresh()
    assert found.commits == COMMITS[:1]
    other = [replace(commit(number), made_by="other") for number in range(2)]
    journal(text_of(other) + b"x" * 1000 + b"\n")
    found.refresh()
    assert found.commits == other


def test_a_line_that_counts_otherwise_than_its_chunks_is_none(journal):
    found = journal(text_of([COMMITS[0], replace(COMMITS[1], elements=21)]))
    found.refresh()
    assert found.commits == COMMITS[:1]


def test_a_line_in_the_wrong_place_is_none(journal):
    found = journal(COMMITS[1].line(1))
    found.refresh()
    assert found.commits == []
