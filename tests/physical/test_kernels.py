"""The shuffle's loops: the plain form is what a list does, the compiled one is equal to it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock import permutation
from penstock.physical.kernels import reference, run

PICKS = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), max_size=60)))


@given(PICKS)
def test_reservoir_exchanges_like_a_list(case):
    capacity, picks = case
    buffer = [f"slot {i}" for i in range(capacity)]
    given_out = []
    for number, pick in enumerate(picks):
        given_out.append(buffer[pick])
        buffer[pick] = f"input {number}"
    source, slots, rows = reference.reservoir(np.array(picks, np.int64), capacity)
    named = [f"slot {i}" if i < capacity else f"input {i - capacity}" for i in source.tolist()]
    assert named == given_out
    after = [f"slot {i}" for i in range(capacity)]
    for slot, row in zip(slots.tolist(), rows.tolist(), strict=True):
        after[slot] = f"input {row}"
    assert after == buffer


@given(PICKS)
def test_the_compiled_reservoir_is_equal(case):
    capacity, picks = case
    picks = np.array(picks, np.int64)
    plain, fast = reference.reservoir(picks, capacity), run.reservoir(picks, capacity)
    assert plain[0].tolist() == fast[0].tolist()
    assert dict(zip(plain[1].tolist(), plain[2].tolist(), strict=True)) == dict(
        zip(fast[1].tolist(), fast[2].tolist(), strict=True)
    )


@given(st.integers(0, 40).flatmap(lambda n: st.tuples(*[st.integers(0, n - 1 - i) for i in range(n)])))
def test_drain_empties_every_slot_once(picks):
    picks = np.array(picks, np.int64)
    left, wanted = list(range(len(picks))), []
    for pick in picks:
        wanted.append(left[pick])
        left[pick] = left[-1]
        left.pop()
    plain = np.empty_like(picks)
    permutation._drain(picks, plain)
    assert plain.tolist() == wanted
    assert permutation.drain(picks).tolist() == wanted
    assert sorted(wanted) == list(range(len(picks)))
