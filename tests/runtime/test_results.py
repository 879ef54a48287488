"""Results of a segment in the order of tickets, or as they come; the position after them; the fill level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import InvalidArgumentError
from penstock.physical.stage import as_of_now
from penstock.physical.stretch import Stretch, failure
from penstock.runtime.results import ResultCounts, Results
from penstock.runtime.task import Task


def stretch(first, count):
    return Stretch(Block.single(DenseColumn(np.arange(first, first + count, dtype=np.int64))))


def begun(ordered, sizes):
    """Start results with a ticket of each size. The state after ticket n is n + 1."""
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
    assert results.statistics() == ResultCounts(0, 0, 0, 0, sizes[-1] - 1)


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


@pytest.mark.parametrize("ordered", [True, False])
@given(finished, st.integers(1, 12))
def test_small_results_that_are_there_are_taken_together_as_one_behind_the_other(ordered, case, want):
    sizes, order = case
    together, singly = begun(ordered, sizes), begun(ordered, sizes)
    for each in order[: len(order) // 2 + 1]:
        put(together, sizes, each)
        put(singly, sizes, each)
    while (first := together.take()) is not None:
        parts = together.take_more(first, want)
        assert len(parts) == 1 or sum(part.size for part in parts) <= want
        expected = [singly.take() for _ in parts]
        assert [list(part.block.elements()) for part in parts] == [list(part.block.elements()) for part in expected]
        assert together.at_consumer == sum(part.size for part in parts) - 1
        assert as_of_now(together.place(5)) == as_of_now(singly.place(5))
        assert together.statistics()[:4] == singly.statistics()[:4]
    assert not singly.at_hand()


def test_only_what_can_be_joined_for_little_is_taken_together():
    def found(*made, want=10):
        results = begun(True, [1] * len(made))
        for ticket, part in enumerate(made):
            results.put(ticket, part, 0 if part.block is None else part.block.nbytes)
        return len(results.take_more(results.take(), want))

    one, pair, other = stretch(0, 1), stretch(0, 2), Stretch(Block.single(DenseColumn(np.zeros((1, 2)))))
    failed = failure(InvalidArgumentError("no"))
    large = Stretch(Block.single(DenseColumn(np.zeros((1, 3500)))))
    assert (found(one, one, one), found(one, pair, one, want=2), found(one, one, one, want=1)) == (3, 1, 1)
    assert (found(one, one, one, want=2), found(one, pair, pair, want=4)) == (2, 2)
    assert (found(one, one, other, one), found(one, failed, one), found(failed, one)) == (2, 1, 1)
    assert (found(one, Stretch(None), one), found(Stretch(None), one)) == (1, 1)
    assert found(*[large] * 12, want=100) == (1 << 16) // large.block.nbytes


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
    assert results.statistics() == ResultCounts(3, 0, 0, 0, 9)
    put(results, sizes, 0)
    assert results.statistics() == ResultCounts(3, 1, 4, 32, 9)
    assert results.expected(more=0) == 32 + 2 * 32
    assert results.expected(more=1) == 32 + 3 * 32
    results.take()
    assert results.statistics() == ResultCounts(2, 0, 0, 0, 3 + 5)  # the consumer has one of the four
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
