"""The digest of a plan: equal in every process, different as soon as the plan does anything else."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.plan import fingerprint as digests
from penstock.plan.fingerprint import fingerprint
from penstock.rewrite.driver import optimise
from penstock.testing import resumed

SCRIPT = """
import numpy as np
import penstock as ps
from penstock.plan.fingerprint import fingerprint

def function(x, by=2):
    names = {"a", "b", "c", "d"}
    return (x * by, "text", sorted(names)) if x in {1, 2, 3} else x

def closing(c):
    return lambda x: x + c["weight"]

ds = (ps.Dataset.from_tensor_slices({"x": np.arange(4), "y": np.arange(4.0)})
      .map(function, 4).filter(closing({"weight": 3})).shuffle(10).batch(2).cache().repeat(3))
print(fingerprint(ds._plan))
"""


def test_it_is_the_same_in_every_process():
    source = Path(ps.__file__).parents[1]
    digests = set()
    for seed in ("0", "1", "random"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True, text=True, check=True, timeout=60,
            env={"PYTHONPATH": str(source), "PYTHONHASHSEED": seed, "PATH": ""},
        )  # fmt: skip
        digests.add(done.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 32


def adding(c):
    return lambda x: x + c


def default(c):
    def function(x, by=c):
        return x + by

    return function


def keyword(c):
    def function(x, *, by=c):
        return x + by

    return function


BASE = ps.Dataset.range(10)

PLANS = {
    "range": lambda: BASE,
    "other range": lambda: ps.Dataset.range(11),
    "other type": lambda: ps.Dataset.range(10, output_type=np.int32),
    "map +1": lambda: BASE.map(lambda x: x + 1),
    "map +2": lambda: BASE.map(lambda x: x + 2),
    "map -1": lambda: BASE.map(lambda x: x - 1),
    "closure 1": lambda: BASE.map(adding(1)),
    "closure 2": lambda: BASE.map(adding(2)),
    "closure 2.0": lambda: BASE.map(adding(2.0)),
    "closure array": lambda: BASE.map(adding(np.zeros(3))),
    "closure longer array": lambda: BASE.map(adding(np.zeros(4))),
    "closure list": lambda: BASE.map(adding([1, 2])),
    "closure tuple": lambda: BASE.map(adding((1, 2))),
    "closure dict": lambda: BASE.map(adding({"a": 1})),
    "default 1": lambda: BASE.map(default(1)),
    "default 2": lambda: BASE.map(default(2)),
    "keyword 1": lambda: BASE.map(keyword(1)),
    "keyword 2": lambda: BASE.map(keyword(2)),
    "inner 1": lambda: BASE.map(lambda x: (lambda y: y + 1)(x)),
    "inner 2": lambda: BASE.map(lambda x: (lambda y: y + 2)(x)),
    "other name": lambda: BASE.map(lambda x: np.abs(x)),
    "another name": lambda: BASE.map(lambda x: np.sign(x)),
    "filter": lambda: BASE.filter(lambda x: x + 1),
    "batch 2": lambda: BASE.batch(2),
    "batch 3": lambda: BASE.batch(3),
    "batch 2 dropped": lambda: BASE.batch(2, True),
    "take": lambda: BASE.take(2),
    "skip": lambda: BASE.skip(2),
    "shuffle": lambda: BASE.shuffle(2),
    "shuffle seed": lambda: BASE.shuffle(2, seed=1),
    "shuffle once": lambda: BASE.shuffle(2, reshuffle_each_iteration=False),
    "zip": lambda: ps.Dataset.zip(BASE, BASE),
    "zip dict": lambda: ps.Dataset.zip({"a": BASE, "b": BASE}),
    "zip other names": lambda: ps.Dataset.zip({"a": BASE, "c": BASE}),
    "concatenate": lambda: BASE.concatenate(BASE),
    "order": lambda: BASE.take(2).skip(2),
    "other order": lambda: BASE.skip(2).take(2),
}


def test_plans_that_differ_have_digests_that_differ():
    digests = {name: fingerprint(build()._plan) for name, build in PLANS.items()}
    by_digest = {}
    for name, digest in digests.items():
        by_digest.setdefault(digest, []).append(name)
    assert [names for names in by_digest.values() if len(names) > 1] == []


@pytest.mark.parametrize("name", PLANS)
def test_the_same_calls_give_the_same_digest(name):
    assert fingerprint(PLANS[name]()._plan) == fingerprint(PLANS[name]()._plan)


def test_a_pass_that_filled_a_cache_changes_nothing():
    ds = BASE.cache()
    before = fingerprint(ds._plan)
    list(ds)
    assert fingerprint(ds._plan) == before


def test_a_function_that_holds_itself_has_one():
    def function(x):
        return function if x is None else x

    assert len(fingerprint(BASE.map(function)._plan)) == 32


def test_functions_and_containers_that_hold_each_other_have_one():
    def ping(x):
        return pong(x) if x > 3 else x

    def pong(x):
        return ping(x - 1) + len(shelf)

    shelf = {"ping": ping}
    shelf["shelf"] = shelf
    assert len(fingerprint(BASE.map(ping)._plan)) == 32


def scaled(x, factor):
    return x * factor


class Adds:
    def __call__(self, x):
        return x + 1


class Subtracts:
    def __call__(self, x):
        return x - 1


def test_partial_functions_methods_and_callable_objects_count_by_what_they_do():
    functions = [
        functools.partial(scaled, factor=1),
        functools.partial(scaled, factor=2),
        Adds(),
        Subtracts().__call__,
    ]
    digests = [fingerprint(ps.Dataset.range(3).map(function)._plan) for function in functions]
    assert len(set(digests)) == len(functions)
    assert digests[1] == fingerprint(ps.Dataset.range(3).map(functools.partial(scaled, factor=2))._plan)


def test_a_function_that_changes_what_it_closes_over_keeps_its_states():
    def build():
        seen = []
        return ps.Dataset.range(6).map(lambda x: seen.append(x) or x)

    with build().iterator() as elements:
        next(elements)
        state = elements.state_dict()
    assert [int(x) for x in resumed(build(), state)] == [1, 2, 3, 4, 5]


def test_a_long_list_in_a_closure_is_digested_in_part():
    numbers = list(range(5000))
    first = fingerprint(ps.Dataset.range(3).map(lambda x: numbers[x])._plan)
    numbers.append(1)
    plans = [ps.Dataset.range(3).map(lambda x: numbers[x])._plan for _ in range(2)]
    assert fingerprint(plans[0]) != first


@pytest.mark.parametrize(("parallel", "batched"), [(None, False), (2, False), (2, True)])
def test_a_function_is_digested_once_however_steps_are_fused(monkeypatch, parallel, batched):
    """Fused steps once had inputs of their own: with all of them digested, each step doubled the time."""
    digested, add = [], digests._add_function

    def counted(digest, function):
        digested.append(function)
        add(digest, function)

    monkeypatch.setattr(digests, "_add_function", counted)
    ds = ps.Dataset.range(64)
    for at in range(6):
        ds = ds.map(adding(at), num_parallel_calls=parallel)
        ds = ds.batch(1) if batched else ds
    fingerprint(optimise(ds._plan, ps.Options()))
    assert len(digested) == 6
