"""`window_in_place` copies the elements of many windows at once, and nobody can tell."""

from __future__ import annotations

import random
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.physical.test_whole_inputs import leaves

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.functions.planning import why_plans_otherwise
from penstock.physical.stages import windowed
from penstock.physical.stages.windowed import WindowedStage
from penstock.testing import assert_same_elements

SIZE = 4
ALONE = ps.Options(experimental_optimization={"window_in_place": False})
CONFIG = {"size": 3, "names": ["x", "y"]}
NOTED: list[int] = []


class Config:
    SIZE = 3

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, w: Any) -> Any:
        return w.batch(self.size)


class Cuts:
    """The elements copied at once, and the bytes of these, each time that some were copied."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.nbytes: list[int] = []


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> Cuts:
    found = Cuts()
    make = WindowedStage.make

    def counted(stage: WindowedStage, want: int) -> Any:
        made = make(stage, want)
        if made is not None and made.block is not None:
            found.counts.append(made.size)
            found.nbytes.append(made.block.nbytes)
        return made

    monkeypatch.setattr(WindowedStage, "make", counted)
    return found


def pieces(ds: Any, state: Any = None, *, states: bool = False) -> tuple[list[Any], list[Any]]:
    """Elements and failures, and the states in front of each, if they are asked for."""
    found: list[Any] = []
    places: list[Any] = []
    with ds.iterator(executor="inline", epoch=0) as iterator:
        if state is not None:
            iterator.load_state_dict(state)
        while len(found) < 300:
            if states:
                places.append(iterator.state_dict())
            try:
                element = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                notes = [note for note in getattr(error, "__notes__", ()) if "iterator" not in note]
                found.append((type(error), str(error), notes))
                continue
            found.append(leaves(element))
    return found, places


def check_the_same(ds: Any) -> list[Any]:
    """Check the elements, failures and states of the rule against windows that are opened one by one.

    Either way resumes from the states of both.
    """
    plain = ds.with_options(ALONE)
    at_once, places = pieces(ds, states=True)
    assert pieces(ds)[0] == at_once
    alone, others = pieces(plain, states=True)
    assert at_once == alone
    for at in range(0, len(alone), 3):
        assert pieces(ds, places[at])[0] == alone[at:]
        assert pieces(ds, others[at])[0] == alone[at:]
        assert pieces(plain, places[at])[0] == alone[at:]
    return alone


SINGLE: dict[str, Callable[[Any], Any]] = {
    "whole": lambda w: w,
    "batch": lambda w: w.batch(SIZE),
    "literal": lambda w: w.batch(5),
    "smaller": lambda w: w.batch(2),
    "dropped": lambda w: w.batch(SIZE, drop_remainder=True),
    "dropped_smaller": lambda w: w.batch(2, drop_remainder=True),
    "take": lambda w: w.take(3).batch(3),
    "take_all": lambda w: w.take(-1).batch(9),
    "skip": lambda w: w.skip(1).batch(SIZE - 1),
    "skip_all": lambda w: w.skip(9).batch(2),
    "shard": lambda w: w.shard(2, 1).batch(9),
    "batches": lambda w: w.batch(2).batch(2),
    "length": lambda w: w.batch(len(w)),
    "count": lambda w: w.batch(w.cardinality()),
    "spec": lambda w: w.batch(len(w.element_spec.shape) + 2),
    "map": lambda w: w.batch(SIZE).map(lambda x: x * 2),
    "split": lambda w: w.batch(SIZE, drop_remainder=True).map(lambda x: (x[:-1], x[-1])),
    "map_first": lambda w: w.map(lambda x: x + 1).batch(SIZE),
    "filter": lambda w: w.batch(2).filter(lambda x: np.any(x.sum() % 3 > 0)),
    "filter_all": lambda w: w.filter(lambda x: np.any(np.abs(x) > 1000)).batch(2),
    "pair": lambda w: ps.Dataset.zip(w.batch(SIZE), w.skip(1).batch(SIZE)),
    "of_dict": lambda w: w.batch(CONFIG["size"]),
    "of_class": lambda w: w.batch(Config.SIZE),
    "of_object": Config(3).open,
    "failing": lambda w: w.batch(SIZE).map(lambda x: x[SIZE - 1]),
    "printing": lambda w: (NOTED.append(1), w.batch(SIZE))[1],
    "reading": lambda w: w.batch(1 + int(np.sum(next(iter(w))) > 0)),
    "random": lambda w: w.batch(SIZE).map(lambda x: x[0] + np.random.default_rng(ps.element_key()).integers(9)),
    "shuffled": lambda w: w.shuffle(3).batch(SIZE),
    "other": lambda w: ps.Dataset.zip(w.batch(SIZE), ps.Dataset.range(5)),
    "nothing": lambda w: 3,
}  # fmt: skip
SEVERAL: dict[str, Callable[..., Any]] = {
    "pair": lambda x, y: ps.Dataset.zip(x.batch(SIZE), y.batch(SIZE)),
    "tuple": lambda x, y: ps.Dataset.zip((x.batch(SIZE), y.batch(SIZE))),
    "nest": lambda x, y: ps.Dataset.zip({"a": x.batch(SIZE), "b": (y.take(2).batch(2), x.batch(3))}),
    "first": lambda x, y: x.batch(SIZE),
    "label": lambda x, y: ps.Dataset.zip(x.batch(SIZE), y.skip(SIZE - 1)),
    "then_batch": lambda x, y: ps.Dataset.zip(x, y).batch(SIZE),
    "then_map": lambda x, y: ps.Dataset.zip(x.batch(SIZE), y.batch(SIZE)).map(lambda a, b: {"a": a * 2, "b": b[-1:]}),
    "nested_zip": lambda x, y: ps.Dataset.zip(ps.Dataset.zip(x, y), x).batch(3),
    "uneven": lambda x, y: ps.Dataset.zip(x.batch(2), y.batch(3)),
}


def elements(kind: str, count: int, rng: np.random.Generator) -> Any:
    if kind == "scalar":
        return np.arange(count, dtype=np.int32)
    if kind == "vector":
        return rng.normal(size=(count, 3)).astype(np.float32)
    if kind == "text":
        return np.array([b"t" * (at % 4) for at in range(count)], object)
    return np.arange(count)[::-1] % 2 == 0


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("kind", ["scalar", "vector", "text"])
def test_one_component(name: str, kind: str) -> None:
    chosen = random.Random(f"{name} {kind}")
    for _ in range(3):
        data = elements(kind, chosen.choice([0, 3, 4, 17, 40]), np.random.default_rng(1))
        size, shift, stride = chosen.choice([1, 4, 4, 5]), chosen.choice([1, 1, 2, 5]), chosen.choice([1, 1, 3])
        ds = ps.Dataset.from_tensor_slices(data).window(size, shift, stride, drop_remainder=chosen.random() < 0.5)
        ds = ds.flat_map(SINGLE[name]) if chosen.random() < 0.7 else ds.interleave(SINGLE[name], 1, 2)
        check_the_same(ds)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_components(name: str) -> None:
    chosen, rng = random.Random(name), np.random.default_rng(2)
    for drop in (True, False):
        count = chosen.choice([5, 23])
        data = elements("vector", count, rng), elements(chosen.choice(["scalar", "text", "flags"]), count, rng)
        ds = ps.Dataset.from_tensor_slices(data).window(SIZE, chosen.choice([1, 3]), chosen.choice([1, 2]), drop)
        check_the_same(ds.flat_map(SEVERAL[name]))


def test_every_component_of_a_dict(cuts: Cuts) -> None:
    data = {"x": np.arange(30.0), "y": np.arange(30), "z": np.arange(60).reshape(30, 2)}
    ds = ps.Dataset.from_tensor_slices(data).window(SIZE, 2)
    for open_window in (
        lambda w: ps.Dataset.zip({k: w[k].batch(SIZE) for k in w}),
        lambda w: ps.Dataset.zip({k: v.batch(SIZE) for k, v in w.items()}),
        lambda w: ps.Dataset.zip(tuple(w[k].batch(SIZE) for k in CONFIG["names"])),
    ):
        check_the_same(ds.flat_map(open_window))
    assert max(cuts.counts) > 3


def test_ragged_elements_are_opened_one_by_one() -> None:
    ds = ps.Dataset.from_generator(lambda: (np.arange(at % 3) for at in range(12)))
    found = check_the_same(ds.window(2).flat_map(lambda w: w.batch(2)))
    assert any(piece[0] is InvalidArgumentError for piece in found)


def test_failures_take_the_place_of_their_windows() -> None:
    def fail(x: Any) -> Any:
        if x in (3, 17):
            raise ValueError(x)
        return x

    source = ps.Dataset.range(40).map(fail)
    for shift, drop in ((1, True), (2, False), (7, True)):
        ds = source.window(SIZE, shift, drop_remainder=drop).flat_map(lambda w: w.batch(SIZE))
        found = check_the_same(ds)
        assert any(piece[0] is not np.ndarray for piece in found)


def test_windows_in_another_order(cuts: Cuts) -> None:
    ds = ps.Dataset.range(300).window(SIZE, 1, drop_remainder=True)
    check_the_same(ds.skip(5).take(80).flat_map(lambda w: w.batch(SIZE)))
    assert max(cuts.counts) > 3
    check_the_same(ds.take(90).shuffle(20, seed=1).flat_map(lambda w: w.batch(SIZE)).batch(3))
    joined = ds.take(9).concatenate(ds.skip(250)).flat_map(lambda w: w.batch(SIZE))
    check_the_same(joined)


def test_behind_it_steps_run_as_ever(cuts: Cuts) -> None:
    series = np.random.default_rng(3).normal(size=90).astype(np.float32)
    ds = ps.Dataset.from_tensor_slices(series).window(SIZE, 1, drop_remainder=True).flat_map(lambda w: w.batch(SIZE))
    split = ds.map(lambda w: (w[:-1], w[-1])).shuffle(16, seed=2).batch(8).prefetch(1)
    check_the_same(split)
    assert max(cuts.counts) > 3
    for executor in ("thread", "process"):
        assert_same_elements(list(ds.iterator(executor=executor, epoch=0)), list(ds))


def test_what_a_function_does_is_done_for_every_window() -> None:
    NOTED.clear()
    ds = ps.Dataset.range(30).window(3).flat_map(SINGLE["printing"])
    assert len(list(ds)) == 10
    assert len(NOTED) == 10


def test_a_size_that_changes_in_a_pass(cuts: Cuts) -> None:
    config, other = {"size": 2}, Config(2)
    size = 2

    def nonlocal_size(w: Any) -> Any:
        return w.batch(size)

    def change(to: int) -> None:
        nonlocal size
        size = config["size"] = other.size = to

    for open_window in (nonlocal_size, lambda w: w.batch(config["size"]), other.open):
        change(2)
        ds = ps.Dataset.range(4000).window(4, 4).flat_map(open_window)
        shapes = []
        for at, batch in enumerate(ds):
            shapes.append(batch.shape)
            if at == 9:
                change(4)
        assert set(shapes) == {(2,), (4,)}
        assert shapes[-1] == (4,)
    assert max(cuts.counts) > 3


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (SINGLE["batch"], None),
        (SINGLE["of_dict"], None),
        (SINGLE["of_class"], None),
        (SINGLE["of_object"], None),
        (SINGLE["length"], None),
        (SINGLE["split"], None),
        (SEVERAL["nest"], None),
        (SINGLE["printing"], "NOTED"),
        (SINGLE["random"], None),  # the draws are those of the map, which says so itself
        (lambda w: w.batch(int(time.time()) % 3 + 1), "time"),
        (lambda w: w.batch(int(np.random.randint(1, 3))), "random"),
        (lambda w: w.batch(id(w) % 3 + 1), "id"),
        (lambda w: w.batch(len(NOTED) + 1), "NOTED"),
        (lambda w: w.batch(sum(CONFIG["names"])), "names"),
        (lambda w: w.batch(CONFIG.get("size", 1)), "CONFIG"),
        (lambda w: w.batch(len(Path("/etc/hostname").read_bytes())), "read_bytes"),
        (lambda w: w.reduce(0, lambda s, x: s + x), "reduce"),
        (lambda w: w.shuffle(3), "shuffle"),
        (print, "print"),
    ],
)
def test_what_plans_the_same_for_all(function: Callable[..., Any], why: str | None) -> None:
    found = why_plans_otherwise(function)
    assert found is None if why is None else why in str(found)


def test_memory_is_bounded(cuts: Cuts) -> None:
    wide = np.zeros((300, 1 << 12), np.float32)
    ds = ps.Dataset.from_tensor_slices(wide).window(64, 1, drop_remainder=True).flat_map(lambda w: w.batch(64))
    assert sum(1 for _ in ds) == 300 - 63
    assert 0 < max(cuts.nbytes) <= max(windowed._NBYTES, 64 * wide[0].nbytes)


def test_explain_says_what_is_done() -> None:
    ds = ps.Dataset.range(9).window(3)
    assert "window_in_place: flat_map" in ds.flat_map(SINGLE["batch"]).explain()
    assert (
        "opens every window separately: it does more than add steps: `NOTED.append(1)`"
        in ds.flat_map(SINGLE["printing"]).explain()
    )


CHANGING = types.SimpleNamespace(size=2)
SIZES = [0, 0, 0, 0, 2]
ARRAY = np.array(2)


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (lambda w: w.batch(CHANGING.size), lambda to: setattr(CHANGING, "size", to)),
        (lambda w: w.batch(SIZES[len(w)]), lambda to: SIZES.__setitem__(4, to)),
        (lambda w: w.batch(ARRAY), ARRAY.fill),
    ],
    ids=["an object without weak references", "an item by a length", "an array"],
)
def test_what_changes_unseen_in_a_pass_is_followed(function, change):
    change(2)
    shapes = []
    for batch in ps.Dataset.range(1200).window(4, 4).flat_map(function):
        shapes.append(batch.shape)
        if len(shapes) == 10:
            change(4)
    assert shapes[:10] == [(2,)] * 10
    assert shapes[-1] == (4,)


def test_states_of_zipped_windows_fit_however_their_memory_lies() -> None:
    numbers, texts = np.arange(80)[::2], np.array([b"%d" % i for i in range(40)], object)
    windowed = ps.Dataset.from_tensor_slices((numbers, texts)).batch(3).unbatch().window(2)
    ds = windowed.flat_map(lambda a, b: ps.Dataset.zip(b.batch(5), a.batch(5)))
    wanted, states = [], []
    with ds.iterator(executor="inline", epoch=0) as elements:
        for element in elements:
            wanted.append(element)
            states.append(elements.state_dict())
    for given, state in enumerate(states, 1):
        with ds.iterator(executor="inline", epoch=0) as elements:
            elements.load_state_dict(state)
            assert_same_elements(list(elements), wanted[given:])
