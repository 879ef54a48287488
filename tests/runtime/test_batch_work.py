"""Parts of a batch, or many batches: as large as their pace allows, also if Blocks have other sizes."""

import threading
from itertools import chain
from queue import SimpleQueue

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.physical.test_batching_failures import Script

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import column_of
from penstock.block.numbers import Numbers
from penstock.errors import marked
from penstock.physical.executor import BatchTask, SegmentSettings
from penstock.physical.stage import Stage
from penstock.physical.stretch import Stretch, failure, join
from penstock.runtime.filling import Filling
from penstock.runtime.work import reading_ahead, work_of


class Uneven(Stage):
    """Returns Blocks of these sizes, whatever is requested; size 0 is a failure. Its state is a position."""

    def __init__(self, sizes, element=lambda number: b"%d" % number):
        super().__init__("uneven", ())
        self.sizes, self.at, self.given, self.element = sizes, 0, 0, element

    def next(self, want):
        if self.at == len(self.sizes):
            return None
        size = self.sizes[self.at]
        self.at += 1
        first = self.given
        self.given += max(size, 1)
        if size == 0:
            raise marked(ValueError(first))
        return Block.single(column_of([self.element(first + i) for i in range(size)]))

    def state(self):
        return [self.at, self.given]

    def restore(self, state):
        self.at, self.given = state


def of_batches(size, drop_remainder=False):
    batch = BatchTask(size, drop_remainder=drop_remainder, label="batch", where=None)
    return SegmentSettings(1, ordered=True, depth=0, batch=batch)


def tasks_of(stage, size, want):
    """Return all tasks of a batch step, and their results."""
    work = work_of(stage, (), of_batches(size))
    tasks, made = [], []
    while True:
        work.sizer.want = min(want, size)
        task = work.pull()
        if task is None:
            return tasks, [found for found in made if found is not None]
        tasks.append(task)
        made.append(work.run(task))


def spans(tasks):
    return [task.span for task in tasks]


def batches(made):
    return [b"".join(found.block.elements()[0]) if found.block else str(found.failures[0][1]) for found in made]


def test_what_can_be_joined_is():
    tasks, made = tasks_of(Uneven([1, 3, 4, 2, 6, 1]), 8, 8)
    assert spans(tasks)[:2] == [(0, 8), (8, 8)]
    assert batches(made) == [b"01234567", b"89101112131415", b"16"]
    tasks, _ = tasks_of(Uneven([1, 3, 4, 2, 6]), 8, 4)
    assert spans(tasks)[:4] == [(0, 4), (4, 4), (8, 4), (12, 4)]


class Asked(Stage):
    """Strings, as many as requested, with failures at some requests, and an end. Records the requests."""

    def __init__(self, failing=(), end=99):
        super().__init__("asked", ())
        self.wants, self.failing, self.end = [], failing, end

    def next(self, want):
        self.wants.append(want)
        assert len(self.wants) <= self.end
        if len(self.wants) == self.end:
            return None
        if len(self.wants) in self.failing:
            raise marked(ValueError(len(self.wants)))
        return Block.single(column_of([b"x"] * want))

    def state(self):
        return 0

    restore = None


@pytest.mark.parametrize(
    ("want", "failing", "wants"),
    [
        (11, (), [8, 8, 8, 8]),
        (4, (2,), [4, 4, 3, 4]),  # the failure takes one of the four places
        (2, (1, 2, 3), [2, 2, 2, 1]),
    ],
)
def test_as_many_elements_are_requested_as_whole_batches_need(want, failing, wants):
    stage = Asked(failing)
    work = work_of(stage, (), of_batches(4, drop_remainder=False))
    work.sizer.want = want
    for _ in wants:
        work.run(work.pull())
    assert stage.wants == wants


@pytest.mark.parametrize(
    ("most", "seconds", "want"), [(10, 1e-3, 5), (2, 1e-3, 1), (10, 1e-2, 1), (2, 1e-6, 1024), (-1, 1e-6, 4096)]
)
def test_a_prefetch_requests_half_of_its_elements_at_a_time_and_more_if_they_are_fast(most, seconds, want):
    sizer = reading_ahead(Asked(), most, "prefetch", None).sizer
    for _ in range(20):
        sizer.observe(sizer.want, sizer.want * seconds, 8 * sizer.want)
    assert sizer.want == want


def test_a_failure_of_the_input_takes_one_place():
    work = reading_ahead(Asked((1, 3)), -1, "prefetch", None)
    tasks = []
    for _ in range(4):
        work.sizer.resume(5)
        tasks.append(work.pull())
    assert [(task.ticket, task.span) for task in tasks] == [(0, (0, 1)), (1, (1, 5)), (2, (6, 1)), (3, (7, 5))]
    assert [work.run(task).error is None for task in tasks] == [False, True, False, True]
    assert work.count() == 12


def test_a_prefetch_requests_more_while_pulling_is_fast(monkeypatch):
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    work = reading_ahead(Asked(), -1, "prefetch", None)
    work.pull()
    assert work.sizer.want == 2


@pytest.mark.parametrize(("drop", "passed", "batches"), [(False, 8, 2), (False, 7, 2), (True, 7, 1), (False, 0, 0)])
def test_batches_are_skipped_by_their_elements(drop, passed, batches):
    stage = Asked()
    stage.skip = lambda count: passed if count == 8 else None
    work = work_of(stage, (), of_batches(4, drop_remainder=drop))
    assert work.skip(2) == batches
    assert work.count() == passed


def test_nothing_is_requested_after_the_end():
    work = work_of(Asked(end=2), (), of_batches(4, drop_remainder=False))
    work.sizer.want = 4
    assert [work.pull() is None for _ in range(4)] == [False, True, True, True]


def test_large_arrays_are_not_copied_for_it():
    large = Uneven([3, 5, 1], lambda number: np.full(1 << 16, number))
    tasks, made = tasks_of(large, 4, 4)
    assert spans(tasks)[:4] == [(0, 3), (3, 1), (4, 4), (8, 1)]
    assert [found.block.elements()[0][:, 0].tolist() for found in made] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


def test_a_failure_stays_in_its_place():
    tasks, made = tasks_of(Uneven([2, 0, 3, 0, 0, 2, 2]), 4, 4)
    assert spans(tasks)[:4] == [(0, 2), (2, 1), (3, 1), (4, 2)]
    assert batches(made) == ["2", "6", b"891011"]


def test_kinds_that_change_are_not_joined():
    mixed = Uneven([2, 2], lambda number: b"text" if number < 2 else number)
    tasks, made = tasks_of(mixed, 4, 4)
    assert spans(tasks)[:2] == [(0, 2), (2, 2)]
    assert made[0].failures


def test_elements_keep_their_numbers():
    tasks, _ = tasks_of(Uneven([1, 3, 5]), 6, 6)
    assert [task.payload.numbers for task in tasks[:2]] == [Numbers(0), Numbers(6)]


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_random_draws_do_not_see_the_sizes_of_blocks(executor):
    ds = ps.Dataset.from_tensor_slices([b"%d" % i for i in range(60)]).filter(lambda x: x[-1:] != b"7")
    drawn = ds.map(lambda x: (x, np.uint64(ps.element_key(1))), num_parallel_calls=2).batch(8)
    wanted = ds.map(lambda x: (x, np.uint64(ps.element_key(1)))).batch(8)
    with drawn.iterator(executor=executor) as found, wanted.iterator(executor="inline") as plain:
        for (names, values), (names_again, values_again) in zip(found, plain, strict=True):
            assert names.tolist() == names_again.tolist()
            assert values.tolist() == values_again.tolist()


def halves(transforms, block, numbers, allocate):
    """Build half of every number as an array. Odd numbers are failures, and 8 has another shape."""
    return join([half(element) for element in block.elements()])


def half(number):
    if number % 2:
        return failure(marked(ValueError(f"{number} is odd")))
    return Stretch(Block.from_elements([np.full(3 if number == 8 else 2, number / 2)]))


def of_one_batch(numbers):
    """Return the result of some numbers: a list, or the class and text of an error."""
    for number in numbers:
        if isinstance(number, Exception):
            return "KeyError", str(number)
        if number % 2:
            return "ValueError", f"{number} is odd"
    shapes = {number == 8 for number in numbers}
    return [[number / 2] * (3 if number == 8 else 2) for number in numbers] if len(shapes) == 1 else "shape"


def outcome(element):
    if not isinstance(element, Exception):
        return element.tolist()
    if isinstance(element, ps.errors.InvalidArgumentError):
        assert "batch" in str(element)
        return "shape"
    return type(element).__name__, str(element)


NUMBERS = st.sampled_from([0, 2, 4, 6, 2, 4, 0, 8, 3, None])


@given(
    st.lists(NUMBERS, max_size=40),
    st.integers(1, 6),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.integers(1, 30),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@example([2] * 12, 3, [12], 12, False, None)
@example([2] * 5 + [3] + [2] * 7 + [8] + [2] * 9, 3, [7, 20], 30, False, None)
@example([8, 8, 2, 2, None, 2, 2], 2, [20], 30, True, None)
@example([2, 2, 2, 2, None], 2, [20], 30, True, None)
def test_batches_are_those_of_rows_one_by_one(numbers, size, wants, most, drop_remainder, order):
    """The result does not depend on the request size, the order in which tasks end, or the place of a resume."""
    rows = [KeyError(i) if number is None else number for i, number in enumerate(numbers)]
    wanted = [of_one_batch(rows[at : at + size]) for at in range(0, len(rows), size)]
    if drop_remainder and len(rows) % size and not isinstance(wanted[-1], tuple):  # a failure is reported in any case
        wanted.pop()

    def found(state=None):
        """Return the elements from a state on, and the states after each ticket."""
        work = work_of(Script(rows, most), (), of_batches(size, drop_remainder=drop_remainder), halves)
        if state is not None:
            work.restore(state, (), (), 0)
        tasks = []
        while True:
            work.sizer.want = wants[len(tasks) % len(wants)]
            task = work.pull()
            if task is None:
                break
            tasks.append(task)
        states = {task.ticket: task.after for task in tasks if task.after is not None}
        if order is not None:
            order.shuffle(tasks)
        made = {task.ticket: result for task in tasks if (result := work.run(task)) is not None}
        assert sorted(made) == sorted(states) == list(range(len(made)))
        given = [[outcome(one) for one in positions(made[ticket])] for ticket in range(len(made))]
        return given, states

    given, states = found()
    assert list(chain(*given)) == wanted
    for ticket, state in states.items():
        rest, _ = found(state)
        assert list(chain(*rest)) == list(chain(*given[ticket + 1 :]))


def positions(stretch):
    for piece in stretch.pieces():
        yield from [piece] if isinstance(piece, Exception) else piece.elements()


def test_of_little_work_a_task_makes_many_batches_which_are_views():
    work = work_of(Uneven([40], lambda number: np.full(2, number)), (), of_batches(8))
    work.sizer.want = 35
    task = work.pull()
    assert task.span == (0, 32)
    (column,) = work.run(task).block.columns
    assert column.array.shape == (4, 8, 2)
    assert np.shares_memory(column.array, task.payload.block.columns[0].array)
    assert work.pull().span == (32, 8)


@pytest.mark.parametrize(
    "step", [lambda ds: ds.batch(8, num_parallel_calls=2), lambda ds: ds.map(lambda x: x, 2).batch(8)]
)
@pytest.mark.parametrize("kept", [False, True])
def test_all_batches_of_workers_may_be_written_to_and_no_source_changes(step, kept):
    """The timing decides whether a task builds one of many batches or a part of one."""
    rows = np.arange(4000).reshape(1000, 4)
    wanted = rows.copy()
    source = ps.Dataset.from_tensor_slices(rows)
    ds = step(source.cache() if kept else source)
    for _ in range(2):
        for number, batch in enumerate(ds):
            assert (batch == wanted[number * 8 : number * 8 + 8]).all()
            batch[...] = -1
    assert (rows == wanted).all()


def test_one_thread_begins_pieces_of_a_batch_while_others_finish_them():
    pieces, rows = 2000, 3
    filling = Filling(BatchTask(pieces * rows, drop_remainder=False, label="batch", where=None), 0)
    begun, made = SimpleQueue(), []

    def finish():
        while begun.get():
            made.append(filling.finish_piece())

    threads = [threading.Thread(target=finish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(pieces):
        begun.put(filling.plan(Block.single(column_of([b"x"] * rows)), Numbers(0)))
    for _ in threads:
        begun.put(None)
    for thread in threads:
        thread.join()
    assert made == [None] * pieces
    filling.close()
    assert filling.finish_piece() is not None
