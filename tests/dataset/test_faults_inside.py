"""Errors of the engine, put in by hand: a pass raises them and never ends short, whatever stands behind it.

Only a source says where the end is. A mistake inside of a stage, a transform or the way to a worker process must not
be taken for the failure of an element, which a buffer keeps and `ignore_errors` leaves out, nor for the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.errors import InternalError
from penstock.physical import builders as _builders  # noqa: F401 - imports every stage
from penstock.physical.filter_transform import FilterTransform
from penstock.physical.stage import Stage, StretchStage, _failures_only
from penstock.physical.stretch import Fatal
from penstock.physical.transform import BlockTransform, MapTransform
from penstock.runtime.filling import Filling
from penstock.runtime.processes.pool import ProcessPool
from penstock.runtime.transform_runner import task_of
from penstock.runtime.work import BatchWork, BlockWork
from penstock.testing.compare import assert_same_elements

MISTAKES = [IndexError, AssertionError, ValueError, TypeError, KeyError, StopIteration, RuntimeError, ZeroDivisionError]
EXECUTORS = ["inline", "thread", "process"]


def _all(kind: type[Any]) -> Iterator[type[Any]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("penstock."):
            yield below
            yield from _all(below)


def places() -> list[tuple[type[Any], str]]:
    """Every method of the engine on the way of a Block."""
    stages = {(kind, name) for kind in _all(Stage) for name in ("next", "make") if name in vars(kind)}
    stages -= {(StretchStage, "make")}
    works = {(kind, name) for kind in (BlockWork, BatchWork) for name in ("pull", "run")}
    transforms = {(MapTransform, "run"), (FilterTransform, "run")}
    others = {(Filling, "finish_piece"), (ProcessPool, "run")}
    return sorted(stages | works | transforms | others, key=_name)


def _name(place: tuple[type[Any], str]) -> tuple[str, str]:
    return place[0].__qualname__, place[1]


PLACES = places()


Instead = Callable[[type[Any], str], None]


@contextmanager
def watched(chosen: Iterable[tuple[type[Any], str]], instead: Instead) -> Iterator[None]:
    """Calls `instead` in front of these methods, inside of the guard that a stage has around its own."""
    with ExitStack() as stack:
        for owner, name in chosen:
            stack.enter_context(mock.patch.object(owner, name, _preceded(owner, name, instead)))
        yield


def _preceded(owner: type[Any], name: str, instead: Instead) -> Any:
    original = vars(owner)[name]
    inner = getattr(original, "__wrapped__", original)

    def method(this: Any, *args: Any, **more: Any) -> Any:
        instead(owner, name)
        return inner(this, *args, **more)

    return method if inner is original else _failures_only(method)


class Calls:
    """Which methods a pass calls, and how often."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[type[Any], str]] = Counter()

    def __call__(self, owner: type[Any], name: str) -> None:
        self.counts[owner, name] += 1


class Mistake:
    """Raises at some call, once, or from there on."""

    def __init__(self, kind: type[Exception], at: int, *, again: bool) -> None:
        self.kind, self.at, self.again, self.calls, self.raised = kind, at, again, 0, 0

    def __call__(self, owner: type[Any], name: str) -> None:
        self.calls += 1
        if self.calls == self.at or (self.again and self.calls > self.at):
            self.raised += 1
            raise self.kind("a mistake of the engine")


def elements_of(pipeline: Pipeline, executor: str) -> tuple[list[Any], Exception | None]:
    """What a pass gives, and the error that ends it; errors of elements are passed over."""
    found: list[Any] = []
    with pipeline.dataset.iterator(epoch=0, executor=executor) as elements:
        while True:
            try:
                found.append(next(elements))
            except StopIteration:
                return found, None
            except InternalError as error:
                ended = error
                break
            except Exception as error:
                found.append(str(error))
        for _ in range(2):  # and no end behind it
            with pytest.raises(InternalError, match="inside penstock") as again:
                next(elements)
            assert str(again.value) == str(ended)
        return found, ended


@pytest.mark.parametrize("executor", EXECUTORS)
@given(
    pipelines(most_steps=4, deterministic=True),
    st.sampled_from(MISTAKES),
    st.booleans(),
    st.integers(0, 999),
    st.integers(0, 7),
)
def test_a_mistake_of_the_engine_is_raised_and_never_the_end(executor, pipeline, kind, again, which, call):
    calls = Calls()
    with watched(PLACES, calls):
        wanted, nothing = elements_of(pipeline, executor)
    assert nothing is None
    called = sorted(calls.counts, key=_name)
    place = called[which % len(called)]
    mistake = Mistake(kind, 1 + call % calls.counts[place], again=again)
    with watched([place], mistake):
        found, error = elements_of(pipeline, executor)
    if error is None:  # it lay behind all that was wanted
        assert_same_elements(found, wanted)
    else:
        assert mistake.raised
        assert kind.__name__ in str(error)
        assert_same_elements(found, wanted[: len(found)])


class Broken(BlockTransform):
    """Fails by itself, wherever it runs."""

    label, where = "broken", None

    def run(self, block, numbers, allocate=None):
        raise IndexError("a mistake of the engine")


def test_a_transform_that_fails_in_a_worker_process_ends_the_run_and_no_element():
    task = task_of([Broken()], None)
    with pytest.raises(Fatal, match="IndexError: a mistake of the engine") as raised:
        task([Broken()], Block.from_elements([1, 2]), Numbers(0))
    assert type(raised.value.error) is InternalError
    assert any("in a worker process" in note for note in raised.value.error.__notes__)


def slow_batches():
    for number in range(20):
        time.sleep(0.003)
        yield np.full(1000, number)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_batch_beside_no_map_is_filled_wherever_steps_run(executor):
    """It has nothing that a worker process could do. A slow source shows which knobs it was given."""
    batches = ps.Dataset.from_generator(slow_batches).batch(2, num_parallel_calls=2)
    streams = [batches, batches.shuffle(4), batches.ignore_errors(), batches.unbatch().shuffle(10)]
    for stream, count in zip(streams, [10, 10, 10, 20], strict=True):
        assert sum(1 for _ in stream.iterator(executor=executor)) == count
