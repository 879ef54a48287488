"""Results of a segment: taken in the order of tickets, or as they come; the place behind them; how full it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.physical.stage import as_of_now
from penstock.physical.stretch import Stretch
from penstock.runtime.results import Held, Results
from penstock.runtime.task import Task


def stretch(first, count):
    return Stretch(Block.single(DenseColumn(np.arange(first, first + count, dtype=np.int64))))


def begun(ordered, sizes):
    """Results with a ticket of each size under way; the state behind ticket n is n + 1."""
    results, first = Results(0, ordered=ordered), 0
    for ticket, size in enumerate(sizes):
        results.begin(Task(ticket, None, ticket + 1, (first, size)))
        first += size
    return results


def put(results, sizes, ticket):
    results.finish(sizes[ticket])
    made = stretch(sum(sizes[:ticket]), sizes[ticket])
    results.put(ticket, made, made.block.nbytes)


def taken(results):
    found = []
    while results.at_hand():
        found.append(results.take().block.columns[0].array.tolist())
    assert results.take() is None
    return found


finished = st.lists(st.integers(1, 4), min_size=1, max_size=7).flatmap(
    lambda sizes: st.tuples(st.just(sizes), st.permutations(range(len(sizes))))
)


@given(finished)
def test_in_order_whatever_is_finished_first(case):
    sizes, order = case
    results, found = begun(ordered=True, sizes=sizes), []
    for ticket in order:
        put(results, sizes, ticket)
        found += taken(results)
        assert as_of_now(results.place(10)) == [len(found), [], [], 10 + sum(sizes[: len(found)])]
    assert [element for part in found for element in part] == list(range(sum(sizes)))
    assert results.statistics() == Held(0, 0, 0, 0, sizes[-1] - 1)


@given(finished)
def test_in_free_order_each_once_and_a_state_names_what_was_given_out_of_turn(case):
    sizes, order = case
    results, found = begun(ordered=False, sizes=sizes), []
    for ticket in order:
        put(results, sizes, ticket)
        found += taken(results)
        below, done, _, base = as_of_now(results.place(0))
        left_out = {base + first + i for first, count in done for i in range(count)}
        given = {element for part in found for element in part}
        assert base == sum(sizes[:below])
        assert given == set(range(base)) | left_out
    assert [part[0] for part in found] == [sum(sizes[:ticket]) for ticket in order]


def test_a_view_of_the_order_goes_on_until_it_is_written_down():
    sizes = [1, 2, 3]
    results = begun(ordered=False, sizes=sizes)
    before = results.place(0)
    put(results, sizes, 2)
    put(results, sizes, 0)
    taken(results)
    assert as_of_now(before) == [0, [], [[0, 1], [3, 3]], 0]


def test_what_comes_first_in_a_given_order_waits_for_its_turn():
    sizes = [2, 1]
    results = begun(ordered=False, sizes=sizes)
    results.begin_at(0, replayed=2)
    put(results, sizes, 1)
    assert not results.at_hand()
    assert results.take() is None
    put(results, sizes, 0)
    assert taken(results) == [[0, 1], [2]]


def test_a_ticket_of_several_tasks_is_one_result():
    results = Results("before", ordered=True)
    assert not results.filling
    results.begin(Task(0, None, None, (0, 2)))
    assert results.filling
    results.begin(Task(0, None, "behind", (2, 3)))
    assert (results.filling, results.begun, results.waiting) == (False, 1, 1)
    results.put(0, stretch(0, 5), 40)
    results.take()
    assert as_of_now(results.place(0)) == ["behind", [], [], 5]


def test_how_full_it_is():
    sizes = [4, 2, 3]
    results = begun(ordered=True, sizes=sizes)
    assert results.statistics() == Held(3, 0, 0, 0, 9)
    put(results, sizes, 0)
    assert results.statistics() == Held(3, 1, 4, 32, 9)
    assert results.expected(more=0) == 32 + 2 * 32
    assert results.expected(more=1) == 32 + 3 * 32
    results.take()
    assert results.statistics() == Held(2, 0, 0, 0, 3 + 5)  # the consumer has one of the four
    results.clear()
    assert not results.ready
    assert results.nbytes == 0


def test_results_to_come_are_expected_to_be_as_large_as_those_that_came():
    sizes = [4, 2, 8, 1, 1]
    results = begun(ordered=True, sizes=sizes)
    for ticket in range(4):
        put(results, sizes, ticket)
        assert 8 * min(sizes[: ticket + 1]) <= results.mean <= 8 * max(sizes[: ticket + 1])


@pytest.mark.parametrize("ordered", [True, False])
def test_an_empty_result_passes_by(ordered):
    results = begun(ordered, [3])
    results.finish(3)
    results.put(0, Stretch(None), 0)
    assert results.take().block is None
    assert as_of_now(results.place(0)) == [1, [], [], 3]
