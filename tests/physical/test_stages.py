"""What a data set of small steps cannot show: laziness, laws of single stages, Blocks that stay whole."""

import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import pipelines

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import column_of
from penstock.dataset.base import inner
from penstock.physical import builders as _builders  # noqa: F401 - registers what runs for each node
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import Cursor, Stage, as_of_now
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.combine import Sequence
from penstock.physical.stages.cut import Shard, Skip, Take
from penstock.physical.stages.grouped import Grouped
from penstock.physical.stages.shuffle import Shuffle
from penstock.rewrite.driver import optimise_inner
from penstock.runtime.executors.inline import InlineExecutor
from penstock.runtime.run import Iterator, Settings
from penstock.testing import assert_same_elements


class Numbers(Stage):
    """0, 1, 2, … in Blocks of the given sizes, whatever is wanted; counts what it was asked for."""

    def __init__(self, sizes):
        super().__init__("numbers")
        self.sizes = list(sizes)
        self.at = 0
        self.closed = 0

    def next(self, want):
        if not self.sizes:
            return None
        size = self.sizes.pop(0)
        self.at += size
        return Block.single(column_of([np.int64(i) for i in range(self.at - size, self.at)]))

    def state(self):
        return self.at

    def restore(self, state):
        while self.at < state:
            self.at += self.sizes.pop(0)

    def close(self):
        self.closed += 1


def blocks(stage, want):
    found = []
    while (block := stage.next(want)) is not None:
        assert block.size > 0
        found.append(block.elements())
    assert stage.next(want) is None
    return found


def flat(found):
    return [int(x) for block in found for x in block]


@pytest.mark.parametrize("want", [1, 2, 5, 100])
@pytest.mark.parametrize("sizes", [[10], [1] * 10, [3, 1, 6], [9, 1]])
def test_results_do_not_depend_on_how_the_input_is_cut(sizes, want):
    assert flat(blocks(Take(Numbers(sizes), 7, "take", None), want)) == list(range(7))
    assert flat(blocks(Skip(Numbers(sizes), 4, "skip", None), want)) == list(range(4, 10))
    assert flat(blocks(Shard(Numbers(sizes), 3, 1, "shard", None), want)) == [1, 4, 7]
    batches = blocks(Grouped(Numbers(sizes), 4, stack_block, "batch", None, drop_remainder=False), want)
    assert [b.tolist() for block in batches for b in block] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    orders = {tuple(flat(blocks(Shuffle(Numbers(s), 4, 99, "shuffle", None), want))) for s in ([10], sizes)}
    assert len(orders) == 1
    assert sorted(orders.pop()) == list(range(10))


def test_a_cursor_takes_exactly_and_knows_where_it_is():
    cursor = Cursor(Numbers([4, 4, 4]))
    assert flat([cursor.take(3).block.elements()]) == [0, 1, 2]
    state = cursor.state()
    assert flat([cursor.take(6).block.elements()]) == [3, 4, 5, 6, 7, 8]
    again = Cursor(Numbers([4, 4, 4]))
    again.restore(state)
    assert flat([again.take(6).block.elements()]) == [3, 4, 5, 6, 7, 8]
    assert again.take(10).size == 3
    assert again.take(1) is None


def test_a_cursor_restored_in_the_middle_of_what_it_skips_still_knows():
    cursor = Cursor(Numbers([1] * 9))
    cursor.restore([0, 5])
    state = cursor.state()
    other = Cursor(Numbers([1] * 9))
    other.restore(state)
    assert flat([cursor.take(2).block.elements()]) == flat([other.take(2).block.elements()]) == [5, 6]


def test_take_asks_for_nothing_behind_its_end():
    made = []

    def counted(x):
        made.append(int(x))
        return x

    options = ps.Options()
    options.experimental_optimization.map_vectorization = False
    ds = ps.Dataset.range(10**9).map(counted).take(5).with_options(options)
    assert [int(x) for x in ds] == list(range(5))
    assert max(made) == 4


def test_a_sequence_closes_each_stream_when_its_turn_is_over():
    made = []

    def build(index):
        made.append(Numbers([2]))
        return made[-1]

    stage = Sequence(build, 3, "repeat", None)
    assert flat(blocks(stage, 10)) == [0, 1, 0, 1, 0, 1]
    assert [part.closed for part in made] == [1, 1, 1]


def test_sequences_in_sequences_are_one_row_that_goes_on_from_everywhere():
    def nested(depth):
        inner = [lambda: nested(depth - 1)] * (depth > 0)
        parts = [lambda: Numbers([depth] * (depth % 3)), *inner, lambda: Numbers([])]
        return Sequence(lambda index: parts[index % len(parts)](), 2 * len(parts), "concatenate", None)

    stage, wanted = nested(4), []
    states = [as_of_now(stage.state())]
    while (block := stage.next(1)) is not None:
        wanted.append(block.elements())
        states.append(as_of_now(stage.state()))
    assert stage.next(1) is None
    assert len(wanted) == len(states) - 1 > 30
    for number, state in enumerate(states):
        again = nested(4)
        again.restore(state)
        assert as_of_now(again.state()) == state
        assert blocks(again, 1) == wanted[number:]


def test_a_sequence_that_was_asked_before_it_is_restored_goes_on_where_the_state_says():
    made = []

    def build(index):
        made.append(Numbers([1] * 4))
        return made[-1]

    stage = Sequence(build, 3, "repeat", None)
    assert not stage.can_skip()
    assert not stage.seen
    stage.restore([1, 2, True, 3])
    assert flat(blocks(stage, 10)) == [2, 3, 0, 1, 2, 3]
    assert all(part.closed for part in made)


@settings(max_examples=30)
@given(pipelines(most_steps=3), st.data())
def test_what_a_stage_is_asked_before_it_is_restored_changes_nothing(pipeline, data):
    dataset = pipeline.dataset.repeat(data.draw(st.integers(1, 2)))
    wanted = list(dataset.iterator(epoch=0, executor="inline"))
    place = data.draw(st.integers(0, len(wanted)))
    options = dataset.options()

    def opened():
        return lower(
            optimise_inner(dataset._plan, options), Lowering(options, InlineExecutor(options), 0, dataset=inner)
        )

    first = Cursor(opened())
    found = first.take(place)
    again = opened()
    again.can_skip()
    _ = again.seen, again.seen_below
    second = Cursor(again)
    second.restore(as_of_now(first.state()))
    rest = second.take(len(wanted) + 1)
    parts = [part.block for part in (found, rest) if part is not None]
    assert_same_elements([element for block in parts for element in block.elements()], wanted)


def test_an_endless_repetition_of_nothing_ends():
    assert blocks(Sequence(lambda index: Numbers([]), -1, "repeat", None), 10) == []
    assert list(ps.Dataset.range(0).repeat()) == []


def test_whole_batches_are_views_of_one_block():
    batches = list(ps.Dataset.from_tensor_slices(np.arange(64).reshape(32, 2)).batch(4))
    assert len(batches) == 8
    source = np.arange(40)
    views = ps.Options(zero_copy=True)
    (first, *_) = list(ps.Dataset.from_tensor_slices(source).batch(20).with_options(views))
    assert np.shares_memory(first, source)


def test_a_shuffle_moves_every_element_about_equally():
    """Position by element, over many epochs: the mean place of every element is the middle of the stream."""
    size, epochs = 20, 400
    ds = ps.Dataset.range(size).shuffle(size)
    places = np.zeros((epochs, size))
    for epoch in range(epochs):
        order = [int(x) for x in ds.iterator(epoch=epoch, executor="inline")]
        places[epoch, order] = np.arange(size)
    spread = (size**2 / 12 / epochs) ** 0.5
    assert abs(places.mean(axis=0) - (size - 1) / 2).max() < 5 * spread


def test_a_shuffle_buffer_bounds_how_early_an_element_can_come():
    order = [int(x) for x in ps.Dataset.range(100).shuffle(8)]
    assert all(element < place + 8 for place, element in enumerate(order))


def test_two_shuffles_of_one_plan_differ_and_a_seed_makes_them_alike():
    once = [int(x) for x in ps.Dataset.range(50).shuffle(50).iterator(epoch=0)]
    twice = [int(x) for x in ps.Dataset.range(50).shuffle(50).shuffle(50).iterator(epoch=0)]
    assert once != twice
    other = ps.Dataset.range(50).shuffle(50).with_options(ps.Options(seed=1))
    assert once != [int(x) for x in other.iterator(epoch=0)]
    fixed = ps.Dataset.range(50).shuffle(50, seed=3, reshuffle_each_iteration=False)
    assert list(fixed) == list(fixed)
    again = ps.Dataset.range(50).shuffle(50, seed=3)
    assert list(again) != list(again)


def test_a_shuffle_s_checkpoint_holds_no_elements():
    ds = ps.Dataset.range(10**6).shuffle(10_000)
    with ds.iterator() as elements:
        next(elements)
        assert len(repr(elements.state_dict())) < 2000


def test_observers_are_called_around_next_once_for_a_stage_and_let_go_of_it():
    told = []

    def observer(name):
        def around(ask):
            def observed(want):
                told.append((name, want))
                return ask(want)

            return observed

        return around

    stage = Numbers([3])
    assert not stage.is_observed
    stage.observe([observer("inner"), observer("outer")])
    assert stage.is_observed
    assert stage.next(2) is not None
    assert told == [("outer", 2), ("inner", 2)]
    known = weakref.ref(stage)
    del stage
    assert known() is None


def test_a_step_that_does_nothing_is_the_stage_below_it_and_observed_once():
    """Memory and meter both look; `take(-1)` gives the stage of what it takes from."""
    ds = ps.Dataset.range(10).map(lambda x: x + 1).take(-1).batch(5)
    plan, shown = ds._plan, []

    def meter(node, stage):
        shown.append(type(node).__name__)
        return lambda ask: ask

    options = ps.Options(autotune={"ram_budget": 1 << 30})
    with Iterator(plan, options, 0, Settings("inline", meter=meter)) as elements:
        assert [batch.tolist() for batch in elements] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert len(shown) == len(set(shown))
