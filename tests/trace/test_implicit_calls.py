"""Functions with side effects in methods that operators and builtins call are called as they are written.

They are called once for each element, in order. They never run on tracers, on whole Blocks, or ahead of the consumer.
"""

import bisect
import copy
import dataclasses
import functools
import heapq
import operator
import re

import numpy as np
import pytest

import penstock as ps

CALLS = []
ARGUMENT = {"__format__": "r", "__str__": "r", "__repr__": "r", "__len__": 3, "__index__": 1, "__int__": 1}
ARGUMENT |= {
    "__float__": 1.0,
    "__hash__": 1,
    "__bool__": True,
    "__contains__": True,
    "__fspath__": "r",
    "__del__": None,
}
ARGUMENT |= dict.fromkeys(["__lt__", "__le__", "__gt__", "__eq__", "__ne__"], True)
ARGUMENT |= dict.fromkeys(
    ["__getitem__", "__setitem__", "__delitem__", "__call__", "__next__", "__abs__", "__neg__"], 1
)
ARGUMENT |= dict.fromkeys(["__matmul__", "__round__", "__radd__", "__exit__"], 1)
ITSELF = ["__add__", "__iadd__", "__enter__", "__copy__", "__iter__"]


def telling(name, result):
    def method(self, *_):
        CALLS.append((name, self.number))
        return self if result is telling else result

    return method


class Quiet:
    """An object that notes calls of its methods in `CALLS`, together with the number that it was created from."""

    def __init__(self, x):
        self.number = int(np.ravel(x)[0])

    @property
    def told(self):
        CALLS.append(("property", self.number))
        return 1


class Telling(Quiet):
    def __getattr__(self, name):
        CALLS.append((name, self.number))
        return 1


for name in ITSELF:
    setattr(Quiet, name, telling(name, telling))
for name, result in ARGUMENT.items():
    setattr(Telling if name == "__del__" else Quiet, name, telling(name, result))
Quiet.__iter__ = lambda self: iter((CALLS.append(("__iter__", self.number)), 1))


@dataclasses.dataclass
class Post:
    x: object

    def __post_init__(self):
        CALLS.append(("__post_init__", int(np.ravel(self.x)[0])))


class Meta(type):
    def __getattr__(cls, name):
        return 1

    def __getitem__(cls, key):
        CALLS.append(("class", key))
        return 1


class OfMeta(metaclass=Meta):
    pass


def tells(x):
    CALLS.append(("called", int(np.ravel(x)[0])))
    return x


def in_a_loop(r):
    for _ in r:
        pass


def in_a_with(r):
    with r:
        pass


def added_to(r):
    r += 1


def in_an_if(r):
    if r:
        pass


def put_at(r):
    r[0] = 1


def deleted_from(r):
    del r[0]


def unpacked(r):
    _, _ = r


def matched(r):
    match r:
        case 1:
            pass


HELD = Quiet(5)
USES = {
    "sorted": lambda r: sorted([r, r]),
    "min": lambda r: min(r, r),
    "max": lambda r: max([r, r]),
    "sort": lambda r: [r, r].sort(),
    "in a list": lambda r: 1 in [r],
    "in it": lambda r: 1 in r,
    "index": lambda r: [r].index(1),
    "count": lambda r: [r].count(1),
    "==": lambda r: r == 1,
    "!=": lambda r: r != 1,
    "nested ==": lambda r: [(r,)] == [(1,)],
    "chained <": lambda r: 1 < r < 3,
    "bisect": lambda r: bisect.bisect([r], 1),
    "heapify": lambda r: heapq.heapify([r, r]),
    "sum": lambda r: sum([r]),
    "+": lambda r: r + 1,
    "+=": added_to,
    "reduce": lambda r: functools.reduce(operator.add, [r, 1]),
    "set": lambda r: {r},
    "set()": lambda r: set([r]),  # noqa: C405
    "dict": lambda r: {r: 1},
    "fromkeys": lambda r: dict.fromkeys([r]),
    "comprehension": lambda r: {r for _ in range(1)},
    "f-string": lambda r: f"{r}",
    "f-string of repr": lambda r: f"{r!r}",
    "str.format": lambda r: "{}".format(r),  # noqa: UP032
    "%": lambda r: "%s" % r,  # noqa: UP031
    "format": lambda r: format(r),
    "str": lambda r: str(r),
    "repr of a list": lambda r: repr([r]),
    "len": lambda r: len(r),
    "bool": lambda r: bool(r),
    "not": lambda r: not r,
    "and": lambda r: r and 1,
    "any": lambda r: any([r]),
    "if": in_an_if,
    "iter": lambda r: list(r),
    "for": in_a_loop,
    "star": lambda r: [*r],
    "unpacking": unpacked,
    "zip": lambda r: list(zip(r)),
    "next": lambda r: next(r),
    "with": in_a_with,
    "[]": lambda r: r[0],
    "[] =": put_at,
    "del []": deleted_from,
    "itemgetter": lambda r: operator.itemgetter(0)(r),
    "property": lambda r: r.told,
    "attrgetter": lambda r: operator.attrgetter("told")(r),
    "call": lambda r: r(),
    "int": lambda r: int(r),
    "float": lambda r: float(r),
    "as an index": lambda r: [1, 2][r],
    "as a slice": lambda r: [1, 2][r:],
    "abs": lambda r: abs(r),
    "-": lambda r: -r,
    "round": lambda r: round(r),
    "@": lambda r: r @ 1,
    "copy": lambda r: copy.copy(r),
    "match": matched,
    "del": lambda r: Telling(r.number),
    "getattr": lambda r: Telling(r.number).anything,
    "__post_init__": lambda r: Post(r.number),
    "a class's []": lambda r: OfMeta[r.number],
    "a key": lambda r: sorted([r.number], key=tells),
    "map": lambda r: list(map(tells, [r.number])),
    "re.sub": lambda r: re.sub("a", lambda found: str(tells(r.number)), "a"),
    "vectorize": lambda r: np.vectorize(tells, otypes=[int])(r.number),
    "what is held": lambda r: r.number == HELD,
    "what is held, as a truth": lambda r: 1 if HELD else 2,
}
PHRASINGS = {
    "elements": lambda ds, f: ds.map(f),
    "batches": lambda ds, f: ds.batch(2).map(f),
    "map_fn": lambda ds, f: ds.batch(2).map(lambda batch: ps.map_fn(f, batch)),
}


@pytest.mark.parametrize("phrasing", PHRASINGS)
@pytest.mark.parametrize("use", USES)
def test_what_acts_unseen_is_called_once_for_each_element_in_order(use, phrasing):
    def function(x, used=USES[use]):
        used(Quiet(x))
        return x

    CALLS.clear()
    for x in np.arange(12).reshape(6, 2) if phrasing == "batches" else np.arange(12):
        function(x)
    expected = CALLS.copy()
    CALLS.clear()
    for _ in PHRASINGS[phrasing](ps.Dataset.range(12), function):
        pass
    assert expected == CALLS
    assert len(expected) >= (6 if phrasing == "batches" else 12)


class Proxy:
    """A callable that raises for each attribute, as a remote object without a connection does."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, x):
        CALLS.append(int(x))
        return x


@pytest.mark.parametrize("calls", [None, 2])
def test_an_object_that_raises_whatever_it_is_asked_for_is_called_all_the_same(calls):
    CALLS.clear()
    proxy = Proxy()
    ds = ps.Dataset.range(9)
    for made in (ds.map(proxy, calls), ds.map(lambda x: proxy(x), calls), ds.map(lambda x, f=proxy: f(x), calls)):
        assert [int(x) for x in made] == list(range(9))
        assert "map" in made.explain()
        assert made.fingerprint()
    assert sorted(CALLS) == sorted([*range(9)] * 3)
