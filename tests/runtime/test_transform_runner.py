"""Functions that worker processes cannot load: the choice of the executor, and the result of the run."""

import sys
import types

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical.transform import MapTransform
from penstock.runtime.autotune.figures import Knobs, TunerLimits
from penstock.runtime.executors import _executors
from penstock.runtime.lane import Lane
from penstock.runtime.memory.budget import Budget
from penstock.runtime.processes.failures import Unworkable
from penstock.runtime.transform_runner import TransformRunner


@pytest.fixture
def plus_one(monkeypatch):
    """A function of a module that only this process has, like a script that was loaded by its path."""
    module = types.ModuleType("only_here")
    exec("def plus_one(x):\n    return x + 1", vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    return module.plus_one


def carried(function, executors, times):
    window = Budget(1 << 20, given=True).window("map")
    lane = Lane("map", "map", Knobs(1, "process"), TunerLimits(), window, executors=lambda: executors)
    runner, transforms = TransformRunner(lane, None), [MapTransform(function, "map(plus_one)", None, vectorise=False)]
    block = Block.single(DenseColumn(np.array([1, 2])))
    return lane, [list(runner(transforms, block, Numbers(0)).block.elements()) for _ in range(times)]


def test_what_autotune_tried_goes_on_in_threads_and_says_why(plus_one):
    lane, found = carried(plus_one, ("thread", "process"), 3)
    assert found == [[2, 3]] * 3
    assert lane.choice.limits.executors == ("thread",)
    assert "No module named 'only_here'" in lane.choice.obstacle


def test_what_the_user_asked_for_ends_the_run(plus_one):
    with pytest.raises(Unworkable):
        carried(plus_one, ("process",), 1)


@pytest.mark.parametrize("parallel", [None, 2])
def test_no_step_goes_over_it_as_if_an_element_had_failed(plus_one, parallel):
    ds = ps.Dataset.range(10).map(plus_one, num_parallel_calls=parallel, executor="process")
    inner = ps.Dataset.range(3).interleave(lambda x: ds, num_parallel_calls=parallel)
    for each in (ds, ds.ignore_errors(), inner.ignore_errors(), ds.batch(2, num_parallel_calls=2).ignore_errors()):
        elements = iter(each)
        for _ in range(3):  # it is not an end either
            with pytest.raises(ps.errors.FailedPreconditionError, match="could not be set up in a worker process"):
                next(elements)


def test_the_executors_of_a_function_are_open_until_it_has_run_on_a_block():
    def function(x):
        return x * 2 + 1

    transform = MapTransform(function, "map", None, vectorise=True)
    assert _executors("auto", (transform,)) == ()
    transform.run(Block.single(DenseColumn(np.arange(4))), Numbers(0))
    assert _executors("auto", (transform,)) == ("thread",)
    assert _executors("auto", (MapTransform(function, "map", None, vectorise=False),)) == ("thread", "process")


def test_without_the_interpreter_lock_only_the_user_chooses_processes(monkeypatch):
    transform = MapTransform(str, "map", None, vectorise=False)
    assert _executors("auto", (transform,)) == ("thread", "process")
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert _executors("auto", (transform,)) == ("thread",)
    assert _executors("process", (transform,)) == ("process",)
    ds = ps.Dataset.range(40).map(lambda x: sum(range(x)), num_parallel_calls=ps.AUTOTUNE)
    with iter(ds) as elements:
        assert [int(next(elements)) for _ in range(40)] == [sum(range(x)) for x in range(40)]
        assert {lane.choice.limits.executors for lane in elements._run.driver.lanes} == {("thread",)}
