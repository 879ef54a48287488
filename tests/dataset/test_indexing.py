"""Elements by number, global shuffles, batches looked at again, and where elements come from."""

import pickle
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference, strategies
from tests.generated import indexing
from tests.golden.golden import assert_golden, said
from tests.positions import assert_continues_everywhere, positions, same, stage_of, texts
from tests.strategies import MOST, Pipeline, pipelines

import penstock as ps
from penstock import errors
from penstock.physical.access import obstacle
from penstock.physical.stage import as_of_now
from penstock.plan.node import EXECUTORS
from penstock.testing import assert_resumes_exactly, assert_same_elements, difference, token

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of small integers that overflow


BY_NUMBER = [
    strategies._map, strategies._map, strategies._batch, strategies._take, strategies._skip, strategies._shard,
    strategies._enumerate, strategies._repeat, strategies._repeat_for_ever, strategies._zip, strategies._concatenate,
    strategies._prefetch, strategies._cache, strategies._batch_unbatch, *indexing.STEPS,
]  # fmt: skip


@st.composite
def indexed(draw, most_steps=5):
    """A pipeline of steps that can be read by number; it may be endless."""
    found = draw(strategies.sources().filter(lambda source: obstacle(source.dataset._plan) is None))
    for _ in range(draw(st.integers(1, most_steps))):
        step = draw(st.sampled_from(BY_NUMBER))
        if not (found.infinite and step is strategies._repeat_for_ever):
            found = step(draw, found, None)
    return found


def numbers(dataset, epoch=0):
    return [int(x) for x in dataset.iterator(epoch=epoch, executor="inline")]


class Spoiled(Exception):
    pass


def by_number(dataset, count, epoch=0):
    """Elements 0 to `count` - 1, each read by its number. An error takes the place of its element."""
    found = []
    for index in range(count):
        try:
            found.append(dataset.at(index, epoch))
        except (Spoiled, errors.FailedPreconditionError) as error:
            found.append(error)
    return found


def tenfold(x):
    return x * 10


def fails_at_3(x):
    if x == 3:
        raise Spoiled(3)
    return x


def spoiled_at(*bad):
    def check(x):
        if x in bad:
            raise Spoiled(int(x))
        return x

    return check


# -- elements by number


@given(pipelines())
def test_what_batch_at_gives_is_what_the_pass_gives(pipeline: Pipeline):
    dataset = pipeline.dataset
    for epoch in (0, 3):
        wanted = list(reference.run(dataset._plan, dataset.options(), epoch))
        for step in {0, len(wanted) // 2, len(wanted) - 1} - {-1}:
            if step < len(wanted):
                assert difference(dataset.batch_at(step, epoch), wanted[step]) is None
        with pytest.raises(errors.OutOfRangeError):
            dataset.batch_at(len(wanted), epoch)


@given(pipelines())
def test_at_says_when_elements_have_no_numbers(pipeline: Pipeline):
    if obstacle(pipeline.dataset._plan) is not None:
        with pytest.raises(errors.UnimplementedError):
            pipeline.dataset.at(0)
        with pytest.raises(errors.UnimplementedError):
            pipeline.dataset.shuffle(ps.ALL)


@settings(max_examples=max(80, settings.default.max_examples))
@given(indexed())
def test_every_element_is_found_by_its_number(pipeline: Pipeline):
    dataset = pipeline.dataset
    wanted = list(islice(reference.run(dataset._plan, dataset.options(), 1), 4 * MOST))
    assert_same_elements([dataset.at(i, epoch=1) for i in range(len(wanted))], wanted)
    if len(wanted) == 4 * MOST:
        return
    assert_same_elements([dataset.at(i - len(wanted), epoch=1) for i in range(len(wanted))], wanted)
    for outside in (len(wanted), -len(wanted) - 1):
        with pytest.raises(errors.OutOfRangeError):
            dataset.at(outside, epoch=1)


@given(indexed())
def test_a_global_shuffle_of_anything_that_has_numbers(pipeline: Pipeline):
    if pipeline.infinite:
        pipeline = pipeline.then("take(20)", pipeline.dataset.take(20), infinite=False)
    dataset = pipeline.dataset.shuffle(ps.ALL)
    for epoch in (0, 2):
        wanted = list(reference.run(dataset._plan, dataset.options(), epoch))
        for executor in ("inline", "thread"):
            with dataset.iterator(epoch=epoch, executor=executor) as elements:
                assert_same_elements(list(elements), wanted)
    before = list(reference.run(pipeline.dataset._plan, dataset.options(), 2))
    if "shuffle" not in pipeline.text:
        assert Counter(map(token, wanted)) == Counter(map(token, before))


@settings(max_examples=40)
@given(indexed(most_steps=3))
def test_a_global_shuffle_continues_from_every_step(pipeline: Pipeline):
    dataset = pipeline.dataset.take(40).shuffle(ps.ALL)
    assert_resumes_exactly(dataset.map(lambda *parts: parts), limit=12)


def test_values_are_those_of_tf_data():
    """What tf.data.experimental.at gives in TensorFlow 2.21."""
    ds = ps.Dataset.range(10)
    assert ps.experimental.at(ds.batch(3), 3).tolist() == [9]
    assert ds.repeat(2).at(11) == 1
    assert ds.shard(2, 1).at(1) == 3
    assert ds.cache().at(1) == 1
    assert ps.Dataset.zip(ds, ds.skip(2)).at(1) == (1, 3)
    with pytest.raises(errors.OutOfRangeError):
        ps.experimental.at(ds.batch(3), 4)
    with pytest.raises(errors.UnimplementedError):
        ps.experimental.at(ds.filter(lambda x: x > 3), 0)


def test_only_what_is_asked_for_is_made():
    calls = []
    ds = ps.Dataset.range(10**12).map(lambda x: calls.append(int(x)) or x).batch(2)
    assert ds[10**11].tolist() == [2 * 10**11, 2 * 10**11 + 1]
    assert ds[-1].tolist() == [10**12 - 2, 10**12 - 1]
    assert calls == [2 * 10**11, 2 * 10**11 + 1, 10**12 - 2, 10**12 - 1]


def test_steps_without_an_end():
    ds = ps.Dataset.range(5).repeat()
    assert ds[10**15 + 2] == 2
    assert ds.skip(3).shard(3, 1).batch(2)[1].tolist() == [0, 3]
    assert ds.take(7)[-1] == 1
    assert ps.Dataset.zip(ds, ps.Dataset.range(3))[-1] == (2, 2)
    assert ds.concatenate(ds)[6] == 1
    assert ps.Dataset.range(2).concatenate(ds)[4] == 2
    assert ds.repeat(3)[8] == 3
    with pytest.raises(errors.OutOfRangeError):
        ds[-1]


def test_of_nothing_there_is_no_element():
    nothing = ps.Dataset.range(0)
    for ds in (nothing, nothing.batch(2), nothing.repeat(), nothing.shuffle(ps.ALL), ps.Dataset.range(3).skip(-1)):
        assert list(ds) == []
        for index in (0, -1):
            with pytest.raises(errors.OutOfRangeError):
                ds[index]
    assert ps.Dataset.range(1).padded_batch(3)[0].tolist() == [0]


def test_slices_are_data_sets():
    ds = ps.Dataset.range(10)
    everything = list(range(10))
    for key in (
        slice(None), slice(3, None), slice(None, 4), slice(2, 8), slice(2, 8, 3), slice(None, None, 4), slice(-3, None),
        slice(None, -3), slice(-8, -2, 2), slice(8, 2), slice(20, 30), slice(-20, 3), slice(np.int64(1), np.int32(4)),
    ):  # fmt: skip
        assert numbers(ds[key]) == everything[key], key
    assert numbers(ds.filter(lambda x: x % 2 == 0)[1:4:2]) == [2, 6]


def test_numpy_integers_and_python_loops():
    ds = ps.Dataset.range(5).map(lambda x: x * x)
    assert ds[np.int32(3)] == 9
    assert [int(x) for x in reversed(ds)] == [16, 9, 4, 1, 0]
    assert [int(ds[i]) for i in range(-5, 5)] == [0, 1, 4, 9, 16] * 2


def test_a_cache_gives_what_it_keeps():
    calls = []
    ds = ps.Dataset.range(6).map(lambda x: calls.append(int(x)) or x * 2).cache()
    assert ds[4] == 8
    assert list(ds)
    calls.clear()
    assert [int(ds[i]) for i in (5, 0, 3)] == [10, 0, 6]
    assert [int(x) for x in ds.shuffle(ps.ALL, seed=3)] == [
        2 * n for n in numbers(ps.Dataset.range(6).shuffle(ps.ALL, 3))
    ]
    assert calls == []


@pytest.mark.parametrize("parallel", [None, 2])
def test_a_cache_below_a_global_shuffle_fills_once(parallel):
    calls = []
    ds = ps.Dataset.range(50).map(lambda x: calls.append(int(x)) or x * 2, parallel).cache().shuffle(ps.ALL)
    for epoch in range(3):
        assert sorted(numbers(ds, epoch)) == list(range(0, 100, 2))
    assert sorted(calls) == list(range(50))
    other = ps.Dataset.zip(ps.Dataset.range(50).map(spoiled_at(7)).cache(), ps.Dataset.range(50)).shuffle(ps.ALL)
    assert texts(positions(other)).count("Spoiled") == 1


def test_each_batch_of_its_kind():
    lengths = ps.Dataset.range(5).map(lambda n: np.arange(n))
    assert [b.tolist() for b in (lengths.padded_batch(2)[i] for i in range(3))] == [
        [[0], [0]], [[0, 1, 0], [0, 1, 2]], [[0, 1, 2, 3]],
    ]  # fmt: skip
    for grouped in (lengths.padded_batch(2, [4]), lengths.ragged_batch(2), lengths.sparse_batch(2, [5])):
        assert_same_elements([grouped[i] for i in range(3)], list(grouped))
    images = ps.Dataset.from_tensor_slices(np.arange(24.0).reshape(6, 2, 2))
    fused = images.map(lambda x: x * 2, num_parallel_calls=2).batch(4).shuffle(ps.ALL)
    assert sorted(len(batch) for batch in fused) == [2, 4]


BATCHES = {
    "batch(2)": lambda ds: ds.batch(2),
    "batch(4)": lambda ds: ds.batch(4),
    "batch(3, drop)": lambda ds: ds.batch(3, drop_remainder=True),
    "parallel": lambda ds: ds.map(lambda x: x + 1, 2).batch(3),
    "padded_batch(4)": lambda ds: ds.padded_batch(4),
    "arrays": lambda ds: ps.Dataset.from_tensor_slices(np.arange(45).reshape(15, 3)).take(len(ds)),
    "endless": lambda ds: ds.repeat().batch(3).take(9),
}
AFTER = {
    "take": lambda ds, n: ds.take(n),
    "skip": lambda ds, n: ds.skip(n),
    "shard": lambda ds, n: ds.shard(n + 1, n // 2),
    "cache": lambda ds, n: ds.cache(),
    "prefetch": lambda ds, n: ds.prefetch(n),
}


@given(
    st.integers(0, 14), st.sampled_from(sorted(BATCHES)),
    st.lists(st.tuples(st.sampled_from(sorted(AFTER)), st.integers(0, 5)), max_size=3),
)  # fmt: skip
def test_what_batches_are_taken_apart_to_has_numbers(count, batch, after):
    ds = BATCHES[batch](ps.Dataset.range(count + (batch == "endless")))
    for name, n in after:
        ds = AFTER[name](ds, n)
    ds = ds.unbatch()
    wanted = list(ds)
    assert len(ds) == len(wanted)
    assert_same_elements([ds[i] for i in range(len(ds))], wanted)
    assert_same_elements([ds[i] for i in range(-len(ds), 0)], wanted)
    assert sorted(numbers(ds.shuffle(ps.ALL))) == sorted(int(x) for x in wanted)
    with pytest.raises(errors.OutOfRangeError):
        ds[len(wanted)]


def test_without_its_batches_unbatch_has_no_end_either():
    ds = ps.Dataset.range(3).repeat().batch(4).unbatch()
    assert ds.cardinality() == ps.INFINITE_CARDINALITY
    assert [int(ds[i]) for i in (0, 3, 10**12)] == [0, 0, 10**12 % 3]


@pytest.mark.slow
def test_many_times_taken_apart():
    ds = ps.Dataset.range(7)
    for _ in range(15):
        ds = ds.batch(2).unbatch()
    assert (len(ds), ds[6], ds[-7]) == (7, 6, 0)


def test_elements_of_unknown_length_are_not_taken_apart_by_number():
    ds = ps.Dataset.range(4).map(lambda n: np.arange(n))
    assert ds.unbatch().cardinality() == ps.UNKNOWN_CARDINALITY
    with pytest.raises(errors.UnimplementedError, match="splits elements of unknown length"):
        ds.unbatch()[0]
    padded = ds.padded_batch(2, [4]).unbatch()
    assert_same_elements([padded[i] for i in range(4)], list(padded))


def test_of_a_batch_that_failed_no_slice_has_a_value():
    ds = ps.Dataset.range(8).map(spoiled_at(3)).batch(3).unbatch()
    for i in range(8):
        if i in (3, 4, 5):
            with pytest.raises(Spoiled):
                ds[i]
        else:
            assert ds[i] == i
    found = texts(positions(ds.shuffle(ps.ALL)))
    assert found.count("Spoiled") == 3
    assert sorted(int(x) for x in found if x != "Spoiled") == [0, 1, 2, 6, 7]


def test_a_shuffle_that_chooses_makes_no_batch_for_one_element_of_it():
    ds = ps.Dataset.range(100).batch(10).unbatch().shuffle(ps.AUTOTUNE)
    assert "computes a whole batch for one element" in ds._plan.buffer_size.reason


@given(st.integers(0, 9), st.integers(0, 9))
def test_asserted_cardinalities_are_held_by_number_too(count, expected):
    """The same positions as in a pass."""
    ds = ps.Dataset.range(count).assert_cardinality(expected)
    wanted = texts(positions(ds))
    assert texts(by_number(ds, len(wanted))) == wanted
    with pytest.raises(errors.OutOfRangeError):
        ds[len(wanted)]
    if count == expected:
        assert [ds[i] for i in range(len(ds))] == list(ds)
        assert sorted(numbers(ds.shuffle(ps.ALL))) == numbers(ds)


def test_too_many_of_an_endless_input_and_too_few_for_one():
    endless = ps.Dataset.range(3).repeat()
    assert endless.assert_cardinality(ps.INFINITE_CARDINALITY)[10] == 1
    with pytest.raises(errors.FailedPreconditionError, match="found more"):
        endless.assert_cardinality(4)[4]
    with pytest.raises(errors.FailedPreconditionError, match="found only 3 elements"):
        ps.Dataset.range(3).assert_cardinality(ps.INFINITE_CARDINALITY)[3]


@settings(max_examples=60)
@given(pipelines())
def test_a_cache_of_anything_has_numbers(pipeline: Pipeline):
    """Compared with a pass that fills a cache of its own."""
    if pipeline.infinite:
        return
    ds = pipeline.dataset.cache()
    wanted = list(reference.run(ds._plan, ds.options(), 0))
    assert_same_elements([ds.at(i, epoch=1) for i in range(len(wanted))], wanted)
    with pytest.raises(errors.OutOfRangeError):  # which fills a cache of nothing, too
        ds[len(wanted)]
    assert len(ds) == len(wanted)
    assert len(ds.batch(3).enumerate()) == -(-len(wanted) // 3)
    assert repr(ds).endswith(f" {len(wanted)} elements>")
    fresh = pipeline.dataset.cache()
    with fresh.shuffle(ps.ALL).iterator(epoch=2) as elements:
        assert Counter(map(token, elements)) == Counter(map(token, wanted))
    assert_same_elements(list(ds), wanted)


INNER = {
    "of one size": lambda n: ps.Dataset.range(3),
    "of other sizes": lambda n: ps.Dataset.range(n % 4).map(lambda x: x + n),
    "shuffled": lambda n: ps.Dataset.range(5).shuffle(ps.ALL),
    "with draws": lambda n: ps.Dataset.range(2).map(lambda x: np.random.default_rng(ps.element_key()).integers(99) + x),
    "nested": lambda n: ps.Dataset.range(3).flat_map(lambda x: ps.Dataset.from_tensors(x).repeat(n % 3)),
    "with failures": lambda n: ps.Dataset.range(4).map(spoiled_at(2)) if fails_at_3(n) != 1 else ps.Dataset.range(0),
}


@pytest.mark.parametrize("case", INNER)
def test_a_flat_map_of_what_has_numbers_has_numbers(case):
    """As many, and the same, as a pass gives; each failure has the place that it has there."""
    for behind in (lambda ds: ds, lambda ds: ds.map(lambda x: x * 2).repeat(2)):
        ds = behind(ps.Dataset.range(7).map(spoiled_at(5)).flat_map(INNER[case]))
        for epoch in (0, 2):
            wanted = positions(ds, epoch=epoch)
            same(by_number(ds, len(wanted), epoch), wanted)
            with pytest.raises(errors.OutOfRangeError):
                ds.at(len(wanted), epoch)
        texts_of = Counter(str(one) for one in texts(positions(ds.shuffle(ps.ALL).ignore_errors())))
        assert sum(texts_of.values()) == sum(not isinstance(one, Spoiled) for one in wanted)


def test_what_a_flat_map_opens_is_asked_for_numbers_when_it_is_there():
    endless = ps.Dataset.range(5).flat_map(lambda n: ps.Dataset.range(4).repeat(-1 if n == 2 else 1))
    assert [int(endless[i]) for i in (3, 7, 4003)] == [3, 3, 3]
    lines = ps.Dataset.range(3).flat_map(lambda n: ps.Dataset.range(5).filter(lambda x: x > n))
    with pytest.raises(errors.UnimplementedError, match=r"flat_map.*by number.*filter") as caught:
        lines[0]
    assert "cache() after" in caught.value.hint
    assert int(lines.batch_at(4)) == 2  # runs it
    assert "shuffle(AUTOTUNE" in repr(lines.shuffle(ps.AUTOTUNE))
    assert int(lines.cache()[4]) == 2
    with pytest.raises(errors.UnimplementedError, match="without end"):
        ps.Dataset.range(3).repeat().flat_map(lambda n: ps.Dataset.range(2))[0]


def test_a_cache_in_files_is_filled_by_who_asks_for_a_number(tmp_path):
    calls = []
    kept = ps.Dataset.range(30).filter(lambda x: calls.append(int(x)) or x % 3 == 0)
    with iter(kept.cache(tmp_path / "a")) as begun:
        next(begun), next(begun)
    calls.clear()
    ds = kept.cache(tmp_path / "a")
    assert [int(ds[i]) for i in (9, 0, -1)] == [27, 0, 27]
    assert sorted(numbers(ds.shuffle(ps.ALL))) == numbers(ds) == list(range(0, 30, 3))
    assert len(ds) == 10
    assert len(calls) <= 30  # behind what the first pass has written
    failing = ps.Dataset.range(5).filter(lambda x: x > 0).map(spoiled_at(3)).cache(tmp_path / "b")
    with pytest.raises(Spoiled):
        failing[0]


def test_a_cache_is_filled_once_and_served_by_number():
    calls = []
    ds = ps.Dataset.range(30).filter(lambda x: calls.append(int(x)) or x % 3 == 0).cache()
    assert [int(ds[i]) for i in (9, 0, -1)] == [27, 0, 27]
    assert sorted(numbers(ds.shuffle(ps.ALL))) == numbers(ds) == list(range(0, 30, 3))
    assert calls == list(range(30))
    taken_apart = ps.Dataset.range(9).filter(lambda x: x != 4).batch(3).cache().unbatch()
    assert [int(taken_apart[i]) for i in range(8)] == numbers(taken_apart)
    with pytest.raises(errors.OutOfRangeError):
        taken_apart[8]


def test_a_cache_of_what_fails_has_the_positions_of_the_pass():
    ds = ps.Dataset.range(12).filter(lambda x: x != 5).map(spoiled_at(3, 7)).cache()
    wanted = texts(positions(ds))
    assert texts(by_number(ds, len(wanted))) == wanted
    assert Counter(map(str, texts(positions(ds.shuffle(ps.ALL))))) == Counter(map(str, wanted))


def test_a_cache_has_no_length_before_a_whole_pass():
    ds = ps.Dataset.range(9).filter(lambda x: x % 4 != 0).cache()
    assert len([*ds.take(2)]) == 2
    with pytest.raises(TypeError, match="unknown before an iteration"):
        len(ds)
    assert len([*ds]) == len(ds) == len(ds.take(100)) == 6
    assert ds.filter(lambda x: x > 1).cardinality() == ps.UNKNOWN_CARDINALITY
    assert [int(x) for x in ds[-2:]] == [6, 7]
    assert pickle.loads(pickle.dumps(ds.batch(2))).cardinality() == ps.UNKNOWN_CARDINALITY  # the copy's cache is empty


def test_a_cache_of_what_fails_has_no_length():
    ds = ps.Dataset.range(5).map(fails_at_3).filter(lambda x: x >= 0).cache()
    assert len([*ds.ignore_errors()]) == 4
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY


def test_a_cache_without_an_end_is_not_filled():
    ds = ps.Dataset.range(5).filter(lambda x: x > 1).repeat().cache()
    with pytest.raises(errors.UnimplementedError, match="filter"):
        ds[0]


def test_a_shuffle_of_a_cache_of_anything_resumes_everywhere():
    assert_resumes_exactly(ps.Dataset.range(11).filter(lambda x: x % 4 != 0).cache().shuffle(ps.ALL).batch(2))


def test_a_shuffle_that_chooses_fills_no_cache_for_it():
    ds = ps.Dataset.range(100).filter(lambda x: x > 3).cache().shuffle(ps.AUTOTUNE)
    assert "filter" in ds._plan.buffer_size.reason


def test_what_was_taken_apart_resumes_everywhere():
    ds = ps.Dataset.range(11).batch(3).unbatch().assert_cardinality(11)
    assert_resumes_exactly(ds.shuffle(ps.ALL))
    assert_resumes_exactly(ds.shuffle(ps.ALL).with_provenance().batch(4), limit=MOST)
    located = ds.with_provenance()
    assert [int(located[i][1].position) for i in range(11)] == [int(p.position) for _, p in located]


def test_an_element_that_fails_raises_for_itself_only():
    ds = ps.Dataset.range(8).map(spoiled_at(3, 4))
    assert [int(ds[i]) for i in (2, 5)] == [2, 5]
    with pytest.raises(Spoiled) as caught:
        ds[3]
    assert "element 3" in caught.value.__notes__[0]
    batches = ds.batch(3)
    assert batches[2].tolist() == [6, 7]
    assert batches[0].tolist() == [0, 1, 2]
    with pytest.raises(Spoiled):
        batches[1]
    assert ps.Dataset.zip(ds, ps.Dataset.range(8)).enumerate()[5] == (5, (5, 5))


def test_failures_keep_their_numbers():
    """The same positions as in a pass, through every step that reads by number.

    A pass also tells what has failed in a remainder that is dropped, which has no number.
    """
    bad = ps.Dataset.range(11).map(spoiled_at(2, 3, 9))
    other = ps.Dataset.range(11).map(lambda x: spoiled_at(7)(x) + 100)
    dropping = bad.batch(4, drop_remainder=True)
    for ds in (
        bad, bad.batch(2), bad.batch(4), dropping, bad.take(4), bad.skip(3), bad.shard(3, 0),
        bad.enumerate(), bad.repeat(2), bad.concatenate(other), other.concatenate(bad), ps.Dataset.zip(bad, other),
        bad.map(lambda x: x + 1).batch(3).map(np.sum), bad.padded_batch(3), bad.prefetch(2), bad.cache(),
        bad.with_provenance(), ps.Dataset.zip(bad, other).shuffle(ps.ALL),
    ):  # fmt: skip
        wanted = positions(ds)
        if ds is dropping:
            assert wanted.pop().args == (9,)
        same(by_number(ds, len(ds)), wanted)


# -- global shuffle


def test_all_orders_of_a_few_elements_come_equally_often():
    ds = ps.Dataset.range(3).shuffle(ps.ALL)
    seen = {}
    for epoch in range(1200):
        order = tuple(numbers(ds, epoch))
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert sum((count - 200) ** 2 / 200 for count in seen.values()) < 5 + 5 * np.sqrt(10)


@pytest.mark.parametrize("size", [1, 2, 50, 70_000])
def test_a_global_shuffle_gives_every_element_once(size):
    found = np.concatenate(list(ps.Dataset.range(size).shuffle(ps.ALL).batch(10_000)))
    assert np.array_equal(np.sort(found), np.arange(size))
    if size > 2:
        assert not np.array_equal(found, np.arange(size))


def test_every_epoch_and_turn_has_its_own_order_unless_told_otherwise():
    ds = ps.Dataset.range(30).shuffle(ps.ALL, seed=5)
    assert numbers(ds, 0) != numbers(ds, 1)
    assert numbers(ds, 1) == numbers(ds, 1)
    turns = numbers(ds.repeat(2))
    assert turns == numbers(ds, 0) + numbers(ds, 1)
    fixed = ps.Dataset.range(30).shuffle(ps.ALL, seed=5, reshuffle_each_iteration=False)
    assert numbers(fixed.repeat(2)) == 2 * numbers(fixed)
    assert list(ds) != list(ds)


def test_seeds_places_and_options_tell_shuffles_apart():
    ds = ps.Dataset.range(40)
    orders = [
        numbers(ds.shuffle(ps.ALL)),
        numbers(ds.shuffle(ps.ALL, seed=1)),
        numbers(ds.shuffle(ps.ALL).with_options(ps.Options(seed=9))),
        numbers(ds.shuffle(ps.ALL).shuffle(ps.ALL)),
        numbers(ds.take(40).shuffle(ps.ALL)),
        numbers(ds.shuffle(40)),
    ]
    assert len({tuple(order) for order in orders}) == len(orders)


def test_numbers_are_shuffled_and_maps_run_behind():
    calls = []
    ds = ps.Dataset.range(10**9).map(lambda x: calls.append(int(x)) or x).prefetch(1).shuffle(ps.ALL, seed=2)
    found = numbers(ds.take(3))
    assert calls[:3] == found
    plan = [node.label for node in ps.Dataset.range(9).map(abs, 2).shuffle(ps.ALL)._plan.walk()]
    assert plan == ["map(abs)", "shuffle(ALL)", "range(0, 9, 1)"]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_steps_that_stay_below_run_in_parallel_too(executor):
    ds = ps.Dataset.zip(ps.Dataset.range(40).map(tenfold, ps.AUTOTUNE), ps.Dataset.range(40)).shuffle(ps.ALL)
    (step,) = [node for node in ds._plan.walk() if node.label == "shuffle(ALL)"]
    assert step.num_parallel_calls == ps.AUTOTUNE
    with ds.iterator(epoch=1, executor=executor) as elements:
        assert_same_elements(list(elements), list(reference.run(ds._plan, ds.options(), 1)))
    bad = ps.Dataset.range(20).map(fails_at_3, 4).batch(2, drop_remainder=True).shuffle(ps.ALL)
    with bad.iterator(executor=executor) as elements:
        outcomes = []
        while len(outcomes) < 10:
            try:
                outcomes.append(sorted(next(elements).tolist()))
            except Spoiled:
                outcomes.append("Spoiled")
        assert list(elements) == []
    assert outcomes.count("Spoiled") == 1
    assert {x for pair in outcomes if pair != "Spoiled" for x in pair} == set(range(20)) - {2, 3}


def test_whole_batches_are_shuffled_where_batches_come_first():
    ds = ps.Dataset.range(10).batch(3).shuffle(ps.ALL)
    found = [batch.tolist() for batch in ds]
    assert sorted(found) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_over_repetitions_it_shuffles_across_them():
    found = numbers(ps.Dataset.range(50).repeat(4).shuffle(ps.ALL))
    assert sorted(found) == sorted(list(range(50)) * 4)
    assert len(set(found[:50])) < 50


def test_a_shuffle_of_a_shuffle_of_random_numbers_of_the_epoch():
    ds = ps.Dataset.range(9).shuffle(ps.ALL).batch(2).shuffle(ps.ALL)
    for epoch in range(3):
        assert sorted(x for batch in ds.iterator(epoch=epoch) for x in batch.tolist()) == list(range(9))


def test_it_starts_and_resumes_at_once_and_holds_nothing():
    ds = ps.Dataset.range(10**12).shuffle(ps.ALL)
    stage = stage_of(ds)
    stage.restore({"below": 9 * 10**11, "skip": 0, "steps": [[9 * 10**11, 0]]})
    assert stage.next(4).elements() == [ds.at(9 * 10**11 + i) for i in range(4)]
    after = 9 * 10**11 + 4
    kind = "('int64 of rank 0', None)"
    assert as_of_now(stage.state()) == {"below": after, "skip": 0, "steps": [[after, 0, kind]]}


@pytest.mark.parametrize("size", [0, 1, 17])
def test_a_global_shuffle_resumes_everywhere(size):
    base = ps.Dataset.range(size)
    assert_resumes_exactly(base.shuffle(ps.ALL))
    assert_resumes_exactly(base.map(lambda x: x + 1, 2).batch(3).shuffle(ps.ALL).repeat(2))
    assert_resumes_exactly(base.shuffle(ps.ALL).with_provenance().batch(4), limit=MOST)


def test_stages_continue_behind_failures():
    bad = ps.Dataset.range(11).map(spoiled_at(2, 3, 9))
    assert_continues_everywhere(bad.batch(2).shuffle(ps.ALL))
    assert_continues_everywhere(ps.Dataset.zip(bad, bad).shuffle(ps.ALL))
    assert_continues_everywhere(bad.with_provenance())
    assert_continues_everywhere(ps.Dataset.zip(ps.Dataset.range(9), bad).with_provenance())


def test_a_shuffle_gives_failures_in_their_places():
    ds = ps.Dataset.range(6).map(spoiled_at(4)).enumerate().map(lambda i, x: x).shuffle(ps.ALL, seed=1)
    order = numbers(ps.Dataset.range(6).shuffle(ps.ALL, seed=1))
    assert texts(positions(ds)) == ["Spoiled" if x == 4 else x for x in order]


def test_an_unknown_cardinality_is_a_buffer_for_everything():
    ds = ps.Dataset.range(300).filter(lambda x: x % 2 == 0).shuffle(ps.UNKNOWN_CARDINALITY, seed=1)
    found = numbers(ds)
    assert sorted(found) == list(range(0, 300, 2))
    assert max(abs(x // 2 - place) for place, x in enumerate(found)) > 75
    assert_resumes_exactly(ds.take(20))


def test_all_is_one_thing():
    assert repr(ps.ALL) == "penstock.ALL"
    assert pickle.loads(pickle.dumps(ps.ALL)) is ps.ALL


# -- index_shuffle


def test_index_shuffle_is_a_permutation_of_its_dtype_and_shape():
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        found = ps.experimental.index_shuffle(np.arange(12, dtype=dtype).reshape(3, 4), [1, 2], 11)
        assert (found.dtype, found.shape) == (dtype, (3, 4))
        assert sorted(found.reshape(-1).tolist()) == list(range(12))
    assert ps.experimental.index_shuffle(np.empty(0, np.int64), 1, 5).shape == (0,)
    assert ps.experimental.index_shuffle(0, 1, 0) == 0


def test_index_shuffle_depends_on_seed_and_size():
    orders = [
        ps.experimental.index_shuffle(np.arange(20), seed, most)
        for seed, most in [(1, 19), (2, 19), ((1, 2), 19), ((2, 1), 19), ((1, 2, 3), 19), (1, 20)]
    ]
    assert len({tuple(order.tolist()) for order in orders}) == len(orders)
    large = ps.experimental.index_shuffle(np.arange(1000), 7, 2**62)
    assert len(set(large.tolist())) == 1000
    assert large.max() > 2**61


# -- provenance


@pytest.fixture
def records(tmp_path):
    """Two files of records, and the byte at which each begins."""
    offsets = {}
    for name, count in (("a", 5), ("b", 3)):
        path = tmp_path / f"{name}.tfrecord"
        at, found = 0, []
        with ps.io.TFRecordWriter(path) as writer:
            for i in range(count):
                content = f"{name}{i}".encode() * (i + 1)
                writer.write(content)
                found.append(at)
                at += 16 + len(content)
        offsets[str(path)] = found
    return offsets


def origins(dataset):
    """(element, file, offset, position) of single elements."""
    return [(x, p.file.decode(), int(p.offset), int(p.position)) for x, p in dataset.with_provenance()]


def test_records_know_their_file_byte_and_number(records):
    wanted = [
        (f"{name[-10]}{i}".encode() * (i + 1), name, offset, i)
        for name, offsets in records.items()
        for i, offset in enumerate(offsets)
    ]
    files = list(records)
    ds = ps.TFRecordDataset(files)
    assert origins(ds) == wanted
    assert sorted(origins(ds.shuffle(4))) == sorted(wanted)
    assert sorted(origins(ds.cache().shuffle(4).repeat(1))) == sorted(wanted)
    assert origins(ps.TFRecordDataset([files[1], files[1], files[0]])) == wanted[5:] * 2 + wanted[:5]
    interleaved = ps.Dataset.from_tensor_slices(files).interleave(ps.TFRecordDataset, cycle_length=2)
    assert sorted(origins(interleaved)) == sorted(wanted)
    assert [p for _, *p in origins(ds.filter(lambda record: record[1:2] == b"2"))] == [
        list(wanted[2][1:]),
        list(wanted[7][1:]),
    ]


def test_batches_have_an_entry_for_each_of_their_elements(records):
    ds = ps.TFRecordDataset(list(records)).map(lambda record: len(record), num_parallel_calls=2).batch(3)
    found = list(ds.with_provenance())
    assert [p.position.tolist() for _, p in found] == [[0, 1, 2], [3, 4, 0], [1, 2]]
    assert [p.file.tolist() for _, p in found][1] == [
        name.encode() for name in [*list(records)[:1] * 2, list(records)[1]]
    ]
    assert found[2][1].offset.tolist() == records[list(records)[1]][1:]
    twice = list(ps.Dataset.range(8).batch(2).batch(2).with_provenance())
    assert [p.position.tolist() for _, p in twice] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    apart = list(ps.Dataset.range(5).batch(2).unbatch().with_provenance())
    assert [int(p.position) for _, p in apart] == [0, 1, 2, 3, 4]


def test_batches_of_different_sizes_have_as_many_entries_as_elements():
    uneven = ps.Dataset.range(9).batch_by_tokens(
        2, lambda x: x % 4, max_elements=None, sort_window=3, shuffle_batches=False, too_long="alone"
    )
    for ds in (uneven, uneven.shuffle(3, seed=1), uneven.cache(), uneven.prefetch(2)):
        found = list(ds.with_provenance())
        assert len({len(batch) for batch, _ in found}) > 1
        for batch, provenance in found:
            assert provenance.position.tolist() == batch.tolist()
            assert provenance.file.tolist() == [b"range(0, 9, 1)"] * len(batch)
            assert provenance.offset.tolist() == [-1] * len(batch)
    assert_resumes_exactly(uneven.with_provenance().shuffle(3, seed=1))
    apart = list(uneven.unbatch().with_provenance())
    assert [int(p.position) for _, p in apart] == [int(x) for x, _ in apart]
    for size in (1, 3, 7):  # in turn, cut from rows at hand or joined
        for batch, provenance in ps.Dataset.range(30).batch(size).rebatch([5, 1, 1]).with_provenance():
            assert provenance.position.tolist() == batch.tolist()
    sums = list(uneven.map(lambda batch: batch.sum()).batch(2).with_provenance())
    assert sums[0][1].position.tolist() == [[0, 1], [2, -1]]
    assert sums[0][1].file.tolist()[1] == [b"range(0, 9, 1)", b""]


def test_sources_in_memory_give_their_name_and_the_number_in_them():
    ds = ps.Dataset.from_tensor_slices(np.arange(10) * 3).skip(2).shard(2, 1).take(3)
    for switched in (True, False):
        options = ps.Options()
        options.experimental_optimization.push_into_source = switched
        assert origins(ds.with_options(options)) == [(x, "from_tensor_slices", -1, x // 3) for x in (9, 15, 21)]
    generated = ps.Dataset.from_generator(lambda: iter("abc"))
    assert [p[1:] for p in origins(generated)] == [("from_generator(<lambda>)", -1, i) for i in range(3)]
    pair = ps.Dataset.range(3).concatenate(ps.Dataset.range(7, 9))
    assert [p[1:] for p in origins(pair)] == [("range(0, 3, 1)", -1, i) for i in range(3)] + [
        ("range(7, 9, 1)", -1, i) for i in range(2)
    ]


def test_a_global_shuffle_and_at_know_the_numbers_too():
    ds = ps.Dataset.range(0, 1000, 10)
    assert all(x == 10 * position for x, _, _, position in origins(ds.shuffle(ps.ALL)))
    element, provenance = ds.with_provenance()[7]
    assert (element, provenance.position) == (70, 7)
    shuffled = ds.shuffle(ps.ALL)
    for (element, provenance), wanted in zip(
        shuffled.with_provenance().iterator(epoch=2), numbers(shuffled, 2), strict=True
    ):
        assert element == wanted == ds.at(provenance.position)


def test_numbers_count_what_fails(tmp_path, records):
    path, other = records
    content = bytearray(Path(path).read_bytes())
    content[records[path][2] + 13] ^= 1
    damaged = tmp_path / "damaged.tfrecord"
    damaged.write_bytes(content)
    ds = ps.TFRecordDataset([str(damaged), str(tmp_path / "missing"), other]).with_provenance()
    found = positions(ds)
    assert [type(item).__name__ for item in found if isinstance(item, Exception)] == ["DataLossError", "NotFoundError"]
    assert [int(item[1].position) for item in found if not isinstance(item, Exception)] == [0, 1, 3, 4, 0, 1, 2]
    assert_continues_everywhere(ds)


def test_what_was_cached_without_numbers_has_none():
    cached = ps.Dataset.range(3).cache()
    assert list(cached)
    assert [p[1:] for p in origins(cached)] == [("", -1, -1)] * 3


def test_provenance_resumes_everywhere(records):
    ds = ps.TFRecordDataset([*records, *records])
    assert_resumes_exactly(ds.with_provenance())
    assert_resumes_exactly(ds.shuffle(3).batch(2).with_provenance())
    assert_resumes_exactly(ps.Dataset.range(9).skip(2).with_provenance().batch(2))


def test_the_spec_of_provenance():
    ds = ps.Dataset.range(9)
    int64, text = np.int64, bytes
    single = ps.Provenance(ps.TensorSpec((), text), ps.TensorSpec((), int64), ps.TensorSpec((), int64))
    assert ds.shuffle(3).with_provenance().element_spec == (ps.TensorSpec((), int64), single)
    for dataset in (
        ds.batch(2),
        ds.batch(2, drop_remainder=True),
        ds.batch(3).batch(2),
        ps.Dataset.zip(ds.batch(4), ds),
    ):
        (_, spec) = dataset.with_provenance().element_spec
        first = next(iter(dataset.with_provenance()))[1]
        assert all(part.admits(value) for part, value in zip(spec, first, strict=True))
    _, spec = ds.batch(2, drop_remainder=True).batch(3).with_provenance().element_spec
    assert spec.position == ps.TensorSpec((None, 2), int64)


def test_nothing_is_numbered_unless_asked_for(records):
    stage = stage_of(ps.TFRecordDataset(list(records)).shuffle(2))
    while (block := stage.next(10)) is not None:
        assert block.origin.position is None
    assert stage_of(ps.Dataset.range(3)).next(3).origin is None


def test_an_error_names_no_file_where_there_is_none():
    ds = ps.Dataset.range(3).map(spoiled_at(1)).with_provenance()
    failed = next(item for item in positions(ds) if isinstance(item, Exception))
    assert "file" not in failed.__notes__[0]


# -- wrong arguments

ARGUMENTS = {
    "at_text": lambda ds: ds.at("3"),
    "at_behind": lambda ds: ds[5],
    "at_before": lambda ds: ds.at(-6),
    "at_behind_one": lambda ds: ds.batch(9)[1],
    "at_endless": lambda ds: ds.repeat()[-1],
    "at_filter": lambda ds: ds.filter(lambda x: x > 1).batch(2)[0],
    "at_generator": lambda ds: ps.Dataset.from_generator(range, args=(3,))[0],
    "at_shuffle": lambda ds: ds.shuffle(3)[0],
    "at_epoch": lambda ds: ds.at(0, epoch=-1),
    "at_function": lambda ds: ps.experimental.at([1, 2], 0),
    "slice_backwards": lambda ds: ds[::-1],
    "slice_float": lambda ds: ds[1.5:],
    "batch_at_negative": lambda ds: ds.batch_at(-1),
    "batch_at_behind": lambda ds: ds.filter(lambda x: x > 1).batch_at(4),
    "shuffle_all_filter": lambda ds: ds.filter(lambda x: x > 1).map(abs).shuffle(ps.ALL),
    "shuffle_all_endless": lambda ds: ds.repeat().shuffle(ps.ALL),
    "shuffle_all_seed": lambda ds: ds.shuffle(ps.ALL, seed="a"),
    "shuffle_all_text": lambda ds: ds.shuffle("ALL"),
    "index_shuffle_behind": lambda ds: ps.experimental.index_shuffle([1, 7], 1, 5),
    "index_shuffle_negative": lambda ds: ps.experimental.index_shuffle(-1, 1, 5),
    "index_shuffle_float": lambda ds: ps.experimental.index_shuffle(0.5, 1, 5),
    "index_shuffle_seed": lambda ds: ps.experimental.index_shuffle(0, (1, 2, 3, 4), 5),
    "index_shuffle_most": lambda ds: ps.experimental.index_shuffle(0, 1, 2**63),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises((errors.PenstockError, TypeError)) as caught:
        ARGUMENTS[name](ps.Dataset.range(5))
    assert_golden(f"argument_indexing_{name}", said(caught.value))
