"""Windows, groups and buckets over an input that fails here and there, cut into Blocks at will, resumed everywhere.

What each has to give is written down in plain Python over lists in which an exception stands for a failed element.
"""

import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.leaf import NESTED
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.options import Options
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import as_of_now
from penstock.plan.inputs import Scan
from penstock.runtime.executors import InlineExecutor
from penstock.sources.source import Reader, Source


class Broken(Exception):
    """An element that could not be read."""


@dataclass(frozen=True, eq=False)
class Script(Source):
    """Numbers, and the failures between them, in Blocks of at most `cut` elements."""

    items: list
    cut: int

    label = "script"
    spec = TensorSpec((), np.int64)
    cardinality = -2

    def open(self, position=None):
        return _ScriptReader(self, position or 0)


class _ScriptReader(Reader):
    def __init__(self, source, at):
        self._source = source
        self._at = at

    def read(self, max_elements):
        items = self._source.items[self._at : self._at + min(max_elements, self._source.cut)]
        if not items:
            return None
        broken = next((i for i, item in enumerate(items) if item is None), len(items))
        if broken == 0:
            self._at += 1
            raise Broken(self._at - 1)
        start, self._at = self._at, self._at + broken
        origin = Origin.of_file("numbers", np.arange(start, self._at) * 8)
        return Block.single(DenseColumn(np.array(items[:broken], np.int64)), origin)

    def position(self):
        return self._at

    def close(self):
        """Nothing is held."""


def stage_of(build, items, cut):
    dataset = build(ps.Dataset._of(Scan(source=Script(items, cut)), Options()))
    return lower(
        dataset._plan,
        Lowering(Options(), InlineExecutor(), dataset=lambda plan: ps.Dataset._of(plan, Options())),
    )


def plain(value):
    """Numbers and lists of an element; what a data set holds, with the failures in it."""
    plan = getattr(value, NESTED, None)
    if plan is None:
        return value.tolist()
    stage = lower(plan, Lowering(Options(), InlineExecutor(), dataset=lambda plan: ps.Dataset._of(plan, Options())))
    return [outcome for outcome, _ in outcomes(stage, 100)]


def outcomes(stage, want):
    """(element or failure, the state behind it) for each element, where a state could be taken there."""
    while True:
        try:
            block = stage.next(want)
        except Exception as error:
            yield said(error), stage.state()
            continue
        if block is None:
            return
        elements = [plain(element) for element in block.elements()]
        for element in elements[:-1]:
            yield element, None
        yield elements[-1], stage.state()


def said(error):
    return f"{type(error).__name__} {str(error.args[0]).partition(':')[0]}"


def check(build, items, wanted, cut, want):
    stage = stage_of(build, items, cut)
    states = [(0, stage.state())]
    found = []
    for outcome, state in outcomes(stage, want):
        found.append(outcome)
        if state is not None:
            states.append((len(found), json.loads(json.dumps(as_of_now(state)))))
    assert found == wanted
    assert stage.next(want) is None
    for given_before, state in states:
        again = stage_of(build, items, cut + 2)
        again.restore(state)
        once_more = stage_of(build, items, 1)
        once_more.restore(json.loads(json.dumps(as_of_now(again.state()))))
        assert [outcome for outcome, _ in outcomes(again, want)] == wanted[given_before:]
        assert [outcome for outcome, _ in outcomes(once_more, 1)] == wanted[given_before:]
    assert chained(build, items, cut) == wanted


def chained(build, items, cut):
    """Each outcome from a stage of its own, restored from the state of the one before."""
    found = []
    state = stage_of(build, items, cut).state()
    while True:
        stage = stage_of(build, items, 1 + (cut + len(found)) % 5)
        stage.restore(state)
        outcome = next(outcomes(stage, 1), None)
        if outcome is None:
            return found
        found.append(outcome[0])
        state = json.loads(json.dumps(as_of_now(outcome[1])))


ITEMS = st.lists(st.one_of(st.integers(0, 20), st.integers(0, 20), st.none()), max_size=30)
CUTS = st.integers(1, 9)
WANTS = st.sampled_from([1, 2, 5, 100])


def broken(position):
    return f"Broken {position}"


# -- windows


def windows(items, size, shift, stride, drop):
    for start in range(0, len(items), shift):
        positions = range(start, len(items), stride)[:size]
        failed = [position for position in positions if items[position] is None]
        if len(positions) == size or not drop:
            yield broken(failed[0]) if failed else [items[position] for position in positions]


SIZES = st.sampled_from([2, 3, 4, 5, 1])
SHIFTS = st.sampled_from([2, 1, 3, 7])
STRIDES = st.sampled_from([2, 1, 3])


@example([1, None, 3, 4, None, None, 7, 8], 3, 1, 2, False, 9, 100)
@example([1, None, 3, 4, 5, 6, 7], 2, 5, 2, True, 9, 100)
@given(ITEMS, SIZES, SHIFTS, STRIDES, st.booleans(), CUTS, WANTS)
def test_a_window_in_which_an_element_failed_is_that_failure(items, size, shift, stride, drop, cut, want):
    wanted = list(windows(items, size, shift, stride, drop))
    check(lambda ds: ds.window(size, shift, stride, drop), items, wanted, cut, want)


def test_a_failure_in_many_windows_keeps_its_traceback_short():
    stage = stage_of(lambda ds: ds.window(50, 1), [*range(50), None, *range(50)], 200)
    depths = set()
    while True:
        try:
            if stage.next(200) is None:
                break
        except Broken as error:
            depths.add(len(traceback.extract_tb(error.__traceback__)))
    assert len(depths) == 1


# -- groups


def fails_at(*bad):
    def same(x):
        if int(x) in bad:
            raise LookupError(int(x))
        return x

    return same


def groups(items, key_of, size_of, give) -> Iterator:
    open_groups = {}
    for position, item in enumerate(items):
        if item is None:
            yield broken(position)
            continue
        try:
            key = key_of(item)
            if key not in open_groups:
                open_groups[key] = size_of(key), []
        except LookupError as error:
            yield said(error)
            continue
        size, members = open_groups[key]
        members.append(item)
        if len(members) == size:
            del open_groups[key]
            yield from give(key, members)
    for key in sorted(open_groups):
        yield from give(key, open_groups[key][1])


def traced(x):
    return x % 4


def python_key(x):
    return int(fails_at(5, 13)(x)) % 4


def size_of(key):
    if key == 3:
        raise LookupError("no size for 3")
    return int(key) + 2


@given(ITEMS, CUTS, WANTS, st.sampled_from([traced, python_key]))
def test_an_element_without_a_key_or_a_window_is_one_failure(items, cut, want, key_of):
    def build(ds):
        return ds.group_by_window(key_of, lambda key, window: window.batch(100), window_size_func=size_of)

    wanted = list(groups(items, key_of, size_of, lambda key, members: [members]))
    check(build, items, wanted, cut, want)


def reduce_of(key, window):
    if key == 1:
        raise LookupError("no data set for 1")
    if key == 2:
        return [1]
    return window.map(fails_at(4)).repeat(2)


@pytest.mark.slow
@given(ITEMS, CUTS, WANTS)
def test_a_window_that_makes_no_data_set_is_one_failure_and_its_elements_fail_alone(items, cut, want):
    def give(key, members):
        if key == 1:
            return ["LookupError no data set for 1"]
        if key == 2:
            return ["InvalidTypeError reduce_func must return a Dataset, got list."]
        return [member for _ in range(2) for member in members]

    items = [item if item != 4 else 8 for item in items]
    wanted = list(groups(items, traced, lambda key: 3, give))
    check(lambda ds: ds.group_by_window(traced, reduce_of, 3), items, wanted, cut, want)


# -- buckets


@given(ITEMS, CUTS, WANTS, st.booleans())
def test_a_batch_that_cannot_be_made_is_one_failure(items, cut, want, drop):
    bounds, sizes = [5, 10], [2, 3, 4]

    def build(ds):
        return ds.bucket_by_sequence_length(
            fails_at(7), bounds, sizes, pad_to_bucket_boundary=True, drop_remainder=drop
        )

    def key_of(x):
        fails_at(7)(x)
        return sum(x >= bound for bound in bounds)

    def give(key, members):
        if drop and len(members) < sizes[key]:
            return []
        if key == 2:
            return ["InvalidArgumentError With pad_to_bucket_boundary all lengths must be below the last boundary, 10."]
        return [members]

    check(build, items, list(groups(items, key_of, sizes.__getitem__, give)), cut, want)


# -- reductions


def begun(key):
    if key == 3:
        raise LookupError("no state for 3")
    return 0


def added(total, x):
    if x == 6:
        raise LookupError("no 6")
    return total + x if x != 9 else 0.5


def finished(total):
    if total % 5 == 0:
        raise LookupError("no fives")
    return total


@given(ITEMS, CUTS, WANTS)
def test_a_reduction_keeps_its_state_where_a_function_fails(items, cut, want):
    def reduced():
        states = {}
        for position, item in enumerate(items):
            key = None if item is None else item % 4
            if item is None:
                yield broken(position)
            elif key == 3:
                yield "LookupError no state for 3"
            elif item == 6:
                yield "LookupError no 6"
            elif item == 9:
                yield CHANGED
            else:
                states[key] = states.get(key, 0) + item
        for key in sorted(states):
            yield "LookupError no fives" if states[key] % 5 == 0 else states[key]

    reducer = ps.experimental.Reducer(begun, added, finished)
    check(lambda ds: ds.apply(ps.experimental.group_by_reducer(traced, reducer)), items, list(reduced()), cut, want)


CHANGED = "InvalidTypeError The state keeps its dtypes"


# -- where they happened


@pytest.mark.parametrize(
    "build",
    [
        lambda ds: ds.group_by_window(fails_at(3), lambda key, window: window, 2),
        lambda ds: ds.bucket_by_sequence_length(fails_at(3), [2], [2, 2]),
        lambda ds: ds.apply(
            ps.experimental.group_by_reducer(
                lambda x: 0, ps.experimental.Reducer(lambda key: 0, lambda s, x: fails_at(3)(x), int)
            )
        ),
        lambda ds: ds.window(2).flat_map(lambda window: window.map(fails_at(3))),
        lambda ds: ds.group_by_window(lambda x: 0, lambda key, window: window.map(fails_at(3)), 2),
    ],
)
def test_a_failing_function_is_told_with_the_element_s_file_and_offset(build):
    stage = stage_of(build, [0, 1, 2, 3, 4], 2)
    with pytest.raises(LookupError) as caught:
        list(iter(lambda: stage.next(2), None))
    (note,) = caught.value.__notes__
    assert "in file numbers at byte 24" in note
    assert "test_grouping_stages.py:" in note


def test_the_origins_of_a_window_are_those_of_its_elements():
    stage = stage_of(lambda ds: ds.window(3, 2, 2), [0, 1, None, 3, 4, 5, 6], 100)
    found = []
    while True:
        try:
            block = stage.next(100)
        except Broken:
            continue
        if block is None:
            break
        found += block.origin.offset.tolist()
    assert found == [[32, 48], [48]]


# -- cost


def test_a_slow_window_does_not_make_the_notes_of_the_input_s_states_grow():
    items = [1, *([0] * 3000), 1]
    build, cut = by_value, 1
    stage = stage_of(build, items, cut)
    for number in range(1500):
        stage.next(1)
        assert len(stage._windows._past) < 300
        assert len(json.dumps(as_of_now(stage.state()))) < 200
        if number % 500 == 499:
            again = stage_of(build, items, 100)
            again.restore(stage.state())
            assert [outcome for outcome, _ in outcomes(again, 100)] == [[0, 0]] * (1499 - number) + [[1, 1]]


def by_value(ds):
    return ds.group_by_window(lambda x: x, lambda key, window: window.batch(2), 2)


def test_a_pass_forgets_the_elements_it_has_given():
    items = list(range(3000))
    stage = stage_of(lambda ds: ds.group_by_window(lambda x: x % 3, lambda key, window: window.batch(4), 4), items, 50)
    while stage.next(1) is not None:
        assert stage._windows._pool._reserved < 200
