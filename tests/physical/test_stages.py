"""What a data set of small steps cannot show: laziness, laws of single stages, Blocks that stay whole."""

import contextlib
import inspect
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
from penstock.errors import Context, PenstockError, as_failure
from penstock.physical import builders as _builders  # noqa: F401 - registers what runs for each node
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import CountingStage, Cursor, Stage, StretchStage, as_of_now
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.combine import SequenceStage
from penstock.physical.stages.cut import ShardStage, SkipStage, TakeStage
from penstock.physical.stages.grouped import GroupedStage
from penstock.physical.stages.mix import Agreement
from penstock.physical.stages.shuffle import ShuffleStage
from penstock.physical.stretch import Stretch, join, joined_kinds
from penstock.plan.node import StepName
from penstock.rewrite.driver import optimise_inner
from penstock.runtime.executors import InlineExecutor
from penstock.runtime.run import Iterator, RunSettings
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
    assert flat(blocks(TakeStage(Numbers(sizes), 7, StepName("take")), want)) == list(range(7))
    assert flat(blocks(SkipStage(Numbers(sizes), 4, StepName("skip")), want)) == list(range(4, 10))
    assert flat(blocks(ShardStage(Numbers(sizes), 3, 1, StepName("shard")), want)) == [1, 4, 7]
    batches = blocks(GroupedStage(Numbers(sizes), 4, stack_block, StepName("batch"), drop_remainder=False), want)
    assert [b.tolist() for block in batches for b in block] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    orders = {tuple(flat(blocks(ShuffleStage(Numbers(s), 4, 99, StepName("shuffle")), want))) for s in ([10], sizes)}
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

    stage = SequenceStage(build, 3, StepName("repeat"))
    assert flat(blocks(stage, 10)) == [0, 1, 0, 1, 0, 1]
    assert [part.closed for part in made] == [1, 1, 1]


def test_sequences_in_sequences_are_one_row_that_goes_on_from_everywhere():
    def nested(depth):
        inner = [lambda: nested(depth - 1)] * (depth > 0)
        parts = [lambda: Numbers([depth] * (depth % 3)), *inner, lambda: Numbers([])]
        return SequenceStage(lambda index: parts[index % len(parts)](), 2 * len(parts), StepName("concatenate"))

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


def test_each_of_the_sequences_in_sequences_is_gone_through_once(monkeypatch):
    """Else a data set that was concatenated bit by bit costs the more, the longer it is."""
    asked = []
    current = SequenceStage._current
    monkeypatch.setattr(SequenceStage, "_current", lambda self: asked.append(1) or current(self))

    def asked_for(depth):
        stage = Numbers([1])
        for _ in range(depth):
            stage = SequenceStage([stage, Numbers([1])].__getitem__, 2, StepName("concatenate"))
        asked.clear()
        assert len(blocks(stage, 1)) == depth + 1
        return len(asked)

    assert asked_for(400) < 6 * asked_for(100)


@settings(max_examples=50)
@given(st.recursive(st.booleans(), lambda parts: st.lists(parts, max_size=3), max_leaves=8), st.booleans())
def test_whoever_stands_behind_sequences_in_sequences_knows_what_is_seen_of_the_stream_whose_turn_it_is(tree, alike):
    """`tree`: of streams in streams, those that act; True and False in the midst of a stream, False at its end."""

    def built(part):
        if isinstance(part, bool):
            stage = Numbers([1, 1])
            stage.acts = part
            return stage
        return SequenceStage(lambda index: built(part[index]), len(part), StepName("concatenate"), alike=alike)

    def leaves(part):
        return [part] if isinstance(part, bool) else [leaf for each in part for leaf in leaves(each)]

    above = TakeStage(built([tree]), 100, StepName("take"))
    for acts in leaves(tree):
        for _ in range(2):
            assert above.next(1) is not None
            assert above.seen == above.seen_below == acts
    assert above.next(1) is None


def told(elements):
    """All that comes: elements as they are, failures by the line of the step, the element's number and the message."""
    found = []
    while True:
        try:
            found.append(next(elements))
        except StopIteration:
            return found
        except PenstockError as error:
            found.append((error.context.where.rpartition(":")[2], error.context.element, error.message))


@pytest.mark.parametrize("observed", [False, True])
def test_an_element_of_another_kind_is_said_to_be_of_the_data_set_and_the_line_that_joined_it(observed):
    def unknown(values):  # nobody knows of which kind before it runs
        return ps.Dataset.from_generator(lambda: iter(values))

    line = inspect.currentframe().f_lineno
    first = unknown([1]).concatenate(unknown([b"b"]))
    second = first.concatenate(unknown([2, 3]))
    dataset = second.concatenate(unknown([0.5]).concatenate(unknown([b"d"])))
    options = dataset.options()
    meter = (lambda node, stage: lambda ask: ask) if observed else None

    def opened():
        return Iterator(optimise_inner(dataset._plan, options), options, 0, RunSettings("inline", meter=meter))

    with opened() as elements:
        found = told(elements)
    of_ints = "the elements before it were int64 of rank 0."
    assert found == [
        1,
        (str(line + 1), 1, f"Data set 1 gives bytes of rank 0; {of_ints}"),
        2,
        3,
        (str(line + 3), 4, f"Data set 1 gives float32 of rank 0; {of_ints}"),
        (str(line + 3), 1, "Data set 1 gives bytes of rank 0; the elements before it were float32 of rank 0."),
    ]
    for number in range(len(found)):
        with opened() as elements, opened() as later:
            for _ in range(number):
                with contextlib.suppress(PenstockError):
                    next(elements)
            later.load_state_dict(elements.state_dict())
            assert told(later) == found[number:]


def test_many_data_sets_of_unknown_kinds_are_joined_bit_by_bit_with_one_look_at_each_element(monkeypatch):
    looks = []
    admits = Agreement.admits
    monkeypatch.setattr(Agreement, "admits", lambda self, block: looks.append(block.size) or admits(self, block))
    dataset = ps.Dataset.from_generator(lambda: iter([0]))
    for number in range(1, 30):
        dataset = dataset.concatenate(ps.Dataset.from_generator(lambda number=number: iter([number])))
    assert list(dataset) == list(range(30))
    assert sum(looks) == 30


def test_a_sequence_that_was_asked_before_it_is_restored_goes_on_where_the_state_says():
    made = []

    def build(index):
        made.append(Numbers([1] * 4))
        return made[-1]

    stage = SequenceStage(build, 3, StepName("repeat"))
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
    assert blocks(SequenceStage(lambda index: Numbers([]), -1, StepName("repeat")), 10) == []
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
    with Iterator(plan, options, 0, RunSettings("inline", meter=meter)) as elements:
        assert [batch.tolist() for batch in elements] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert len(shown) == len(set(shown))


def test_what_is_seen_of_a_stage_is_remembered_until_somebody_looks_again():
    below = Numbers([1])
    above = TakeStage(below, 1, StepName("take"))
    for acts in (False, True, False):
        below.acts = acts
        Stage.look_again()
        assert above.seen == above.seen_below == acts
        below.acts = not acts
        assert above.seen == above.seen_below == acts


class Told(Numbers):
    """Counts how often it was asked for its state."""

    def __init__(self, sizes):
        super().__init__(sizes)
        self.asked = 0

    def state(self):
        self.asked += 1
        return self.at

    def restore(self, state):
        super().restore(state)

    def start(self):
        self.at += 100

    def skip(self, count):
        self.at += count
        return count


def test_a_state_is_remembered_until_the_stage_moves():
    stage = Told([1, 1])
    acts = [lambda: stage.next(1), lambda: stage.restore(2), stage.start, lambda: stage.skip(5), stage.close]
    for number, act in enumerate(acts, 1):
        assert [stage.state() for _ in range(3)] == [stage.at] * 3
        assert stage.asked == number
        act()
    stage.alone = False  # others move it: it is asked each time
    assert [stage.state() for _ in range(3)] == [stage.at] * 3
    assert stage.asked == len(acts) + 3


def test_a_state_that_was_asked_while_the_stage_moved_is_not_remembered():
    class Asking(Told):
        def next(self, want):
            self.state()
            return super().next(want)

    stage = Asking([1, 1])
    for at in range(3):
        assert stage.state() == at
        stage.next(1)


class Stretches(StretchStage):
    """Hands on given stretches."""

    def __init__(self, made, *, cuts):
        super().__init__("stretches")
        self.made, self.cuts, self.at = made, cuts, 0

    def make(self, want):
        self.at += 1
        made = self.made[self.at - 1] if self.at <= len(self.made) else None
        if isinstance(made, Exception):
            raise as_failure(made, Context())
        return made

    def place(self):
        return self.at

    def go_to(self, place):
        self.at = place


def numbers_of(*elements):
    return Block.single(column_of([np.int64(x) for x in elements]))


@pytest.mark.parametrize("cuts", [False, True])
def test_a_stretch_that_was_made_is_given_bit_by_bit_and_goes_on_anywhere(cuts):
    spoiled, last = ValueError("spoiled"), KeyError("last")
    mixed = Stretch(numbers_of(3, 4, 5, 7), ((3, spoiled),))
    made = [Stretch(numbers_of(0, 1, 2)), Stretch(None), mixed, last]
    wanted = [0, 1, 2, 3, 4, 5, spoiled, 7, last]

    def rest(stage, want):
        found, states = [], [as_of_now(stage.state())]
        while True:
            try:
                block = stage.next(want)
            except Exception as error:
                found.append(error)
            else:
                if block is None:
                    return found, states
                assert 0 < block.size <= (want if cuts else 3)
                found += [int(x) for x in block.elements()]
            states += [as_of_now(stage.state())] * (len(found) + 1 - len(states))

    for want in (1, 2, 10):
        stage = Stretches(made, cuts=cuts)
        found, _ = rest(stage, want)
        assert found == wanted
    again = Stretches(made, cuts=cuts)
    again.restore([3, 1])  # what fails had been given already
    assert again.next(1) is None
    found, states = rest(Stretches(made, cuts=True), 1)
    for number, state in enumerate(states):
        again = Stretches(made, cuts=cuts)
        again.restore(state)
        if number < len(wanted):  # what it has not gone to yet, it says as it was told
            assert as_of_now(again.state()) == state
        assert rest(again, 2)[0] == wanted[number:]


def test_a_block_that_is_not_to_be_cut_is_handed_on_as_it_is():
    block = numbers_of(0, 1, 2)
    assert Stretches([Stretch(block)], cuts=False).next(1) is block
    assert Stretches([Stretch(block)], cuts=True).next(3) is block


def test_stretches_are_elements_and_failures_in_their_places():
    chance = np.random.default_rng(0)
    for _ in range(20):
        items = [RuntimeError(i) if chance.random() < 0.2 else i for i in range(int(chance.integers(1, 400)))]
        elements = [item for item in items if not isinstance(item, Exception)]
        failures = tuple((i, item) for i, item in enumerate(items) if isinstance(item, Exception))
        whole = Stretch(numbers_of(*elements) if elements else None, failures)
        assert whole.size == len(items)
        assert whole.error is (failures[0][1] if failures else None)
        start, stop = sorted(chance.integers(0, len(items) + 1, 2).tolist())
        parts = [whole.slice(0, start), whole.slice(start, stop), whole.slice(stop, len(items) + 5)]
        lists = [items[:start], items[start:stop], items[stop:]]
        for part, wanted in zip([*parts, join(parts)], [*lists, items], strict=True):
            found = []
            for piece in part.pieces():
                assert isinstance(piece, Exception) or piece.size > 0
                found += [piece] if isinstance(piece, Exception) else [int(x) for x in piece.elements()]
            assert found == wanted
            assert (part.block is None) == all(isinstance(item, Exception) for item in wanted)
        for i, item in enumerate(items):
            assert whole.slice(i, i) == Stretch(None)
            assert (whole.slice(i, i + 1).block is None) == isinstance(item, Exception)
    assert join([whole]) is whole


def test_stretches_with_the_same_elements_are_equal_whatever_their_kinds_are():
    assert Stretch(None, kinds=((0, "a"),), again=lambda: Stretch(None)) == Stretch(None)


def test_joined_kinds_stand_by_place_each_once():
    assert joined_kinds([((2, "a"),), ((1, "b"), (2, "a")), ((2, "0"),)]) == ((1, "b"), (2, "a"), (2, "0"))


class Passed(Stretches):
    """Passes over numbers, of which there are ten."""

    def skip(self, count):
        return super().skip(count)

    def pass_over(self, count):
        passed = min(count, 10 - self.at)
        self.at += passed
        return passed


def test_what_is_passed_over_does_not_count_what_an_earlier_run_had_had():
    for owed, count, wanted in ((0, 4, 4), (3, 4, 4), (3, 9, 7), (12, 2, 0)):
        stage = Passed([], cuts=False)
        stage.restore([0, owed])
        assert stage.skip(count) == wanted
        assert as_of_now(stage.state()) == [min(owed + count, 10), 0]
        cursor = Cursor(Passed([], cuts=False))
        cursor.restore([[0, 0], owed])
        assert cursor.skip(count) == wanted
        assert as_of_now(cursor.state()) == [[min(owed + count, 10), 0], 0]


def test_a_stage_begins_and_ends_with_those_below_it():
    below = Told([1])
    above = TakeStage(below, 1, StepName("take"))
    above.start()
    assert below.at == 100
    above.close()
    assert below.closed == 1
    assert not Numbers([]).at_hand


def test_a_cursor_shows_what_comes_and_what_came_last():
    cursor = Cursor(Numbers([4, 2]))
    assert cursor.available() == 0
    assert cursor.fill(1)
    assert (cursor.available(), cursor.offset, cursor.before) == (4, 0, [0, 0])
    assert flat([cursor.peek().elements()]) == [0, 1, 2, 3]
    cursor.pass_by(1)
    assert flat([cursor.take_available(2).elements()]) == [1, 2]
    assert flat([cursor.last().elements()]) == [2]
    assert (cursor.available(), cursor.offset, cursor.state()) == (1, 3, [0, 3])
    assert flat([cursor.take_available(9).elements()]) == [3]
    assert (cursor.available(), cursor.state()) == (0, [4, 0])
    assert cursor.fill(1)
    assert (cursor.before, cursor.offset) == ([4, 0], 0)


def test_a_cursor_asks_a_stage_that_has_ended_no_more():
    class Ends(Numbers):
        ends = 0

        def next(self, want):
            self.ends += not self.sizes
            return super().next(want)

    stage = Ends([2])
    cursor = Cursor(stage)
    assert cursor.take(5).size == 2
    assert [cursor.take(1) for _ in range(3)] == [None] * 3
    assert stage.ends == 1


class Failing(Numbers):
    """As Numbers, with a failure in place of a Block of no elements."""

    def next(self, want):
        if self.sizes[:1] == [0]:
            self.sizes.pop(0)
            raise as_failure(ValueError("no"), Context())
        return super().next(want)


class Counted(CountingStage):
    """The number of each element, as the stage counts them."""

    def make(self, want):
        first = self._count
        block = self.pull(want)
        return None if block is None else Stretch(numbers_of(*range(first, first + block.size)))


def test_a_stage_that_counts_counts_failures_too_and_nothing_at_the_end():
    stage = Counted(Failing([2, 0, 1, 0]), StepName("counted"))
    cursor = Cursor(stage)
    found = [cursor.take(1) for _ in range(5)]
    assert [[int(x) for x in piece.block.elements()] if piece.block else None for piece in found] == [
        [0], [1], None, [3], None
    ]  # fmt: skip
    assert cursor.take(1) is None
    assert stage.place() == [3, 5]
    stage.go_to([3, 7])
    assert stage.place() == [3, 7]
