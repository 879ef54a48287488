"""Functions that may run on tracers. A function with unknown operations runs per element, as it is written."""

import dataclasses
import functools
import random

import numpy as np
import pytest

import penstock as ps
from penstock.trace.purity import inspected, why_impure

SCALE = 3
TABLE = np.array([2.0, 4.0])
NAMES = {"a": 1, "b": 2}
ITEMS = [1, 2]
calls = []


def helper(x):
    return x * SCALE


def printing_helper(x):
    print(x)
    return x


def counts(x):
    global SCALE
    SCALE = 3
    return x


def remembers(x):
    calls.append(1)
    return x


def with_default(x, by=2.0):
    return x * by


def with_list_default(x, seen=[]):  # noqa: B006 - the mistake it is about
    seen.append(1)
    return x


def with_keyword(x, *, by=2.5):
    return x * by


def generates(x):
    yield x


async def waits(x):
    return x


def appends_to_its_own(x):
    found = []
    for n in range(3):
        found.append(x * n)
    return tuple(found)


def imports(x):
    import math

    return math.floor(x)


def handles(x):
    try:
        return x + 1
    except ValueError:
        return x


def deletes(x):
    y = x
    del y
    return x


def recursive(x):
    return recursive(x) if x > 100 else x


def nested(x):
    def inner(y):
        return y + x

    return inner(x)


def sets_attribute(x):
    helper.seen = 1
    return x


def counter():
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x + count

    return step


class Normalise:
    def __init__(self):
        self.mean, self.std, self.size = 1.0, 2.0, (4, 4)

    def __call__(self, x):
        return (x - self.mean) / self.std


class Model:
    weight = 2

    def __init__(self):
        self.ops = [helper, functools.partial(with_default, by=3), np.square]

    def __call__(self, x):
        return x * self.weight

    def method(self, x):
        return x * self.weight

    @staticmethod
    def static(x):
        return x + 1

    def chain(self, x):
        for op in self.ops:
            x = op(x)
        return self.method(x)

    def counts(self, x):
        self.weight += 1
        return x

    @property
    def number(self):
        return 3

    def computed(self, x):
        return x + self.number

    def passed(self, x):
        return weighted(self, x)

    def inside(self, x):
        return (lambda: x * self.weight)()


class Computing:
    def __getattr__(self, name):
        return 3

    def method(self, x):
        return x * self.weight


class Operating(Model):
    def __rmul__(self, x):
        calls.append(x)
        return x


class Shaped(Model):
    shape = (1, 2)


def weighted(model, x):
    return x * model.weight


def call(function, x):
    return function(x) + len(function.shape)


class Config:
    size = (3, 4)
    inner = Model()


CONFIG, MODEL, SHAPED, OPERATING = Config(), Model(), Shaped(), Operating()


def writes_through_a_view(x):
    view = TABLE.reshape(-1).T
    view[0] = 3
    return x


PURE = {
    "a loop that ends": lambda x: loops(x),
    "arithmetic": lambda x: (x * 2 + 1) / 3 - x % 5,
    "comparison": lambda x: (x > 3) & (x != 5) | ~(x < 1),
    "numpy where": lambda x: np.where(x > 3, x, -x),
    "numpy clip": lambda x: np.clip(x, 0, 3),
    "numpy minimum": lambda x: np.minimum(x, 3),
    "numpy type": lambda x: np.float32(2) * x,
    "astype": lambda x: x.astype(np.float32),
    "tuple result": lambda x: (x, {"y": x * 2}),
    "global constant": lambda x: x * SCALE,
    "global array": lambda x: x * TABLE,
    "global dict": lambda x: x * NAMES["a"],
    "helper": helper,
    "calls helper": lambda x: helper(x) + 1,
    "default": with_default,
    "keyword default": with_keyword,
    "static method": Model.static,
    "dict parts": lambda d: {**d, "z": d["x"]},
    "list read": lambda x: x + ITEMS[0],
    "callable object": Model(),
    "method": Model().method,
    "method with a list": Model().chain,
    "attribute of an object": lambda x: x + CONFIG.size[0] + CONFIG.inner.weight,
    "method of a global object": lambda x: MODEL.method(MODEL(x)),
    "partial": functools.partial(with_default, by=3.0),
    "partial of a method": functools.partial(Model().method),
    "star arguments": lambda *parts: parts[0],
    "numpy by row": lambda x: np.sort(np.nextafter(x, 0.0)) @ np.linalg.norm(x),
    "comprehension": lambda x: [x * n for n in (1, 2)],
    "generator that is gone through": lambda x: sum(x * n for n in (1, 2)),
    "own variable in an inner function": lambda x: sorted([1, 2], key=lambda n: n * len(x)),
    "list of its own": appends_to_its_own,
    "object with a mean": Normalise(),
}


def hangs(x):
    if x < 0:
        while True:
            pass
    return x


def loops(x):
    steps = 3
    while True:
        steps -= 1
        if not steps:
            break
    return x * steps


IMPURE = {
    "a loop without an end": (hangs, "it has a loop that never ends"),
    "print": (lambda x: print(x), "print"),
    "print in a helper": (lambda x: printing_helper(x), "printing_helper"),
    "global written": (counts, "keeps state"),
    "list method": (remembers, "append"),
    "list default": (with_list_default, "append"),
    "np.random": (lambda x: x + np.random.rand(), "np.random"),
    "random": (lambda x: x + random.random(), "random"),
    "unknown numpy": (lambda x: np.unique(x), "np.unique"),
    "modf": (lambda x: np.modf(x), "np.modf"),
    "method of the element": (lambda x: x.nonzero(), "nonzero"),
    "written to by a method": (lambda x: (x, TABLE.clip(0, 1, out=TABLE)), "TABLE"),
    "written to by its place": (lambda x: (x, TABLE.sum(0, None, TABLE)), "TABLE"),
    "written to through a view": (writes_through_a_view, "TABLE"),
    "generator": (generates, "generator"),
    "coroutine": (waits, "coroutine"),
    "import": (imports, "imports"),
    "exceptions": (handles, "exceptions"),
    "nonlocal": (counter(), "keeps state"),
    "attribute written": (sets_attribute, ""),
    "object that writes": (Model().counts, ".weight"),
    "property": (Model().computed, "self.number, which does not exist or is computed"),
    "object passed on": (Model().passed, ".weight"),
    "object in an inner function": (Model().inside, "inner function"),
    "object whose class computes": (Computing().method, "whose class may define its own operations"),
    "callable that is asked for what is known": (lambda x: call(SHAPED, x), "SHAPED"),
    "method of a list": (ITEMS.append, "builtin"),
    "partial of the unknown": (functools.partial(print, end=""), "builtin"),
    "partial of a set": (functools.partial(with_default, by={1}), "a set"),
    "object as a value": (lambda x: (x, CONFIG), "CONFIG"),
    "callable object with operators": (lambda x: x * OPERATING, "OPERATING"),
    "builtin": (repr, "builtin"),
    "isinstance": (lambda x: isinstance(x, int), "isinstance"),
    "type": (lambda x: type(x), "type"),
    "open": (lambda x: open(x), "open"),  # noqa: PTH123, SIM115 - the case it is about
    "undefined": (lambda x: x + undefined_name, "undefined_name"),  # noqa: F821 - the case it is about
    "module passed on": (lambda x: helper(np), "module"),
}


@pytest.mark.parametrize("name", PURE)
def test_known_functions_may_be_traced(name):
    assert why_impure(PURE[name]) is None


@pytest.mark.parametrize("name", IMPURE)
def test_anything_else_may_not_and_the_reason_is_said(name):
    function, part = IMPURE[name]
    why = why_impure(function)
    assert why is not None
    assert part in why


class Loud(float):
    pass


class Words(dict):
    pass


def adds_in_place(x):
    total = TABLE
    total += 1
    return x


def adds_to_a_list(x):
    items = ITEMS
    items += [1]
    return x


def writes_by_position(x):
    np.add(TABLE, 1, TABLE)
    return x


def writes_by_a_helper(x):
    hand_on(np.add, TABLE, 1, TABLE)
    return x


def hand_on(function, *arguments):
    return function(*arguments)


def writes_own(x):
    found = {}
    found["x"] = x * TABLE * NAMES["a"]
    return found


def calculates_own(x):
    number = 1
    number += NAMES["a"]
    return np.add(x, number)


def tells_by_pattern(x):
    match x:
        case np.integer():
            return x
    return x * 2


LOUD, WORDS, MASKED, OBJECTS = Loud(2), Words(), np.ma.array([1.0]), np.array([[1], None], object)
LARGE = {number: number for number in range(2000)}


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (adds_in_place, "it changes `TABLE` (+=)"),
        (writes_by_position, "it changes `TABLE` (`numpy.add`)"),
        (writes_by_a_helper, "it calls `hand_on`, which passes `TABLE` to `numpy.add`"),
        (lambda x: np.clip(TABLE, 0, 1, TABLE) * x, "it changes `TABLE` (`numpy.clip`)"),
        (tells_by_pattern, "it checks types"),
        (lambda x: x * LOUD, "it uses LOUD, whose class may define its own operations"),
        (lambda x: x * WORDS["a"], "it uses WORDS"),
        (lambda x: x + MASKED, "it uses MASKED"),
        (lambda x: x + Loud(2), "it uses Loud"),
        (lambda x: x + OBJECTS[0], "it uses OBJECTS, an array of Python objects, which may change unnoticed"),
        (lambda x: x + LARGE[1], "it uses LARGE, a dict too large to watch for changes"),
    ],
)
def test_what_is_captured_is_neither_written_to_nor_of_unknown_kind(function, why):
    assert why_impure(function) == why


@pytest.mark.parametrize("function", [writes_own, calculates_own, lambda x: np.add(x, TABLE)])
def test_a_function_may_write_into_what_is_its_own(function):
    assert why_impure(function) is None


def test_a_dict_may_hold_itself():
    known = {"by": 2}
    known["self"] = known
    assert why_impure(lambda x: x * known["by"]) is None


PADDINGS, LETTERS, MIXED = [[4, 4], [0, 0]], {"a"}, (1, [{2}])
MANY = [0] * 2000


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: (x, LETTERS), "it uses LETTERS: a set may change unnoticed; make it a frozenset"),
        (lambda x: (x, MIXED), "it uses MIXED: a set may change unnoticed; make it a frozenset"),
        (lambda x: x + MANY[0], "it uses MANY, a list too large to watch for changes"),
        (adds_to_a_list, "it changes `ITEMS` (+=)"),
    ],
)
def test_what_may_change_unseen_is_said_with_what_may_not(function, why):
    assert why_impure(function) == why


def test_a_tuple_in_place_of_a_list_is_traced():
    paddings = tuple(tuple(pair) for pair in PADDINGS)
    assert why_impure(lambda x: (x, paddings)) is None


def test_what_a_function_reads_of_objects_and_lists_is_watched():
    def changed(change):
        model = Model()
        _, seen = inspected(model.chain)
        assert seen.unchanged()
        change(model)
        return not seen.unchanged()

    assert changed(lambda model: setattr(model, "weight", 3))
    assert changed(lambda model: model.ops.append(helper))
    assert changed(lambda model: model.ops.reverse())
    assert changed(lambda model: setattr(model, "ops", list(model.ops)))
    assert changed(lambda model: setattr(model, "method", helper))
    assert changed(lambda model: model.ops[1].keywords.update(by=4))
    assert changed(lambda model: setattr(model, "__class__", Shaped))
    assert changed(lambda model: setattr(model, "__dict__", {**vars(model)}))
    assert not changed(lambda model: setattr(model, "another", 3))


@dataclasses.dataclass(frozen=True)
class Equal:
    by: int = dataclasses.field(compare=False)

    def __call__(self, x):
        return x * self.by


def test_an_object_that_equals_another_is_not_taken_for_it():
    assert Equal(2) == Equal(3)
    for by in (2, 3):
        assert [int(x) for x in ps.Dataset.range(3).map(Equal(by))] == [0, by, 2 * by]


def test_recursion_is_followed_once():
    assert why_impure(recursive) is None


@pytest.mark.parametrize("use", [str, repr, lambda x: f"{x}", lambda x: f"{x!r:>5}", bytes])
def test_the_text_of_a_stand_in_never_becomes_data(use):
    ds = ps.Dataset.range(10, 0, -1).map(lambda x: len(use(x)) > 1)
    wanted = [len(use(np.int64(x))) > 1 for x in range(10, 0, -1)]
    assert [bool(x) for x in ds] == wanted


def test_a_function_that_looks_at_types_sees_the_real_ones():
    ds = ps.Dataset.range(5).map(lambda x: x * 2 if isinstance(x, np.integer) else x * 3)
    assert [int(x) for x in ds] == [0, 2, 4, 6, 8]


def test_a_function_that_catches_everything_is_run_per_element():
    def careful(x):
        try:
            y = int(x)
        except:  # noqa: E722 - the case it is about
            y = -1
        return x * 0 + y

    assert [int(x) for x in ps.Dataset.range(-1, 4).map(careful)] == [-1, 0, 1, 2, 3]


def test_a_captured_array_is_watched_or_not_traced():
    small, large = np.zeros(4), np.zeros(1 << 14)
    assert why_impure(lambda x: x + small[0]) is None
    assert "too large to watch" in why_impure(lambda x: x + large[0])
