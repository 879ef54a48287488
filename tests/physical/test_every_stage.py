"""What the contract of `physical/stage.py` asks, of every stage that there is: a new one joins `STEPS`.

The numbers of the tests' names are those of the contract.
"""

import importlib
import json
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
from tests.dataset.entries import begin, entry_of
from tests.positions import assert_continues_everywhere, given, positions, same, stage_of

import penstock as ps
from penstock.physical import stages
from penstock.physical.stage import Stage, as_of_now
from penstock.plan.inputs import Scan
from penstock.rewrite.driver import rewrite
from penstock.sources.source import IndexedSource, Reader

COUNT = 13
RANGE = ps.Dataset.range
REDUCER = ps.experimental.Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)


def _rows(ds):
    """Sequences of 1 to 4 numbers."""
    return ds.map(lambda x: np.full(int(x) % 4 + 1, x))


def _sum(window):
    return int(sum(window))


def _loaded(ds, folder):
    ds.save(folder / "saved")
    return ps.Dataset.load(folder / "saved")


def _rewritten(ds):
    plan, _ = rewrite(ds._plan, ds.options())
    return ps.Dataset._of(plan, ds.options())


def _followed(ds, folder):
    """Loaded while it was being written, which it is no more."""
    kept = ds.snapshot(folder / "kept")
    begin(kept, 6)
    found = ps.Dataset.load(entry_of(folder / "kept"), wait=True)
    list(kept)
    return found


NOTED: list[int] = []
STEPS: dict[str, Callable] = {
    "map": lambda ds, _: ds.map(lambda x: x * 2),
    "filter": lambda ds, _: ds.filter(lambda x: bool(int(x) % 3)),
    "take_while that is seen": lambda ds, _: ds.take_while(lambda x: NOTED.append(x) is None and x < 8),
    "windows in place": lambda ds, _: _rewritten(ds.window(3, shift=1).flat_map(lambda window: window.batch(3))),
    "take": lambda ds, _: ds.take(7),
    "skip": lambda ds, _: ds.skip(3),
    "shard": lambda ds, _: ds.shard(3, 1),
    "shuffle": lambda ds, _: ds.shuffle(5, seed=1),
    "shuffle and repeat": lambda ds, _: _rewritten(ds.shuffle(5, seed=1).repeat(2)),
    "all in an order": lambda ds, _: ds.shuffle(ps.ALL, seed=1),
    "batch": lambda ds, _: ds.batch(4),
    "unbatch": lambda ds, _: ds.batch(4).unbatch(),
    "padded_batch": lambda ds, _: _rows(ds).padded_batch(4),
    "ragged_batch": lambda ds, _: _rows(ds).ragged_batch(4),
    "sparse_batch": lambda ds, _: _rows(ds).sparse_batch(4, [6]),
    "rebatch": lambda ds, _: ds.batch(5).rebatch(3),
    "rebatch in turn": lambda ds, _: ds.batch(5).rebatch([2, 1]),
    "enumerate": lambda ds, _: ds.enumerate(5),
    "zip": lambda ds, _: ps.Dataset.zip(ds, RANGE(11)),
    "concatenate": lambda ds, _: ds.concatenate(ds.take(2)),
    "repeat": lambda ds, _: ds.repeat(2),
    "flat_map": lambda ds, _: ds.flat_map(lambda x: RANGE(x % 3)),
    "interleave": lambda ds, _: ds.interleave(lambda x: RANGE(x % 4), 3, 2),
    "concatenate what may differ": lambda ds, _: ds.concatenate(ps.Dataset.from_generator(lambda: iter([5, 6]))),
    "sample_from_datasets": lambda ds, _: ps.Dataset.sample_from_datasets([ds, RANGE(9)], [0.7, 0.3], seed=2),
    "choose_from_datasets": lambda ds, _: ps.Dataset.choose_from_datasets([ds, ds], RANGE(9).map(lambda x: x % 2)),
    "rejection_resample": lambda ds, _: ds.rejection_resample(lambda x: x % 2, [0.3, 0.7], [0.5, 0.5], seed=2),
    "resample by estimate": lambda ds, _: ds.rejection_resample(lambda x: x % 2, [0.3, 0.7], seed=2),
    "window": lambda ds, _: ds.window(4, 2).map(_sum),
    "group_by_window": lambda ds, _: ds.group_by_window(lambda x: x % 3, lambda key, group: group.batch(2), 2),
    "bucket": lambda ds, _: _rows(ds).bucket_by_sequence_length(len, [2, 4], [2, 2, 2]),
    "group_by_reducer": lambda ds, _: ds.apply(ps.experimental.group_by_reducer(lambda x: x % 3, REDUCER)),
    "pack": lambda ds, _: _rows(ds).pack(5),
    "batch_by_tokens": lambda ds, _: _rows(ds).batch_by_tokens(7),
    "batch_by_tokens, sorted": lambda ds, _: _rows(ds).batch_by_tokens(7, sort_window=5),
    "scan": lambda ds, _: ds.scan(0, lambda total, x: (total + x, total + x)),
    "take_while": lambda ds, _: ds.take_while(lambda x: x < 8),
    "unique": lambda ds, _: ds.map(lambda x: x % 7).unique(),
    "ignore_errors": lambda ds, _: ds.ignore_errors(),
    "assert_cardinality": lambda ds, _: ds.assert_cardinality(ds.cardinality()),
    "pad_to_cardinality": lambda ds, _: ds.map(lambda x: {"x": x}).pad_to_cardinality(ds.cardinality() + 3),
    "cache": lambda ds, _: ds.cache(),
    "cache in files": lambda ds, folder: ds.cache(folder / "cache"),
    "snapshot": lambda ds, folder: ds.snapshot(folder / "snapshot"),
    "saved": _loaded,
    "followed": _followed,
    "with_provenance": lambda ds, _: ds.with_provenance(),
}
step = pytest.mark.parametrize("name", STEPS)
LEFT_OUT = {"ignore_errors"}  # leaves failures out
WHOLE = {"saved", "followed"}  # made of a pass without failures


class Watched(IndexedSource):
    """A range that knows which of its readers are open."""

    label, spec, cardinality = "watched", RANGE(1).element_spec, COUNT

    def __init__(self):
        self.readers = []
        self.range = RANGE(COUNT)._plan.source
        self.rows, self.rows_at = self.range.rows, self.range.rows_at

    def rows(self, start, stop): ...

    def rows_at(self, indices): ...

    def open(self, position=None):
        self.readers.append(WatchedReader(self.range.open(position)))
        return self.readers[-1]


class WatchedReader(Reader):
    def __init__(self, reader):
        self.reader, self.closed = reader, False

    def read(self, max_elements):
        assert not self.closed
        return self.reader.read(max_elements)

    def position(self):
        return self.reader.position()

    def close(self):
        self.closed = True


def some_fail(x):
    if x in (4, 9):
        raise ValueError(f"number {x}")
    return x


@step
def test_1_and_3_a_pass_is_the_same_however_it_is_asked_and_goes_on_from_any_state(name, tmp_path):
    assert_continues_everywhere(STEPS[name](RANGE(COUNT), tmp_path))


@pytest.mark.parametrize("name", [name for name in STEPS if name not in WHOLE])
def test_2_a_failure_takes_a_place_and_the_pass_goes_on_behind_it(name, tmp_path):
    dataset = STEPS[name](RANGE(COUNT).map(some_fail), tmp_path)
    wanted = positions(dataset, most=100)
    assert len(wanted) < 100, "it raises for ever"
    assert any(isinstance(item, Exception) for item in wanted) == (name not in LEFT_OUT)
    assert_continues_everywhere(dataset)


@step
def test_3_a_state_holds_no_elements(name, tmp_path):
    """However many there are in the Blocks that wait, it is a few hundred letters."""
    stage = stage_of(STEPS[name](RANGE(1000), tmp_path))
    for want in (400, 1, 300):
        stage.next(want)
        assert len(json.dumps(as_of_now(stage.state()))) < 2000
    stage.close()


@step
def test_4_what_it_is_asked_first_changes_nothing(name, tmp_path):
    """Places that can be passed over are those of a pass, also behind a state."""
    dataset = STEPS[name](RANGE(COUNT), tmp_path)
    wanted = positions(dataset)
    stage = stage_of(dataset)
    assert isinstance(stage.seen, bool)
    assert isinstance(stage.seen_below, bool)
    before = stage.next(1).size
    again = stage_of(dataset)
    again.can_skip()
    again.restore(json.loads(json.dumps(as_of_now(stage.state()))))
    if again.can_skip():
        passed = again.skip(2)
        assert passed == min(2, len(wanted) - before)
        before += passed
    same(list(given(again)), wanted[before:])


@step
def test_5_it_lets_go_of_what_it_holds_whenever_it_is_closed(name, tmp_path):
    for count in (0, 1, COUNT):
        source = Watched()
        folder = tmp_path / str(count)
        stage = stage_of(STEPS[name](ps.Dataset._of(Scan(source=source), ps.Options()), folder))
        for _ in range(count):
            stage.next(1)
        stage.close()
        stage.close()
        assert [reader for reader in source.readers if not reader.closed] == []


def _subclasses(kind):
    return {kind} | {found for below in kind.__subclasses__() for found in _subclasses(below)}


def test_every_stage_is_made_by_a_step_above(tmp_path, monkeypatch):
    for module in pkgutil.iter_modules(stages.__path__, f"{stages.__name__}."):
        importlib.import_module(module.name)
    made = set()
    begins = Stage.__init__

    def noted(self, *given, **named):
        made.add(type(self))
        begins(self, *given, **named)

    monkeypatch.setattr(Stage, "__init__", noted)
    for name, build in STEPS.items():
        positions(build(RANGE(COUNT), tmp_path / name))
    known = {
        kind
        for kind in _subclasses(Stage)
        if kind.__module__.startswith("penstock.physical.") and not kind.__abstractmethods__
    }
    assert sorted(kind.__name__ for kind in known - made) == [], "add the step that makes it to STEPS"
