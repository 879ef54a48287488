"""Segments: parallel work in order, within bounds. A slow element delays only its own place."""

import threading
import time
from queue import SimpleQueue

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import InvalidArgumentError
from penstock.physical.memory import Overspent
from penstock.physical.stage import Stage, as_of_now
from penstock.physical.stretch import Fatal, Stretch, failure
from penstock.runtime import segment as segment_module
from penstock.runtime.autotune.figures import Knobs, TunerLimits
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.counts import CLOCKS
from penstock.runtime.free_order import FreeOrder
from penstock.runtime.lane import Lane
from penstock.runtime.machine.granted import granted_cpus
from penstock.runtime.memory.budget import Budget
from penstock.runtime.memory.ledger import Ledger
from penstock.runtime.parking import new_token
from penstock.runtime.scheduler import Scheduler, Scope, counts_as_worker
from penstock.runtime.segment import Aborted, Segment
from penstock.runtime.task import Direct, Task, Work
from penstock.runtime.work import BatchWork

SECONDS = 30


def test_a_slow_element_does_not_idle_the_others():
    """Element 0 waits until a later one is finished. This ends only if the slow element does not block the others."""
    later = threading.Event()

    def function(x):
        if x == 0:
            assert later.wait(SECONDS), "no later element was worked on meanwhile"
        elif x >= 20:
            later.set()
        return x if x < 1000 else -x

    assert [int(x) for x in ps.Dataset.range(50).map(function, 2)] == list(range(50))


def test_as_many_calls_run_at_once_as_were_asked_for_and_no_more():
    together = threading.Barrier(3, timeout=SECONDS)
    lock, running, most = threading.Lock(), 0, 0

    def function(x):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if x < 3:
            together.wait()
        with lock:
            running -= 1
        return x if x < 1000 else -x

    assert [int(x) for x in ps.Dataset.range(3).map(function, 3)] == [0, 1, 2]
    assert most == 3


class Meeting:
    """Work of a few milliseconds. From `begin` on, it waits until `count` calls run at once; `met` reports success."""

    def __init__(self, count, begin=0, result=None):
        self.count, self.begin, self.result = count, begin, result
        self.inside, self.lock, self.met = 0, threading.Lock(), threading.Event()

    def __call__(self, x):
        time.sleep(0.006)  # long enough for a separate Block
        if x >= self.begin:
            with self.lock:
                self.inside += 1
                if self.inside == self.count:
                    self.met.set()
            self.met.wait(30)
            with self.lock:
                self.inside -= 1
        return x if self.result is None else self.result()


def test_large_results_keep_no_worker_out():
    """A window starts with 64 MB, which four of these results fill."""
    meeting = Meeting(8, begin=16, result=lambda: np.empty(1 << 24, np.uint8))
    ds = ps.Dataset.range(40).map(lambda x: meeting(x), num_parallel_calls=8)
    assert sum(1 for _ in ds) == 40
    assert meeting.met.is_set()


def test_sources_that_one_line_makes_have_their_calls_each():
    calls = granted_cpus() + 6  # more than the cores: they wait
    meeting = Meeting(2 * calls, begin=2 * calls)  # when both have started
    one, other = (ps.Dataset.range(6 * calls).map(lambda x: meeting(x), num_parallel_calls=calls) for _ in range(2))
    assert sum(1 for _ in ps.Dataset.zip((one, other))) == 6 * calls
    assert meeting.met.is_set()


def test_without_num_parallel_calls_functions_are_called_one_at_a_time_in_order():
    lock, seen = threading.Lock(), []

    def function(x):
        assert lock.acquire(blocking=False), "two calls at once"
        seen.append(int(x))
        lock.release()
        return x

    list(ps.Dataset.range(200).map(function).prefetch(4))
    assert seen == list(range(200))


def test_prefetch_holds_about_as_many_elements_as_it_was_given():
    made = []

    def function(x):
        made.append(int(x))
        return x

    with ps.Dataset.range(10_000).map(function).prefetch(4).iterator() as elements:
        next(elements)
        held_when_full(elements)
        assert 5 <= len(made) < 20


def held_when_full(elements):
    """Return the bytes of the last segment after its workers have stopped."""
    segment = elements._run.root
    with segment._lock:
        assert segment._changed.wait_for(lambda: not segment.counts.busy and not segment.runnable(), SECONDS)
    return segment.statistics().nbytes


def test_whether_its_input_is_seen_is_said_when_whoever_pulls_knows():
    """An interleave would keep the earlier answer: one element at a time, for the whole iteration."""
    found = []
    with ps.Dataset.range(10_000).map(lambda x: x).prefetch(4).iterator() as elements:
        next(elements)
        held_when_full(elements)
        segment = elements._run.root
        segment._is_seen_below, segment._pulling = (None, False), True  # like a worker that has just started
        asking = threading.Thread(target=lambda: found.append(segment.seen_below))
        asking.start()
        asking.join(0.01)
        segment._look_below()
        asking.join(SECONDS)
        segment._pulling = False
    assert found == [False]


def test_of_what_is_seen_no_more_is_made_at_a_time_than_is_wanted_ahead():
    with ps.Dataset.range(10_000).map(lambda x: x, num_parallel_calls=2).prefetch(8).iterator() as elements:
        next(elements)
        held_when_full(elements)
        segment = elements._run.root
        ahead = segment.statistics().ahead
        for wanted, made in ((0, None), (1, 1), (ahead + 1, 1), (ahead + 8, 4), (ahead + 9, 4)):
            segment._limits.wanted = wanted
            assert segment._may_make() == made


@pytest.mark.parametrize("parallel", [None, 2])
def test_prefetch_holds_what_it_was_given_where_memory_allows(parallel):
    ds = ps.Dataset.range(10_000).map(lambda x: np.empty(1 << 20, np.uint8), parallel).prefetch(100)
    for ram, least, most in ((1 << 30, 95, 130), (1 << 25, 1, 32)):
        with ds.with_options(ps.Options(autotune={"ram_budget": ram})).iterator() as elements:
            next(elements)
            assert least <= held_when_full(elements) >> 20 <= most


def test_prefetch_works_while_nobody_asks():
    made = threading.Semaphore(0)

    def function(x):
        made.release()
        return x

    with ps.Dataset.range(100).map(function).prefetch(4).iterator() as elements:
        next(elements)
        for _ in range(4):
            assert made.acquire(timeout=SECONDS)


def test_workers_write_into_the_batch_and_it_is_whole():
    def function(x):
        return np.full((64, 64), x, np.float32)

    batches = list(ps.Dataset.range(100).map(function, 4).batch(16))
    assert [len(batch) for batch in batches] == [16] * 6 + [4]
    for number, batch in enumerate(batches):
        assert (batch == np.arange(number * 16, number * 16 + len(batch), dtype=np.float32)[:, None, None]).all()


def test_a_batch_that_is_held_is_never_written_again():
    ds = ps.Dataset.range(400).map(lambda x: np.full((64, 64), x, np.float32), 4).batch(16).prefetch(2)
    held = [(batch, batch.copy()) for batch in ds]
    assert all((batch == copy).all() for batch, copy in held)


def test_memory_of_batches_nobody_holds_is_used_again():
    ds = ps.Dataset.range(640).map(lambda x: np.full((64, 64), x, np.float32), 2).batch(16)
    addresses = [batch.__array_interface__["data"][0] for batch in ds.iterator(executor="inline")]
    assert len(set(addresses)) < len(addresses) / 2


@pytest.mark.parametrize("parallel", [1, 4])
def test_batches_of_dicts_bytes_and_ragged_components(parallel):
    def function(x):
        return {"id": x, "name": b"n" * (int(x) % 3), "pixels": np.full((2, 2), x)}

    ds = ps.Dataset.range(10).map(function, parallel).batch(4)
    last = list(ds)[-1]
    assert last["id"].tolist() == [8, 9]
    assert last["name"].tolist() == [b"nn", b""]
    assert last["pixels"].shape == (2, 2, 2)


def test_the_block_size_grows_while_blocks_are_cheap_and_falls_when_they_are_not():
    sizer = BlockSizer()
    assert sizer.want == 1
    for _ in range(40):
        sizer.observe(sizer.want, 1e-6, 8)
    most = sizer.want
    assert most > 1000
    sizer.observe(sizer.want, 10.0, 8)
    assert sizer.want < most
    small = sizer.want
    sizer.observe(small, 1e-6, 1 << 30)
    assert sizer.want < small


def test_the_block_size_learns_nothing_from_a_source_that_gave_less():
    sizer = BlockSizer()
    for _ in range(5):
        sizer.observe(sizer.want, 1e-6, 8)
    before = sizer.want
    sizer.observe(1, 1e-6, 8)
    assert sizer.want == before


def test_the_block_size_keeps_to_its_bound():
    sizer = BlockSizer(3)
    for _ in range(10):
        sizer.observe(sizer.want, 1e-6, 8)
    assert sizer.want <= 3


def test_the_recorder_sees_what_workers_did():
    recorder = ps.Recorder()
    list(ps.Dataset.range(100).map(lambda x: x + 1, 2).iterator(instrument=recorder))
    assert {span[1] for span in recorder.spans} == {"map(<lambda>)"}
    assert all(start <= stop for _, _, start, stop in recorder.spans)


class Reads:
    """Counts parallel reads of inputs. Each waits until `together` have met, or no more can come."""

    def __init__(self, together):
        self.barrier = threading.Barrier(together)
        self.lock = threading.Lock()
        self.inside = self.most = 0

    def input(self, number):
        def elements():
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            self.barrier.wait(SECONDS)
            with self.lock:
                self.inside -= 1
            yield int(number)

        return ps.Dataset.from_generator(elements, output_signature=ps.TensorSpec((), np.int64))


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_interleave_reads_as_many_inputs_at_once_as_it_was_told(at_once):
    reads = Reads(at_once)
    ds = ps.Dataset.range(12).interleave(reads.input, cycle_length=4, num_parallel_calls=at_once)
    assert sorted(int(x) for x in ds) == list(range(12))
    assert reads.most == at_once


def test_inputs_are_opened_and_read_before_their_turn():
    """With a cycle of one, the second input starts before the end of the first. Otherwise this hangs."""
    reads = Reads(2)
    ds = ps.Dataset.range(4).interleave(reads.input, cycle_length=1, num_parallel_calls=2)
    assert [int(x) for x in ds] == [0, 1, 2, 3]


# -- one segment alone: only workers of the test, and no long waits


class Below(Stage):
    """The input of a segment: reports whether its effects are observable, and counts requests."""

    def __init__(self, *, seen=False, seen_below=False, inputs=()):
        super().__init__("below", inputs)
        self.is_seen, self.is_seen_below, self.asked, self.looking = seen, seen or seen_below, 0, nothing

    @property
    def seen(self):
        return self.is_seen

    @property
    def seen_below(self):
        self.asked += 1
        self.looking()
        return self.is_seen_below

    def next(self, want):
        raise AssertionError

    def state(self):
        return "below"

    def restore(self, state):
        raise AssertionError


def nothing(*given):
    """Do nothing in the meantime."""


class Pieces(Work):
    """Results of a given number of bytes, or failures; each takes three inputs. Calls `pulling` and `making`."""

    label, where = "pieces", None

    def __init__(self, results=(8, 8, 8), *, below=None, parts=1, pulling=nothing, making=nothing):
        self.results, self.parts, self.pulling, self.making = results, parts, pulling, making
        self.upstream = Below() if below is None else below
        self.sizer = BlockSizer()
        self.pulled = self.closed = self.skipped = 0
        self.wants, self.mosts, self.observed, self.restored = [], [], [], None

    def pull(self):
        self.wants.append(self.sizer.want)
        self.mosts.append(self.most)
        self.pulling()
        ticket, part = divmod(self.pulled, self.parts)
        if ticket == len(self.results):
            return None
        self.pulled += 1
        after = self.state() if part == self.parts - 1 else None
        return Task(ticket, self.results[ticket], after, (3 * self.pulled - 3, 3))

    def run(self, task):
        self.making(task.ticket)
        if isinstance(task.payload, Exception):
            return failure(task.payload)
        if task.after is None:
            return None
        return Stretch(Block.single(DenseColumn(np.full((1, task.payload), task.ticket, np.uint8))))

    def observe(self, task, made, seconds, cpu):
        self.observed.append(task.ticket)
        self.sizer.want += 1

    def state(self):
        return f"behind {self.pulled}"

    def count(self):
        return 3 * self.pulled

    def restore(self, state, done, first, start):
        self.restored = state, done, first, start

    def ratios(self):
        return None

    def can_skip(self):
        return True

    def skip(self, count):
        self.skipped += count
        return count

    def close(self):
        self.closed += 1
        super().close()


class Looks:
    """Replaces a driver: counts the requested checks, and records its patience."""

    def __init__(self, total=1 << 20, *, given=True):
        self.due, self.looks, self.patiences, self.asked = float("inf"), 0, [], 0
        self.instrument = ps.Recorder()
        self.memory = Ledger(Budget(total, given=given))

    def workers(self):
        return 1

    def look(self, now):
        self.looks += 1

    def patience(self):
        self.asked += 1
        return self.patiences.pop() if self.patiences else None


class Limit:
    """A window of a given number of bytes."""

    def __init__(self, limit):
        self.limit, self.asked = limit, []

    def measure(self, held):
        self.held = held

    def ask(self, nbytes):
        self.asked.append(nbytes)


def alone(work, *, limit=1 << 20, at_most=None, parallelism=1, reads=False, ordered=True, driver=None, **more):
    """Build a segment whose pool has no threads; `at_most` is the bound of its lane's gate."""
    scheduler = Scheduler(1)
    scheduler.serve = nothing
    knobs = Knobs(at_most or parallelism)
    lane = Lane("pieces", "pieces", knobs, TunerLimits(), Limit(limit), bounded=at_most is not None, reads=reads)
    found = {"parallelism": parallelism, "ordered": ordered, "depth": 0, **more}
    return Segment(work, Scope(scheduler), driver or Looks(), lane, **found)


@pytest.fixture
def patient(monkeypatch):
    """Disable the check for missed wake-ups."""
    monkeypatch.setattr(segment_module, "PATIENCE", 1000 * SECONDS)


@pytest.fixture
def worker():
    """Make the test a worker."""
    counts_as_worker(True)
    yield
    counts_as_worker(False)


def answered(ask, *, worker=False):
    """Return the result of another thread once it has one."""
    found = SimpleQueue()

    def asks():
        counts_as_worker(worker)
        try:
            found.put(ask())
        except BaseException as error:
            found.put(error)

    threading.Thread(target=asks, daemon=True).start()
    return lambda: found.get(timeout=SECONDS)


def asleep(lot):
    """Return a semaphore that each worker releases when it goes to sleep there, while it holds the lock."""
    slept, park = threading.Semaphore(0), lot.park

    def parked(token, timeout=None):
        slept.release()
        park(token, timeout)

    lot.park = parked
    return slept


def wakes(lot, act):
    """Return True if an act wakes a worker that sleeps there."""
    token = new_token()
    lot.register(token)
    act()
    woken = token.acquire(blocking=False)
    if not woken:
        lot.unregister(token)
    return woken


def number(made):
    return made if made is None else int(made.block.elements()[0][0])


def all_of(segment):
    found = []
    while (made := segment.make(1)) is not None:
        found.append(number(made))
    return found


def test_steps_make_results_until_the_end_and_what_was_done_is_counted():
    work = Pieces()
    segment = alone(work)
    assert not segment.seen
    assert [segment.step() for _ in range(5)] == [True] * 4 + [False]
    assert all_of(segment) == [0, 1, 2]
    assert segment.make(1) is None
    sums = segment.counts.sums()
    assert (sums.inputs, sums.elements, sums.results, sums.nbytes) == (9, 3, 3, 24)
    assert sums.pull_seconds > 0
    assert sums.run_seconds > 0
    assert (work.observed, work.closed, segment.counts.busy, segment.counts.held) == ([0, 1, 2], 0, 0, 0)
    assert len(segment._driver.instrument.spans) == 3
    segment.close()
    assert work.closed == 1


def test_work_skips_only_what_says_that_it_can():
    assert not Work.can_skip(Pieces())
    with pytest.raises(AssertionError, match="pieces cannot skip"):
        Work.skip(Pieces(), 1)


def test_only_a_state_without_a_log_is_remembered():
    assert Direct(Pieces()).alone
    assert not Direct(Pieces(below=FreeOrder(Below()))).alone


def test_each_result_that_is_taken_wakes_a_worker_until_the_end():
    segment, wakes = alone(Pieces()), []
    segment.step()
    segment._scope.scheduler.wake = lambda: wakes.append(segment._results.complete)
    segment.make(1)
    assert wakes == [False]
    while segment.step():
        pass
    wakes.clear()
    assert all_of(segment) == [1, 2]
    assert wakes == []


@pytest.mark.parametrize("seen", [False, True])
def test_small_results_that_are_there_are_handed_over_as_one_block(seen):
    segment = alone(Pieces([8] * 5, below=Below(seen=seen)), limit=39)
    assert [segment.step() for _ in range(5)] == [True] * 4 + [False]
    assert [int(row[0]) for row in segment.make(3).block.elements()] == [0, 1, 2]
    assert (segment.counts.held, segment.counts.is_full, segment.statistics().ready) == (8, False, 1)
    assert segment.state()[0][0] == "behind 3"
    assert (number(segment.make(1)), segment.step(), number(segment.make(9))) == (3, True, 4)


def test_of_what_is_wanted_ahead_by_number_results_are_handed_over_one_by_one():
    segment = alone(Pieces([8] * 5, below=Below(seen=True)))
    segment.keep_ahead(3)
    assert [segment.step() for _ in range(4)] == [True] * 3 + [False]
    assert segment.make(9).size == 1
    assert segment.step()  # the number of elements before the taken one is unchanged


def test_where_pulling_is_the_work_its_time_is_that_of_the_work():
    segment = alone(Pieces(), reads=True)
    segment.step()
    sums = segment.counts.sums()
    assert (sums.inputs, sums.pull_seconds, sums.run_seconds > 0) == (3, 0.0, True)


def test_a_failure_is_a_result_without_elements():
    segment, asks = alone(Pieces([InvalidArgumentError("bad")])), []
    segment.lane.ask = lambda *asked: asks.append(asked)
    segment.step()
    assert (segment.counts.sums().elements, segment.counts.sums().results) == (0, 1)
    assert asks == [(0.0, 0.0)]
    with pytest.raises(InvalidArgumentError, match="bad"):
        segment.next(1)


@pytest.mark.parametrize(("parallelism", "at_most", "others"), [(1, None, False), (2, None, True), (2, 1, False)])
def test_one_worker_pulls_at_a_time_and_as_many_make_as_may(parallelism, at_most, others):
    pulling, making = [], []
    work = Pieces([8, 8], pulling=lambda: pulling.append(segment.runnable()))
    work.making = lambda ticket: making.append(segment.runnable())
    segment = alone(work, parallelism=parallelism, at_most=at_most)
    assert segment.runnable()
    segment.step()
    assert (pulling, making) == ([False], [others])
    assert segment.runnable()
    segment.step()
    segment.step()
    assert not segment.runnable()


def test_a_worker_that_another_has_overtaken_does_nothing():
    """At the segment itself, or at another one with the same gate."""
    for where in ("segment", "gate"):
        segment = alone(Pieces())
        if where == "gate":
            segment.lane.gate.enter = lambda: False
        else:
            segment._pulling = True
        assert not segment.step()
        assert (segment.work.pulled, segment.counts.busy) == (0, 0)


@pytest.mark.parametrize(("at_once", "pulled_on"), [(1, [True, True]), (2, [False, True])])
def test_tasks_for_a_worker_process_are_pulled_when_those_before_them_are_on_their_way(at_once, pulled_on):
    def making(ticket):
        found.append(segment.runnable())
        CLOCKS.own.has_sent()
        found.append(segment.runnable())

    found, segment = [], alone(Pieces(making=making), parallelism=3)
    segment.lane.at_once = at_once
    segment.step()
    assert found == pulled_on


def test_who_was_kept_out_by_the_gate_is_told():
    class Kept:
        told = 0

        def nudge(self):
            self.told += 1

    segment, kept = alone(Pieces(), at_most=1), Kept()
    segment.lane.gate.watch(kept)
    segment.step()
    assert kept.told == 1


def test_the_driver_looks_when_it_is_time():
    segment = alone(Pieces())
    segment.step()
    segment.make(1)
    assert segment._driver.looks == 0
    segment._driver.due = 0.0
    segment.step()
    assert segment._driver.looks == 1
    segment.make(1)
    assert segment._driver.looks == 1  # no worker waited
    segment.step()
    segment.step()
    segment.make(1)
    assert segment._driver.looks == 3
    segment.make(1)
    assert segment._driver.looks == 4


def test_a_segment_begins_with_what_its_lane_has_learnt():
    work = Pieces()
    segment = alone(work)
    segment.lane.want = 7
    segment.step()
    assert segment.lane.want == 8
    segment.lane.want = 70  # of another segment
    segment.step()
    assert work.wants == [7, 8]


def test_so_much_is_made_ahead_as_there_is_room_for():
    for given, made in ((True, 2), (False, 3)):  # with a given budget, one more has to fit
        segment = alone(Pieces([8] * 9), limit=20, driver=Looks(given=given))
        filled = [segment.step() for _ in range(5)]
        assert filled == [True] * made + [False] * (5 - made)
        assert segment.counts.is_full
        segment.make(1)
        assert not segment.counts.is_full
        assert segment.step()
    segment = alone(Pieces([8] * 9))
    segment.step()
    assert not segment.counts.is_full


def test_there_is_no_room_until_enough_has_been_taken():
    segment = alone(Pieces([8, 90, 8]), limit=20)
    segment.step()
    segment.step()
    segment.make(1)
    assert segment.counts.is_full
    segment.make(1)
    assert not segment.counts.is_full


def test_there_is_always_room_for_one_result_and_for_what_it_lacks():
    segment = alone(Pieces([80] * 3, parts=2), limit=20)
    assert [segment.step() for _ in range(3)] == [True, True, False]
    assert number(segment.make(1)) == 0
    assert [segment.step() for _ in range(3)] == [True, True, False]


def test_so_many_elements_are_made_ahead_as_were_asked_for():
    for most, made in ((2, 2), (0, 1), (-1, 5)):  # one if there is none: the consumer waits for it
        segment = alone(Pieces([8] * 9), max_elements=most)
        assert [segment.step() for _ in range(5)] == [True] * made + [False] * (5 - made)


def test_of_what_is_seen_so_much_is_made_ahead_as_is_wanted():
    for seen, wanted, made in ((True, 2, 2), (False, 2, 5), (True, 0, 5), (True, None, 5)):
        segment = alone(Pieces([8] * 9, below=Below(seen=seen)))
        if wanted is not None:
            segment.keep_ahead(wanted)
            segment.keep_ahead(0)
        assert [segment.step() for _ in range(5)] == [True] * made + [False] * (5 - made)
    segment = alone(Pieces([8] * 9, below=Below(seen=True)))
    segment.keep_ahead(2)
    assert [segment.step() for _ in range(2)] == [True] * 2
    segment.keep_ahead(1)
    assert not segment.step()
    segment.make(1)
    assert segment.step()


@pytest.mark.parametrize(("inputs", "made"), [(1, 3), (3, 4)])
def test_what_is_in_the_making_counts_as_made_but_for_one_element_of_each_worker(inputs, made):
    """Three are in progress, of the elements that one result takes."""
    work, found = Pieces([8] * 9, below=Below(seen=True)), []
    work.inputs, work.making = inputs, lambda ticket: ticket or found.extend(segment.step() for _ in range(6))
    segment = alone(work, parallelism=2)
    segment.keep_ahead(4)
    segment.step()
    assert found == [True] * made + [False] * (6 - made)


def test_what_is_wanted_ahead_is_asked_for_in_bytes():
    for wanted, nbytes in ((None, 0.0), (0, 0.0), (1, 8.0), (3, 24.0)):
        segment, asks = alone(Pieces()), []
        segment.lane.ask = lambda *asked, asks=asks: asks.append(asked)
        if wanted is not None:
            segment.keep_ahead(wanted)
        segment.step()
        assert asks == [(8, nbytes)]


def test_how_many_results_a_task_may_make_of_what_is_seen():
    batches = BatchWork.__new__(BatchWork)
    for seen, below, work, most in (
        (False, False, None, None),
        (True, False, None, 1),
        (False, True, None, 5),
        (False, True, batches, 1),
        (False, False, batches, 5),
    ):
        segment = alone(Pieces([8] * 20, below=Below(seen=seen, seen_below=below)), parallelism=2)
        segment.keep_ahead(10)
        if work is None:
            segment.step()
            assert segment.work.mosts == [most]
        else:
            segment.work, work.upstream = work, segment.work.upstream
            assert segment._may_make() == most
    segment = alone(Pieces(), parallelism=2)
    for _ in range(3):
        segment.step()
    for wanted, most in ((0, None), (1, 1), (4, 1), (5, 1), (7, 2), (9, 3)):
        segment._limits.wanted = wanted
        assert segment._may_make() == most


@pytest.mark.parametrize(("seen", "below", "outside"), [(True, True, True), (False, True, False), (False,) * 3])
def test_a_worker_is_in_a_generator_only_while_it_pulls_from_one(seen, below, outside):
    work = Pieces(below=Below(seen=seen, seen_below=below))
    work.pulling = lambda: found.append(threading.get_ident() in segment._scope.scheduler._outside)
    segment, found = alone(work), []
    segment.step()
    assert found == [outside]
    assert not segment._scope.scheduler._outside


def test_what_no_element_is_to_blame_for_ends_the_pass():
    for error, raised in ((RuntimeError("wrong"), Fatal), (KeyboardInterrupt(), KeyboardInterrupt)):
        for when in ("pulling", "making"):

            def fails(*given, error=error):
                raise error

            work = Pieces(**{when: fails})
            segment = alone(work)
            assert segment.step()
            assert not segment.step()
            assert work.observed == []
            with pytest.raises(raised):
                segment.make(1)
            with pytest.raises(Aborted):  # it is not mistaken for an end
                segment.make(1)


def test_an_error_behind_a_task_ends_the_pass_too():
    """In a user's instrument, for example: otherwise no thread would learn that the task is done."""

    def fails(*given):
        raise ValueError("behind")

    ours = "An error inside penstock, not in an element: ValueError: behind"
    theirs = "The instrument of this iteration raised ValueError: behind"
    for where, said in (("observe", ours), ("span", theirs)):
        segment = alone(Pieces())
        setattr(segment.work if where == "observe" else segment._driver.instrument, where, fails)
        segment.step()
        assert segment.counts.busy == 0
        assert number(segment.make(1)) == 0
        with pytest.raises(Fatal, match=said):
            segment.make(1)


def test_the_first_of_two_ends_is_told():
    def making(ticket):
        if ticket == 0:
            segment.step()
        raise RuntimeError(ticket)

    segment = alone(Pieces(making=making), parallelism=2)
    segment.step()
    with pytest.raises(Fatal, match="RuntimeError: 1"):
        segment.make(1)


def test_a_result_that_is_larger_than_the_budget_ends_the_pass():
    segment = alone(Pieces([100, 101]), driver=Looks(100))
    segment.step()
    segment.step()
    assert number(segment.make(1)) == 0
    with pytest.raises(Overspent):
        segment.make(1)


def test_who_waits_for_a_result_is_woken_when_there_is_one_to_take_and_at_the_end():
    def making(ticket):
        if ticket == 0:
            found.append(wakes(segment.hand_over.waiting, segment.step))  # number 1, which has to wait for number 0

    found, segment = [], alone(Pieces([8, 8], making=making), parallelism=2)
    assert wakes(segment.hand_over.waiting, segment.step)
    assert found == [False]
    assert all(number(segment.make(1)) == i for i in range(2))
    assert wakes(segment.hand_over.waiting, segment.step)
    assert wakes(segment.hand_over.waiting, segment.abort)


def test_who_waits_for_something_to_do_is_woken_by_everything():
    def making(ticket):
        found.append(token.acquire(blocking=False))  # another worker may pull
        segment._changed.register(token)

    found, token = [], new_token()
    segment = alone(Pieces([8], making=making))
    assert not segment.seen_below  # known, so no news for the sleeping worker
    segment._changed.register(token)
    segment.step()
    assert found == [True]
    assert token.acquire(blocking=False)  # the task is done
    for act in (segment.step, segment.nudge, segment.abort):
        assert wakes(segment._changed, act)


def test_whether_its_input_is_seen_is_looked_up_once_and_again_when_something_is_pulled(patient):
    below = Below()
    work = Pieces(below=below)
    segment = alone(work, parallelism=2)
    below.looking = lambda: runnable.append(segment.runnable())
    runnable = []
    assert [segment.seen_below, segment.seen_below] == [False, False]
    assert (below.asked, runnable) == (1, [False])  # no worker pulls in the meantime
    assert segment.runnable()
    look = Stage.latest_look
    segment.step()
    assert Stage.latest_look is look  # no change
    segment.step()
    assert below.asked == 2  # nothing has changed since
    below.is_seen_below = True
    below.look_again()
    look = Stage.latest_look
    assert not segment.seen_below  # unchanged
    segment.step()
    assert Stage.latest_look is not look
    assert segment.seen_below
    assert work.mosts == [None, None, None]
    acting = alone(Pieces())
    acting.acts = True
    assert acting.seen_below


def test_whether_its_input_is_seen_is_not_waited_for_where_it_may_never_be_known(monkeypatch, patient):
    def ends():
        return segment.seen_below

    for end in ("patience", "abort"):
        with monkeypatch.context() as patched:
            below = Below()
            segment = alone(Pieces(below=below))
            segment._pulling = True  # like a worker that does not return
            if end == "patience":
                patched.setattr(segment_module, "PATIENCE", 0.0)
                assert segment.seen_below
            else:
                slept = asleep(segment._changed)
                answer = answered(ends)
                assert slept.acquire(timeout=SECONDS)
                segment.abort()
                assert answer() is True
            assert below.asked == 0
    segment = alone(Pieces(below=below))
    segment.abort()
    assert segment.seen_below
    assert below.asked == 0


def test_who_asks_meanwhile_is_told_as_soon_as_it_is_known(patient):
    segment = alone(Pieces())
    slept = asleep(segment._changed)
    segment._pulling = True
    answer = answered(lambda: segment.seen_below)
    assert slept.acquire(timeout=SECONDS)
    segment._look_below()
    assert answer() is False


def test_a_look_that_fails_ends_the_pass_and_nothing_is_known(patient):
    def fails():
        below.looking = nothing
        raise RuntimeError("wrong")

    below = Below(seen_below=True)
    below.looking = fails
    segment = alone(Pieces(below=below))
    assert segment.step()
    assert segment.seen_below
    assert below.asked == 2
    with pytest.raises(Fatal, match="wrong"):
        segment.make(1)


def test_who_wants_a_result_and_is_no_worker_makes_none(patient):
    makers = []
    segment = alone(Pieces(making=lambda ticket: makers.append(threading.current_thread())))
    slept = asleep(segment.hand_over.waiting)
    segment.lane._divided, segment.lane.gate.watch = 2, makers.append
    answer = answered(lambda: number(segment.make(1)))
    assert slept.acquire(timeout=SECONDS)
    with segment._lock:
        assert segment._scope.scheduler._waiting == 0
    segment.step()
    assert answer() == 0
    assert makers == [threading.main_thread()]
    assert segment._driver.asked == 1
    assert segment._driver.looks == 0


def test_who_has_waited_for_long_has_others_look(patient):
    segment, replaced = alone(Pieces()), []
    segment._scope.scheduler.replace_outside = lambda: replaced.append(segment._driver.looks)
    segment._driver.patiences = [0.0]
    slept = asleep(segment.hand_over.waiting)
    answer = answered(lambda: number(segment.make(1)))
    while segment._driver.asked < 2:
        assert slept.acquire(timeout=SECONDS)
    segment.step()
    assert answer() == 0
    assert replaced == [0]
    assert segment._driver.looks == 1


def test_who_waits_hears_that_the_run_is_closed(patient):
    segment = alone(Pieces())
    segment.counts.enter()  # like a worker that is still at work
    slept = asleep(segment.hand_over.waiting)
    answer = answered(lambda: segment.make(1))
    assert slept.acquire(timeout=SECONDS)
    segment.abort()
    assert isinstance(answer(), Aborted)


def test_a_worker_that_waits_for_a_result_makes_it(patient, worker):
    segment = alone(Pieces())
    assert all_of(segment) == [0, 1, 2]
    assert segment._driver.asked == 0  # it did not sleep
    assert segment.counts.sums().inputs == 9


@pytest.mark.parametrize(
    ("seen", "when", "parallelism", "pulled"),
    [(False, "pulling", 1, 0), (False, "making", 2, 2), (True, "making", 2, 1)],
)
def test_a_worker_sleeps_while_others_are_at_all_that_it_may_do(patient, seen, when, parallelism, pulled):
    """It counts as waiting, and pulls no more observable elements."""

    def meanwhile(*given):
        if threading.current_thread() is threading.main_thread():
            slept = asleep(segment._changed)
            answers.append(answered(lambda: number(segment.make(1)), worker=True))
            assert slept.acquire(timeout=SECONDS)
            found.append((segment._scope.scheduler._waiting, work.pulled))

    answers, found = [], []
    work = Pieces([8, 8][:parallelism], below=Below(seen=seen), **{when: meanwhile})
    segment = alone(work, parallelism=parallelism)
    segment.step()
    assert answers[0]() == 0
    assert found == [(1, pulled)]
    assert segment._scope.scheduler._waiting == 0
    assert segment._driver.asked == 1


def test_a_worker_that_waits_is_in_no_generator(patient, worker):
    def meanwhile(*given):
        found.append(threading.get_ident() in segment._scope.scheduler._outside)

    for outside in (False, True):
        segment, found = alone(Pieces(making=meanwhile)), []
        if outside:
            segment._scope.scheduler.go_outside(0.0)
        segment.make(1)
        meanwhile()
        assert found == [False, outside]


@pytest.mark.parametrize(("segments", "at_most", "watched"), [(1, 1, 0), (2, None, 0), (2, 1, 1)])
def test_a_worker_that_waits_for_one_of_several_segments_is_told_when_the_gate_opens(
    worker, segments, at_most, watched
):
    found, work = [], Pieces(making=lambda ticket: found.append(len(segment.lane.gate._waiters)))
    segment = alone(work, at_most=at_most)
    others = [alone(Pieces()) for _ in range(segments - 1)]
    for other in others:
        segment.lane.join(other)
    segment.make(1)
    assert found == [watched]
    assert segment.lane.gate._waiters == []


def test_a_result_that_is_there_is_not_waited_for():
    segment = alone(Pieces())
    segment.step()
    segment.make(1)
    assert segment.counts.sums().starved == 0.0


def test_the_time_in_which_somebody_waits_is_no_time_of_its_own(worker):
    segment, clock = alone(Pieces()), CLOCKS.own
    before, clock.aside = clock.aside, 100.0
    clock.lane = segment.lane
    started = time.perf_counter()
    segment.make(1)
    assert 100.0 < clock.aside <= 100.0 + time.perf_counter() - started
    assert segment.lane.consumer is segment.lane
    clock.aside, clock.lane = before, None


def test_the_end_comes_behind_what_others_still_make():
    def making(ticket):
        if ticket == 0:
            segment.step()  # the end
            found.append(segment._exhausted())

    found, segment = [], alone(Pieces([8], making=making), parallelism=2)
    assert not segment._exhausted()
    segment.step()
    assert not segment._exhausted()
    assert all_of(segment) == [0]
    assert segment._exhausted()
    assert found == [False]


def test_the_workers_hear_of_it_once():
    segment, added = alone(Pieces()), []
    segment._scope.add = lambda *given: added.append(given)
    segment.start()
    segment.step()
    segment.make(1)
    segment.start()
    assert added == [(segment, 1)]
    segment, added = alone(Pieces()), []
    segment._scope.add = lambda *given: added.append(given)
    segment.step()
    segment.make(1)
    assert added == [(segment, 1)]


def test_elements_are_passed_over_before_the_first_is_made():
    work = Pieces()
    segment = alone(work)
    assert segment.can_skip()
    assert segment.skip(5) == 5
    assert work.skipped == 5
    assert as_of_now(segment.place()) == ["behind 0", [], [], 0]
    segment.step()
    segment.make(1)
    assert as_of_now(segment.place()) == ["behind 1", [], [], 3]
    with pytest.raises(AssertionError):
        segment.skip(1)


def test_where_it_stands_is_told_without_waiting_for_workers_where_order_is_kept():
    for ordered in (True, False):
        segment = alone(Pieces(), ordered=ordered)
        held = segment._lock = Taken()
        segment.place()
        assert held.taken == (not ordered)


class Taken:
    """A lock that records whether it was taken."""

    taken = False

    def __enter__(self):
        self.taken = True

    def __exit__(self, *given):
        pass


def test_what_is_aborted_holds_nothing_and_begins_nothing():
    segment = alone(Pieces())
    segment.step()
    segment.abort()
    assert (segment.counts.held, segment.statistics().nbytes) == (0, 0)
    assert not segment.step()
    assert list(segment.lane._segments) == []


def test_closing_waits_for_the_worker_inside(patient):
    def making(ticket):
        slept = asleep(segment._changed)
        answers.append(answered(segment.close))
        assert slept.acquire(timeout=SECONDS)
        closed.append(work.closed)

    answers, closed, work = [], [], Pieces(making=making)
    segment = alone(work)
    segment.step()
    assert answers[0]() is None
    assert (closed, work.closed) == ([0], 1)


def test_a_worker_that_closes_leaves_the_rest_to_the_last_one_inside(worker):
    def making(ticket):
        if ticket == 0:
            segment.step()
        else:
            segment.close()
        closed.append(work.closed)

    closed, work = [], Pieces(making=making)
    segment = alone(work, parallelism=2)
    segment.step()
    assert (closed, work.closed) == ([0, 0], 1)
    work = Pieces()
    alone(work).close()  # no worker is inside
    assert work.closed == 1


def test_a_worker_that_closes_while_it_pulls_leaves_the_rest_to_itself(worker):
    work = Pieces([], pulling=lambda: segment.close() or closed.append(work.closed))
    segment, closed = alone(work), []
    segment.step()
    assert (closed, work.closed) == ([0], 1)


def test_closing_brings_out_workers_that_wait_for_segments_below():
    below = alone(Pieces())
    work = Pieces(below=Below(inputs=(Below(), below)))
    segment = alone(work)
    close, work.close = work.close, lambda: aborted.append(below._closed) or close()
    aborted = []
    segment.close()
    assert aborted == [True]
    assert (work.closed, below.work.closed) == (1, 1)


def test_the_next_of_streams_that_wait_shares_out_as_many_elements_as_the_last_one_had(monkeypatch):
    lefts = []
    aim = BlockSizer.aim

    def noted(sizer, seconds, workers, left, budget):
        lefts.append(left)
        aim(sizer, seconds, workers, left, budget)

    monkeypatch.setattr(BlockSizer, "aim", noted)

    def function(x):
        time.sleep(0)  # which may wait
        return x

    assert [int(x) for x in ps.Dataset.range(40).map(function, 4).repeat(2)] == [*range(40)] * 2
    second = lefts.index(40)
    assert set(lefts[:second]) == {None}
    behind = [left for left in lefts[second:] if left is not None]
    assert behind == sorted(behind, reverse=True)
    assert behind[-1] >= 1
