"""Time limits in threads: a hanging element fails in its place, all others are exact, nothing waits for it."""

import gc
import threading

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.block.origin import Origin
from penstock.errors import DeadlineExceededError
from penstock.physical.filter_transform import FilterTransform
from penstock.physical.transform import MapTransform, run_all
from penstock.runtime.transform_runner import TimedRunner

SECONDS = 30
SHORT = 0.05  # seconds: hanging functions never end, and others take no time


def mapped(function):
    return MapTransform(function, "map(function)", "script.py:1", vectorise=False)


def numbers(start, stop):
    origin = Origin.of_file("data.bin", np.arange(start, stop) * 10)
    return Block.single(DenseColumn(np.arange(start, stop)), origin)


def places(stretch):
    found = []
    for piece in stretch.pieces():
        found.extend([piece] if isinstance(piece, Exception) else [int(x) for x in piece.elements()])
    return found


@pytest.fixture(autouse=True)
def _no_helpers_before_or_after():
    assert_no_helper_stays()
    yield
    assert_no_helper_stays()


@pytest.fixture
def never(_no_helpers_before_or_after):
    event = threading.Event()
    yield event
    event.set()


def helpers():
    return [thread for thread in threading.enumerate() if thread.name == "penstock-watched"]


def assert_no_helper_stays():
    gc.collect()  # failures reference the frames of their tracebacks
    for thread in helpers():
        thread.join(SECONDS)
    assert helpers() == []


def test_in_time_it_is_what_the_transforms_give():
    def odd(x):
        if x == 3:
            raise ValueError("three")
        return x * 2

    transforms = [mapped(odd), FilterTransform(lambda x: x != 8, "filter", None, vectorise=False)]
    run = TimedRunner(run_all, SECONDS)
    made, wanted = run(transforms, numbers(0, 6), Numbers(0)), run_all(transforms, numbers(0, 6), Numbers(0))
    assert places(made)[:3] == places(wanted)[:3] == [0, 2, 4]
    assert [str(error) for _, error in made.failures] == [str(error) for _, error in wanted.failures]
    assert places(made)[4:] == places(wanted)[4:] == [10]
    assert run.run_seconds > 0


def test_the_element_that_hangs_fails_alone(never):
    def hangs(x):
        if x in {12, 15}:
            never.wait()
        return x

    made = TimedRunner(run_all, SHORT)([mapped(hangs)], numbers(10, 17), Numbers(10))
    found = places(made)
    errors = [error for _, error in made.failures]
    assert [x for x in found if isinstance(x, int)] == [10, 11, 13, 14, 16]
    assert [place for place, _ in made.failures] == [2, 5]
    assert all(type(error) is DeadlineExceededError and isinstance(error, TimeoutError) for error in errors)
    assert (
        str(errors[0])
        == """\
map(function) did not finish with one element within element_timeout=0.05 seconds.
  in stage map(function), defined at script.py:1
  element 12
  in file data.bin at byte 120
  The function waits for something that does not come, or is slow here: give what it waits for a limit of its own, or \
raise Options.element_timeout."""
    )


def test_a_lone_element_that_hangs_is_tried_once(never):
    calls = []

    def hangs(x):
        calls.append(int(x))
        never.wait()

    made = TimedRunner(run_all, SHORT)([mapped(hangs)], numbers(3, 4), Numbers(None))
    assert calls == [3]
    assert type(made.error) is DeadlineExceededError
    assert made.error.context.element is None


def test_an_abandoned_thread_ends_when_its_function_does(never):
    entered = threading.Event()

    def hangs(x):
        entered.set()
        never.wait()
        return x

    run = TimedRunner(run_all, SHORT)
    run([mapped(hangs)], numbers(0, 1), Numbers(0))
    assert entered.wait(SECONDS)
    assert helpers()
    never.set()
    assert_no_helper_stays()


def test_threads_are_used_again_and_end_with_their_owner():
    seen = set()

    def marks(x):
        seen.add(threading.get_ident())
        return x

    run = TimedRunner(run_all, SECONDS)
    for _ in range(20):
        run([mapped(marks)], numbers(0, 2), Numbers(0))
    assert len(seen) == 1
    assert len(helpers()) == 1
    del run
    assert_no_helper_stays()


def test_several_callers_at_once():
    run = TimedRunner(run_all, SECONDS)
    together = threading.Barrier(4, timeout=SECONDS)
    results = {}

    def meets(x):
        together.wait()
        return x

    def call(k):
        results[k] = places(run([mapped(meets)], numbers(k, k + 1), k))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert results == {k: [k] for k in range(4)}


def test_what_is_no_failure_of_an_element_reaches_the_caller():
    def leaves(x):
        raise SystemExit(4)

    with pytest.raises(SystemExit):
        TimedRunner(run_all, SECONDS)([mapped(leaves)], numbers(0, 2), Numbers(0))


def test_the_callers_context_is_seen():
    def divides(x):
        return np.float64(1) / np.float64(x)

    with np.errstate(divide="raise"):
        made = TimedRunner(run_all, SECONDS)([mapped(divides)], numbers(0, 1), Numbers(0))
    assert isinstance(made.error, FloatingPointError)


def test_memory_offered_is_not_written_to():
    """An abandoned thread would otherwise write to it after it has another result."""

    def offered(leaf):
        raise AssertionError("offered")

    made = TimedRunner(run_all, SECONDS)(
        [MapTransform(lambda x: x + 1, "map", None, vectorise=True)], numbers(0, 3), Numbers(0), offered
    )
    assert places(made) == [1, 2, 3]


def test_a_pass_inside_a_function_has_workers():
    """All workers of the pool wait for watched functions, each of which waits for an iteration that needs workers."""
    inner = ps.Dataset.range(4).map(lambda x: x if x % 2 else x + 1, 2)
    run = TimedRunner(run_all, SECONDS)

    def total(x):
        return x + sum(int(y) for y in inner)

    def outer(x):
        (found,) = places(run([mapped(total)], numbers(x, x + 1), 0))
        return found if x >= 0 else -1

    assert [int(x) for x in ps.Dataset.range(12).map(outer, 4)] == [x + 8 for x in range(12)]
