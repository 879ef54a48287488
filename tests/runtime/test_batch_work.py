"""The pieces of a batch: as large as their pace says, also where Blocks come in other sizes."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import column_of
from penstock.block.numbers import Numbers
from penstock.physical.executor import BatchTask
from penstock.physical.stage import Stage
from penstock.runtime.work import work_of


class Uneven(Stage):
    """Gives Blocks of these sizes, whatever is asked for; a size of 0 stands for a failure. Its state is a place."""

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
            raise ValueError(first)
        return Block.single(column_of([self.element(first + i) for i in range(size)]))

    def state(self):
        return [self.at, self.given]

    def restore(self, state):
        self.at, self.given = state


def tasks_of(stage, size, want):
    """All tasks of a batch step, and what they make."""
    work = work_of(stage, (), BatchTask(size, drop_remainder=False, label="batch", where=None), ordered=True)
    tasks, made = [], []
    while True:
        work.pace.want = min(want, size)
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
