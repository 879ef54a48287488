"""Options.autocache: epochs stay what they are, in content and order, wherever a cache is put."""

import json
from collections import deque

import numpy as np
import pytest

import penstock as ps
from penstock.profiler.placement import choose as deciding
from penstock.profiler.placement.choose import Choice, Room, Spot, choose
from penstock.profiler.placement.placing import Placing
from penstock.testing import resumed

FACTOR = [3]


@pytest.fixture(autouse=True)
def apart(monkeypatch, tmp_path):
    """Files go to a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def nothing_is_too_little(monkeypatch):
    """Whatever a step costs, keeping what it gives is worth it."""
    monkeypatch.setattr(deciding, "_LEAST", -1e9)
    monkeypatch.setattr(deciding, "_LEAST_SHARE", 0.0)
    monkeypatch.setattr(
        deciding, "_KINDS", tuple(deciding._CacheKind(kind.name, -1.0, 0.0) for kind in deciding._KINDS)
    )


def costly(x):
    return np.full(3, sum(i % 7 for i in range(2000)) + x)


def scaled(x):
    return x * FACTOR[0]


PIPELINES = {
    "map, shuffle, batch": lambda: ps.Dataset.range(30).map(costly, 2).shuffle(8).batch(4),
    "one thread": lambda: ps.Dataset.range(30).map(costly).shuffle(8).batch(4),
    "batch at the end": lambda: ps.Dataset.range(30).map(costly, 2).batch(4, drop_remainder=True).prefetch(2),
    "filter and zip": lambda: ps.Dataset.zip(
        ps.Dataset.range(30).filter(lambda x: x % 3 != 1), ps.Dataset.range(99).map(costly)
    ).shuffle(5, seed=2),
    "draws behind it": lambda: ps.Dataset.range(30).map(costly).map(lambda x: x + ps.element_key() % 5, 2).batch(4),
    "draws in the order of a shuffle": lambda: (
        ps.Dataset.range(30).map(costly).shuffle(9).map(lambda x: (x, ps.element_key() % 1000))
    ),
    "data sets inside": lambda: ps.Dataset.range(6).flat_map(lambda x: ps.Dataset.range(4)).map(costly).shuffle(5),
    "repeated": lambda: ps.Dataset.range(10).map(costly).repeat(2).shuffle(7).batch(3),
    "shuffled at once": lambda: ps.Dataset.range(30).shuffle(9).map(costly),
    "a cache of the user's": lambda: ps.Dataset.range(30).map(costly).cache().map(lambda x: x + 1).shuffle(9),
    "of differing shapes": lambda: ps.Dataset.range(12).map(lambda x: np.arange(int(x))).padded_batch(3),
    "strings": lambda: ps.Dataset.from_tensor_slices(["a", "bc", ""]).map(lambda x: (x, x + b"!")).shuffle(3),
}


def values(elements):
    return [str(element) for element in elements]


@pytest.mark.parametrize("wanted", ["memory", "disk", "auto"])
@pytest.mark.parametrize("name", PIPELINES)
def test_epochs_are_those_without_a_cache(name, wanted, nothing_is_too_little):
    plain, cached = PIPELINES[name](), PIPELINES[name]().with_options(ps.Options(autocache=wanted))
    for _ in range(4):
        assert values(cached) == values(plain)
    assert cached._placing.place is not None


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("name", PIPELINES)
def test_every_place_that_is_allowed_gives_the_same(name, kind, monkeypatch, nothing_is_too_little):
    plain = [values(PIPELINES[name]().iterator(epoch=epoch)) for epoch in range(3)]
    for number in range(8):

        def pick(spots, room, epochs, number=number):
            free = [spot for spot in spots if spot.why_not is None]
            return Choice(free[number], kind) if number < len(free) else Choice(None)

        monkeypatch.setattr("penstock.profiler.placement.placing.choose", pick)
        cached = PIPELINES[name]().with_options(ps.Options(autocache="auto"))
        assert [values(cached) for _ in range(3)] == plain
        if cached._placing.place is None:
            return
    pytest.fail("more places than steps")


def test_it_is_off_by_default():
    ds = ps.Dataset.range(4)
    assert [len(list(ds)) for _ in range(2)] == [4, 4]
    assert ds._placing is None
    assert "Options.autocache" not in ds.explain()


def counting():
    """A costly step of which calls are seen here and nowhere else."""
    calls = deque()

    def function(x):
        calls.append(int(x))
        return costly(x)

    return calls, function


def test_from_the_third_pass_on_nothing_is_computed(monkeypatch, nothing_is_too_little):
    monkeypatch.setattr("penstock.profiler.placement.spots.why_not_the_same", lambda function: None)
    monkeypatch.setattr(Placing, "_functions", lambda self: "")
    calls, function = counting()
    ds = ps.Dataset.range(20).map(function).shuffle(4).with_options(ps.Options(autocache="memory"))
    counts = []
    for _ in range(4):
        list(ds)
        counts.append(len(calls))
    assert counts == [20, 40, 40, 40]


def test_passes_that_stop_early_decide_nothing(nothing_is_too_little):
    ds = ps.Dataset.range(20).map(costly).shuffle(4).with_options(ps.Options(autocache="memory"))
    for _ in range(3):
        next(iter(ds))
    assert ds._placing.place is None
    assert "no decision yet: the next complete iteration is measured" in ds.explain()


def test_a_function_that_changes_is_seen(nothing_is_too_little):
    ds = ps.Dataset.range(4).map(scaled).with_options(ps.Options(autocache="memory"))
    try:
        for factor in (3, 3, 3, 5, 5, 5, 7):
            FACTOR[0] = factor
            assert [int(x) for x in ds] == [factor * n for n in range(4)]
    finally:
        FACTOR[0] = 3


@pytest.mark.parametrize("wanted", ["memory", "disk"])
def test_states_are_read_with_and_without_the_cache(wanted, nothing_is_too_little):
    def build(options):
        return ps.Dataset.range(20).map(costly, 2).shuffle(6).batch(3).with_options(options)

    on = ps.Options(autocache=wanted)
    plain = [values(build(ps.Options()).iterator(epoch=epoch)) for epoch in range(3)]
    ds = build(on)
    for epoch in range(3):
        with ds.iterator(epoch=epoch) as elements:
            given = [str(next(elements)) for _ in range(3)]
            state = json.loads(json.dumps(elements.state_dict()))
        assert ("autocache" in state) is (epoch > 0)
        assert given == plain[epoch][:3]
        for other in (ds, build(on)):
            assert values(resumed(other, state)) == plain[epoch][3:]
        assert values(ds.iterator(epoch=epoch)) == plain[epoch]


def test_a_state_with_a_cache_is_refused_where_none_may_be_put(nothing_is_too_little):
    ds = ps.Dataset.range(9).map(costly).with_options(ps.Options(autocache="memory"))
    list(ds)
    with ds.iterator() as elements:
        next(elements)
        state = elements.state_dict()
    other = iter(ps.Dataset.range(9).map(costly))
    with pytest.raises(ps.errors.FailedPreconditionError, match="autocache"):
        other.load_state_dict(state)
    assert len(list(other)) == 9


def test_explain_says_what_is_estimated_and_what_happened(nothing_is_too_little):
    ds = ps.Dataset.range(20).map(costly).shuffle(4).with_options(ps.Options(autocache="memory"))
    list(ds)
    text = ds.explain()
    assert "a cache in memory after map#1, map(costly) (test_autocache.py:" in text
    assert "s of CPU time saved in every epoch, for 480 bytes" in text
    assert "the next whole iteration fills it" in text
    assert "not after shuffle#1, shuffle(4) (test_autocache.py:" in text
    list(ds)
    assert "it is full, with 480 bytes, and serves all later epochs" in ds.explain()
    assert json.loads(ds.explain(format="json"))["autocache"][0] == 'Options.autocache is "memory"'


def test_explain_says_that_what_has_no_end_is_not_measured():
    ds = ps.Dataset.range(20).map(costly).repeat().with_options(ps.Options(autocache="memory"))
    list(ds.take(50))
    assert "only complete iterations are measured, and this data set has no end" in ds.explain()


def test_a_real_pass_is_decided_by_its_figures():
    """No constant is changed here: a map that takes milliseconds pays, a shuffled range does not."""
    slow = ps.Dataset.range(60).map(lambda x: sum(i * int(x) for i in range(20_000))).shuffle(9)
    quick = ps.Dataset.range(60).map(lambda x: x + 1).shuffle(9)
    options = ps.Options(autocache="memory")
    slow, quick = slow.with_options(options), quick.with_options(options)
    for ds in (slow, quick):
        list(ds)
    assert (slow._placing.place, quick._placing.place) == ("memory:map#1", None)
    assert "no cache would save time after 1 whole iteration: " in quick.explain()


def test_figures_of_a_real_pass_are_those_of_the_steps():
    found = {}

    def seen(spots, room, epochs):
        found.update((spot.name, spot) for spot in spots)
        return choose(spots, room, epochs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.profiler.placement.placing.choose", seen)
        ds = ps.Dataset.range(40).map(costly, 2).repeat(3).batch(4).with_options(ps.Options(autocache="memory"))
        list(ds)
    assert found["map#1"].nbytes == pytest.approx(40 * 3 * 8)
    assert found["repeat#1"].nbytes == pytest.approx(120 * 3 * 8)
    assert 0 < found["range#1"].seconds < found["map#1"].seconds <= found["batch#1"].seconds


@pytest.mark.parametrize(("value", "error"), [("ram", ps.errors.InvalidArgumentError), (1, ps.errors.InvalidTypeError)])
def test_other_values_are_refused(value, error):
    with pytest.raises(error, match=r"Options\.autocache must be "):
        ps.Options(autocache=value)


def test_figures_make_the_choice_plain():
    assert choose([Spot("map#1", "map(f)", seconds=1.0, nbytes=1e6)], Room(memory=1 << 30), 1).place == "memory:map#1"


@pytest.fixture
def memory(monkeypatch):
    """What was measured outlives the data set."""
    monkeypatch.setenv("PENSTOCK_REMEMBER", "1")


def remembered_build():
    return ps.Dataset.range(20).map(costly).shuffle(4).with_options(ps.Options(autocache="memory"))


def test_what_was_measured_is_known_to_the_next_run(memory, nothing_is_too_little):
    first = remembered_build()
    plain = [values(first) for _ in range(3)]
    second = remembered_build()
    assert [values(second.iterator(epoch=0))] == plain[:1]
    assert second._placing.place is not None
    assert "it is full" in second.explain()


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: text.replace('"epochs": 1', '"epochs": 9')])
def test_damaged_memories_count_as_absent(memory, tmp_path, nothing_is_too_little, damage):
    list(remembered_build())
    (path,) = (tmp_path / "penstock" / "placement").iterdir()
    path.write_text(damage(path.read_text()))
    ds = remembered_build()
    next(iter(ds))
    assert ds._placing.place is None


def test_memories_are_of_a_function_as_it_is(memory, nothing_is_too_little):
    ds = ps.Dataset.range(4).map(scaled).with_options(ps.Options(autocache="memory"))
    list(ds)
    FACTOR[0] = 4
    try:
        other = ps.Dataset.range(4).map(scaled).with_options(ps.Options(autocache="memory"))
        assert [int(x) for x in other] == [0, 4, 8, 12]
        assert other._placing.place is not None  # by this pass
    finally:
        FACTOR[0] = 3


def test_elements_that_outgrow_their_room_end_no_pass(nothing_is_too_little):
    """A cache that nobody asked for gives up where one that was asked for says that it is too large."""
    size = [10]

    def grown(x):
        return np.zeros(size[0] * 1000) + x

    options = ps.Options(autocache="memory", autotune={"ram_budget": 1 << 22})
    ds = ps.Dataset.range(20).map(grown).with_options(options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Placing, "_functions", lambda self: "")
        list(ds)
        assert ds._placing.place is not None
        size[0] = 20
        for _ in range(3):
            assert [int(x[0]) for x in ds] == list(range(20))
    assert "the elements are larger than the available room" in ds.explain()
