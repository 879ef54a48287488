"""ColumnBuffer: the stored rows are those that came, joined if they have one shape, and the Blocks are freed."""

import weakref

import numpy as np
import pytest

import penstock as ps
from penstock.block.arena import Arena
from penstock.block.block import Block
from penstock.block.column import DenseColumn, ListColumn
from penstock.store.column_buffer import Alike, ColumnBuffer, _ComponentMemory, joined


def dense(start, count, shape=(3,), dtype=np.float32):
    values = np.arange(start, start + count).astype(dtype).reshape(-1, *[1] * len(shape))
    return Block.single(DenseColumn(np.broadcast_to(values, (count, *shape)).copy()))


def listed(start, count, shape=(3,)):
    return Block.single(ListColumn([np.full(shape, start + i, np.float32) for i in range(count)]))


def elements(first, count):
    return Block.from_elements([{"a": i, "b": b"x" * i, "c": np.full(i % 3, i)} for i in range(first, first + count)])


BLOCKS = {
    "one shape": [dense(0, 3), dense(3, 1), dense(4, 50)],
    "one shape in lists": [listed(0, 2), dense(2, 3), listed(5, 40)],
    "scalars": [Block.from_elements([1, 2, 3]), Block.from_elements([4])],
    "bools": [Block.from_elements([True]), Block.from_elements([False, True])],
    "complex": [dense(0, 2, dtype=np.complex64), dense(2, 9, dtype=np.complex64)],
    "times": [dense(0, 2, dtype="m8[s]"), dense(2, 9, dtype="m8[s]")],
    "differing shapes": [
        Block.single(ListColumn([np.zeros(1), np.zeros(2)])),
        Block.single(ListColumn([np.ones(3), np.ones(1)])),
    ],
    "another shape": [dense(0, 3), dense(3, 2, (2,)), dense(5, 3)],
    "a smaller one at the end": [dense(0, 3), dense(3, 3), dense(6, 1, (2,))],
    "strings": [Block.from_elements([b"a", b"bc"]), Block.from_elements([b"", b"def"])],
    "nothing in them": [Block.from_elements([(), ()]), Block.from_elements([()])],
    "no extent": [dense(0, 2, (0, 3)), dense(0, 1, (0, 3))],
    "nests": [elements(0, 2), elements(2, 1), elements(3, 7)],
    "sparse": [Block.single(ListColumn([ps.SparseTensor(np.array([[0]]), np.array([i]), (3,))])) for i in range(3)],
}


def seen(blocks):
    return [repr(element) for block in blocks for element in block.elements()]


@pytest.mark.parametrize("expected", [1, 30, 1 << 20])
@pytest.mark.parametrize("name", BLOCKS)
def test_what_waits_is_what_came(name, expected):
    alike, waiting = Alike(), ColumnBuffer(expected)
    for block in BLOCKS[name]:
        waiting.add(*alike(block))
    kept = waiting.kept()
    assert seen(block for block, _ in kept) == seen(BLOCKS[name])
    assert sum(block.size for block, _ in kept) == sum(block.size for block in BLOCKS[name])
    assert seen(block for block, _ in joined(kept)) == seen(BLOCKS[name])


def test_elements_of_one_shape_are_one_array_and_no_block_is_kept():
    alike, waiting = Alike(), ColumnBuffer(1 << 20)
    alive = []
    for start in range(0, 100, 10):
        block = dense(start, 10)
        alive.append(weakref.ref(block.columns[0].array))
        waiting.add(*alike(block))
        del block
    assert [ref() for ref in alive] == [None] * 10
    ((block, _),) = waiting.kept()
    assert block.columns[0].array.shape == (100, 3)


def test_a_block_that_is_large_enough_is_not_copied():
    block = dense(0, 1000)
    waiting = ColumnBuffer(block.nbytes)
    waiting.add(*Alike()(block))
    ((kept, _),) = waiting.kept()
    assert kept.columns[0].array is block.columns[0].array


def test_a_smaller_batch_at_the_end_stands_alone():
    alike, waiting = Alike(), ColumnBuffer(1 << 20)
    for block in (dense(0, 5), dense(5, 5), dense(10, 1, (2,))):
        waiting.add(*alike(block))
    assert [block.size for block, _ in joined(waiting.kept())] == [10, 1]


def test_the_memory_is_used_again(monkeypatch):
    monkeypatch.setattr("penstock.store.column_buffer.ARENA", Arena())

    def filled():
        alike, waiting = Alike(), ColumnBuffer(1 << 20)
        for start in range(0, 5000, 1000):
            waiting.add(*alike(dense(start, 1000, (20,))))
        ((block, _),) = waiting.kept()
        return block.columns[0].array.ctypes.data

    assert filled() == filled()


class Room:
    """An arena that records its requests."""

    def __init__(self):
        self.asked = []

    def empty(self, shape, dtype):
        self.asked.append(shape[0])
        return np.empty(shape, dtype)


def test_room_for_what_is_expected_is_taken_once(monkeypatch):
    room, alike, waiting = Room(), Alike(), ColumnBuffer(64 * 12)
    monkeypatch.setattr("penstock.store.column_buffer.ARENA", room)
    for at in (0, 7, 14, 32):  # blocks of seven rows do not fill the buffer
        waiting.add(*alike(dense(at, {0: 7, 7: 7, 14: 18, 32: 32}[at])))
    assert len(room.asked) == 1
    assert 64 * 12 <= room.asked[0] <= 2 * 64 * 12


def test_room_is_of_few_sizes_that_are_hardly_more_than_is_needed(monkeypatch):
    room = Room()
    monkeypatch.setattr("penstock.store.column_buffer.ARENA", room)
    for rows in range(1000, 2000):
        _ComponentMemory(ps.TensorSpec((3,), np.float32), rows)
    for rows, asked in zip(range(1000, 2000), room.asked, strict=True):
        assert 12 * rows <= asked <= 12 * rows * 9 / 8
    assert len(set(room.asked)) <= 10


def test_room_that_was_too_small_is_doubled(monkeypatch):
    room, alike, waiting = Room(), Alike(), ColumnBuffer(64 * 12)
    monkeypatch.setattr("penstock.store.column_buffer.ARENA", room)
    for at in range(5000):
        waiting.add(*alike(dense(at, 1)))
    assert len(room.asked) <= 8
    ((block, _),) = waiting.kept()
    assert block.columns[0].array[:, 0].tolist() == list(range(5000))
