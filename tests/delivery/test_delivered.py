"""Elements through a service equal those without it: in one thread, with workers that die and answer out of turn."""

import json
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.delivery.simulated import Simulated
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock.delivery.jobs import Scale
from penstock.delivery.window import RangeSizer, RangeWindow
from penstock.errors import FailedPreconditionError
from penstock.plan.counted import Seen
from penstock.plan.distribution import Distribute, cut
from penstock.plan.storing import Snapshot
from penstock.testing import assert_same_elements

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of small integers that overflow


def through(dataset, size=2, seed=0, deaths=2, **how):
    return dataset._then(Distribute, service=Simulated(size, seed, deaths), **how)


def elements(dataset, epoch=0):
    with dataset.iterator(epoch=epoch, executor="inline") as found:
        return list(found)


def positions(iterator):
    """Return elements, and failures in their places."""
    found = []
    while True:
        try:
            found.append(np.asarray(next(iterator)).tolist())
        except StopIteration:
            return found
        except Exception as error:
            notes = [note for note in getattr(error, "__notes__", []) if not note.startswith("in a worker")]
            found.append((type(error), str(error), notes))


@settings(max_examples=settings.default.max_examples * 2 // 3)
@given(pipelines(), st.integers(1, 3), st.integers(0, 9))
def test_the_stream_is_that_without_the_service(pipeline: Pipeline, size, seed):
    wanted = elements(pipeline.dataset, 1)
    assert_same_elements(elements(through(pipeline.dataset, size=size, seed=seed), 1), wanted)


@settings(max_examples=settings.default.max_examples // 3)
@given(pipelines(most_steps=4), pipelines(most_steps=0), st.data())
def test_a_pass_goes_on_from_any_place_on_any_number_of_workers(pipeline: Pipeline, other, data):
    wanted = elements(pipeline.dataset)
    before = through(pipeline.dataset, size=data.draw(st.integers(1, 3)), seed=data.draw(st.integers(0, 9)))
    after = through(pipeline.dataset, size=data.draw(st.integers(1, 3)), seed=data.draw(st.integers(0, 9)))
    place = data.draw(st.integers(0, len(wanted)))
    with before.iterator(epoch=0, executor="inline") as iterator:
        given = [next(iterator) for _ in range(place)]
        state = json.loads(json.dumps(iterator.state_dict()))
    with after.iterator(epoch=5, executor="inline") as iterator:
        iterator.load_state_dict(state)
        assert json.loads(json.dumps(iterator.state_dict())) == state
        assert_same_elements(given + list(iterator), wanted)


@settings(max_examples=settings.default.max_examples // 3)
@given(pipelines(most_steps=4), st.sampled_from(["static", "off"]), st.integers(1, 3), st.data())
def test_shares_are_taken_in_turn_whoever_dies_and_from_any_place(pipeline: Pipeline, sharding, parts, data):
    assume(not any(isinstance(node, Snapshot) for node in pipeline.dataset._plan.walk()))
    plan = Distribute(input=pipeline.dataset._plan, service=Simulated(), sharding=sharding, parts=parts)
    wanted = elements(type(pipeline.dataset)._of(plan.in_turn, pipeline.dataset._options), 1)
    seed, size = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 2))
    remote = through(pipeline.dataset, sharding=sharding, parts=parts, seed=seed, size=size)
    place = data.draw(st.integers(0, len(wanted)))
    with remote.iterator(epoch=1, executor="inline") as iterator:
        given = [next(iterator) for _ in range(place)]
        state = json.loads(json.dumps(iterator.state_dict()))
        assert_same_elements(given + list(iterator), wanted)
    with remote.iterator(epoch=5, executor="inline") as iterator:
        iterator.load_state_dict(state)
        assert_same_elements(given + list(iterator), wanted)


@settings(max_examples=settings.default.max_examples // 3)
@given(st.integers(0, 30), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_static_shares_have_each_element_once_and_off_all_of_them_each(count, parts, batch, seed):
    dataset = ps.Dataset.range(count).shuffle(7).map(lambda x: x * 2).filter(lambda x: x % 3 > 0).batch(batch)
    once = sorted(int(x) for x in dataset.unbatch())

    def all_of(sharding):
        found = elements(through(dataset, sharding=sharding, parts=parts, seed=seed))
        return sorted(int(x) for part in found for x in part)

    assert all_of("static") == once
    assert all_of("off") == sorted(once * parts)
    assert ps.Dataset.range(count).distribute(sharding="static", workers=parts).cardinality() == count
    assert ps.Dataset.range(count).distribute(sharding="off", workers=parts).cardinality() == count * parts


def test_static_shares_read_a_file_once(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("".join(f"{number}{line}\n" for line in range(3)))
    files = ps.Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    dataset = files.interleave(ps.TextLineDataset, cycle_length=1)
    found = [x.decode() for x in elements(through(dataset, sharding="static", parts=2))]
    assert found == ["00", "10", "01", "11", "02", "12", "20", "30", "21", "31", "22", "32", "40", "41", "42"]
    assert "shard(2, 0)" in dataset.distribute(sharding="static", workers=2).explain()


def test_shares_inside_of_a_part_are_made_there():
    inner = through(ps.Dataset.range(9), sharding="static", parts=2)
    wanted = [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert [int(x) for x in elements(through(inner.map(lambda x: x)))] == wanted
    third = through(ps.Dataset.range(9), sharding="off", parts=2, num_consumers=3, consumer_index=1)
    assert [int(x) for x in elements(third)] == [0, 2, 3, 5, 6, 8]


@given(st.integers(1, 40), st.booleans(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40)), max_size=30))
def test_workers_are_added_while_consumers_wait_and_never_too_many(most, auto, told):
    scale = Scale(most, auto=auto)
    for waiting, there in told:
        before = scale.wanted
        scale.told(waiting, there)
        assert before <= scale.wanted <= most
        assert scale.wanted == before or (waiting > 0.1 and there >= before)
    for _ in range(10):
        scale.told(1.0, scale.wanted)
    assert scale.wanted == most
    scale.rest()
    assert scale.wanted == (max(most // 2, 1) if auto else most)


def failing(x):
    if x % 5 == 3:
        message = f"no {int(x)}"
        raise ValueError(message)
    return x


def numbered(x):
    """Build an opaque function whose random numbers depend on the number of the element."""
    rng = np.random.default_rng(ps.element_key())
    return int(x) * 1000 + int(rng.integers(1000))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "build",
    [
        lambda ds: ds.map(numbered).batch(4),
        lambda ds: ds.filter(lambda x: x % 3 > 0).map(numbered).batch(4),
        lambda ds: ds.shuffle(20).map(numbered).batch(4).map(lambda x: x + numbered(x[0])),
        lambda ds: ds.batch(5).unbatch().map(numbered),
        lambda ds: ds.map(numbered).shuffle(10).map(numbered).batch(3).repeat(2),
        lambda ds: ds.repeat(3).shuffle(30).map(numbered),
        lambda ds: ds.flat_map(lambda x: ps.Dataset.range(x % 4)).map(numbered).batch(7),
        lambda ds: ds.interleave(lambda x: ps.Dataset.range(x % 4).map(numbered), cycle_length=3).filter(
            lambda x: x > 1
        ),
        lambda ds: ps.Dataset.zip((ds, ds.map(numbered))).map(lambda a, b: a + b),
        lambda ds: ds.cache().map(numbered).batch(4).skip(2).take(9),
        lambda ds: ds.map(numbered).shuffle(ps.ALL).batch(4),
        lambda ds: ds.map(failing).ignore_errors().batch(2),
        lambda ds: ds.shuffle(ps.ALL).map(numbered).shard(3, 1),
        lambda ds: ds.padded_batch(4).map(lambda x: x.sum()).batch(2, drop_remainder=True),
    ],
)
def test_what_draws_draws_as_without_the_service(build, seed):
    dataset = build(ps.Dataset.range(50))
    behind = through(dataset, size=1 + seed, seed=seed).map(numbered).shuffle(5)
    for epoch in (0, 2):
        wanted = elements(dataset.map(lambda x: x), epoch)
        assert_same_elements(elements(through(dataset, size=1 + seed, seed=seed), epoch), wanted)
    if np.ndim(wanted[0]) == 0:
        assert_same_elements(elements(behind), elements(dataset.map(numbered).shuffle(5)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "build",
    [
        lambda ds: ds.map(failing),
        lambda ds: ds.map(failing).batch(2),
        lambda ds: ds.map(failing).shuffle(4).batch(3),
        lambda ds: ds.filter(lambda x: failing(x) >= 0).map(lambda x: x * 2),
    ],
)
def test_failures_take_their_places_and_say_where_they_are_from(build, seed):
    dataset = build(ps.Dataset.range(20))
    wanted = positions(dataset.iterator(epoch=0))
    assert positions(through(dataset, size=2, seed=seed).iterator(epoch=0)) == wanted
    assert any(isinstance(each, tuple) for each in wanted)


def turned(n):
    """Build dicts whose keys change their order between elements: a reader keeps the order of the first."""
    for i in range(n):
        yield {"a": i, "b": i * 0.5} if i * i % 7 > 2 else {"b": i * 0.5, "a": i}


@pytest.mark.parametrize("place", range(0, 24, 3))
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_worker_that_begins_in_the_middle_lays_out_its_blocks_as_one_that_began_at_the_start(place, shuffled):
    dataset = ps.Dataset.from_generator(turned, args=(24,))
    dataset = (dataset.shuffle(3, seed=1) if shuffled else dataset).map(lambda d: d)
    wanted = elements(dataset)
    found = elements(through(dataset, size=1 + place % 3, seed=place, deaths=4))
    assert_same_elements(found, wanted)
    assert [list(element) for element in found] == [list(element) for element in wanted]
    with through(dataset, seed=place).iterator(epoch=0, executor="inline") as iterator:
        given_now = [next(iterator) for _ in range(place)]
        state = iterator.state_dict()
    with through(dataset, seed=place).iterator(executor="inline") as iterator:
        iterator.load_state_dict(state)
        assert [list(element) for element in [*given_now, *iterator]] == [list(element) for element in wanted]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2])
def test_consumers_take_every_nth_batch(count, size):
    dataset = ps.Dataset.range(23).shuffle(9, seed=1).map(lambda x: x + 1).batch(size)
    wanted = elements(dataset)
    for index in range(count):
        mine = dataset._then(Distribute, service=Simulated(), num_consumers=count, consumer_index=index)
        assert_same_elements(elements(mine), wanted[index::count])
        for place in range(len(wanted[index::count]) + 1):
            with mine.iterator(epoch=0, executor="inline") as iterator:
                given_now = [next(iterator) for _ in range(place)]
                state = iterator.state_dict()
            with mine.iterator(executor="inline") as iterator:
                iterator.load_state_dict(state)
                assert_same_elements(given_now + list(iterator), wanted[index::count])
        assert mine.cardinality() == len(wanted[index::count])


def test_batches_of_other_consumers_are_not_made():

    dataset = ps.Dataset.range(24).map(lambda x: x).batch(4)
    mine = dataset._then(Distribute, service=Simulated(size=1, deaths=0), num_consumers=3, consumer_index=1)
    assert [batch.tolist() for batch in elements(mine)] == [[4, 5, 6, 7], [16, 17, 18, 19]]
    assert [each.start for each in RangeWindow(4, RangeSizer(4, steady=True), 2, None, 12).to_ask({"a": 1})] == [4, 16]


def test_elements_are_skipped_without_being_made():
    dataset = through(ps.Dataset.range(10**12).map(lambda x: x * 2).batch(2))
    iterator = dataset.iterator(executor="inline")
    iterator.skip_steps(10**11)
    assert next(iterator).tolist() == [4 * 10**11, 4 * 10**11 + 2]


def test_a_range_that_ends_three_workers_ends_the_pass():
    window = RangeWindow(0, RangeSizer(4), 10)
    workers = {"a": 1}
    window.to_ask(workers)
    assert window.lost("a") is None
    window.to_ask(workers)
    assert window.lost("a") is None
    window.to_ask(workers)
    assert window.lost("a").start == 0


def test_the_pass_of_workers_that_always_die_ends_with_an_error():
    class Dying(Simulated):
        def stage(self, node, lowering):
            stage = super().stage(node, lowering)
            hire = stage._requests._hire

            def hired():
                force = hire()
                force.wait = lambda seconds: [setattr(each, "alive", not each.ready) for each in force.there.values()]
                return force

            stage._requests._hire = hired
            return stage

    numbers = ps.Dataset.range(9).map(lambda x: x)
    dataset = numbers._then(Distribute, service=Dying(size=1, deaths=0))
    with iter(dataset) as iterator:
        for _ in range(2):  # docs/how-to/use-the-service.md describes each further next()
            with pytest.raises(FailedPreconditionError, match="3 workers ended while they made elements 0 to 0"):
                next(iterator)
        state = iterator.state_dict()
    elsewhere = numbers._then(Distribute, service=Simulated(size=1, deaths=0)).iterator()
    elsewhere.load_state_dict(state)
    assert list(elsewhere) == list(range(9))


@settings(max_examples=100)
@given(st.integers(0, 10**6))
def test_no_range_is_lost_and_none_comes_twice(seed):
    """The state machine alone, over a network that loses, doubles and delays, with workers that come and go."""
    chance = random.Random(seed)
    unit, total = chance.choice([1, 3]), chance.randrange(60)
    window = RangeWindow(0, RangeSizer(unit), chance.randrange(1, 9))
    workers, network, taken = {f"w{i}": 1 for i in range(chance.randrange(1, 4))}, [], []
    for step in range(3000):
        network += [(str(each.worker), each.start, each.stop) for each in window.to_ask(workers)]
        if network and chance.random() < 0.7:
            worker, start, stop = network.pop(chance.randrange(len(network)))
            if chance.random() < 0.2:
                network.append((worker, start, stop))
            if worker in workers:
                there = range(start, min(stop, max(total, start)))
                window.arrived(worker, start, list(there))
                window.sizer.observe(stop - start, chance.random() / 10, 8)
                if start + len(there) < stop:
                    window.ended(max(total, start) if there else min(start, total) if start <= total else total)
        if workers and chance.random() < 0.05:
            gone = chance.choice(list(workers))
            del workers[gone]
            for each in window:  # no worker failed in this case
                each.kills = 0
            window.lost(gone)
            workers[f"v{step}"] = 1
        while (found := window.take()) is not None:
            taken += found.made
        if window.over:
            break
    assert window.over
    assert taken == list(range(total))


@pytest.mark.parametrize(
    ("build", "middle", "rest"),
    [
        (lambda ds: ds.map(failing).batch(2), ["map(failing)", "batch(2)"], []),
        (lambda ds: ds.map(failing).shuffle(2).batch(2), ["map(failing)"], ["shuffle(2)", "batch(2)"]),
        (lambda ds: ds.shuffle(2).map(failing), ["map(failing)"], []),
        (lambda ds: ds.filter(failing).batch(2), ["filter(failing)"], ["batch(2)"]),
        (lambda ds: ds.filter(failing).map(failing), ["filter(failing)"], ["map(failing)"]),
        (lambda ds: ds.map(failing).repeat().batch(2), ["map(failing)"], ["repeat()", "batch(2)"]),
        (lambda ds: ds.repeat().shuffle(2).batch(2), ["batch(2)"], []),
        (lambda ds: ds.map(failing, executor="inline").map(failing), ["map(failing)"], []),
        (lambda ds: ds.map(failing).interleave(failing).map(failing), ["map(failing)"], []),
    ],
)
def test_what_goes_to_workers_and_what_stays(build, middle, rest):
    found = cut(build(ps.Dataset.range(9))._plan)
    assert [step.label for step in found.middle] == middle
    assert [step.label for step in found.rest] == rest
    assert all(isinstance(step.input, Seen) for step in found.middle)
