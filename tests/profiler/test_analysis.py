"""The measurements and messages of explain(analyze=True)."""

import json
import threading
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.golden.golden import assert_golden
from tests.profiler import figures

import penstock as ps
from penstock.dataset.base import inner
from penstock.profiler.analysis import meter
from penstock.profiler.analysis.advice import advice
from penstock.profiler.analysis.alone import REFERENCE, LockProbe
from penstock.profiler.analysis.analyse import analyse
from penstock.profiler.analysis.as_json import analysis_values
from penstock.profiler.analysis.bottleneck import bottleneck
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.figures import LOOP
from penstock.profiler.analysis.prediction import later, predicted
from penstock.profiler.analysis.report import WIDTH, report

SHORT = 0.2


def analysed(ds, seconds=SHORT, **more):
    ds.explain(analyze=True, seconds=seconds, **more)
    return ds._analysis


def analysed_once(ds):
    """Analyse one whole iteration, however short."""
    return analyse(ds._plan, ds._options, 30.0, 0.0, inner, most_passes=1)


def doubled(x):
    return x * 2 if x >= 0 else x


def nap(x):
    time.sleep(0.005)
    return x


def even(x):
    return bool(x % 2 == 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    for i in range(6):
        with ps.io.TFRecordWriter(folder / f"part-{i}.tfrecord") as writer:
            for k in range(40):
                writer.write(b"%d" % (40 * i + k))
    return folder


# -- measurements


def test_every_step_has_a_name_a_lane_and_its_elements():
    ds = ps.Dataset.range(96).map(doubled, num_parallel_calls=2).map(even, num_parallel_calls=2).batch(8).prefetch(-1)
    found = analysed_once(ds)
    assert [step.name for step in found.steps] == ["range#1", "map#1", "map#2", "batch#1"]
    assert [step.label for step in found.steps] == ["range(0, 96, 1)", "map(doubled)", "map(even)", "batch(8)"]
    assert [(lane.name, lane.consumer) for lane in found.lanes] == [(LOOP, None), ("batch#1", LOOP)]
    assert [step.parallel for step in found.steps] == [False, True, True, True]
    assert [step.ratio for step in found.steps] == [8.0, 8.0, 8.0, 1.0]
    assert found.lane("batch#1").workers == 2
    assert found.passes == 1
    assert found.epoch_elements == 12


def test_a_pass_that_ends_at_once_is_counted_whole():
    found = analysed_once(ps.Dataset.range(50).filter(even).map(doubled).batch(5))
    assert found.elements == 5
    assert [step.elements for step in found.steps] == [50, 25, 25, 5]
    assert [step.ratio for step in found.steps] == [10.0, 5.0, 5.0, 1.0]


@pytest.fixture
def naps(monkeypatch):
    """A function that waits for 5 ms on the clock of its thread. Nothing else takes time on this clock."""
    slept = Counter()  # calls of each thread
    clock = SimpleNamespace(perf_counter=lambda: 0.005 * slept[threading.get_ident()], thread_time=lambda: 0.0)
    monkeypatch.setattr(meter, "time", clock)

    def pause(x):
        slept[threading.get_ident()] += 1
        return x

    return pause


def test_waiting_is_told_from_work(naps):
    found = analysed_once(ps.Dataset.range(40).map(naps).batch(2)).step("map#1")
    assert found.waiting == pytest.approx(0.005)
    assert found.cpu == found.held == 0


def test_what_a_step_pulls_is_not_its_own(naps):
    found = analysed_once(ps.Dataset.range(40).map(naps).batch(2).map(lambda x: x.sum(), num_parallel_calls=2))
    assert found.step("map#1").seconds > 0
    assert found.step("map#2").seconds == 0
    assert found.step("map#1").lane == found.step("map#2").lane == "map#2"
    assert not found.step("map#1").parallel


def test_inner_data_sets_are_shown_below_the_step_that_opened_them(files):
    ds = ps.Dataset.list_files(files / "part-*").interleave(ps.TFRecordDataset, cycle_length=3, num_parallel_calls=2)
    found = analysed_once(ds.map(len))
    assert [step.name for step in found.steps] == [
        "list_files#1",
        "shuffle#1",
        "interleave#1/TFRecordDataset",
        "interleave#1",
        "map#1",
        "prefetch#1",
    ]
    inner = found.step("interleave#1/TFRecordDataset")
    assert inner.elements == found.step("interleave#1").elements == 240
    assert inner.lane == "interleave#1 inputs"
    assert inner.parallel
    serial = analysed_once(ps.Dataset.list_files(files / "part-*").flat_map(ps.TFRecordDataset))
    assert serial.step("flat_map#1/TFRecordDataset").lane == LOOP


def test_small_inputs_of_which_some_are_damaged_are_counted_once(tmp_path):
    for number in range(60):
        with ps.io.TFRecordWriter(tmp_path / f"{number:02}") as writer:
            for _ in range(4):
                writer.write(b"record")
        if number % 16 == 5:
            (tmp_path / f"{number:02}").write_bytes((tmp_path / f"{number:02}").read_bytes()[:-1])
    names = sorted(map(str, tmp_path.iterdir()))
    found = analysed_once(ps.Dataset.from_tensor_slices(names).interleave(ps.TFRecordDataset, 4).ignore_errors())
    inner, outer = (found.step(name) for name in ("interleave#1/TFRecordDataset", "interleave#1"))
    assert inner.elements == outer.elements == 240  # failures count too


def test_inner_maps_are_told_apart(files):
    def opened(path):
        return ps.TFRecordDataset(path).map(len).filter(even)

    found = analysed_once(ps.Dataset.list_files(files / "part-*").flat_map(opened))
    inner = [step for step in found.steps if "/" in step.name]
    assert [step.name.partition("/")[2] for step in inner] == ["TFRecordDataset", "map", "filter"]
    assert [step.elements for step in inner[:2]] == [240, 240]


def test_steps_of_small_inner_data_sets_have_their_rows():
    def plus(x):
        return x + 1

    def positive(x):
        return x > 0

    windows = ps.Dataset.range(250).window(5)
    for opened, kinds, made in [
        (lambda w: w.map(plus).map(plus).batch(5), ["window", "map", "map#2", "batch"], [250, 250, 250, 50]),
        (lambda w: w.map(plus).filter(positive), ["window", "map", "filter"], [250, 250, 250]),
        (lambda w: (w.options(), w)[1], ["window"], [250]),
    ]:
        found = analysed_once(windows.flat_map(opened))
        inner = [step for step in found.steps if "/" in step.name]
        assert [step.name.partition("/")[2] for step in inner] == kinds
        assert [step.elements for step in inner] == made
        assert [step.ratio for step in inner] == [number / made[-1] for number in made]


def test_windows_that_are_copied_at_once_are_a_step_of_their_own():
    found = analysed_once(ps.Dataset.range(400).window(4, 1, drop_remainder=True).flat_map(lambda w: w.batch(4)))
    assert [(step.name, step.elements) for step in found.steps][-1] == ("flat_map#1", 397)


def test_repeated_and_shared_steps_are_one_row():
    numbers = ps.Dataset.range(20).map(doubled)
    found = analysed_once(ps.Dataset.zip(numbers, numbers).repeat(3))
    assert len({step.name for step in found.steps}) == len(found.steps)
    assert found.elements == 60
    both = analysed_once(ps.Dataset.range(20).concatenate(ps.Dataset.range(20).map(doubled)).batch(10))
    numbers = ps.Dataset.range(20)
    shared = analysed_once(numbers.concatenate(numbers.map(doubled)).batch(10))
    assert sum(step.ratio for step in both.steps if step.kind == "range") == 10.0
    assert shared.step("range#1").ratio == 10.0
    shuffled = analysed_once(ps.Dataset.range(20).shuffle(5).repeat(3).batch(6))
    assert shuffled.elements == 10
    assert [step.kind for step in shuffled.steps] == ["range", "shuffle_and_repeat", "batch"]


def test_a_failing_element_is_counted_and_named():
    def third(x):
        if x % 3 == 0:
            message = "a third"
            raise ValueError(message)
        return x

    found = analysed_once(ps.Dataset.range(30).map(third))
    assert (found.elements, found.failures) == (30, 10)
    assert found.first_failure == "ValueError: a third"


def test_an_endless_pass_without_elements_ends():
    found = analysed(ps.Dataset.counter().filter(lambda x: bool(x < 0)))
    assert found.elements == 0
    assert not found.passes
    assert bottleneck(found).kind == "nothing"


def test_a_shuffle_that_fills_is_named():
    ds = ps.Dataset.range(10**6).map(nap, num_parallel_calls=2).shuffle(10**5).batch(4)
    found = bottleneck(analysed(ds))
    assert (found.kind, found.step) == ("filling", "shuffle#1")
    with pytest.raises(ps.errors.FailedPreconditionError, match="still filling"):
        ds.what_if(cores=4)


def test_the_loop_can_be_the_slow_side():
    found = analysed(ps.Dataset.range(10**6).map(doubled).batch(2).prefetch(2), consumer_seconds=0.02)
    assert bottleneck(found).kind == "loop"
    assert found.elements_per_second < 50
    assert [each for each in advice(found) if each.change.consumer_seconds is None] == []


# -- leftovers


def test_it_is_no_epoch():
    seen = Counter()

    def noted(x):
        seen[int(x)] += 1
        return x

    ds = ps.Dataset.range(10).map(noted).cache().ignore_errors().shuffle(10, seed=1)
    first = [int(x) for x in ds.iterator(epoch=0)]
    fresh = ps.Dataset.range(10).map(noted).cache().ignore_errors().shuffle(10, seed=1)
    analysed_once(fresh)
    seen.clear()
    assert [int(x) for x in fresh] == first
    assert set(seen.values()) == {1}  # the cache was not full
    assert fresh.ignored == 0
    seen.clear()
    analysed_once(fresh)
    assert not seen  # now it is full, and serves


def test_it_writes_no_snapshot_and_no_quarantine(tmp_path):
    def odd(x):
        if x % 2:
            raise ValueError
        return x

    ds = ps.Dataset.range(10).map(odd).ignore_errors(quarantine=tmp_path / "bad.jsonl").snapshot(tmp_path / "kept")
    found = analysed_once(ds)
    assert found.elements == 5
    assert list(tmp_path.iterdir()) == []
    assert len(list(ds)) == 5
    before = sorted(tmp_path.rglob("*"))
    found = analysed_once(ds)  # it serves cached elements
    assert (found.elements, found.step("map#1").elements) == (5, 0)
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_left_running(files):
    before = threading.active_count()
    for seconds in (0.05, 1.0):
        ds = ps.Dataset.list_files(files / "part-*").interleave(ps.TFRecordDataset, num_parallel_calls=2)
        analysed(ds.map(len, num_parallel_calls=2).batch(4).prefetch(2), seconds=seconds)
    for thread in threading.enumerate():
        if thread.name.startswith("penstock"):
            thread.join(30)
    assert threading.active_count() <= before


def test_an_interrupted_analysis_closes():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        analysed(ps.Dataset.range(5).map(stop, num_parallel_calls=2))


# -- the lock


def probe(**counts):
    found = LockProbe([])
    for part, (asked, waited) in counts.items():
        key = REFERENCE if part == "reference" else meter.MeterKey(1, part)
        found.asked[key], found.waited[key] = asked, waited
    return found


def test_a_probe_that_waits_tells_that_the_lock_is_held():
    found = probe(reference=(100, 0), python=(50, 50), half=(40, 20), rare=(3, 3), other=(6, 0))
    assert found.share([meter.MeterKey(1, "python")]) == 1.0
    assert found.share([meter.MeterKey(1, "half")]) == 0.5
    assert found.share([meter.MeterKey(1, "rare")]) is None
    assert found.rest() == pytest.approx(1 / 3)


def test_a_data_set_that_ends_is_run_again_until_the_time_is_over():
    runs = []

    def numbers():
        runs.append(1)
        yield from range(40)

    found = analysed(ps.Dataset.from_generator(numbers).map(doubled).batch(4).prefetch(2))
    assert found.passes > 1
    assert len(runs) > found.passes
    assert found.epoch_elements == 10
    assert found.elements > 10


def test_what_gives_nothing_a_second_time_is_run_no_more():
    left = list(range(20))

    def once():
        while left:
            yield left.pop()

    assert analysed(ps.Dataset.from_generator(once).batch(4), seconds=30.0).passes <= 1


def test_caches_are_empty_in_each_pass():
    ds = ps.Dataset.range(50).map(lambda x: x + 1 if x >= 0 else x).cache().batch(5)
    found = analysed(ds)
    assert found.passes > 1
    assert found.step("map#1").ratio == 5.0
    assert later(found) is not None


@pytest.mark.parametrize("prefetch", [None, 2])
def test_filling_ends_when_the_time_is_over(prefetch):
    """The number of read elements decides, whatever the machine does at the same time."""
    stop = threading.Event()
    read = []

    def slow():
        while not stop.wait(0.003):
            read.append(1)
            yield len(read)

    ds = ps.Dataset.from_generator(slow).shuffle(10**6).batch(8)
    if prefetch:
        ds = ds.prefetch(prefetch)
    guard = threading.Timer(60.0, stop.set)
    guard.start()
    try:
        found = analysed(ds)
    finally:
        stopped_by_itself = not stop.is_set()
        guard.cancel()
        stop.set()
    assert stopped_by_itself
    assert bottleneck(found).kind == "filling"
    assert "was still filling" in report(found)


def test_large_copies_are_called_copies():
    big = np.zeros((2, 1 << 19), np.float32)
    kept = [big[0], big[1]]
    found = analysed(ps.Dataset.range(400).map(lambda i: kept[int(i) % 2]).batch(4))
    named = {step.name for step in found.steps if found.copies(step)}
    assert bottleneck(found).step in named
    assert "the time is spent on copying, not on computing" in bottleneck(found).sentence
    assert not any(each.change.executor or each.change.parallelism for each in advice(found))
    smaller = next(each for each in advice(found) if each.change.faster)  # if memory is the limit, fewer bytes help
    assert "With half the bytes expect" in smaller.sentence
    assert set(smaller.change.faster) == named


def test_work_on_large_elements_is_no_copying():
    big = np.ones(1 << 16, np.float64)
    found = analysed(ps.Dataset.range(400).map(lambda i: np.sort(big + np.sin(big * int(i)))).batch(4))
    assert not found.copies(found.step("map#1"))


def test_a_busy_machine_is_not_taken_for_a_lock():
    found = probe(reference=(100, 40), free=(50, 20), python=(50, 50))
    assert found.share([meter.MeterKey(1, "free")]) == 0.0
    assert found.share([meter.MeterKey(1, "python")]) == pytest.approx(1.0)
    assert probe(reference=(100, 90), python=(50, 50)).share([meter.MeterKey(1, "python")]) is None


# -- conclusions


SHOWN = {
    "serial": figures.serial,
    "parallel": lambda: figures.parallel(reached=0.6, slowed=1.7),
    "processes": lambda: figures.parallel(executor="process", workers=16, cpus=16.0),
    "python": figures.python,
    "reading": figures.reading,
    "reading_ahead": lambda: figures.reading(parallel=True),
    "handing_batches": figures.idle,
    "handing_copies": figures.copying,
    "slow_loop": lambda: figures.parallel(consumer_seconds=0.5, consumer_waited=0.01),
    "cores": lambda: figures.parallel(lock=False, cpus=1.0),
    "window": lambda: with_lane(figures.parallel(), full=0.4, starved=0.5),
    "short": lambda: replace(figures.serial(passes=1), seconds=0.004),
    "failed": lambda: figures.serial(failures=3, first_failure="DataLossError: The record is cut short.", passes=1),
}


def with_lane(found, **more):
    return replace(found, lanes=(found.lanes[0], replace(found.lanes[1], **more)))


@pytest.mark.parametrize("name", SHOWN)
def test_report(name):
    text = report(SHOWN[name]())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert_golden(f"analysis_{name}", text)


def test_advice_is_what_the_model_says_of_the_same_change():
    for make in SHOWN.values():
        found = make()
        for each in advice(found):
            arguments = {name: getattr(each.change, name) for name in each.change.__slots__}
            ratio = ps.Dataset.range(1).what_if(analysis=found, **arguments).ratio
            assert ratio == pytest.approx(each.ratio)
            assert ratio > 1.05


def test_functions_that_must_stay_are_not_sent_away():
    found = figures.python()
    steps = tuple(replace(step, process="it appends to `seen`") for step in found.steps)
    assert not [each for each in advice(replace(found, steps=steps)) if each.change.executor]
    assert not [each for each in advice(replace(found, lock=False)) if each.change.executor]


def test_no_cache_behind_what_differs_from_epoch_to_epoch():
    found = figures.serial()
    assert [each.change.cached_after for each in advice(found) if each.change.cached_after] == ["map#2"]
    steps = tuple(replace(step, random=step.name == "map#2") for step in found.steps)
    assert [each.change.cached_after for each in advice(replace(found, steps=steps))][-1] == "map#1"
    steps = tuple(replace(step, random=True) for step in found.steps)
    assert not [each for each in advice(replace(found, steps=steps)) if each.change.cached_after]


def test_no_cache_that_does_not_fit():
    large = replace(figures.serial(), epoch_elements=10**9)
    assert not [each for each in advice(large) if each.change.cached_after]


def test_following_the_advice_lets_calls_run_side_by_side():
    ds = ps.Dataset.range(10**6).map(nap).batch(2)
    best = advice(analysed(ds))[0]
    assert list(best.change.parallelism) == ["map#1"]
    assert best.ratio > 1.5
    begun = threading.Event()

    def meet(x):
        if x == 0:  # is done when the next call starts
            assert begun.wait(60)
        else:
            begun.set()
        return x

    advised = ps.Dataset.range(8).map(meet, num_parallel_calls=ps.AUTOTUNE, executor="thread").batch(2)
    options = ps.Options(autotune={"min_parallelism": 2})
    assert len(list(advised.with_options(options))) == 4


# -- formats


def test_a_cache_that_was_filled_meanwhile_is_told_with_what_comes_behind_it():
    found = figures.caching()
    then = later(found)
    assert then.step == "cache#1"
    assert then.ratio == pytest.approx(predicted(found, Changes(cached_after="cache#1")).ratio) == pytest.approx(5, 0.1)
    assert (bottleneck(found).step, then.bottleneck.step) == ("map#1", "map#2")
    assert then.sentence in " ".join(report(found).split())
    assert analysis_values(found)["second_epoch"]["ratio"] == then.ratio
    full = figures.caching(full=True)
    assert later(full) is None
    assert analysis_values(full)["second_epoch"] is None


def test_a_cache_that_runs_is_filled_in_the_first_epoch_alone():
    ds = ps.Dataset.range(400).map(lambda x: sum(i * int(x) for i in range(300))).cache().batch(8)
    text = ds.explain(analyze=True, seconds=0.2)
    assert "cache#1 was filled in the meantime" in text
    list(ds)
    assert "filled in the meantime" not in ds.explain(analyze=True, seconds=0.2)


def test_text_ends_with_what_was_measured():
    ds = ps.Dataset.range(100).map(doubled).batch(10)
    text = ds.explain(analyze=True, seconds=SHORT)
    plain, _, measured = text.partition("\nmeasured\n")
    assert plain == ds.explain()
    assert "batch#1 (10)" in measured
    assert "bottleneck" in measured


def test_json_holds_the_same_facts():
    ds = (
        ps.Dataset.range(100)
        .map(doubled, num_parallel_calls=2)
        .batch(10)
        .with_options(ps.Options(dataset_name="numbers"))
    )
    values = json.loads(ds.explain(analyze=True, seconds=SHORT, format="json"))
    assert values["dataset"] == "numbers"
    assert values["cardinality"] == "10"
    assert values["plan"]["step"] == "batch(10)"
    assert values["plan"]["inputs"][0]["where"].startswith("test_analysis.py:")
    assert values["rewritten"][0]["rule"] == "fuse_map_and_batch"
    assert {advice["code"] for advice in values["advice"]} == {advice.code for advice in ds.lint()}
    found = values["analysis"]
    assert [step["name"] for step in found["steps"]] == ["batch#1", "map#1", "range#1"]
    assert found["steps"][1]["executor"] in ("thread", "process")
    assert found["passes"] > 1
    assert found["bottleneck"]["sentence"] in report(ds._analysis).replace("\n    ", " ")
    json.loads(ds.explain(format="json"))


@pytest.mark.parametrize("name", SHOWN)
def test_json_of_any_figures_is_json(name):
    text = json.dumps(analysis_values(SHOWN[name]()), allow_nan=False)
    assert json.loads(text)["steps"]


WRONG = {
    "format": {"format": "yaml"},
    "seconds": {"analyze": True, "seconds": 0},
    "seconds_text": {"analyze": True, "seconds": "5"},
    "seconds_endless": {"analyze": True, "seconds": float("inf")},
    "consumer_seconds": {"analyze": True, "consumer_seconds": -1.0},
    "consumer_seconds_nan": {"analyze": True, "consumer_seconds": float("nan")},
    "seconds_alone": {"seconds": 3},
    "consumer_seconds_alone": {"consumer_seconds": 0.02, "format": "json"},
    "analyze": {"analyze": "no"},
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    with pytest.raises((ps.errors.InvalidArgumentError, ps.errors.InvalidTypeError)) as caught:
        ps.Dataset.range(3).explain(**WRONG[case])
    assert_golden(f"argument_explain_{case}", str(caught.value))


@pytest.mark.parametrize("seed", range(3))
def test_metered_elements_are_the_same(seed):
    ds = ps.Dataset.range(60).map(doubled, num_parallel_calls=2).shuffle(9, seed=seed).batch(4)
    wanted = [batch.tolist() for batch in ds.iterator(epoch=0)]
    from penstock.rewrite.driver import optimise
    from penstock.runtime.run import Iterator, RunSettings

    plan = optimise(ds._plan, ds._options)
    assert optimise(plan, ds._options) is plan
    for executor in ("inline", "thread", "process"):
        measured = meter.Meter(plan)
        with Iterator(plan, ds._options, 0, RunSettings(executor, meter=measured)) as elements:
            assert [batch.tolist() for batch in elements] == wanted
        assert sum(cost.elements for key, cost in measured.costs().items() if key.node == id(plan)) >= len(wanted)
        assert np.all([cost.cpu >= 0 and cost.wall >= 0 for cost in measured.costs().values()])
