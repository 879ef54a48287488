"""Past: the note in front of a position is there as long as the position may be asked for, and few others are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.physical.stretch import Past


def test_the_last_note_not_behind_a_position():
    past = Past()
    for position in (0, 3, 5):
        past.note(position, f"at {position}", lambda: np.array([0]))
    assert past.before(2) == (0, "at 0")
    assert past.ends_at(5)
    assert not past.ends_at(3)
    assert past.before(4) == (3, "at 3")
    assert past.before(9) == (5, "at 5")
    assert past.before(0) == (5, "at 5")


def test_a_position_in_front_of_all_notes_keeps_none():
    past = Past()
    for position in range(10, 75):
        past.note(position, None, lambda: np.array([3]))
    assert len(past) == 1
    assert past.before(99) == (74, None)


@given(st.lists(st.integers(1, 3), min_size=200, max_size=400), st.integers(0, 150))
def test_positions_that_are_wanted_stay_and_notes_are_few(steps, wanted):
    past, position, notes = Past(), 0, []
    for step in steps:
        notes.append(position)
        past.note(position, None, lambda at=position: np.array([min(wanted, at)]))
        position += step
    assert len(past) < 150
    assert past.ends_at(notes[-1])
    assert past.before(wanted)[0] == max(note for note in notes if note <= wanted)
