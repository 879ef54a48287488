"""A state saved with some numbers of parallel calls goes on with any other, and the elements are the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import PARALLEL, Pipeline, pipelines

import penstock as ps
from penstock.plan.ops import Batch, Interleave, Map, Prefetch
from penstock.testing import assert_same_elements, resumed

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of small integers that overflow

AHEAD = st.sampled_from([1, 2, ps.AUTOTUNE])


def renumbered(node, draw):
    """The plan with other numbers in it: as far as possible the same for neighbours, so that they become one stage."""
    found = node.with_inputs(tuple(renumbered(below, draw) for below in node.inputs))
    if isinstance(found, (Map, Batch, Interleave)):
        return replace(found, num_parallel_calls=draw(PARALLEL))
    if isinstance(found, Prefetch) and found.buffer_size:
        return replace(found, buffer_size=draw(AHEAD))
    return found


def kept(iterator, positions):
    """The state behind so many elements and failures, as a file of text has it."""
    for _ in range(positions):
        try:
            next(iterator)
        except StopIteration:
            break
        except Exception:
            continue
    return json.loads(json.dumps(iterator.state_dict()))


def outcomes(iterator):
    """Elements, and for those that failed the class of the error."""
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)


def assert_goes_on(saved, other, positions, executors):
    """Saved with one plan, continued with another and then with the first again."""
    first, second = executors
    with saved.iterator(epoch=0, executor=first) as elements:
        state = kept(elements, positions)
        wanted = outcomes(elements)
    for continued, back in ((other, saved), (saved, other)):
        with resumed(continued, state, second) as elements:
            assert_same_elements(outcomes(elements), wanted)
        with resumed(continued, state, second) as elements:
            again = kept(elements, len(wanted) // 2)
        with resumed(back, again, first) as elements:
            assert_same_elements(outcomes(elements), wanted[len(wanted) // 2 :])


@given(st.data(), pipelines(), st.integers(0, 12), st.permutations(["thread", "inline"]))
def test_generated_pipelines_go_on_with_other_numbers(data, pipeline: Pipeline, positions, executors):
    saved = pipeline.dataset
    other = ps.Dataset._of(renumbered(saved._plan, data.draw), saved.options())
    assert_goes_on(saved, other, positions, executors)


def failing(k, m):
    def step(x):
        if x % k == m:
            raise LookupError(x)
        return x

    return step


STEPS = st.sampled_from(["map", "map", "failing", "filter", "failing filter", "batch", "unbatch", "prefetch", "take"])


@st.composite
def rows(draw):
    """Steps that become one stage or several, as their numbers say; many of them fail or drop elements."""
    ds, batched, text = ps.Dataset.range(draw(st.integers(0, 60))), False, ""
    for _ in range(draw(st.integers(1, 7))):
        step, k = draw(STEPS), draw(st.integers(2, 5))
        number = draw(st.sampled_from([None, 2, 2, 3, ps.AUTOTUNE]))
        if step in ("map", "failing") and not batched:
            ds = ds.map(failing(k, 1) if step == "failing" else lambda x, k=k: x + k, num_parallel_calls=number)
        elif step == "filter" and not batched:
            ds = ds.filter(lambda x, k=k: x % k != 0)
        elif step == "failing filter" and not batched:
            ds = ds.filter(failing(k, 0))
        elif step == "batch" and not batched:
            ds, batched = ds.batch(k, drop_remainder=draw(st.booleans()), num_parallel_calls=number), True
        elif step == "unbatch" and batched:
            ds, batched = ds.unbatch(), False
        elif step == "prefetch":
            ds = ds.prefetch(k)
        elif step == "take":
            ds = ds.take(11 * k)
        else:
            continue
        text += f".{step}({k}, {number})"
    return Pipeline(ds, "other", text=text)


@settings(max_examples=max(100, settings.default.max_examples))
@given(st.data(), rows(), st.integers(0, 30), st.permutations(["thread", "inline"]))
def test_rows_of_steps_go_on_with_other_numbers(data, pipeline, positions, executors):
    saved = pipeline.dataset
    other = ps.Dataset._of(renumbered(saved._plan, data.draw), saved.options())
    assert_goes_on(saved, other, positions, executors)


NUMBERS = [None, 1, 2, 4, ps.AUTOTUNE]


def uneven(x):
    return np.arange(int(x) % 5 + 1) + x


def drawing(x):
    return x + np.random.default_rng(ps.element_key()).integers(9)


BUILT = {
    "map": lambda n: ps.Dataset.range(20).map(lambda x: x * x, num_parallel_calls=n),
    "map by element": lambda n: ps.Dataset.range(20).map(uneven, num_parallel_calls=n),
    "batch": lambda n: ps.Dataset.range(20).batch(3, num_parallel_calls=n),
    "map and batch": lambda n: ps.Dataset.range(20).map(lambda x: x * 2, n).batch(3, num_parallel_calls=n).prefetch(2),
    "map, filter and map": lambda n: (
        ps.Dataset.range(40).map(lambda x: x + 1, n).filter(lambda x: x % 3 > 0).map(lambda x: x * 2, 2).shuffle(5)
    ),
    "interleave": lambda n: ps.Dataset.range(5).interleave(
        lambda x: ps.Dataset.range(4).map(lambda y: y + x), 3, 2, num_parallel_calls=n
    ),
    "random": lambda n: ps.Dataset.range(20).shuffle(6).map(drawing, n).repeat(2),
    "all shuffled": lambda n: ps.Dataset.range(30).map(lambda x: x * 2, n).shuffle(ps.ALL).batch(4),
}


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("before", NUMBERS)
def test_a_job_that_moves_to_a_machine_with_other_cores_goes_on(name, before):
    for after in NUMBERS:
        assert_goes_on(BUILT[name](before), BUILT[name](after), 4, ("thread", "thread"))


NOW = {"number": 2}


def read(x):
    inner = ps.Dataset.range(9).map(lambda y: y * 10 + x, num_parallel_calls=NOW["number"])
    return inner.filter(lambda y: y % 4 > 0).map(lambda y: y + 1, num_parallel_calls=2).prefetch(1)


def test_the_data_sets_that_a_function_makes_may_have_other_numbers():
    ds = ps.Dataset.range(4).interleave(read, cycle_length=2)
    wanted = [int(x) for x in ds]
    for before in NUMBERS:
        for after in NUMBERS:
            NOW["number"] = before
            with ds.iterator(epoch=0) as elements:
                state = kept(elements, 5)
            NOW["number"] = after
            assert [int(x) for x in resumed(ds, state)] == wanted[5:]


def test_where_the_order_differs_a_state_is_refused():
    def free(n):
        return ps.Dataset.range(20).map(lambda x: x * x, num_parallel_calls=n, deterministic=False)

    state = kept(free(2).iterator(epoch=0), 3)
    with resumed(free(4), state) as elements:
        left = [int(x) for x in elements]
    assert len(left) == 17
    assert len(set(left)) == 17
    with pytest.raises(ps.errors.FailedPreconditionError, match="deterministic=False"):
        resumed(free(None), state)


def test_how_files_are_read_may_differ_but_not_their_order(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(5)))
    files = [str(tmp_path / name) for name in "ab"]
    state = kept(ps.TextLineDataset(files, buffer_size=100).iterator(epoch=0), 3)
    wanted = [b"a3", b"a4", *(b"b%d" % i for i in range(5))]
    assert list(resumed(ps.TextLineDataset(files, buffer_size=7), state)) == wanted
    with pytest.raises(ps.errors.FailedPreconditionError):
        resumed(ps.TextLineDataset(files, num_parallel_reads=2), state)
