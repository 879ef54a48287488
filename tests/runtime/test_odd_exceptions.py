"""What users' functions raise that no library expects: the same comes of it on every executor."""

import dataclasses
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock import errors

EXECUTORS = ["inline", "thread", "process"]


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class Unattributed(ValueError):
    def __setattr__(self, name, value):
        raise TypeError("cannot be changed")

    def __getattribute__(self, name):
        if name.startswith("_penstock"):
            raise OSError("nothing to see")
        return super().__getattribute__(name)


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int = 0


class Unpicklable(Exception):
    def __init__(self, first, second):
        super().__init__("one argument")

    def __reduce__(self):
        raise Silent


class Nameless(KeyError):
    __slots__ = ()

    def __str__(self):
        return 7


class Odd(BaseException):
    """No `Exception`."""


class OddUnpicklable(BaseException):
    def __reduce__(self):
        raise Silent


MADE = {
    "no text": Silent,
    "no attributes": Unattributed,
    "frozen": Frozen,
    "no pickle": lambda: Unpicklable(1, 2),
    "text of another type": Nameless,
    "a plain one": lambda: ValueError("spoiled"),
}


def raising(make, at):
    def function(x):
        if x in at:
            raise make()
        return int(x)

    return function


STEPS = {
    "map": lambda ds, f: ds.map(f),
    "map in parallel": lambda ds, f: ds.map(f, num_parallel_calls=2),
    "filter": lambda ds, f: ds.filter(lambda x: f(x) >= 0),
    "scan": lambda ds, f: ds.scan(0, lambda state, x: (state, f(x))),
    "take_while": lambda ds, f: ds.take_while(lambda x: f(x) >= 0),
    "interleave": lambda ds, f: ds.interleave(lambda x: ps.Dataset.from_tensors(f(x)), cycle_length=1),
    "map and batch": lambda ds, f: ds.map(f, num_parallel_calls=2).batch(1, num_parallel_calls=2).unbatch(),
}


@settings(max_examples=max(60, settings.default.max_examples // 2))
@given(
    st.sampled_from(sorted(MADE)),
    st.sampled_from(sorted(STEPS)),
    st.sampled_from(EXECUTORS),
    st.sets(st.integers(0, 11), max_size=3),
)
def test_any_exception_is_the_failure_of_one_element(tmp_path_factory, name, step, executor, at):
    quarantine = tmp_path_factory.mktemp("odd") / "quarantine.jsonl"
    ds = STEPS[step](ps.Dataset.range(12), raising(MADE[name], at))
    ignoring = ds.ignore_errors(log_warning=True, quarantine=quarantine)
    wanted = [x for x in range(12) if x not in at]
    assert [int(x) for x in ignoring.iterator(executor=executor)] == wanted
    lines = quarantine.read_text().splitlines() if quarantine.exists() else []
    assert all(json.loads(line)["error"].partition(":")[0] for line in lines)
    assert len(lines) == len(at)
    with ds.iterator(executor=executor) as elements:
        kinds = []
        for _ in range(12):
            try:
                next(elements)
            except Exception as error:
                kinds.append(type(error))
    assert len(kinds) == len(at)
    assert set(kinds) <= {type(MADE[name]()), errors.FailedPreconditionError}


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, Odd])
@pytest.mark.parametrize("at", [0, 3, 700])
def test_what_is_no_exception_ends_the_pass_on_every_executor(kind, executor, at):
    ds = ps.Dataset.range(1000).map(raising(lambda: kind("now"), {at}), num_parallel_calls=2)
    for dataset in (ds, ds.ignore_errors(), ds.shuffle(4), ds.batch(2, num_parallel_calls=2)):
        elements = dataset.iterator(executor=executor)
        with pytest.raises(kind, match="now"):
            list(elements)
        assert list(elements) == []  # it is closed


def test_a_worker_process_stays_when_a_function_asks_for_the_end():
    pids = ps.Dataset.range(1).map(lambda x: os.getpid() + 0 * x, num_parallel_calls=1)

    def pid():
        (found,) = pids.iterator(executor="process")
        return int(found)

    before = {pid() for _ in range(4)}
    with pytest.raises(SystemExit):
        list(ps.Dataset.range(3).map(raising(SystemExit, {1}), num_parallel_calls=1).iterator(executor="process"))
    assert {pid() for _ in range(4)} & before


def test_one_that_cannot_be_sent_says_what_it_was():
    ds = ps.Dataset.range(3).map(raising(OddUnpicklable, {1}), num_parallel_calls=1)
    with pytest.raises(errors.FailedPreconditionError, match="The function raised OddUnpicklable"):
        list(ds.iterator(executor="process"))
