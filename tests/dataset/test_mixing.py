"""Sampling, choosing and resampling: which element comes from where, and what follows from that."""

import itertools
import json

import numpy as np
import pytest
from tests import reference
from tests.golden.golden import assert_golden, said

import penstock as ps
from penstock import errors
from penstock.block.block import Block
from penstock.errors import marked
from penstock.keys import draw, fold
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import Stage, as_of_now
from penstock.physical.stages import mix
from penstock.physical.stages.mix import MixStage
from penstock.physical.stages.sampling import Choosing, Constant, Sampling, Scheduled
from penstock.plan.node import StepName
from penstock.runtime.executors import InlineExecutor
from penstock.testing import assert_resumes_exactly, assert_same_elements, resumed

D = ps.Dataset
MIX = StepName("mix")
EXECUTORS = ["inline", "thread"]


def ints(dataset, **how):
    return [int(x) for x in dataset.iterator(epoch=0, **how)]


def expected(dataset, epoch=0):
    return list(reference.run(dataset._plan, dataset.options(), epoch))


def both_executorsgive(dataset, wanted=None, epoch=0):
    wanted = expected(dataset, epoch) if wanted is None else wanted
    for executor in EXECUTORS:
        assert_same_elements(list(dataset.iterator(epoch=epoch, executor=executor)), wanted)


class Fails(Stage):
    """Numbers from `start`, in Blocks of the given sizes; the ones in `wrong` are failures."""

    def __init__(self, start, sizes, wrong=()):
        super().__init__("fails")
        self.pieces = []
        for size in sizes:
            piece = range(start, start + size)
            start += size
            for good, numbers in itertools.groupby(piece, lambda n: n not in wrong):
                numbers = list(numbers)
                self.pieces += [numbers] if good else [[-n] for n in numbers]
        self.given = 0

    def next(self, want):
        if not self.pieces:
            return None
        piece = self.pieces.pop(0)
        self.given += 1
        if piece[0] < 0:
            raise marked(KeyError(-piece[0]))
        return Block.from_elements(piece)

    def state(self):
        return self.given

    def restore(self, state):
        self.given = state
        del self.pieces[:state]


def outcomes(stage, want, most=200):
    """Elements and failures in their order, the latter as text."""
    found = []
    while len(found) < most:
        try:
            block = stage.next(want)
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".splitlines()[0])
            continue
        if block is None:
            return found
        assert block.size > 0
        found += [int(x) for x in block.elements()]
    return found


# -- as TensorFlow 2.21 does it


def test_choices_are_followed_and_end_at_the_first_empty_data_set():
    choices = D.from_tensor_slices([0, 0, 0, 1, 1, 1])
    sources = [D.range(2), D.range(10, 13)]
    both_executorsgive(D.choose_from_datasets(sources, choices), [np.int64(0), np.int64(1)])


def test_choices_of_empty_data_sets_can_be_passed_over():
    choices = D.from_tensor_slices([0, 0, 0, 1, 1, 1, 0, 1])
    ds = D.choose_from_datasets([D.range(2), D.range(10, 13)], choices, stop_on_empty_dataset=False)
    assert ints(ds) == [0, 1, 10, 11, 12]


def test_a_mixture_of_choices_ends_when_every_data_set_has():
    choices = D.range(2).repeat()
    ds = D.choose_from_datasets([D.range(2), D.range(10, 13)], choices, stop_on_empty_dataset=False)
    assert ints(ds) == [0, 10, 1, 11, 12]


def test_any_integers_choose():
    for dtype in (np.uint8, np.int32, np.uint64):
        choices = D.from_tensor_slices(np.array([1, 0], dtype))
        assert ints(D.choose_from_datasets([D.range(2), D.range(10, 13)], choices)) == [10, 0]


def test_a_data_set_of_weight_0_is_left_out():
    assert ints(D.sample_from_datasets([D.range(4), D.range(10, 14)], [0.0, 2.0], seed=1)) == [10, 11, 12, 13]


def test_one_data_set_stays_as_it_is():
    assert ints(D.sample_from_datasets([D.range(4)], [3.0])) == [0, 1, 2, 3]


def test_without_stop_every_element_comes_and_each_data_set_keeps_its_order():
    found = ints(D.sample_from_datasets([D.range(20), D.range(100, 110)], seed=5))
    assert [x for x in found if x < 100] == list(range(20))
    assert [x for x in found if x >= 100] == list(range(100, 110))
    assert found != sorted(found)


def test_with_stop_the_mixture_ends_where_an_empty_data_set_is_drawn():
    go_on = ints(D.sample_from_datasets([D.range(20), D.range(100, 110)], seed=5))
    ds = D.sample_from_datasets([D.range(20), D.range(100, 110)], seed=5, stop_on_empty_dataset=True)
    stopped = ints(ds)
    assert stopped == go_on[: len(stopped)]
    assert sum(x < 100 for x in stopped) == 20 or sum(x >= 100 for x in stopped) == 10
    assert 10 < len(stopped) < 30


def test_passes_draw_the_same_unless_told_otherwise():
    sources = [D.range(10), D.range(100, 110)]
    same = D.sample_from_datasets(sources, seed=1)
    assert ints(same) == [int(x) for x in same.iterator(epoch=1)]
    anew = D.sample_from_datasets(sources, seed=1, rerandomize_each_iteration=True)
    assert ints(anew) != [int(x) for x in anew.iterator(epoch=1)]
    twice = ints(anew.repeat(2))
    assert twice[:20] != twice[20:]


# -- draws


def test_a_draw_is_the_one_the_documentation_describes():
    weights, sums = [0.25, 0.5, 4.25], [0.25, 0.75, 5.0]
    endless = [D.from_tensors(i).repeat() for i in range(3)]
    found = ints(D.sample_from_datasets(endless, weights, seed=9).take(500))
    key = fold(9, 1)
    draws = [(draw(key, 2 * n, 2**26) * 2**27 + draw(key, 2 * n + 1, 2**27)) / 2**53 for n in range(500)]
    assert found == [next(i for i, upto in enumerate(sums) if upto > u * 5.0) for u in draws]


def test_shares_are_those_of_the_weights():
    endless = [D.from_tensors(i).repeat() for i in range(4)]
    found = ints(D.sample_from_datasets(endless, [1, 2, 0, 5], seed=3).take(16_000))
    counts = np.bincount(found, minlength=4)
    assert counts[2] == 0
    spread = 4 * np.sqrt(16_000 * 0.25)
    assert np.abs(counts - np.array([2000, 4000, 0, 10_000])).max() < spread


def test_seeds_and_places_in_the_plan_tell_mixtures_apart():
    sources = [D.range(30), D.range(100, 130)]
    orders = {tuple(ints(D.sample_from_datasets(sources, seed=seed))) for seed in (None, 1, 2, -1)}
    options = ps.Options()
    options.seed = 1
    orders.add(tuple(ints(D.sample_from_datasets(sources).with_options(options))))
    orders.add(tuple(ints(D.sample_from_datasets([ds.skip(0) for ds in sources]))))
    assert len(orders) == 6


@pytest.mark.parametrize("want", [1, 3, 1000])
@pytest.mark.parametrize("sizes", [[6], [1] * 6, [2, 4], [5, 1]])
def test_what_comes_does_not_depend_on_blocks(sizes, want):
    def mixed(rule, sizes):
        chooser = Sampling(77, Constant((1.0, 2.0, 0.0, 1.0)))
        sources = (Fails(10, sizes, {12}), Fails(20, sizes, {20, 25}), Fails(30, sizes), Fails(40, [sum(sizes)]))
        return MixStage(sources, chooser, rule, MIX, same_kind=True)

    for rule in ("continue", "stop", "error"):
        assert outcomes(mixed(rule, sizes), want) == outcomes(mixed(rule, [1] * 6), 1)
    everything = outcomes(mixed("continue", sizes), want)
    assert len(everything) == 18
    assert {x for x in everything if isinstance(x, str)} == {"KeyError: 12", "KeyError: 20", "KeyError: 25"}


@pytest.mark.parametrize("chosen", ["alike", "weights", "schedule", "choices"])
@pytest.mark.parametrize("count", [7, 90])
def test_many_data_sets_run_dry_as_those_of_the_reference_do(chosen, count):
    """Whatever is chosen together, and wherever a state is taken."""
    drawn = np.random.default_rng(count)
    sources = [D.range(100 * at, 100 * at + int(drawn.integers(0, 9))) for at in range(count)]
    if chosen == "choices":
        choices = D.from_tensor_slices(drawn.integers(0, count, 12 * count))
        ds = D.choose_from_datasets(sources, choices, stop_on_empty_dataset=False)
    else:
        fixed = (drawn.random(count) * (drawn.random(count) < 0.9)).tolist()
        weights = {"alike": None, "weights": fixed, "schedule": lambda step: np.roll(fixed, step).tolist()}[chosen]
        ds = D.sample_from_datasets(sources, weights, seed=3)
    wanted = [int(x) for x in expected(ds)]
    assert len(wanted) > 3 * count
    assert np.concatenate(list(ds.batch(1000))).tolist() == wanted
    with ds.iterator(epoch=0) as whole:
        for at in range(0, len(wanted), max(len(wanted) // 9, 1)):
            state = whole.state_dict()
            with ds.iterator(epoch=0) as again:
                again.load_state_dict(state)
                assert [int(x) for x in again] == wanted[at:]
            for _ in range(max(len(wanted) // 9, 1)):
                next(whole, None)


@pytest.mark.parametrize("want", [1, 40, 300, 5000])
def test_failures_of_many_data_sets_that_run_dry_keep_their_places(want):
    def mixed(rule):
        drawn = np.random.default_rng(5)
        sources = []
        for at in range(1, 60):
            sizes = drawn.integers(1, 4, drawn.integers(1, 6)).tolist()
            sources.append(Fails(100 * at, sizes, {100 * at + int(each) for each in drawn.integers(0, 30, 3)}))
        return MixStage(tuple(sources), Sampling(7, Constant((1.0,) * 59)), rule, MIX, same_kind=True)

    for rule in ("continue", "stop", "error"):
        assert outcomes(mixed(rule), want, 1000) == outcomes(mixed(rule), 1, 1000)
    assert len(outcomes(mixed("continue"), want, 1000)) > 200


@pytest.mark.parametrize("parallel", [None, 3])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_pass_goes_on_behind_a_source_that_fails(executor, parallel):
    def fails_at_3(x):
        if x == 3:
            raise KeyError("three")
        return x

    sources = [D.range(6).map(fails_at_3, num_parallel_calls=parallel), D.range(10, 16)]
    whole = ints(D.sample_from_datasets([D.range(6), D.range(10, 16)], seed=1))
    found = []
    with D.sample_from_datasets(sources, seed=1).iterator(epoch=0, executor=executor) as elements:
        for wanted in whole:
            if wanted == 3:
                with pytest.raises(KeyError, match="three"):
                    next(elements)
            else:
                found.append(int(next(elements)))
        assert list(elements) == []
    assert found == [x for x in whole if x != 3]


@pytest.mark.parametrize("want", [1, 4, 100])
def test_a_mixture_with_failures_continues_from_every_position(want):
    def mixed():
        sources = (Fails(10, [3, 3], {12}), Fails(20, [6], {20, 25}), Fails(30, [1, 5], {31}))
        return MixStage(
            sources,
            Sampling(5, Scheduled(lambda n: [1, n, 2], 3, MIX)),
            "error",
            MIX,
            same_kind=False,
        )

    wanted = outcomes(mixed(), 1)
    assert any("no more elements" in str(x) for x in wanted)
    first = mixed()
    for given in range(len(wanted) + 1):
        again = mixed()
        again.restore(json.loads(json.dumps(as_of_now(first.state()))))
        assert outcomes(again, want) == wanted[given:]
        assert outcomes(first, 1, most=1) == wanted[given : given + 1]


@pytest.mark.parametrize("on_empty", ["continue", "stop", "error"])
def test_rounds_of_more_steps_than_are_asked_for_change_nothing(monkeypatch, on_empty):
    def mixed():
        sources = (Fails(100, [3] * 6, {112}), Fails(200, [25], {210, 215}), Fails(300, [1, 5] * 4, {301}))
        return MixStage(sources, Sampling(5, Constant((1.0, 2.0, 1.0))), on_empty, MIX, same_kind=False)

    wanted = outcomes(mixed(), 1)
    monkeypatch.setattr(mix, "_BULK", 2)
    monkeypatch.setattr(mix, "_SECONDS", 100.0)
    first, given = mixed(), []
    while True:
        again = mixed()
        again.restore(json.loads(json.dumps(as_of_now(first.state()))))
        assert given + outcomes(again, 2) == wanted
        if not (more := outcomes(first, 2, most=1)):
            break
        given += more
    assert first.cuts


# -- sources that run dry


def test_an_empty_source_can_start_over_in_an_epoch_of_its_own():
    ds = D.sample_from_datasets([D.range(4).shuffle(4), D.range(100, 103)], [0.5, 0.5], seed=2, on_empty="repeat")
    assert ds.cardinality() == ps.INFINITE_CARDINALITY
    found = ints(ds.take(400))
    small, large = [x for x in found if x < 100], [x for x in found if x >= 100]
    epochs = [tuple(small[i : i + 4]) for i in range(0, len(small) - 3, 4)]
    assert all(sorted(epoch) == [0, 1, 2, 3] for epoch in epochs)
    assert len(set(epochs)) > 10
    assert large == (list(range(100, 103)) * 100)[: len(large)]
    assert abs(len(small) - 200) < 50
    assert_resumes_exactly(ds, limit=25)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_running_dry_can_be_an_error(executor):
    ds = D.sample_from_datasets([D.range(3), D.range(100, 200)], seed=1, on_empty="error")
    with ds.iterator(epoch=0, executor=executor) as found:
        with pytest.raises(errors.OutOfRangeError, match="Data set 0 of sample_from_datasets") as caught:
            list(found)
        assert list(found) == []
    assert caught.value.context.element > 2


def test_a_repeated_source_without_elements_is_an_error_and_the_end():
    ds = D.sample_from_datasets([D.range(0), D.range(100, 102)], seed=1, on_empty="repeat")
    stage = lower(ds._plan, Lowering(ds.options(), InlineExecutor()))
    found = outcomes(stage, 10)
    assert "Data set 0" in found[-1]
    assert found[:-1] == ([100, 101] * 9)[: len(found) - 1]
    assert stage.next(10) is None


def test_the_mixture_ends_when_all_of_positive_weight_are_dry():
    ds = D.sample_from_datasets([D.range(3), D.range(10, 13), D.range(20, 23)], [1, 0, 1], seed=1)
    assert sorted(ints(ds)) == [0, 1, 2, 20, 21, 22]
    schedule = ps.mixing.piecewise([(0, [1, 0]), (5, [0, 1])])
    assert ints(D.sample_from_datasets([D.range(3), D.range(10, 13)], schedule)) == [0, 1, 2]
    assert ints(D.sample_from_datasets([D.range(9), D.range(10, 13)], schedule)) == [*range(5), 10, 11, 12]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_source_without_weight_is_never_opened(executor):
    opened = []

    def source():
        opened.append(1)
        yield np.int64(0)

    never = D.from_generator(source).map(lambda x: x + 0, num_parallel_calls=2).prefetch(2)
    ds = D.sample_from_datasets([D.range(50), never], [1, 0])
    assert ints(ds, executor=executor) == list(range(50))
    late = D.sample_from_datasets([D.range(50), never], ps.mixing.piecewise([(0, [1, 0]), (30, [0, 1])]))
    assert ints(late.take(30), executor="inline") == list(range(30))
    assert opened == []


@pytest.mark.parametrize("rule", ["continue", "stop", "repeat"])
def test_no_one_and_infinite_elements(rule):
    def mixed(*sources, **how):
        return D.sample_from_datasets(list(sources), seed=4, on_empty=rule, **how)

    both_executorsgive(mixed(D.range(5, 6)).take(1), [np.int64(5)])
    endless = mixed(D.range(3).repeat(), D.range(7).repeat())
    assert endless.cardinality() == ps.INFINITE_CARDINALITY
    both_executorsgive(endless.take(40))
    if rule != "repeat":
        both_executorsgive(mixed(D.range(0), D.range(0)), [])
        assert mixed(D.range(0), D.range(0)).cardinality() == 0


# -- changing weights


def test_a_data_set_of_weights_gives_one_vector_for_each_draw_and_ends_the_mixture():
    weights = D.from_tensor_slices(np.array([[1, 0], [0, 1], [0, 1], [1, 0]], np.float32))
    ds = D.sample_from_datasets([D.range(9), D.range(10, 19)], weights)
    assert ints(ds) == [0, 10, 11, 1]
    endless = D.sample_from_datasets([D.range(3), D.range(10, 13)], D.from_tensors([0.0, 1.0]).repeat())
    assert ints(endless) == [10, 11, 12]
    lists = D.range(6).map(lambda n: [int(n) % 2, 1])
    both_executorsgive(D.sample_from_datasets([D.range(9), D.range(10, 19)], lists))


def test_a_function_of_the_draw_is_a_schedule():
    ds = D.sample_from_datasets([D.range(9), D.range(10, 19)], lambda n: [int(n < 4), int(n >= 4)])
    assert ints(ds) == [0, 1, 2, 3, *range(10, 19)]


def test_linear_weights_move_from_one_to_the_other():
    schedule = ps.mixing.linear([1, 0], [0, 1], steps=1000)
    ds = D.sample_from_datasets([D.from_tensors(0).repeat(), D.from_tensors(1).repeat()], schedule, seed=1)
    found = ints(ds.take(1200))
    shares = [np.mean(found[i : i + 200]) for i in range(0, 1200, 200)]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[5] == 1
    assert [schedule(n).tolist() for n in (0, 250, 1000, 5000)] == [[1, 0], [0.75, 0.25], [0, 1], [0, 1]]


def test_a_schedule_that_fails_fails_in_its_place():
    def weights(step):
        if step == 2:
            raise KeyError("no plan")
        return {3: [1, -1], 5: [0, 0], 6: "a", 7: [1, 1, 1], 8: [np.nan, 1]}.get(step, [1, 0])

    for want in (1, 4, 100):
        chooser = Sampling(1, Scheduled(weights, 2, MIX))
        sources = (Fails(10, [4, 4]), Fails(20, [4]))
        found = outcomes(MixStage(sources, chooser, "continue", MIX, same_kind=True), want)
        assert [x for x in found if isinstance(x, int)] == list(range(10, 18))
        assert [x.split(":")[0] for x in found if isinstance(x, str)] == [
            "KeyError",
            "InvalidArgumentError",
            "InvalidArgumentError",
            "InvalidTypeError",
            "InvalidArgumentError",
            "InvalidArgumentError",
        ]
        assert [isinstance(x, str) for x in found[:10]] == [n in (2, 3, 5, 6, 7, 8) for n in range(10)]


@pytest.mark.parametrize(
    "weights",
    [
        lambda n: [1, n % 3],
        ps.mixing.linear([1, 0], [0, 1], steps=10),
        ps.mixing.piecewise([(0, [1, 1]), (5, [1, 4])]),
        D.range(14).map(lambda n: np.full(2, 1 + n)),
    ],
    ids=["function", "linear", "piecewise", "data"],
)
def test_changing_weights_resume_and_are_those_of_the_reference(weights):
    sources = [D.range(9).shuffle(4), D.range(10, 15).map(lambda x: x + 0, num_parallel_calls=2)]
    for rule in ("continue", "stop"):
        ds = D.sample_from_datasets(sources, weights, seed=8, on_empty=rule)
        both_executorsgive(ds)
        assert_resumes_exactly(ds)


# -- weights that the training sets


def handled(handle, **how):
    return D.sample_from_datasets([D.range(1000), D.range(10_000, 11_000)], handle, seed=3, **how)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_weights_set_during_a_pass_hold_from_their_draw_on(executor):
    handle = ps.MixWeights([1, 0])
    with handled(handle).prefetch(4).iterator(epoch=0, executor=executor) as elements:
        found = [int(next(elements)) for _ in range(3)]
        handle.set([0, 1], at_step=700)
        handle.set([1, 0], at_step=705)
        found += [int(x) for x in itertools.islice(elements, 707)]
    assert found == [*range(700), *range(10_000, 10_005), *range(700, 705)]
    assert ints(handled(ps.mixing.piecewise(handle.history)).take(710)) == found


def test_a_draw_that_was_made_cannot_be_set():
    handle = ps.MixWeights([1, 1])
    elements = iter(handled(handle).batch(50))
    next(elements)
    assert handle.drawn >= 50
    with pytest.raises(errors.FailedPreconditionError, match="Step 49 was already computed"):
        handle.set([0, 1], at_step=49)
    assert handle.history == [(0, (1.0, 1.0))]
    handle.set([0, 1], at_step=handle.drawn)
    elements.close()
    assert handle.drawn == 0
    handle.set([1, 2], at_step=0)
    assert handle.history == [(0, (1.0, 2.0))]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_checkpoint_holds_what_was_set_also_for_draws_behind_it(executor):
    """Set after the engine had noted where the pass stood, and before the checkpoint is written."""
    handle = ps.MixWeights([1, 0])
    elements = handled(handle).batch(5).prefetch(2).iterator(epoch=0, executor=executor)
    given = next(elements).tolist()
    handle.set([0, 1], at_step=600)
    state = json.loads(json.dumps(elements.state_dict()))
    rest = np.concatenate(list(itertools.islice(elements, 140))).tolist()
    assert given + rest == [*range(600), *range(10_000, 10_105)]
    fresh = ps.MixWeights([1, 0])
    again = resumed(handled(fresh).batch(5).prefetch(2), state, executor)
    assert np.concatenate(list(itertools.islice(again, 140))).tolist() == rest
    assert fresh.history == [(0, (1.0, 0.0)), (600, (0.0, 1.0))]


def test_a_continued_pass_refuses_what_the_first_had_drawn():
    handle = ps.MixWeights([1, 1])
    elements = handled(handle).iterator(epoch=0, executor="inline")
    next(elements)
    list(itertools.islice(elements, 40))
    drawn = handle.drawn
    state = json.loads(json.dumps(elements.state_dict()))
    elements.close()
    fresh = ps.MixWeights([1, 1])
    again = resumed(handled(fresh), state)
    with pytest.raises(errors.FailedPreconditionError):
        fresh.set([0, 1], at_step=drawn - 1)
    fresh.set([0, 1], at_step=drawn)
    assert len(list(itertools.islice(again, 50))) == 50


def test_every_pass_follows_the_whole_history():
    handle = ps.MixWeights([1, 0])
    handle.set([0, 1], at_step=3)
    ds = D.sample_from_datasets([D.range(9), D.range(100, 109)], handle).take(5)
    assert ints(ds) == [0, 1, 2, 100, 101]
    assert ints(ds.repeat(2)) == [0, 1, 2, 100, 101] * 2
    handle.set([0, 1], at_step=1)
    assert ints(ds) == [0, 100, 101, 102, 103]
    assert_resumes_exactly(ds)


# -- elements of any kind


def test_sources_may_differ_in_shape_and_in_the_order_of_keys():
    first = D.from_tensor_slices({"a": np.arange(3), "b": np.zeros((3, 2))})
    second = D.from_tensor_slices({"b": np.ones((3, 4)), "a": np.arange(10, 13)})
    ds = D.sample_from_datasets([first, second], seed=1)
    assert ds.element_spec == {"a": ps.TensorSpec((), np.int64), "b": ps.TensorSpec((None,), np.float64)}
    found = list(ds)
    assert sorted(int(x["a"]) for x in found) == [0, 1, 2, 10, 11, 12]
    assert {x["b"].shape for x in found if x["a"] < 10} == {(2,)}
    assert {x["b"].shape for x in found if x["a"] >= 10} == {(4,)}
    both_executorsgive(ds)
    assert_resumes_exactly(ds)


@pytest.mark.parametrize("want", [1, 5, 100])
def test_a_source_of_another_kind_fails_in_its_places(want):
    """Only running tells here: the functions cannot be traced."""
    whole = D.range(6).map(lambda x: {"a": int(x), "b": 0.5})
    other = D.range(6).map(lambda x: {"a": str(int(x)), "b": 0.5})
    turned = D.range(6).map(lambda x: {"b": 0.5, "a": int(x)})
    ds = D.sample_from_datasets([whole, other, turned], [0.5, 0.2, 0.3], seed=1)
    assert ds._plan.spec is None
    stage = lower(ds._plan, Lowering(ds.options(), InlineExecutor()))
    found, wrong = [], []
    while len(found) + len(wrong) < 18:
        try:
            block = stage.next(want)
            found += [int(x["a"]) for x in block.elements()]
        except errors.InvalidTypeError as error:
            wrong.append(str(error))
    assert stage.next(want) is None
    assert sorted(found) == sorted([*range(6), *range(6)])
    assert all("Data set 1 gives {a: bytes of rank 0, b: float32 of rank 0}" in text for text in wrong)


def test_origins_survive_mixing(tmp_path):
    for name in "ab":
        with ps.io.TFRecordWriter(tmp_path / f"{name}.tfrecord") as writer:
            for i in range(10):
                writer.write(name.encode() + bytes([i]))

    def parse(record):
        if record == b"b\x05":
            raise ValueError("no picture")
        return record

    sources = [ps.TFRecordDataset(tmp_path / f"{name}.tfrecord") for name in "ab"]
    with pytest.raises(ValueError) as caught:
        list(D.sample_from_datasets(sources, seed=1).map(parse))
    assert f"in file {tmp_path / 'b.tfrecord'} at byte {5 * 18}" in caught.value.__notes__[0]


def test_options_of_all_data_sets_are_merged():
    def with_seed(ds, **settings):
        return ds.with_options(ps.Options(**settings))

    sources = [with_seed(D.range(3), deterministic=False), with_seed(D.range(3), seed=7)]
    for ds in (D.sample_from_datasets(sources), D.choose_from_datasets(sources, D.range(2))):
        assert ds.options().seed == 7
        assert ds.options().deterministic is False
    assert D.choose_from_datasets([D.range(3)], sources[1]).options().seed == 7


def test_cardinalities():
    finite, other, endless = D.range(3), D.range(4), D.range(3).repeat()
    unknown = D.range(9).filter(lambda x: x > 3)

    def sampled(*sources, weights=None, rule="continue"):
        return D.sample_from_datasets(list(sources), weights, on_empty=rule).cardinality()

    assert sampled(finite, other) == 7
    assert sampled(finite, other, weights=[0, 1]) == 4
    assert sampled(finite, other, weights=[0, 1], rule="stop") == 4
    assert sampled(finite, unknown) == ps.UNKNOWN_CARDINALITY
    assert sampled(finite, endless) == ps.INFINITE_CARDINALITY
    assert sampled(finite, endless, rule="stop") == ps.UNKNOWN_CARDINALITY
    assert sampled(finite, other, weights=lambda n: [1, 1]) == ps.UNKNOWN_CARDINALITY
    assert sampled(finite, other, rule="repeat") == ps.INFINITE_CARDINALITY
    assert sampled(endless, endless, weights=D.from_tensors([1.0, 1.0]).repeat(5)) == 5
    assert sampled(finite, other, weights=D.from_tensors([1.0, 1.0]).take(0)) == 0
    assert D.choose_from_datasets([endless], D.range(5).map(lambda x: x * 0)).cardinality() == 5
    assert D.choose_from_datasets([finite], D.range(5)).cardinality() == ps.UNKNOWN_CARDINALITY


# -- choices that are none


@pytest.mark.parametrize("want", [1, 2, 100])
@pytest.mark.parametrize("stop", [True, False])
def test_a_choice_that_is_no_number_of_a_data_set_fails_in_its_place(stop, want):
    class Choices(Fails):
        def next(self, want):
            block = super().next(want)
            return block and Block.from_elements([int(x) % 7 - 2 for x in block.elements()])

    choices = Choices(0, [5, 9, 7], {4, 16})
    rule = "stop" if stop else "continue"
    stage = MixStage(
        (Fails(10, [9]), Fails(20, [2, 2])),
        Choosing(choices, 2, MIX),
        rule,
        MIX,
        same_kind=True,
    )
    found = outcomes(stage, want)
    wrong = "InvalidArgumentError: A choice must be the number of a data set, from 0 to 1, got {}."
    once = [wrong.format(-2), wrong.format(-1), 10, 20, "KeyError: 4", wrong.format(3), wrong.format(4)]
    again = [wrong.format(-2), wrong.format(-1), 11, 21, wrong.format(2), wrong.format(3), wrong.format(4)]
    last = [wrong.format(-2), wrong.format(-1), "KeyError: 16", 22, wrong.format(2), wrong.format(3), wrong.format(4)]
    assert found == [*once, *again, *last]


def test_choices_of_another_kind_are_refused_when_they_come():
    ds = D.choose_from_datasets([D.range(3)], D.range(2).map(lambda x: float(x) if x < 9 else 0.0))
    with pytest.raises(errors.InvalidTypeError, match="choice_dataset must give single integers"):
        ints(ds)


def test_choices_resume():
    for stop in (True, False):
        choices = D.range(12).map(lambda x: x % 3).shuffle(5)
        ds = D.choose_from_datasets([D.range(3), D.range(10, 15), D.range(20, 30).shuffle(3)], choices, stop)
        both_executorsgive(ds)
        assert_resumes_exactly(ds)


# -- resampling


def classes_of(dataset):
    return [int(label) for label, _ in dataset.iterator(epoch=0)]


@pytest.mark.parametrize("initial", [[0.5, 0.5], None])
def test_classes_come_as_asked_for(initial):
    ds = D.range(10_000).rejection_resample(lambda x: x % 2, [0.2, 0.8], initial, seed=3)
    found = classes_of(ds)
    assert abs(np.mean(found) - 0.8) < 0.02
    assert abs(len(found) - 8333) < 200  # as many as tf.data gives, from 10000: 1 / 1.2
    elements = [int(x) for _, x in ds.iterator(epoch=0)]
    assert len(set(elements)) < len(elements)
    assert all(x % 2 == label for label, x in zip(found, elements, strict=True))


def test_three_skewed_classes_are_estimated_on_the_way():
    labels = np.random.default_rng(1).choice(3, 20_000, p=[0.7, 0.2, 0.1])
    ds = D.from_tensor_slices(labels).rejection_resample(lambda x: x, [0.3, 0.3, 0.4], seed=1)
    found = np.bincount(classes_of(ds)[2000:], minlength=3)
    assert np.abs(found / found.sum() - [0.3, 0.3, 0.4]).max() < 0.03


def test_a_class_can_be_left_out():
    ds = D.range(20).rejection_resample(lambda x: x % 2, [0.0, 1.0], [0.5, 0.5], seed=3)
    assert [int(x) for _, x in ds] == list(range(1, 20, 2))
    assert "sample_from_datasets" not in ds.explain()


def test_equal_distributions_leave_the_data_set_as_it_is():
    ds = D.range(6).rejection_resample(lambda x: x % 2, [1, 1], [0.5, 0.5])
    assert [(int(c), int(x)) for c, x in ds] == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4), (1, 5)]
    assert ds.cardinality() == 6
    assert ds.element_spec == (ps.TensorSpec((), np.int64), ps.TensorSpec((), np.int64))


@pytest.mark.parametrize("initial", [[0.4, 0.6], None])
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 150])
def test_resampling_is_that_of_the_reference(initial, count):
    pairs = D.from_tensor_slices((np.arange(count), np.arange(count) * 7 % 5))
    ds = pairs.shuffle(10).rejection_resample(lambda x, y: int(y > 1), [0.7, 0.3], initial, seed=2)
    for epoch in (0, 1):
        both_executorsgive(ds, epoch=epoch)
    if count == 33:
        assert_resumes_exactly(ds)


def test_passes_resample_anew_and_seeds_tell_apart():
    ds = D.range(100).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5], seed=3)
    other = D.range(100).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5], seed=4)
    orders = [tuple(int(x) for _, x in found) for found in (ds, ds, other)]
    assert len(set(orders)) == 3


@pytest.mark.parametrize("want", [1, 7, 100])
@pytest.mark.parametrize("initial", [[0.5, 0.5], None])
def test_an_element_without_class_fails_in_its_place(initial, want):
    def label(x):
        if x == 5:
            raise KeyError("unlabelled")
        return {6: 2, 7: -1, 8: 0.5, 40: None}.get(int(x), int(x) % 2)

    def outcome(want):
        ds = D.range(64).rejection_resample(label, [0, 1], initial, seed=1)
        accept = ds._plan if initial else ds._plan.parts[1]
        stage = lower(accept, Lowering(ds.options(), InlineExecutor()))
        found = []
        for _ in range(200):
            try:
                block = stage.next(want)
            except Exception as error:
                found.append(type(error).__name__)
                continue
            if block is None:
                return found
            found += [int(x) for _, x in block.elements()]
        raise AssertionError

    found = outcome(want)
    assert found == outcome(3)
    wrong = [x for x in found if isinstance(x, str)]
    kinds = ["KeyError", "InvalidArgumentError", "InvalidArgumentError", "InvalidTypeError", "InvalidTypeError"]
    assert wrong == kinds
    assert found.index("KeyError") == (2 if initial else len([x for x in found if isinstance(x, int) and x < 5]))
    assert all(x % 2 for x in found if isinstance(x, int)) or initial is None


# -- arguments

ARGUMENTS = {
    "sample_no_data_sets": lambda ds: D.sample_from_datasets([]),
    "sample_one_data_set": lambda ds: D.sample_from_datasets(ds),
    "sample_list_of_lists": lambda ds: D.sample_from_datasets([ds, [1]]),
    "sample_weights_length": lambda ds: D.sample_from_datasets([ds, ds], [0.5, 0.5, 0.1]),
    "sample_weights_negative": lambda ds: D.sample_from_datasets([ds, ds], [0.5, -0.5]),
    "sample_weights_nan": lambda ds: D.sample_from_datasets([ds, ds], [float("nan"), 1]),
    "sample_weights_huge": lambda ds: D.sample_from_datasets([ds, ds], [1e308, 1e308]),
    "sample_weights_zero": lambda ds: D.sample_from_datasets([ds, ds], [0, 0]),
    "sample_weights_text": lambda ds: D.sample_from_datasets([ds, ds], "ab"),
    "sample_weights_number": lambda ds: D.sample_from_datasets([ds, ds], 0.5),
    "sample_weights_ragged": lambda ds: D.sample_from_datasets([ds, ds], [[1], [1, 2]]),
    "sample_weights_function": lambda ds: D.sample_from_datasets([ds, ds], lambda step: [1]),
    "sample_weights_data": lambda ds: D.sample_from_datasets([ds, ds], ds),
    "sample_weights_handle": lambda ds: D.sample_from_datasets([ds, ds], ps.MixWeights([1, 1, 1])),
    "sample_seed": lambda ds: D.sample_from_datasets([ds, ds], seed="7"),
    "sample_on_empty": lambda ds: D.sample_from_datasets([ds, ds], on_empty="ignore"),
    "sample_contradiction": lambda ds: D.sample_from_datasets([ds], stop_on_empty_dataset=True, on_empty="repeat"),
    "sample_dtypes": lambda ds: D.sample_from_datasets([ds, D.from_tensors(0.5)]),
    "choose_no_data_sets": lambda ds: D.choose_from_datasets([], ds),
    "choose_list": lambda ds: D.choose_from_datasets([ds], [0]),
    "choose_floats": lambda ds: D.choose_from_datasets([ds], D.from_tensors(0.5)),
    "choose_vectors": lambda ds: D.choose_from_datasets([ds], ds.batch(2)),
    "choose_structure": lambda ds: D.choose_from_datasets([ds, ds.enumerate()], ds),
    "resample_no_function": lambda ds: ds.rejection_resample(3, [1, 1]),
    "resample_target_negative": lambda ds: ds.rejection_resample(abs, [1, -1]),
    "resample_target_text": lambda ds: ds.rejection_resample(abs, "even"),
    "resample_lengths": lambda ds: ds.rejection_resample(abs, [0.5, 0.5], [0.2, 0.3, 0.5]),
    "resample_impossible": lambda ds: ds.rejection_resample(abs, [0.5, 0.5], [1, 0]),
    "resample_seed": lambda ds: ds.rejection_resample(abs, [0.5, 0.5], seed=0.5),
    "handle_zero": lambda ds: ps.MixWeights([0, 0]),
    "handle_set_length": lambda ds: ps.MixWeights([1, 1]).set([1], at_step=5),
    "handle_set_step": lambda ds: ps.MixWeights([1, 1]).set([1, 1], at_step=-1),
    "piecewise_start": lambda ds: ps.mixing.piecewise([(1, [1, 1])]),
    "piecewise_order": lambda ds: ps.mixing.piecewise([(0, [1, 1]), (5, [1, 1]), (5, [1, 0])]),
    "piecewise_pairs": lambda ds: ps.mixing.piecewise([1, 2]),
    "piecewise_lengths": lambda ds: ps.mixing.piecewise([(0, [1, 1]), (5, [1])]),
    "linear_lengths": lambda ds: ps.mixing.linear([1, 1], [1], 5),
    "linear_steps": lambda ds: ps.mixing.linear([1, 1], [1, 0], 0),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](D.range(5))
    assert_golden(f"argument_mixing_{name}", said(caught.value))


def running_dry():
    return D.sample_from_datasets([D.range(1), D.range(100, 200)], seed=1, on_empty="error")


def of_another_kind():
    texts = D.range(6).map(lambda x: str(int(x)))
    return D.sample_from_datasets([D.range(6).map(lambda x: int(x)), texts], seed=1)


ELEMENTS = {
    "running_dry": running_dry,
    "nothing_to_repeat": lambda: D.sample_from_datasets([D.range(0), D.range(9)], seed=1, on_empty="repeat"),
    "no_integer_choice": lambda: D.choose_from_datasets([D.range(5)], D.range(3).map(lambda x: str(int(x)))),
    "of_another_kind": of_another_kind,
    "no_class": lambda: D.range(5).rejection_resample(lambda x: x, [1, 1, 1], [1, 1, 1]),
    "class_of_another_kind": lambda: D.range(5).rejection_resample(lambda x: float(x), [1, 1]),
    "no_source": lambda: D.choose_from_datasets([D.range(5)], D.range(3)),
    "weights_of_a_step": lambda: D.sample_from_datasets([D.range(5)] * 2, lambda n: [1, 1 - n]),
}


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_errors_of_elements_say_where_they_come_from(name, executor):
    with pytest.raises(errors.PenstockError) as caught:
        list(ELEMENTS[name]().iterator(epoch=0, executor=executor))
    assert_golden(f"element_mixing_{name}", said(caught.value))
