"""What is found of one inner data set serves for those like it, and nobody can tell."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.physical import inner_plans
from penstock.physical.inner_plans import InnerPlans
from penstock.rewrite.driver import optimise_inner

FACTOR = 3


def triple(x: Any) -> Any:
    return x * FACTOR


def shared(x: Any) -> Any:
    return ps.Dataset.range(6).map(triple).map(lambda y: y + 1).batch(4)


def closing(x: Any) -> Any:
    return ps.Dataset.range(6).map(lambda y: y * 2 + x).filter(lambda y: y % 3 != x % 2)


def counted(x: Any) -> Any:
    return ps.Dataset.range(int(x) % 4).map(triple).take(int(x) % 3).repeat(2)


def branching(x: Any) -> Any:
    if x % 2:
        return ps.Dataset.range(5).map(lambda y: y + 1)
    return ps.Dataset.range(5).map(lambda y: np.float64(y))


def random(x: Any) -> Any:
    return ps.Dataset.range(4).map(lambda y: y + np.random.default_rng(ps.element_key()).integers(1000))


def default(x: Any) -> Any:
    return ps.Dataset.range(4).map(lambda y, by=int(x): y * by)


def failing(x: Any) -> Any:
    return ps.Dataset.range(5).map(lambda y: 6 // int(y - x % 5))


def lists(x: Any) -> Any:
    return ps.Dataset.from_tensor_slices(np.arange(int(x) + 1) * x).map(lambda y: (y, y + 1)).shard(2, 0)


def shuffled(x: Any) -> Any:
    return ps.Dataset.range(5).map(triple).shuffle(3).enumerate()


def twice(x: Any) -> Any:
    first = lambda y: y + 1  # noqa: E731
    second = first if x % 2 else (lambda y: y + 1)
    return ps.Dataset.range(3).map(first).filter(lambda y: y > 0).map(second)


def bare(x: Any) -> Any:
    """In memory, and some of them empty."""
    return ps.Dataset.range(int(x) % 4)


def mixed(x: Any) -> Any:
    if x % 5 == 3:
        message = "no data set"
        raise ValueError(message)
    return ps.Dataset.from_tensor_slices((np.arange(x % 3 + 1), np.full((x % 3 + 1, 2), x, np.float32)))


def pieces(ds: Any, state: Any = None, most: int = 400) -> tuple[list[Any], list[Any]]:
    """Elements and failures, and the states in front of each."""
    found: list[Any] = []
    states: list[Any] = []
    with ds.iterator(executor="inline", epoch=0) as iterator:
        if state is not None:
            iterator.load_state_dict(state)
        while len(found) < most:
            states.append(iterator.state_dict())
            try:
                element = next(iterator, None)
            except Exception as error:  # what the functions above raise
                found.append((str(error), getattr(error, "__notes__", None)))
                continue
            if element is None:
                break
            found.append([(leaf.dtype, leaf.tolist()) for leaf in _leaves(element)])
    return found, states


def _leaves(element: Any) -> list[Any]:
    parts = element if isinstance(element, tuple) else (element,)
    return [np.asarray(leaf) for part in parts for leaf in (part if isinstance(part, tuple) else (part,))]


FUNCTIONS = [shared, closing, counted, branching, random, default, failing, lists, shuffled, twice, bare, mixed]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_elements_and_errors_are_those_of_plans_found_one_by_one_and_states_go_on_in_both(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for ds in (
        ps.Dataset.range(7).flat_map(function),
        ps.Dataset.range(7).interleave(function, cycle_length=3, block_length=2),
    ):
        monkeypatch.undo()
        alike, states = pieces(ds)
        monkeypatch.setattr(inner_plans, "_TRIES", 0)
        apart, others = pieces(ds)
        assert alike == apart
        for at in range(0, len(alike), 7):
            assert pieces(ds, states[at], 2)[0] == apart[at : at + 2]
        monkeypatch.undo()
        for at in range(3, len(alike), 7):
            assert pieces(ds, others[at], 2)[0] == alike[at : at + 2]


def test_a_variable_that_is_changed_meanwhile_is_that_of_its_own_input() -> None:
    """Closures of one code over cells of their own, which are written to behind the call of `map`."""

    def opened(x: Any) -> Any:
        by = 1
        ds = ps.Dataset.range(2).map(lambda y: y + by)
        by = int(x) * 10
        return ds

    assert [int(y) for y in ps.Dataset.range(3).flat_map(opened)] == [0, 1, 10, 11, 20, 21]


def test_a_cell_that_all_share_is_read_when_the_elements_are_made() -> None:
    seen: list[int] = []
    step = itertools.count()

    def opened(x: Any) -> Any:
        seen.append(int(x))
        nonlocal by
        by = next(step)
        return ps.Dataset.range(1).map(lambda y: y + by)

    by = -1
    assert [int(y) for y in ps.Dataset.range(4).flat_map(opened)] == [0, 1, 2, 3]
    assert seen == [0, 1, 2, 3]


def rewrite(plans: InnerPlans, plan: Any) -> None:
    plans.rewritten(plan, plans.key(plan))


def rewritings(function: Callable[..., Any], inputs: int) -> int:
    """How many of so many inner plans are rewritten."""
    count = 0

    def optimise(plan: Any) -> Any:
        nonlocal count
        count += 1
        return optimise_inner(plan, ps.Options())

    plans = InnerPlans(optimise, ps.Options())
    for number in range(inputs):
        rewrite(plans, function(np.int64(number))._plan)
    return count


@pytest.mark.parametrize("function", [shared, closing, default, shuffled])
def test_plans_that_are_alike_are_rewritten_once(function: Callable[..., Any]) -> None:
    wanted = {shuffled: 20}.get(function, 1)  # how many elements there are, a shuffle asks
    assert rewritings(function, 20) == wanted


def test_files_are_alike_whatever_their_names(tmp_path: Path) -> None:
    for number in range(5):
        with ps.io.TFRecordWriter(str(tmp_path / f"{number}")) as writer:
            for record in range(3):
                writer.write(f"{number}-{record}".encode())

    def opened(x: Any) -> Any:
        return ps.TFRecordDataset(str(tmp_path / str(x))).shuffle(2, seed=1).map(lambda r: r).take(2)

    assert rewritings(opened, 5) == 1
    found = list(ps.Dataset.range(5).interleave(opened, cycle_length=2))
    assert sorted({record[:1] for record in found}) == [b"0", b"1", b"2", b"3", b"4"]


def test_plans_of_which_none_is_like_another_are_left_alone() -> None:
    """None of them is kept, and no further one looked at."""

    def opened(x: Any) -> Any:
        return ps.Dataset.range(3).take(1000 + int(x)).map(triple)

    plans = InnerPlans(lambda plan: plan, ps.Options())
    for number in range(200):
        rewrite(plans, opened(np.int64(number))._plan)
    assert not plans._forms
    assert not plans._tries


def test_large_sources_are_not_kept() -> None:
    """A form would keep the arrays of the first plan that was like it for the rest of the pass."""
    alive = []

    def inner(x: Any) -> Any:
        array = np.full((1 << 18, 2), float(x))
        alive.append(weakref.ref(array))
        first = array[:1].copy()
        return ps.Dataset.from_tensor_slices(array).map(lambda row: row - first).take(2)

    with iter(ps.Dataset.range(12).flat_map(inner)) as elements:
        found = [element.tolist() for element in elements]
        gc.collect()
        assert sum(ref() is not None for ref in alive) <= 1
    assert found == [[[0.0, 0.0]]] * 24
