"""state_dict and load_state_dict: their content, their refusals, and the place of the resume."""

import json
import subprocess
import sys

import numpy as np
import pytest

import penstock as ps
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from penstock.testing import resumed


def test_another_iterator_goes_on_behind_the_last_element():
    ds = ps.Dataset.range(10).shuffle(4).batch(3)
    it, it2 = iter(ds), iter(ds)
    next(it)
    it2.load_state_dict(it.state_dict())
    assert [b.tolist() for b in it2] == [b.tolist() for b in it]


def test_the_same_iterator_can_go_back():
    it = iter(ps.Dataset.range(5).map(lambda x: x * 2, 2).prefetch(2))
    state = it.state_dict()
    first = [int(x) for x in it]
    it.load_state_dict(state)
    assert [int(x) for x in it] == first == [0, 2, 4, 6, 8]


def test_a_state_before_the_first_draw_carries_the_epoch_and_the_next_pass_follows_it():
    def shuffled():
        return ps.Dataset.range(20).shuffle(20)

    ds = shuffled()
    orders = [[int(x) for x in ds] for _ in range(3)]
    ds = shuffled()
    list(ds)
    state = iter(ds).state_dict()  # of epoch 1, before the first random number
    again = shuffled()
    it = iter(again)
    it.load_state_dict(json.loads(json.dumps(state)))
    assert [int(x) for x in it] == orders[1]
    assert [int(x) for x in again] == orders[2]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda r: r.shuffle(5).batch(2), "step 2 from the source was shuffle(4) and is shuffle(5)"),
        (lambda r: r.shuffle(4, seed=1).batch(2), "step 2 from the source, shuffle(4), has another function"),
        (lambda r: r.shuffle(4), "it had 3 steps, of which batch(2) is missing here"),
        (lambda r: r.shuffle(4).batch(2).repeat(2), "it had 3 steps, and repeat(2) has been added"),
        (lambda r: r.shuffle(4).batch(2).with_options(ps.Options(seed=3)), "the options differ"),
    ],
)
def test_the_state_of_another_plan_is_refused_and_the_difference_shown(other, said):
    state = iter(ps.Dataset.range(9).shuffle(4).batch(2)).state_dict()
    with pytest.raises(FailedPreconditionError) as caught:
        iter(other(ps.Dataset.range(9))).load_state_dict(state)
    assert said in str(caught.value)


def test_a_state_of_another_format_is_refused_with_its_version():
    it = iter(ps.Dataset.range(3))
    with pytest.raises(FailedPreconditionError, match="format 99"):
        it.load_state_dict({**it.state_dict(), "version": 99})
    with pytest.raises(InvalidArgumentError):
        it.load_state_dict({"version": 1})
    assert [int(x) for x in it] == [0, 1, 2]


@pytest.mark.system
def test_a_state_goes_on_in_a_fresh_process_on_another_executor():
    program = """
import json, sys
import penstock as ps

def double(x):
    return x * 2 if x % 3 else x

ds = ps.Dataset.range(40).map(double, num_parallel_calls=3).shuffle(7).batch(3).prefetch(2)
it = ds.iterator(executor=sys.argv[1])
if sys.argv[2] != "-":
    it.load_state_dict(json.loads(sys.argv[2]))
for _ in range(4):
    print(next(it).tolist(), file=sys.stderr)
print(json.dumps(it.state_dict()))
"""

    def run(executor, state):
        done = subprocess.run(
            [sys.executable, "-c", program, executor, state], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stderr.splitlines(), done.stdout

    first, state = run("thread", "-")
    second, _ = run("inline", state)
    third, _ = run("process", state)
    with ps.Dataset.range(40).map(lambda x: x * 2 if x % 3 else x).shuffle(7).batch(3).iterator(epoch=0) as elements:
        wanted = [str(b.tolist()) for b in elements][:8]
    assert [*first, *second] == wanted
    assert second == third


STATE = 1 << 14


def carrying():
    return ps.Dataset.range(9).scan(np.zeros(STATE), lambda state, x: (state + x, state[0] + x))


def test_what_a_function_carries_goes_to_a_side_file(tmp_path):
    it = iter(carrying())
    next(it), next(it), next(it)
    inline = len(json.dumps(it.state_dict()))
    state = it.state_dict(side_file=tmp_path / "side")
    assert len(json.dumps(state)) < 4096 < STATE < inline
    rest = [float(x) for x in it]
    assert [float(x) for x in resumed(carrying(), json.loads(json.dumps(state)))] == rest


def test_a_side_file_that_is_gone_or_another_one_is_an_error(tmp_path):
    it = iter(carrying())
    next(it)
    state = it.state_dict(side_file=tmp_path / "side")
    for _ in range(6):
        next(it)
    it.state_dict(side_file=tmp_path / "side")
    with pytest.raises(DataLossError, match="side"):
        resumed(carrying(), state)
    (tmp_path / "side").unlink()
    with pytest.raises(NotFoundError, match="missing"):
        resumed(carrying(), state)


@pytest.mark.slow
def test_the_counts_of_many_open_groups_go_to_a_side_file(tmp_path):
    def grouped():
        ds = ps.Dataset.range(34_000).map(lambda x: (x * 7919) % 8_009)
        return ds.group_by_window(lambda x: x, lambda key, window: window.batch(8), window_size=4)

    it = iter(grouped())
    for _ in range(2_000):
        next(it)
    assert len(json.dumps(it.state_dict())) > 1 << 16
    state = it.state_dict(side_file=tmp_path / "side")
    assert len(json.dumps(state)) < 4096
    rest = [b.tolist() for b in it]
    assert [b.tolist() for b in resumed(grouped(), json.loads(json.dumps(state)))] == rest
