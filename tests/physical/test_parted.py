"""A function in parts, its beginning by Block and the rest per element, does what it does as it is written."""

from __future__ import annotations

import builtins
import functools
import gc
import inspect
import os
import pdb
import sys
import traceback
import weakref
from itertools import product
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.physical.broken_functions import BEGINNINGS, ENDS, LINES, made, sources

import penstock as ps
from penstock.block.structure import flatten
from penstock.physical.ended import Endings
from penstock.trace.parts import in_parts
from penstock.trace.statements import cut
from penstock.trace.traced import traced

SOURCES = sources()
MANY = bool(os.environ.get("PENSTOCK_MANY_PHRASINGS"))  # `make fuzz`: all of them


@pytest.fixture(autouse=True)
def _small_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.block.call_arguments._SMALLEST", 1)  # the pictures here are small


def of_batches(ds: Any, function: Any) -> Any:
    return ds.batch(4).map(function)


def of_rows(ds: Any, function: Any) -> Any:
    return ds.batch(4).map(lambda images, labels: ps.map_fn(lambda pair: function(*pair), (images, labels)))


PHRASINGS = {"per element": lambda ds, function: ds.map(function), "on the batch": of_batches, "map_fn": of_rows}


def outcome(function: Any, names: dict[str, Any], make: Any, *, by_block: bool, phrasing: str = "per element") -> Any:
    """All that can be seen of two passes: elements, errors and where they came from, and what the function left."""
    options = ps.Options(seed=7)
    options.experimental_optimization.map_vectorization.enabled = by_block
    ds = PHRASINGS[phrasing](make(), function).with_options(options)
    found: list[Any] = []
    for epoch in range(2):
        try:
            found.extend(described(element) for element in ds.iterator(epoch=epoch))
        except Exception as error:
            found.append(told(error))
    left = [names["LOG"], names["NAMES"], names["TABLE"], names["SIZE"], names["TOTAL"], names["COUNTER"].count]
    return found, described(left)


def told(error: BaseException) -> Any:
    frames: list[Any] = [
        (frame.filename, frame.lineno, frame.name, frame.line, frame.colno, frame.end_colno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<")
    ]
    if isinstance(
        error, UnboundLocalError
    ):  # the interpreter names one place in its first calls, another in later ones
        frames = [frame[:4] for frame in frames]
    if isinstance(error, ps.errors.InvalidTypeError):  # its words depend on whether one Block holds both kinds
        return type(error), frames, error.context.element
    cause = None if error.__cause__ is None else told(error.__cause__)
    return type(error), str(error), frames, cause


def described(element: Any) -> Any:
    if isinstance(element, (tuple, list)):
        return type(element), [described(item) for item in element]
    if isinstance(element, dict):
        return {key: described(value) for key, value in element.items()}
    if isinstance(element, np.ndarray):
        return element.dtype.str, element.shape, element.tolist() if element.dtype == object else element.tobytes()
    return type(element), repr(element)


def differing(chosen: Any) -> list[Any]:
    found = []
    for beginning, line, end, source, *phrasing in chosen:
        function, names = made(beginning, line, end)
        again, other_names = made(beginning, line, end)
        with np.errstate(all="ignore"):
            how = {"phrasing": phrasing[0]} if phrasing else {}
            fast = outcome(function, names, SOURCES[source], by_block=True, **how)
            plain = outcome(again, other_names, SOURCES[source], by_block=False, **how)
        if fast != plain:
            found.append((beginning, line, end, source, *phrasing, fast, plain))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("beginning", ["colours", "a dict"])
def test_a_line_that_cannot_be_traced_changes_nothing(beginning: str) -> None:
    ends = list(ENDS)
    chosen = list(LINES) if MANY or beginning == "colours" else list(LINES)[::2]
    assert differing((beginning, line, ends[i % len(ends)], "uint8") for i, line in enumerate(chosen)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", SOURCES)
def test_whatever_the_elements_are(source: str) -> None:
    ends, beginnings = list(ENDS), list(BEGINNINGS)
    chosen = list(LINES) if MANY else list(LINES)[list(SOURCES).index(source) % 7 :: 7]
    phrasings = list(PHRASINGS) if MANY else ["per element"] * 5 + ["on the batch", "map_fn"]
    assert (
        differing(
            (beginnings[i % 5], line, ends[(i + len(source)) % len(ends)], source, phrasings[i % len(phrasings)])
            for i, line in enumerate(chosen)
        )
        == []
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("phrasing", PHRASINGS)
def test_a_pass_that_fails_has_called_what_it_was_asked_for(phrasing: str) -> None:
    """The fourth label has another dtype than those before; what stands before the function runs on workers."""
    assert differing([("a dict", "error kept", "its label", "png", phrasing)]) == []
    function, names = made("a dict", "error kept", "its label")
    outcome(function, names, SOURCES["png"], by_block=True, phrasing=phrasing)
    assert len(names["LOG"]) == {"per element": 2, "on the batch": 0, "map_fn": 2}[phrasing]


EVERY = list(product(BEGINNINGS, SOURCES, PHRASINGS))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not MANY, reason="all of them: make fuzz")
@pytest.mark.parametrize(("beginning", "source", "phrasing"), EVERY if MANY else EVERY[:1])
def test_all_of_them(beginning: str, source: str, phrasing: str) -> None:
    """Some 3,300 functions of each source, and a third as many of each in the other phrasings."""
    ends = ENDS if phrasing == "per element" else list(ENDS)[:2]
    assert differing((beginning, line, end, source, phrasing) for line in LINES for end in ends) == []


WHOLE = {"deleted", "locals"}  # these say what is not taken apart


def runs_by_block(beginning: str, line: str) -> bool:
    """Its beginning, or all of it."""
    leaves, structure = flatten(SOURCES["uint8"]().element_spec)
    function, _ = made(beginning, line, "both")
    return traced(function, structure, leaves).graph is not None or in_parts(function, structure, leaves) is not None


NAMED = [
    "stack", "frame", "inspect", "vars", "locals", "dir", "eval", "exec", "super", "breakpoint", "exc_info",
    "set_trace", "currentframe", "getframeinfo",
]  # fmt: skip
LOOKING = {
    "locals": builtins.locals,
    "as another name": builtins.vars,
    "stack": inspect.stack,
    "module": inspect,
    "frame": sys._getframe,
    "from a library": traceback.extract_stack,
    "stops": pdb.Pdb.set_trace,
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("use", ["pass", "label = label + {0}", "label = label + CONFIG.{0}", "{0} = label"])
def test_names_that_only_sound_like_looking_at_variables_are_the_users(name: str, use: str) -> None:
    """What is called so decides nothing, but for attributes that are found in no other place than where frames are."""
    known = "CONFIG" in use and name in ("exc_info", "set_trace", "currentframe", "getframeinfo")
    lines = f"{use.format(name)}\nlabel = int(label)"
    function = named(lines, {} if use.startswith("{") else {name: 3, "CONFIG": SimpleNamespace(**{name: 3})})
    assert (cut(function) is None) == known


@pytest.mark.parametrize("name", LOOKING)
def test_what_looks_at_variables_is_known_under_any_name(name: str) -> None:
    assert cut(named("label = len(look())", {"look": LOOKING[name]})) is None


@pytest.mark.parametrize(
    "line",
    [
        "import inspect as kept\nlabel = len(kept.stack())",
        "from inspect import stack as kept\nlabel = len(kept())",
        "import sys as kept\nlabel = len(kept._getframe(0).f_locals)",
        "from sys import _getframe as kept\nlabel = len(kept(0).f_locals)",
        "import builtins as kept\nlabel = len(kept.locals())",
        "label = [locals() for _ in range(1)]",
    ],
)
def test_what_looks_at_variables_is_known_where_it_is_imported(line: str) -> None:
    assert cut(named(line, {})) is None


def named(line: str, names: dict[str, Any]) -> Any:
    """A function with a line of its own, that sees these names beside others."""
    LINES["a line of a test"] = line
    try:
        function, seen = made("one", "a line of a test", "both")
    finally:
        del LINES["a line of a test"]
    seen.update(names)
    return function


def test_most_of_them_run_by_block() -> None:
    """The comparison above would be easy if none did."""
    by_block = {line for line in LINES if runs_by_block("colours", line)}
    assert WHOLE.isdisjoint(by_block)
    assert len(by_block) > len(LINES) - len(WHOLE) - 8, set(LINES) - by_block


def test_what_is_not_as_the_file_says_is_called_as_it_is() -> None:
    function, _ = made("colours", "int", "both")
    assert cut(function) is not None
    other, _ = made("colours", "float32", "both")
    function.__code__ = other.__code__.replace(co_filename=function.__code__.co_filename)
    assert cut(function) is None


def test_the_first_elements_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.physical import parted as module

    function, names = made("colours", "int", "both")
    plain = outcome(*made("colours", "int", "both"), SOURCES["uint8"], by_block=False)
    run = module._run

    def wrong(*arguments: Any) -> Any:
        columns = run(*arguments)
        columns[0].array[...] += 1
        return columns

    monkeypatch.setattr(module, "_run", wrong)
    assert outcome(function, names, SOURCES["uint8"], by_block=True) == plain


class Augment:
    """An object whose method writes into itself: what the beginning of later calls reads becomes another."""

    def __init__(self) -> None:
        self.factor, self.calls = np.float32(2), 0
        self.ops = [ps.image.flip_left_right, ps.image.random_flip_up_down]

    def __call__(self, image: Any, label: Any) -> Any:
        for op in self.ops:
            image = op(image)
        image = ps.image.random_contrast(image, 0.5, 1.5) * self.factor
        self.calls += int(label)
        if label == 3:
            self.ops.reverse()
        if label == 6:
            self.factor = np.float32(3)
        return self.scaled(image), label + self.calls

    def run(self, image: Any, label: Any) -> Any:
        image, label = self(image, label)
        return image, int(label)

    def scaled(self, image: Any) -> Any:
        return image / np.float32(255)

    def by(self, factor: Any, image: Any, label: Any, *, more: int = 1) -> Any:
        image = ps.image.random_hue(image, 0.1) * factor * self.factor
        self.calls += more
        return image, int(label) + self.calls


CALLED = {
    "an object": lambda held: held,
    "a method": lambda held: held.run,
    "a partial of a method": lambda held: functools.partial(held.by, np.float32(3), more=2),
    "a partial of an object": lambda held: functools.partial(held),
    "a partial of a function": lambda held: functools.partial(Augment.by, held, np.float32(3)),
    "a partial by name": lambda held: functools.partial(Augment.by, held, more=3, factor=np.float32(3)),
}


@pytest.mark.parametrize("called", CALLED)
def test_methods_objects_and_partials_are_called_as_they_are(called: str) -> None:
    def seen(*, by_block: bool) -> Any:
        held = Augment()
        options = ps.Options(seed=7)
        options.experimental_optimization.map_vectorization.enabled = by_block
        function = CALLED[called](held)
        if called == "a partial by name":
            pairs = SOURCES["uint8"]().map(lambda image, label: {"image": image, "label": label})
            ds = pairs.map(lambda pair: function(image=pair["image"], label=pair["label"]))
        else:
            ds = SOURCES["uint8"]().map(function)
        ds = ds.with_options(options)
        return [described(element) for epoch in range(2) for element in ds.iterator(epoch=epoch)], held.calls

    assert seen(by_block=True) == seen(by_block=False)


def test_methods_objects_and_partials_run_in_parts() -> None:
    leaves, structure = flatten(SOURCES["uint8"]().element_spec)
    found = {name: in_parts(call(Augment()), structure, leaves) is not None for name, call in CALLED.items()}
    assert {name for name, there in found.items() if not there} == {"a partial by name"}


class Scaled(Augment):
    """An object that is traced as a whole."""

    def __call__(self, image: Any, label: Any) -> Any:
        return image * self.factor, label


class Numbered(Augment):
    """One whose rest must be given the object itself."""

    def __call__(self, image: Any, label: Any) -> Any:
        image = ps.image.random_hue(image, 0.1) * self.factor
        label = int(label)
        return image, label, id(self) == self.number


@pytest.mark.parametrize("kind", [Augment, Scaled, Numbered])
def test_an_object_is_let_go_of_with_what_was_found_of_it(kind: Any) -> None:
    held = kind()
    held.number = id(held)
    for _ in range(2):
        rows = list(SOURCES["uint8"]().map(held))
    if kind is Numbered:
        assert all(row[2] for row in rows)
    gone = weakref.ref(held)
    del held, rows
    gc.collect()
    assert gone() is None


ORDERS: list[Any] = []


def as_a_default(image: Any, label: Any, seen: Any) -> Any:
    image = ps.image.resize(image, (6, 5))
    seen["all"].append(1)
    return image, np.float32(len(seen["all"]))


def under_another_name(image: Any, label: Any, seen: Any) -> Any:
    image = ps.image.resize(image, (6, 5))
    kept = {"of all": seen["all"], "image": image}
    label = int(label)
    kept["of all"].extend([label])
    return kept["image"] * np.float32(2), len(seen["all"])


def by_a_helper(image: Any, label: Any, seen: Any) -> Any:
    image = ps.image.resize(image, (6, 5))
    noted(seen["all"], len(seen["all"]))
    image = np.unique(image)[:1]
    noted(seen["all"], 3)
    return image * np.float32(2), len(seen["all"])


def noted(seen: Any, value: Any) -> None:
    seen.append(value)


def in_place(image: Any, label: Any, seen: Any) -> Any:
    image = ps.image.resize(image, (6, 5)) - seen["mean"]
    seen["mean"] += np.float32(1)
    seen["n"] = seen["n"] + 1
    return image, label + seen["n"]


def of_the_module(image: Any, label: Any, seen: Any) -> Any:
    image, orders = ps.image.resize(image, (6, 5)), ORDERS
    label = int(label)
    orders.append(label)
    return image * np.float32(2), len(orders)


def only_read(image: Any, label: Any, seen: Any) -> Any:
    image = np.subtract(ps.image.resize(image, (6, 5)), seen["mean"])
    label = int(label)
    return np.sqrt(image * image) + seen["mean"], label


class Holding:
    """An object that writes into what it holds."""

    def __init__(self, seen: Any) -> None:
        self.seen = seen["all"]

    def __call__(self, image: Any, label: Any) -> Any:
        image = ps.image.resize(image, (6, 5))
        self.seen.append(1)
        return image, np.float32(len(self.seen))


def with_default(function: Any, held: Any) -> Any:
    """The function with what it holds as the default of its last argument."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, (held,))


HOLDING = [as_a_default, under_another_name, by_a_helper, in_place, of_the_module, only_read]


@pytest.mark.parametrize("function", HOLDING)
@pytest.mark.parametrize("give", [with_default, lambda function, held: functools.partial(function, seen=held)])
def test_what_was_there_before_is_written_into_once_for_each_element(function: Any, give: Any) -> None:
    assert of_held(lambda held: give(function, held), by_block=True) == of_held(
        lambda held: give(function, held), by_block=False
    )


def test_what_an_object_holds_is_written_into_once_for_each_element() -> None:
    assert of_held(Holding, by_block=True) == of_held(Holding, by_block=False)


def of_held(make: Any, *, by_block: bool) -> Any:
    """The elements of a pass, and what the function has written into."""
    ORDERS.clear()
    held = {"all": [], "n": 0, "mean": np.ones(3, np.float32)}
    return rows_by(make(held), by_block=by_block), described([held, ORDERS])


def rows_by(function: Any, *, by_block: bool) -> Any:
    options = ps.Options()
    options.experimental_optimization.map_vectorization.enabled = by_block
    return [described(row) for row in SOURCES["uint8"]().map(function).with_options(options)]


def test_what_is_only_read_runs_by_block() -> None:
    leaves, structure = flatten(SOURCES["uint8"]().element_spec)
    held = {"mean": np.ones(3, np.float32)}
    found = in_parts(with_default(only_read, held), structure, leaves)
    assert found is not None
    assert found.ends is not None


def kept_in_a_dict(image: Any, label: Any) -> Any:
    image = ps.image.resize(image, (6, 5))
    later = dict(image=lambda: image)  # noqa: C408 - the call is the case it is about
    image = image * np.float32(2)
    label = int(later["image"]()[0, 0, 0])
    return later["image"](), label


def kept_as_a_default(image: Any, label: Any) -> Any:
    image = ps.image.resize(image, (6, 5))
    later: Any = min([], default=lambda: image)
    image = image * np.float32(2)
    return later(), int(label)


def kept_as_the_larger(image: Any, label: Any) -> Any:
    image = ps.image.resize(image, (6, 5))
    later: Any = max((image for _ in range(1)), 3, key=lambda value: not isinstance(value, int))
    image = image * np.float32(2)
    return next(later), int(label)


KEPT = [kept_in_a_dict, kept_as_a_default, kept_as_the_larger]


@pytest.mark.parametrize("function", KEPT)
def test_a_function_that_is_kept_sees_variables_as_they_become(function: Any) -> None:
    assert cut(function) is None
    assert rows_by(function, by_block=True) == rows_by(function, by_block=False)


def test_a_stand_in_that_got_out_ends_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(image: Any, label: Any) -> Any:
        image = ps.image.resize(image, (6, 5))
        later = dict(image=lambda: image)  # noqa: C408 - the call is the case it is about
        image = image * np.float32(2)
        few = np.unique(image)[:2]
        return later["image"](), few * np.float32(2)

    seen: list[int] = []
    monkeypatch.setattr("penstock.trace.statements._done_at_once", lambda *_: True)
    source = SOURCES["uint8"]()

    def rows(*, by_block: bool) -> Any:
        options = ps.Options()
        options.experimental_optimization.map_vectorization.enabled = by_block
        told = source.map(kept).map(lambda *row: (seen.append(1), row)[1])  # whose elements are asked for singly
        return [described(row) for row in told.with_options(options)]

    assert rows(by_block=True) == rows(by_block=False)


def two_pictures(image: Any, label: Any) -> Any:
    doubled = image * np.float32(2)
    small = ps.image.resize(image, (6, 5))
    few = np.unique(doubled)[:2]
    return small * few[0] + few[1], label


def test_what_is_called_per_element_is_given_no_more_than_it_reads() -> None:
    """What of the beginning only the end takes stays a column."""
    for _ in range(3):  # until its end was tried on enough elements
        assert rows_by(two_pictures, by_block=True) == rows_by(two_pictures, by_block=False)
    leaves, structure = flatten(SOURCES["uint8"]().element_spec)
    found = in_parts(two_pictures, structure, leaves)
    assert found is not None
    assert found.ends is not None
    ended = found.ends.ended
    assert ended is not None
    assert len(ended.shown) == len(ended.split.takes) == 1
    assert ended.crossing
    assert ended.shown.isdisjoint(ended.crossing)


class Doubled:
    """A function with a line that is called per element, and an end."""

    def __init__(self, odd: dict[int, str]) -> None:
        self.odd = odd

    def __call__(self, x: Any) -> Any:
        kind = self.odd.get(int(x))
        return x * 2 if kind is None else kind


def test_another_thread_may_give_up_the_end_while_a_block_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, made = [], Endings._made

    class GivenUp:
        """A Block that gives up the end of the function when one of its rows is read."""

        def __init__(self, endings: Endings) -> None:
            self._endings, self._block = endings, endings._block

        def slice(self, *rows: int) -> Any:
            self._endings._ends.split = None
            return self._block.slice(*rows)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._block, name)

    def made_meanwhile(self: Any) -> None:
        begun.append(self)
        self._block = GivenUp(self)
        made(self)

    monkeypatch.setattr(Endings, "_made", made_meanwhile)
    assert list(ps.Dataset.range(10).map(Doubled({}))) == [2 * i for i in range(10)]
    assert begun
