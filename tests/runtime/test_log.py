"""Free order: views of a log describe the state at their creation, however much was dropped later.

`FreeOrder` returns elements in the order of a state, and resumes from any of its own states.
"""

import random

import numpy as np
import pytest

from penstock.block.block import Block
from penstock.errors import Context, as_failure
from penstock.physical.stage import Stage, as_of_now
from penstock.runtime import free_order
from penstock.runtime.free_order import FreeOrder, Log, OutOfTurn


@pytest.mark.parametrize("seed", range(20))
def test_views_remember_what_was_given_out_of_turn_and_what_was_given_since(seed, monkeypatch):
    monkeypatch.setattr(free_order, "_TIDY_AT", 8)
    rng = random.Random(seed)
    sizes = [rng.choice([0, 1, 3]) for _ in range(400)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    ahead, given, log, taken = [], [], Log(), []
    ready, base_of = list(range(400)), 0
    while base_of < 400:
        number = rng.choice(ready[:20])  # the number of concurrent tasks
        ready.remove(number)
        given.append(number)
        ahead.append(number)
        log.add(starts[number], sizes[number])
        while base_of in ahead:
            ahead.remove(base_of)
            base_of += 1
        base = starts[base_of] if base_of < 400 else sum(sizes)
        if rng.random() < 0.5:
            view = log.view(base)
            done = [[starts[n] - base, sizes[n]] for n in sorted(ahead) if sizes[n]]
            taken.append((OutOfTurn(view), view, base, done, len(given)))
        if len(taken) > 3:
            taken.pop(rng.randrange(3))
        for out_of_turn, since, base_then, done, count in taken:
            assert as_of_now([{1: (out_of_turn, 2)}]) == [{1: [done, 2]}]
            assert since.resolved() == [[starts[n] - base_then, sizes[n]] for n in given[count:]]


def test_it_forgets_what_nobody_remembers():
    log = Log()
    for number in range(10_000):
        log.add(number, 1)
        view = log.view(number + 1)
        assert (OutOfTurn(view).resolved(), view.resolved()) == ([], [])
    assert len(log._kept[1]) < 3000
    assert len(log._views) < 3000


class Upstream(Stage):
    """Numbers, some of them failures, in Blocks of one to three."""

    def __init__(self, count, failing):
        super().__init__("upstream")
        self.count, self.failing, self.at = count, failing, 0

    def next(self, want):
        if self.at == self.count:
            return None
        first = self.at
        if first in self.failing:
            self.at += 1
            raise as_failure(ValueError(first), Context())
        while self.at < min(self.count, first + want, first + 1 + first % 3) and self.at not in self.failing:
            self.at += 1
        return Block.from_elements([np.int64(i) for i in range(first, self.at)])

    def state(self):
        return self.at

    def restore(self, state):
        self.at = state


def in_free_order(upstream, state):
    stage = FreeOrder(Upstream(*upstream))
    stage.restore(state)
    return stage


def given(stage, want):
    """Return numbers in their order, including failures, and the states before and after each piece."""
    found, states = [], [(0, as_of_now(stage.state()))]
    while True:
        try:
            block = stage.next(want)
        except ValueError as error:
            found += error.args
        else:
            if block is None:
                assert stage.next(want) is None
                return found, states
            numbers = [int(x) for x in block.elements()]
            assert 0 < len(numbers) <= want
            told = stage.given if isinstance(stage.given, np.ndarray) else stage.given + np.arange(block.size)
            assert told.tolist() == numbers
            found += numbers
        states.append((len(found), as_of_now(stage.state())))


def some_ranges(chance, stop, most):
    """Return ranges that do not overlap, in any order."""
    borders = sorted(chance.sample(range(stop + 1), min(2 * chance.randint(0, most), stop // 2 * 2)))
    ranges = [(start, end - start) for start, end in zip(borders[::2], borders[1::2], strict=True)]
    chance.shuffle(ranges)
    return ranges


def numbers_in(ranges):
    return [number for start, count in ranges for number in range(start, start + count)]


@pytest.mark.parametrize("seed", range(40))
def test_what_a_state_says_comes_first_and_what_it_leaves_out_does_not_come(seed):
    chance = random.Random(seed)
    count, begin = chance.randint(1, 25), chance.randint(0, 4)
    upstream = begin + count, {number for number in range(begin + count) if chance.random() < 0.2}
    ranges = some_ranges(chance, count, 4)
    cut = chance.randint(0, len(ranges))
    excluded, first = sorted(ranges[:cut]), ranges[cut:]
    state = [begin, excluded, first, begin]
    rest = sorted({*range(count)} - {*numbers_in(ranges)})
    wanted = [begin + number for number in [*numbers_in(first), *rest]]
    assert in_free_order(upstream, state).pinned() == len(numbers_in(first))
    for want in (1, 2, 50):
        found, states = given(in_free_order(upstream, state), want)
        assert found == wanted
        for place, behind in states:
            assert given(in_free_order(upstream, behind), 2)[0] == wanted[place:]
    spans = some_ranges(chance, len(wanted), 3)  # some elements came out of turn, and some have to be first
    cut = chance.randint(0, len(spans))
    done, before = spans[:cut], spans[cut:]
    left = [number for place, number in enumerate(wanted) if place not in numbers_in(spans)]  # in their order
    again = FreeOrder.merged(state, done, before)
    assert given(in_free_order(upstream, again), 2)[0] == [*(wanted[place] for place in numbers_in(before)), *left]


def test_without_a_state_elements_come_in_their_order_from_the_first_on():
    assert given(FreeOrder(Upstream(7, {3})), 2)[0] == list(range(7))


def test_ranges_behind_the_end_are_left_out():
    upstream = 5, set()
    assert given(in_free_order(upstream, [0, [(3, 9)], [(1, 1), (7, 2)], 0]), 2)[0] == [1, 0, 2]
    assert given(in_free_order((0, set()), [0, [], [(0, 2)], 0]), 2)[0] == []
