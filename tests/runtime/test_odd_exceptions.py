"""Unusual exceptions of user functions: the result is the same on each executor."""

import dataclasses
import json
import os
import pickle

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


class Two(Exception):
    def __init__(self, code, why):
        super().__init__(f"{code}: {why}")
        self.code = code


class Worded(Exception):
    """Its constructor takes a name and builds a sentence."""

    def __init__(self, name):
        super().__init__(f"no breed is called {name}")


class ByName(ValueError):
    def __init__(self, *, row):
        self.row = row

    def __str__(self):
        return f"row {self.row}"


class OfFile(OSError):
    def __init__(self, path, *, level):
        super().__init__(2, "is gone", path)
        self.level = level


class Made(KeyError):
    def __new__(cls, first, second):
        return super().__new__(cls, first)


class Odd(BaseException):
    """Not an `Exception`."""


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
    "two arguments": lambda: Two(3, "because"),
    "a sentence": lambda: Worded("Rex"),
    "by name": lambda: ByName(row=3),
    "of a file": lambda: OfFile("cats.jpg", level=3),
    "made of two": lambda: Made(1, 2),
    "of a codec": lambda: UnicodeDecodeError("utf-8", b"x", 0, 1, "because"),
    "several": lambda: ExceptionGroup("several", [Two(1, "one"), ExceptionGroup("inside", [ByName(row=1)])]),
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


def test_exceptions_arrive_from_processes_as_they_were_raised():
    """Class, text, attributes and traceback are the same, whatever the constructor takes."""
    made = MADE | {"of an import": lambda: ImportError("because", name="cats", path="cats.py")}
    names = [name for name in made if name not in ("no text", "no pickle", "no attributes", "text of another type")]

    def raises(x):
        raise made[names[int(x)]]()

    with ps.Dataset.range(len(names)).map(raises, num_parallel_calls=1).iterator(executor="process") as elements:
        for name in names:
            wanted = made[name]()
            with pytest.raises(type(wanted)) as caught:
                next(elements)
            found = caught.value
            assert (type(found), str(found), repr(found)) == (type(wanted), str(wanted), repr(wanted))
            assert {key: value for key, value in vars(found).items() if "_" not in key} == vars(wanted)
            assert name == "frozen" or "in raises" in str(found.__notes__)


def test_an_error_of_penstock_keeps_its_notes_between_processes():
    error = errors.DataLossError("cut short", hint="Write it again.")
    error.add_note("a note")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["a note"]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, Odd])
@pytest.mark.parametrize("at", [0, 3, 700])
def test_what_is_no_exception_ends_the_pass_on_every_executor(kind, executor, at):
    ds = ps.Dataset.range(1000).map(raising(lambda: kind("now"), {at}), num_parallel_calls=2)
    for dataset in (ds, ds.ignore_errors(), ds.shuffle(4), ds.batch(2, num_parallel_calls=2)):
        elements = dataset.iterator(executor=executor)
        with pytest.raises(kind, match="now"):
            list(elements)
        assert list(elements) == []  # the iterator is closed


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
