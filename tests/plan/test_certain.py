"""Which functions nobody sees the calls of, for certain: they may be called before their elements are asked for."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime as dt
import functools
import hashlib
import io
import itertools
import json
import math
import os
import pathlib
import random
import re
import struct
import time
import zlib
from types import SimpleNamespace
from typing import Any, NamedTuple

import cv2
import numpy as np
import PIL.Image
import pytest

import penstock as ps
from penstock.physical.stages.apply import ApplyStage
from penstock.plan.ops import Map
from penstock.plan.visible import acts, is_called_ahead
from penstock.runtime.block_sizer import BlockSizer

PATTERN = re.compile("l+")
WORDS = {"hello": 2, "world": 3}
calls: list[Any] = []


@dataclasses.dataclass
class Box:
    a: Any
    b: Any = 3

    def area(self) -> Any:
        return self.a * self.b


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any


class Point(NamedTuple):
    a: Any
    b: Any


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self) -> Any:
        return self.value


class Counting:
    count = 0

    def __init__(self, value: Any) -> None:
        Counting.count += 1

    def get(self) -> Any:
        return 1


class Telling:
    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def read(self) -> Any:
        calls.append(1)
        return self.value

    def __str__(self) -> str:
        calls.append(1)
        return "telling"

    def __len__(self) -> int:
        calls.append(1)
        return 1


class Speaking:
    def __call__(self, *given: Any) -> Any:
        calls.append(given)
        return {"a": 1}


def careful(x: Any) -> Any:
    try:
        return 10 // int(x)
    except ZeroDivisionError:
        return 0


def tokens(s: Any) -> Any:
    return np.array([WORDS.get(w, 1) for w in re.sub(r"[^\w\s]", "", s.decode().lower()).split()], np.int64)


def telling_callback(match: Any) -> str:
    print(match)
    return ""


def telling_hook(found: Any) -> Any:
    calls.append(found)
    return found


def own_module(x: Any) -> Any:
    import math

    return math.floor(x)


CERTAIN = {
    "isinstance": lambda x: x + 1 if isinstance(x, np.integer) else x,
    "decode": lambda s: s.decode().strip().lower().split(),
    "re": lambda s: len(re.findall("l", s.decode())) + len(PATTERN.sub("x", s.decode())),
    "re with a callback of its own": lambda s: re.sub("l", lambda found: found.group(0) * 2, s.decode()),
    "json": lambda s: json.loads(s)["a"],
    "math": lambda x: math.sqrt(x) + math.floor(x),
    "hashlib": lambda s: hashlib.md5(s).hexdigest(),
    "zlib": lambda s: zlib.crc32(s) % 100 + len(zlib.compress(s)),
    "struct": lambda s: struct.unpack("<I", s[:4])[0],
    "base64": lambda s: base64.b64decode(base64.b64encode(s)),
    "a named tuple": lambda x: Point(x, x + 1),
    "a dataclass": lambda x: Pair(x, x + 1).a,
    "a helper with try": lambda x: careful(x),
    "tokens": tokens,
    "numpy": lambda s: np.unique(np.frombuffer(s[:8], np.uint8)),
    "cv2": lambda x: cv2.resize(cv2.cvtColor(x, cv2.COLOR_RGB2GRAY), (4, 4)),
    "PIL": lambda x: np.asarray(PIL.Image.fromarray(x).resize((4, 4)).convert("L")),
    "a counter": lambda s: collections.Counter(s.decode()).most_common(1)[0][1],
    "a date": lambda x: dt.date(2020, 1, 1 + int(x) % 28).weekday(),
    "a path": lambda s: pathlib.Path(s.decode()).stem,
    "itertools": lambda x: len(list(itertools.chain(x, x))),
    "reduce": lambda x: functools.reduce(lambda a, b: a + b, itertools.chain(x, x)),
    "an import": own_module,
    "random": lambda x: x + random.random(),
    "numpy's random": lambda x: x + np.random.rand(),
}
SEEN = {
    "print": lambda x: print(x),
    "appends": lambda x: calls.append(x),
    "time": lambda x: x + time.time(),
    "now": lambda x: dt.datetime.now().year,
    "local time": lambda x: dt.datetime.fromtimestamp(int(x)).hour,
    "locale": lambda s: dt.datetime.strptime(s.decode(), "%B").month,
    "sleeps": lambda x: time.sleep(0.01),
    "environment": lambda x: os.environ.get("HOME", ""),
    "environment by item": lambda x: os.environ["HOME"],
    "a file": lambda s: open(s).read(),  # noqa: PTH123, SIM115
    "a path's file": lambda s: pathlib.Path(s.decode()).read_text(),
    "whether a path is there": lambda s: pathlib.Path(s.decode()).exists(),
    "the working directory": lambda s: str(pathlib.Path.cwd()),
    "os.path of files": lambda s: os.path.exists(s),  # noqa: PTH110
    "np.load": lambda s: np.load(s),
    "np.load of memory": lambda s: np.load(io.BytesIO(s)),
    "cv2.imread": lambda s: cv2.imread(s.decode()),
    "cv2.imwrite": lambda x: cv2.imwrite("x.png", x),
    "cv2's random": lambda x: cv2.randu(x, 0, 1),
    "PIL.open": lambda s: np.asarray(PIL.Image.open(s)),
    "PIL.save": lambda x: PIL.Image.fromarray(x).save("x.png"),
    "a callback that prints": lambda s: re.sub("l", telling_callback, s.decode()),
    "a hook": lambda s: json.loads(s, object_hook=telling_hook),
    "a key function": lambda x: sorted(x, key=lambda y: calls.append(y)),
    "a class that counts": lambda x: Counting(x).get(),
    "a property that tells": lambda x: Telling(x).read,
    "a text that tells": lambda x: str(Telling(x)),
    "a format that tells": lambda x: f"{Telling(x)}",
    "a length that tells": lambda x: len(Telling(x)),
    "a method of the element that nobody knows": lambda x: x.record(),
    "an attribute of the element that nobody knows": lambda x: x.image,
    "one that is chosen": lambda x: getattr(x, str(x)),
    "vectorize of what prints": lambda x: np.vectorize(print)(x),
    "a ufunc of what prints": lambda x: UFUNC(x),
    "an unknown library": lambda x: pytest.approx(x),
    "a generator of its own": lambda x: next(NUMBERS),
    "an attribute by name": lambda x: getattr(x, "real"),  # noqa: B009 - the call is the case it is about
    "a dataclass with methods": lambda x: Box(x, x + 1).area(),
    "a class with methods": lambda x: Plain(x).get(),
    "a file in memory": lambda s: len(io.BytesIO(s).read()),
    "vectorize": lambda x: np.vectorize(lambda y: y + 1)(x),
    "reads a set of state": lambda x: RANDOM.random(),
}
UFUNC = np.frompyfunc(print, 1, 1)
NUMBERS = itertools.count()
RANDOM = random.Random(0)


def step(function: Any) -> Any:
    """The step that calls it."""
    plan = ps.Dataset.range(3).map(function)._plan
    assert isinstance(plan, Map)
    return plan


@pytest.mark.parametrize("name", CERTAIN)
def test_what_only_computes_may_be_called_ahead(name: str) -> None:
    assert not acts(step(CERTAIN[name]))
    assert is_called_ahead(step(CERTAIN[name]))


@pytest.mark.filterwarnings("ignore::penstock.errors.RandomnessWarning")
@pytest.mark.parametrize("name", SEEN)
def test_what_could_be_seen_may_not(name: str) -> None:
    assert acts(step(SEEN[name]))
    assert not is_called_ahead(step(SEEN[name]))


REPLACEMENTS = {
    "a function of the user's": telling_hook,
    "another one of the library's": np.load,
    "a builtin": print,
    "a method": calls.append,
    "a class with methods": Speaking(),
    "one that says it is the library's": functools.wraps(json.loads)(lambda s: calls.append(s)),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_function_of_a_library_that_was_replaced_is_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    node = step(lambda s: json.loads(s))
    assert not acts(node)
    monkeypatch.setattr(json, "loads", REPLACEMENTS[name])
    assert acts(node)
    monkeypatch.undo()
    assert not acts(node)


def test_a_helper_that_becomes_another_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = step(lambda x: careful(x))
    assert not acts(node)
    monkeypatch.setitem(globals(), "careful", telling_hook)
    assert acts(node)


def called(ds: Any, taken: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many elements functions were called for when so many were taken."""
    made, make = [0], ApplyStage.make

    def counted(self: Any, want: int) -> Any:
        stretch = make(self, want)
        made[0] += 0 if stretch is None else stretch.size
        return stretch

    with monkeypatch.context() as patch:
        patch.setattr(ApplyStage, "make", counted)
        iterator = iter(ds)
        for _ in range(taken):
            next(iterator)
        return made[0]


AHEAD = {
    "a loop": (lambda d: d, 3),
    "windows": (lambda d: d.window(50, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(50)), 52),
    "a batch": (lambda d: d.batch(4), 12),
    "flat_map": (lambda d: d.flat_map(lambda x: ps.Dataset.from_tensors(x)), 3),
    "buckets": (lambda d: d.bucket_by_sequence_length(lambda x: x % 1, [1], [4, 4]), 12),
    "several": (lambda d: ps.Dataset.sample_from_datasets([d, ps.Dataset.range(0)], seed=1), 3),
    "a shuffle": (lambda d: d.shuffle(5), 8),
}


@pytest.mark.parametrize("name", AHEAD)
def test_what_takes_long_is_called_for_no_more_than_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which every call takes a second."""
    now = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(now))
    monkeypatch.setattr("penstock.physical.stages.apply.perf_counter", clock.perf_counter)
    for module in ("inner_inputs", "stages.interleave"):
        monkeypatch.setattr(f"penstock.physical.{module}.time", clock)
    monkeypatch.setattr(BlockSizer, "observe", lambda *_, **__: None)  # whose clock says the same: one is wanted
    make, needed = AHEAD[name]
    assert called(make(ps.Dataset.range(1000).map(CERTAIN["isinstance"])), 3, monkeypatch) == needed


def fails_at_five(x: Any) -> Any:
    if isinstance(x, np.integer) and x == 5:
        message = "five"
        raise ValueError(message)
    return x


@pytest.mark.parametrize("name", ["a loop", "flat_map", "several"])
def test_a_failure_of_an_early_call_keeps_its_place(name: str) -> None:
    ds = AHEAD[name][0](ps.Dataset.range(12).map(fails_at_five))
    iterator = iter(ds)
    assert [int(next(iterator)) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(iterator)
    assert [int(x) for x in ds.ignore_errors()] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]


class Row(NamedTuple):
    x: Any

    def count(self, value: Any = None) -> int:  # type: ignore[override]
        calls.append(value)
        return len(calls)


@pytest.mark.parametrize("between", [lambda d: d, lambda d: d.take(20), lambda d: d.shuffle(1), lambda d: d.cache()])
def test_an_object_s_own_method_under_a_known_name_is_called_when_it_is_asked_for(between: Any) -> None:
    calls.clear()
    rows = between(ps.Dataset.range(20).map(lambda x: Row(x)))
    ds = rows.map(lambda row: row.count(isinstance(row, Row)))
    found = []
    for x in ds:
        found.append((int(x), len(calls)))
    assert found == [(n, n) for n in range(1, 21)]


@pytest.mark.parametrize("taken", range(0, 40, 3))
def test_a_pass_goes_on_behind_any_element(taken: int) -> None:
    def make() -> Any:
        ds = ps.Dataset.range(40).map(CERTAIN["isinstance"]).filter(lambda x: isinstance(x, np.integer) and bool(x % 3))
        return ds.window(3, shift=1).flat_map(lambda w: w)

    whole = [int(x) for x in make()]
    iterator = make().iterator()
    begun = [int(next(iterator)) for _ in range(taken)]
    other = make().iterator()
    other.load_state_dict(iterator.state_dict())
    assert begun + [int(x) for x in other] == whole
