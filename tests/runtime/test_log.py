"""Log: what views of it say later is what was so when they were taken, however much was dropped meanwhile."""

import random

import pytest

from penstock.physical.stage import as_of_now
from penstock.runtime import free_order
from penstock.runtime.free_order import Log, OutOfTurn


@pytest.mark.parametrize("seed", range(20))
def test_views_remember_what_was_given_out_of_turn_and_what_was_given_since(seed, monkeypatch):
    monkeypatch.setattr(free_order, "_TIDY_AT", 8)
    rng = random.Random(seed)
    sizes = [rng.choice([0, 1, 3]) for _ in range(400)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    ahead, given, log, taken = [], [], Log(), []
    ready, base_of = list(range(400)), 0
    while base_of < 400:
        number = rng.choice(ready[:20])  # so many at work at once
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
