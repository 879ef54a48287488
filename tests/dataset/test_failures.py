"""A failure takes the place of one element, and the pass goes on behind it: on every executor, through every step.

The streams here are lists of numbers in which `FAILED` stands for a failure; each step's meaning on such a list is
written down beside the step.
"""

import inspect
import json
from dataclasses import dataclass
from itertools import count as count_from
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError
from penstock.keys import draw, fold
from penstock.testing import resumed

FAILED = "failed"
EXECUTORS = ("inline", "thread")


class Spoiled(Exception):
    pass


@dataclass(frozen=True)
class Case:
    """A data set, and what its passes give."""

    dataset: ps.Dataset
    wanted: list[Any]
    text: str


def fails_on(remainder, modulus):
    def fail(x):
        if int(x) % modulus == remainder:
            raise Spoiled(int(x))
        return x

    return fail


def outcomes(iterator, limit=200):
    """What a pass gives, failures included."""
    found = []
    while len(found) < limit:
        try:
            element = next(iterator)
        except StopIteration:
            break
        except (Spoiled, InvalidArgumentError, InvalidTypeError):
            found.append(FAILED)
        else:
            found.append(element.tolist() if isinstance(element, np.ndarray) else int(np.max(element)))
    return found


# -- steps: what the data set does, and what that means on a list


def _map(draw_, at):
    modulus = draw_(st.integers(2, 7))
    remainder, parallel = draw_(st.integers(0, modulus - 1)), draw_(st.sampled_from([None, 1, 3]))
    wanted = [x if x == FAILED or x % modulus != remainder else FAILED for x in at.wanted]
    return Case(at.dataset.map(fails_on(remainder, modulus), parallel), wanted, f"map({remainder}, {modulus})")


def _add(draw_, at):
    return Case(at.dataset.map(lambda x: x + 1), [x if x == FAILED else x + 1 for x in at.wanted], "add")


def _filter(draw_, at):
    def odd(x):
        if int(x) == 5:
            raise Spoiled(5)
        return bool(x % 2)

    wanted = [FAILED if x in (5, FAILED) else x for x in at.wanted if x in (5, FAILED) or x % 2]
    return Case(at.dataset.filter(odd), wanted, "filter")


def _take(draw_, at):
    n = draw_(st.integers(0, 12))
    return Case(at.dataset.take(n), at.wanted[:n], f"take({n})")


def _skip(draw_, at):
    n = draw_(st.integers(0, 6))
    return Case(at.dataset.skip(n), at.wanted[n:], f"skip({n})")


def _shard(draw_, at):
    n = draw_(st.integers(1, 3))
    i = draw_(st.integers(0, n - 1))
    return Case(at.dataset.shard(n, i), at.wanted[i::n], f"shard({n}, {i})")


def _batch_unbatch(draw_, at):
    n, drop, parallel = draw_(st.integers(1, 4)), draw_(st.booleans()), draw_(st.sampled_from([None, 2]))
    groups = [at.wanted[i : i + n] for i in range(0, len(at.wanted), n)]
    kept = [group for group in groups if len(group) == n or not drop]
    wanted = [x for group in kept for x in ([FAILED] if FAILED in group else group)]
    return Case(at.dataset.batch(n, drop, parallel).unbatch(), wanted, f"batch({n}, {drop}, {parallel}).unbatch()")


def _shuffle(draw_, at):
    size, seed = draw_(st.integers(1, 6)), draw_(st.integers(0, 9))
    key, number = fold(seed, 0), count_from()
    buffer, wanted = [], []
    for x in at.wanted:
        if len(buffer) < size:
            buffer.append(x)
            continue
        slot = draw(key, next(number), size)
        wanted.append(buffer[slot])
        buffer[slot] = x
    while buffer:
        slot = draw(key, next(number), len(buffer))
        wanted.append(buffer[slot])
        buffer[slot] = buffer[-1]
        buffer.pop()
    return Case(at.dataset.shuffle(size, seed, reshuffle_each_iteration=False), wanted, f"shuffle({size}, {seed})")


def _repeat(draw_, at):
    return Case(at.dataset.repeat(2), at.wanted * 2, "repeat(2)")


def _concatenate(draw_, at):
    return Case(at.dataset.concatenate(at.dataset.take(3)), at.wanted + at.wanted[:3], "concatenate(take(3))")


def _zip(draw_, at):
    n = draw_(st.integers(0, 20))
    other = ps.Dataset.range(n).map(fails_on(2, 5), draw_(st.sampled_from([None, 2])))
    zipped = ps.Dataset.zip(other, at.dataset).map(lambda i, x: x)
    pairs = zip(range(n), at.wanted, strict=False)
    return Case(zipped, [FAILED if i % 5 == 2 else x for i, x in pairs], f"zip(range({n}), ·)")


def _enumerate(draw_, at):
    numbered = at.dataset.enumerate().map(lambda i, x: i)
    return Case(numbered, [x if x == FAILED else i for i, x in enumerate(at.wanted)], "enumerate")


def _prefetch(draw_, at):
    return Case(at.dataset.prefetch(draw_(st.sampled_from([1, 3, -1]))), at.wanted, "prefetch")


def _cache(draw_, at):
    return Case(at.dataset.cache(), at.wanted, "cache")


def _interleave(draw_, at):
    """Inputs of two elements each, or one that cannot be opened; inner failures count as elements of a turn."""
    cycle, block, parallel = draw_(st.integers(1, 3)), draw_(st.integers(1, 3)), draw_(st.sampled_from([None, 2]))

    def opened(x):
        if int(x) % 4 == 1:
            raise Spoiled(int(x))
        return ps.Dataset.range(x, x + 2).map(fails_on(2, 5))

    inputs = [
        FAILED if x == FAILED or x % 4 == 1 else [FAILED if y % 5 == 2 else y for y in (x, x + 1)] for x in at.wanted
    ]
    slots: list[Any] = [None] * cycle
    wanted, turn, given = [], 0, 0
    while inputs or any(slot is not None for slot in slots):
        if slots[turn] is None and inputs:
            following = inputs.pop(0)
            if following == FAILED:
                wanted.append(FAILED)
                continue
            slots[turn] = list(following)
        if not slots[turn]:
            slots[turn] = None
            turn, given = (turn + 1) % cycle, 0
            continue
        wanted.append(slots[turn].pop(0))
        given += 1
        if given == block:
            turn, given = (turn + 1) % cycle, 0
    return Case(
        at.dataset.interleave(opened, cycle, block, parallel), wanted, f"interleave({cycle}, {block}, {parallel})"
    )


STEPS = [
    _map, _map, _add, _filter, _take, _skip, _shard, _batch_unbatch, _shuffle, _repeat, _concatenate, _zip, _enumerate,
    _prefetch, _cache, _interleave,
]  # fmt: skip


@st.composite
def cases(draw_, most=5):
    n = draw_(st.integers(0, 16))
    at = Case(ps.Dataset.range(n), list(range(n)), f"range({n})")
    for step in [_map, *draw_(st.lists(st.sampled_from(STEPS), max_size=most))]:
        if len(at.wanted) < 60:
            following = step(draw_, at)
            at = Case(following.dataset, following.wanted, f"{at.text}.{following.text}")
    return at


@settings(max_examples=max(100, settings.default.max_examples))
@given(cases())
def test_the_elements_around_failures_come_and_the_failures_in_their_place(case):
    for executor in EXECUTORS:
        with case.dataset.iterator(epoch=0, executor=executor) as elements:
            assert outcomes(elements) == case.wanted, executor
            assert outcomes(elements) == []


@settings(max_examples=25)
@given(cases())
def test_worker_processes_fail_in_the_same_places(case):
    with case.dataset.iterator(epoch=0, executor="process") as elements:
        assert outcomes(elements) == case.wanted


@settings(max_examples=max(25, settings.default.max_examples // 4))
@given(cases(most=4))
def test_a_state_behind_or_before_a_failure_is_as_good_as_any(case):
    for executor in EXECUTORS:
        with case.dataset.iterator(epoch=0, executor=executor) as elements:
            for given_so_far in range(len(case.wanted) + 1):
                state = json.loads(json.dumps(elements.state_dict()))
                for other in EXECUTORS:
                    with resumed(case.dataset, state, other) as again:
                        second = json.loads(json.dumps(again.state_dict()))
                        assert outcomes(again) == case.wanted[given_so_far:], (executor, other)
                    if second != state:
                        with resumed(case.dataset, second, other) as again:
                            assert outcomes(again) == case.wanted[given_so_far:], (executor, other)
                outcomes(elements, limit=1)


@given(cases(most=3), st.booleans())
def test_in_free_order_elements_and_failures_come_once(case, parallel):
    ds = case.dataset.map(lambda x: x, 3 if parallel else 1, deterministic=False)
    with ds.iterator(epoch=0) as elements:
        assert sorted(map(str, outcomes(elements))) == sorted(map(str, case.wanted))
    with ds.iterator(epoch=0) as elements:
        first = outcomes(elements, limit=len(case.wanted) // 2)
        state = json.loads(json.dumps(elements.state_dict()))
    with resumed(ds, state) as again:
        assert sorted(map(str, first + outcomes(again))) == sorted(map(str, case.wanted))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_stop_iteration_from_a_function_is_an_error_and_not_the_end(executor):
    empty = iter(())
    steps = {
        "map": lambda ds: ds.map(lambda x: next(empty) if x == 1 else x),
        "filter": lambda ds: ds.filter(lambda x: next(empty) if x == 1 else True),
        "flat_map": lambda ds: ds.flat_map(lambda x: next(empty) if x == 1 else ps.Dataset.from_tensors(x)),
        "batch": lambda ds: ds.map(lambda x: next(empty) if x == 1 else x, 2).batch(1).unbatch(),
    }
    for name, step in steps.items():
        with step(ps.Dataset.range(3)).iterator(executor=executor) as elements:
            assert next(elements) == 0, name
            with pytest.raises(InvalidArgumentError, match="StopIteration") as caught:
                next(elements)
            assert isinstance(caught.value.__cause__, StopIteration)
            assert [int(x) for x in elements] == [2], name


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_exhausted_iterator_stays_exhausted(executor):
    with ps.Dataset.range(2).map(fails_on(1, 2)).iterator(executor=executor) as elements:
        assert outcomes(elements) == [0, FAILED]
        for _ in range(3):
            with pytest.raises(StopIteration):
                next(elements)


def test_a_generator_that_raises_has_ended_and_one_that_yields_nonsense_has_not():
    def raises():
        yield 1
        raise Spoiled

    def nonsense():
        yield 1
        yield (1, 2)
        yield 3

    assert outcomes(iter(ps.Dataset.from_generator(raises))) == [1, FAILED]
    elements = iter(ps.Dataset.from_generator(nonsense))
    assert next(elements) == 1
    with pytest.raises(TypeError):
        next(elements)
    assert outcomes(elements) == [3]


def test_files_behind_a_missing_one_are_read(tmp_path):
    names = [tmp_path / f"{i}.tfrecord" for i in range(3)]
    for name in (names[0], names[2]):
        with ps.io.TFRecordWriter(name) as writer:
            writer.write(name.name.encode())
    for ds in (ps.TFRecordDataset(names), ps.TFRecordDataset(names, num_parallel_reads=2)):
        elements, found = iter(ds), []
        while True:
            try:
                found.append(next(elements))
            except (FileNotFoundError, DataLossError):
                found.append(FAILED)
            except StopIteration:
                break
        assert sorted(map(str, found)) == sorted(map(str, [b"0.tfrecord", FAILED, b"2.tfrecord"]))


def test_repeat_goes_on_after_an_empty_epoch_and_stops_if_nothing_was_ever_produced():
    passes = []

    def numbers():
        passes.append(1)
        yield from range(0 if len(passes) == 2 else 2)

    assert [int(x) for x in ps.Dataset.from_generator(numbers).repeat().take(4)] == [0, 1, 0, 1]
    assert len(passes) == 3
    assert list(ps.Dataset.range(0).repeat()) == []


def test_unbatch_of_what_cannot_be_cut_fails_once_for_each_and_goes_on():
    nested = ps.Dataset.range(4).window(2)
    found = outcomes(iter(nested.unbatch()))
    assert found == [FAILED, FAILED]


def test_unbatch_of_sparse_and_ragged_gives_their_rows():
    rows = ps.SparseTensor(np.array([[1, 2], [0, 1]]), np.array([7, 5]), np.array([2, 4]))
    found = list(ps.Dataset.from_tensors(rows).unbatch())
    assert [row.to_list() for row in found] == [[0, 5, 0, 0], [0, 0, 7, 0]]
    ragged = ps.RaggedTensor.from_row_lengths(np.arange(5), [2, 0, 3])
    assert [row.tolist() for row in ps.Dataset.from_tensors(ragged).unbatch()] == [[0, 1], [], [2, 3, 4]]


def test_a_data_set_that_a_constructor_makes_stands_in_the_line_of_its_step(tmp_path):
    line = inspect.currentframe().f_lineno + 1
    files = ps.Dataset.from_tensor_slices([str(tmp_path / "none")]).interleave(ps.TFRecordDataset, cycle_length=2)
    with pytest.raises(ps.errors.NotFoundError) as raised:
        list(files)
    assert raised.value.context.where == f"{__file__}:{line}"
