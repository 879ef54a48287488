"""What explain() says, word for word."""

import re

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.runtime.machine import granted as machine


def scaled(x):
    return x * 2 + 1


def branching(x):
    return x if x % 2 else -x


def even(x):
    return x % 2 == 0


def pictures(x):
    return np.zeros((4, 4)), x


PIPELINES = {
    "source": lambda: ps.Dataset.range(3),
    "one_element": lambda: ps.Dataset.from_tensors(1).map(scaled),
    "traced": lambda: ps.Dataset.range(100).map(scaled).filter(even).shuffle(10).batch(4),
    "parallel": lambda: ps.Dataset.range(100).map(branching, 4).map(pictures, 4).batch(8).prefetch(2),
    "autotune": lambda: ps.Dataset.range(100).map(branching, ps.AUTOTUNE).prefetch(ps.AUTOTUNE),
    "no_ops": lambda: ps.Dataset.range(100).skip(0).take(-1).repeat(1).prefetch(0).shard(1, 0),
    "shuffle_moved": lambda: ps.Dataset.range(100).map(scaled, 4).shuffle(10).batch(4),
    "interleave": lambda: ps.Dataset.range(5).interleave(ps.Dataset.range, 2, num_parallel_calls=2).repeat(),
    "branches": lambda: ps.Dataset.zip(ps.Dataset.range(3).cache(), ps.Dataset.range(4).concatenate(two())),
    "switched_off": lambda: ps.Dataset.range(9).map(scaled).map(branching).with_options(switched_off()),
}


def two():
    return ps.Dataset.range(2)


def switched_off():
    options = ps.Options()
    options.experimental_optimization.map_vectorization = False
    options.experimental_optimization.map_fusion = False
    return options


@pytest.mark.parametrize("name", PIPELINES)
def test_explain(name, monkeypatch):
    monkeypatch.setattr("penstock.profiler.explanation.granted_cpus", lambda: 6)
    assert machine.granted_cpus() >= 1
    assert_golden(f"explain_{name}", PIPELINES[name]().explain())


def test_reprs():
    assert repr(ps.Dataset.range(3)) == "<Dataset range(0, 3, 1): TensorSpec(shape=(), dtype=int64), 3 elements>"
    unknown = ps.Dataset.range(3).map(lambda x: x + int(x)).filter(even).repeat()
    assert repr(unknown) == "<Dataset repeat(): decided by its functions, infinite elements>"


class Adding:
    """A callable object."""

    def __call__(self, x):
        return x + 1


def test_behind_what_nobody_knows_beforehand_it_says_what_was_decided_in_a_pass():
    def written(x):
        n = int(f"{x[0]:.0f}")
        return x * 2 + n

    elements = ps.Dataset.from_generator(lambda: iter([np.arange(4.0)] * 20))
    dataset = elements.map(written).map(lambda x: x + 1).map(Adding())

    def told():
        return re.findall(r"map\(.*?\) runs (.*)", str(dataset.explain()))

    later = "by Block if it can be traced: decided at the first element"
    assert told() == [later] * 3
    assert len(list(dataset)) == 20
    of_line, of_lambda, of_object = told()
    assert re.search(r"line \d+, f'\{x\[0\]:\.0f\}': it converts a value to text", of_line)
    assert (of_lambda, of_object) == ("by Block: add", "by Block: add")
