"""Functions that change the dict of their element, or a new dict, run on Blocks; changes of other dicts prevent it."""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.block.structure import flatten
from penstock.trace.purity import why_impure
from penstock.trace.traced import traced

COLUMNS = {"a": np.arange(7), "b": np.arange(14.0).reshape(7, 2), "y": np.arange(7) % 2, "z": np.arange(7) * 1j}
KNOWN: dict[str, Any] = {"a": 1, "y": 2, "inner": {"y": 3}}
ROWS = [{"y": 1}, {"y": 2}]


class Holder:
    def __init__(self) -> None:
        self.seen: dict[str, Any] = {"y": 1}

    def changes(self, r: Any) -> Any:
        self.seen.pop("y", None)
        return r["y"]

    def splits(self, r: Any) -> Any:
        row = dict(self.seen)
        row.update(r)
        return row, row.pop("y")


HOLDER = Holder()


def split(r: Any, name: str = "y") -> Any:
    label = r.pop(name)
    return r, label


def split_copy(r: Any) -> Any:
    r = dict(r)
    y = r.pop("y")
    return r, y


def deletes(r: Any) -> Any:
    y = r["y"]
    del r["y"], r["a"]
    return r, y


def deletes_a_name(r: Any) -> Any:
    y = r["y"]
    twice = y * 2
    del y
    return twice


def updates(r: Any) -> Any:
    r.update({"new": r["a"] * 2}, b=r["b"] + 1)
    r.update([("more", r["new"])])
    return r


def sets_defaults(r: Any) -> Any:
    found = r.setdefault("a", r["y"])
    r.setdefault("c", r["y"])
    return r, found


def in_a_loop(r: Any) -> Any:
    for name in list(r):
        if name > "b":
            r.pop(name)
    return r


def in_an_order_of_its_own(r: Any) -> Any:
    r["a"] = r.pop("a")
    return r


def last(r: Any) -> Any:
    name, value = r.popitem()
    return {name: value, "n": len(r)}


def clears(r: Any) -> Any:
    y = r["y"]
    r.clear()
    r["only"] = y
    return r


def under_two_names(r: Any) -> Any:
    same, other = r, {"row": r}
    y = other["row"].pop("y")
    return same, y


def lists(r: Any) -> Any:
    values = list(r.values())
    values.insert(1, values.pop())
    values.reverse()
    del values[:1]
    return tuple(values), values.index(values[0]) if len(values) < 2 else 0


def of_what_is_captured(r: Any) -> Any:
    known = dict(KNOWN)
    known.pop("inner")
    known.update(r)
    return known


def test_a_copy_of_what_is_captured_counts_as_captured() -> None:
    assert "takes from an object in `KNOWN" in str(why_impure(of_what_is_captured))


def names_of(r: Any) -> Any:
    return dict.fromkeys(r, 0)


FUNCTIONS = {
    "split": split, "split a copy": split_copy, "split another way": lambda r: ({**r}, r.pop("y")),
    "split what was copied": lambda r: (lambda row: (row, row.pop("y")))(r.copy()), "delete": deletes,
    "delete a name": deletes_a_name, "update": updates, "set defaults": sets_defaults, "in a loop": in_a_loop,
    "in an order of its own": in_an_order_of_its_own, "the last": last, "clear": clears,
    "under two names": under_two_names, "lists": lists, "names": names_of,
    "a helper": lambda r: split(r, "a"), "a partial": functools.partial(split, name="z"),
    "nothing there": lambda r: (r, r.pop("nothing", 3), r.get("nothing", 4)), "a method": HOLDER.splits,
}  # fmt: skip


def changing_generator() -> Any:
    """Yield the same dict each time, and write into its arrays between two elements."""
    row = {"a": np.zeros((), np.int64), "b": np.zeros(2), "y": np.int64(3), "z": np.complex128(1)}
    for n in range(7):
        row["a"] += n
        row["b"] += n
        assert [*row] == ["a", "b", "y", "z"]  # no other code changes the dict
        yield row


SAME = {"a": 1, "b": np.ones(2), "y": 2, "z": 1j}
SPEC = {name: ps.TensorSpec(values.shape[1:], values.dtype) for name, values in COLUMNS.items()}
SOURCES: dict[str, Any] = {
    "columns": lambda: ps.Dataset.from_tensor_slices(COLUMNS),
    "one dict for all": lambda: ps.Dataset.from_generator(changing_generator, output_signature=SPEC),
    "a captured dict": lambda: ps.Dataset.range(5).map(lambda n: (print(end=""), SAME)[1]),
    "in memory": lambda: ps.Dataset.from_tensor_slices(COLUMNS).cache(),
    "again": lambda: ps.Dataset.from_tensors(SAME).repeat(4),
}


def described(element: Any) -> Any:
    if isinstance(element, tuple):
        return tuple(map(described, element))
    if isinstance(element, dict):
        return [(name, described(value)) for name, value in element.items()]
    return type(element), np.asarray(element).dtype, np.asarray(element).tolist()


def passes(name: str, source: str, *, by_block: bool, batched: bool = False) -> Any:
    options = ps.Options()
    options.experimental_optimization.map_vectorization.enabled = by_block
    ds = SOURCES[source]()
    ds = (ds.batch(3) if batched else ds).map(FUNCTIONS[name]).with_options(options)
    return [[described(element) for element in ds] for _ in range(2)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_changes_its_element_gives_the_same_by_block(name: str, source: str) -> None:
    assert passes(name, source, by_block=True) == passes(name, source, by_block=False)
    assert [*SAME] == ["a", "b", "y", "z"]
    assert [*COLUMNS] == ["a", "b", "y", "z"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_does_so_of_a_batch(name: str) -> None:
    assert passes(name, "columns", by_block=True, batched=True) == passes(name, "columns", by_block=False, batched=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_runs_as_a_graph(name: str) -> None:
    leaves, structure = flatten(SOURCES["columns"]().element_spec)
    assert traced(FUNCTIONS[name], structure, leaves).reason == ""


def test_two_functions_behind_one_another_each_have_their_own() -> None:
    ds = ps.Dataset.from_tensor_slices(COLUMNS).map(lambda r: (r, r)).map(lambda r, same: (r, r.pop("y"), same))
    assert [[*row] for row, _, _ in ds] == [["a", "b", "z"]] * 7
    assert [[*same] for _, _, same in ds] == [["a", "b", "y", "z"]] * 7


def with_a_default(r: Any, seen: dict[str, Any] = {"y": 1}) -> Any:  # noqa: B006 - the mistake it is about
    seen.pop("y", None)
    return r["y"]


def takes_from_the_first(r: Any) -> Any:
    for row in ROWS:
        row.pop("y", None)
    return r["y"]


def takes_from_one_of_two(r: Any) -> Any:
    rows = [dict(r), KNOWN]
    rows[1].pop("y", None)
    return r["y"]


def deletes_from_a_global(r: Any) -> Any:
    del KNOWN["y"]
    return r["y"]


def deletes_a_global(r: Any) -> Any:
    global KNOWN
    del KNOWN
    return r["y"]


def deletes_an_attribute(r: Any) -> Any:
    del HOLDER.seen
    return r["y"]


def keeps_in_an_attribute(r: Any) -> Any:
    row = dict(r)
    row.seen = 1  # type: ignore[attr-defined]
    return r["y"]


def changes_its_copy_to_the_bottom(r: Any) -> Any:
    known = dict(KNOWN)
    known["inner"].update(r)
    return r["y"]


def closing_over() -> Any:
    seen: dict[str, Any] = {}

    def function(r: Any) -> Any:
        seen.setdefault("y", 1)
        return r["y"]

    return function


CHANGING = {
    "a global": lambda r: (r["y"], KNOWN.pop("y", 0)),
    "a part of one": lambda r: (r["y"], KNOWN["inner"].popitem()),
    "under another name": lambda r: (lambda known: known.update(a=2))(KNOWN),
    "in a helper": lambda r: (r["y"], split(KNOWN)[1]),
    "by the class": lambda r: (r["y"], dict.pop(KNOWN, "y", 0)),
    "by a method that is passed on": lambda r: (r["y"], list(map(KNOWN.pop, ["y"]))),
    "one in a list": takes_from_the_first,
    "chosen": lambda r: (r["y"], max(ROWS, key=len).clear()),
    "beside its own": takes_from_one_of_two,
    "in what was copied": changes_its_copy_to_the_bottom,
    "a list": lambda r: (r["y"], ROWS.reverse()),
    "a default": with_a_default,
    "a closure": closing_over(),
    "a partial": functools.partial(lambda r, seen: seen.pop("y", 0), seen={"y": 1}),
    "an object's": HOLDER.changes,
    "a deleted item": deletes_from_a_global,
    "a deleted name": deletes_a_global,
    "a deleted attribute": deletes_an_attribute,
    "an ordered one": functools.partial(lambda r, seen: seen.popitem(), seen=OrderedDict(a=1)),
}


@pytest.mark.parametrize("name", CHANGING)
def test_what_others_have_is_changed_for_each_element(name: str) -> None:
    assert why_impure(CHANGING[name]) is not None


class Updating:
    """A callable that has a method of dicts, and counts the calls of the method."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        return x + 1

    def update(self, x: Any) -> None:
        self.calls += 1


UPDATING = Updating()


def applied(function: Any, x: Any) -> Any:
    return function(x)


def updated(what: Any, x: Any) -> Any:
    what.update(x)
    return x


def test_an_object_that_could_be_asked_for_a_method_of_dicts_is_only_called() -> None:
    assert why_impure(lambda x: applied(UPDATING, x)) is None
    assert why_impure(lambda x: updated(UPDATING, x)) == "it uses UPDATING"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (deletes_a_global, "it keeps state, in a global"),
        (keeps_in_an_attribute, "it keeps state, in an attribute"),
        (deletes_from_a_global, "it writes into `KNOWN`"),
    ],
)
def test_the_reason_says_which_it_is(function: Any, why: str) -> None:
    assert why_impure(function) == why
