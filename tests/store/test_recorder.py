"""BlockRecorder: stores the elements in order, contiguous if they have one shape, and read-only."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block, concat_blocks
from penstock.block.column import DenseColumn, ListColumn
from penstock.block.footprint import footprint
from penstock.block.origin import Origin
from penstock.store import recorder
from penstock.store.recorder import BlockRecorder


def dense(start, count, shape=(3,), dtype=np.float32):
    values = np.arange(start, start + count, dtype=dtype).reshape(-1, *[1] * len(shape))
    return Block.single(DenseColumn(np.broadcast_to(values, (count, *shape)).copy()))


def differing(start, count):
    return Block.single(ListColumn([np.full(1 + (start + i) % 4, start + i) for i in range(count)]))


def flat(blocks):
    return [np.asarray(element).tolist() for block in blocks for element in block.elements()]


BLOCKS = {
    "one shape": [dense(0, 3), dense(3, 1), dense(4, 5)],
    "arrays of one shape in a list": [dense(0, 2), Block.single(ListColumn([np.full(3, 7, np.float32)] * 2))],
    "scalars": [Block.from_elements([np.int64(i) for i in range(4)]), Block.from_elements([np.int64(9)])],
    "differing shapes": [differing(0, 4), differing(4, 3)],
    "one shape, then another": [dense(0, 3), dense(0, 2, (2, 2)), dense(0, 3), dense(5, 2)],
    "another type": [dense(0, 2), dense(0, 2, dtype=np.int16), dense(0, 2)],
    "strings": [Block.from_elements([b"a", b"bc"]), Block.from_elements([b"", b"def"])],
    "nothing in them": [Block.from_elements([(), ()]), Block.from_elements([()])],
    "no extent": [dense(0, 2, (0, 3)), dense(0, 1, (0, 3))],
    "nests": [Block.from_elements([{"a": i, "b": b"x" * i} for i in range(3)]) for _ in range(3)],
    "other order of keys": [Block.from_elements([{"a": 1, "b": 2.0}]), Block.from_elements([{"b": 3.0, "a": 4}])],
    "sparse": [Block.single(ListColumn([ps.SparseTensor(np.array([[0]]), np.array([i]), (3,)) for i in range(2)]))],
}


@pytest.mark.parametrize("known", [True, False], ids=["count known", "count unknown"])
@pytest.mark.parametrize("name", BLOCKS)
def test_what_came_is_kept_and_handed_on(name, known, monkeypatch):
    monkeypatch.setattr(recorder, "_FIRST", 40)  # bytes: the first limit comes after a few elements
    monkeypatch.setattr(recorder, "_SECOND", 100)
    blocks = BLOCKS[name]
    wanted = [str(element) for block in blocks for element in block.elements()]
    recording = BlockRecorder(sum(block.size for block in blocks) if known else -1)
    handed = [recording.add(block) for block in blocks]
    assert [str(element) for block in handed for element in block.elements()] == wanted
    assert [str(element) for block in recording.finish() for element in block.elements()] == wanted
    assert recording.elements == len(wanted)


def test_a_count_that_was_wrong_does_no_harm():
    recording = BlockRecorder(2)
    for start in range(0, 9, 3):
        recording.add(dense(start, 3))
    assert [row[0] for row in flat(recording.finish())] == list(range(9))


def test_a_known_count_gives_one_array():
    recording = BlockRecorder(9)
    handed = [recording.add(dense(start, 3)) for start in range(0, 9, 3)]
    (block,) = recording.finish()
    kept = block.columns[0].array
    assert all(np.shares_memory(one.columns[0].array, kept) for one in handed)
    assert recording.nbytes == kept.nbytes == recording.full


def test_an_unknown_count_gives_one_array(monkeypatch):
    monkeypatch.setattr(recorder, "_FIRST", 120)
    monkeypatch.setattr(recorder, "_SECOND", 1200)
    recording = BlockRecorder()
    handed = [recording.add(dense(start, 1)) for start in range(1000)]
    (block,) = recording.finish()
    assert flat([block]) == flat(handed) == [[i] * 3 for i in range(1000)]
    assert recording.nbytes == block.columns[0].array.nbytes
    assert not block.columns[0].array.flags.writeable
    assert recording.full is None


def test_what_would_take_long_to_move_stays(monkeypatch):
    monkeypatch.setattr(recorder, "_FIRST", 120)
    monkeypatch.setattr(recorder, "_SECOND", 1200)
    monkeypatch.setattr(recorder, "_all_room", lambda: 3600)
    recording = BlockRecorder()
    for start in range(1000):
        recording.add(dense(start, 1))
    blocks = recording.finish()
    assert [block.size for block in blocks] == [410, 300, 290]
    assert [row[0] for row in flat(blocks)] == list(range(1000))


def test_elements_that_move_keep_where_they_were_read(monkeypatch):
    monkeypatch.setattr(recorder, "_FIRST", 40)
    monkeypatch.setattr(recorder, "_SECOND", 100)
    recording = BlockRecorder()
    for start in range(30):
        block = dense(start, 1)
        recording.add(Block(block.structure, block.columns, 1, Origin.of_file(f"file {start % 2}", np.array([start]))))
    (block,) = recording.finish()
    assert [block.origin.at(i) for i in range(30)] == [(f"file {i % 2}", i) for i in range(30)]


def test_memory_that_cannot_be_set_aside_comes_a_little_at_a_time():
    recording = BlockRecorder(1 << 60)
    for start in range(4):
        recording.add(dense(start, 1))
    assert [row[0] for row in flat(recording.finish())] == list(range(4))


def test_where_little_memory_is_to_be_had_large_elements_come_a_few_at_a_time(monkeypatch):
    def room(shape, dtype):
        if np.prod(shape, dtype=object) * dtype.itemsize > 1 << 22:
            raise MemoryError
        return np.empty(shape, dtype)

    monkeypatch.setattr(recorder, "counted_memory", room)
    recording = BlockRecorder(1000)
    for start in range(20):
        recording.add(dense(start, 1, (1 << 16,)))
    blocks = recording.finish()
    assert [row[0] for row in flat(blocks)] == list(range(20))
    assert [block.size for block in blocks] == [16, 4]


def test_small_elements_without_one_shape_are_one_block():
    recording = BlockRecorder()
    for _ in range(10):
        recording.add(Block.from_elements([b"x" * i for i in range(10)]))
    assert [block.size for block in recording.finish()] == [100]


def test_nothing_of_it_can_be_written_to():
    recording = BlockRecorder()
    handed = recording.add(dense(0, 3))
    (block,) = recording.finish()
    for array in (handed.columns[0].array, block.columns[0].array):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_what_others_hold_of_it_counts_once():
    recording = BlockRecorder(3)
    handed = recording.add(dense(0, 3))
    assert (recording.nbytes, footprint(handed), footprint(handed.slice(1, 2))) == (36, 0, 0)


def test_neighbours_in_a_cache_are_joined_without_a_copy():
    recording = BlockRecorder(9)
    handed = [recording.add(dense(start, 3)) for start in range(0, 9, 3)]
    joined = concat_blocks([handed[0].slice(1, 3), handed[1].slice(0, 2)]).columns[0].array
    assert np.shares_memory(joined, handed[0].columns[0].array)
    assert not joined.flags.writeable
    assert joined[:, 0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("order", [(1, 0), (0, 2), (0, 0), (2, 1)])
def test_those_that_are_no_neighbours_are_copied(order):
    recording = BlockRecorder(9)
    handed = [recording.add(dense(start, 3)) for start in range(0, 9, 3)]
    joined = concat_blocks([handed[i] for i in order]).columns[0].array
    assert not np.shares_memory(joined, handed[0].columns[0].array)
    assert joined[:, 0].tolist() == [3 * i + k for i in order for k in range(3)]


def test_what_a_source_holds_is_not_copied():
    array = np.arange(30.0).reshape(10, 3)
    array.flags.writeable = False
    recording = BlockRecorder(10)
    for start in range(0, 10, 2):
        recording.add(Block.single(DenseColumn(array[start : start + 2])))
    (block,) = recording.finish()
    assert np.shares_memory(block.columns[0].array, array)
    assert block.columns[0].array.tolist() == array.tolist()
    assert recording.nbytes == array.nbytes


def test_of_an_unknown_number_of_elements_more_is_set_aside_twice(monkeypatch):
    """4 MiB, 64 more, and then the maximum, each with the elements before it."""
    asked = []

    def room(shape, dtype):
        asked.append(shape[0])
        return np.empty(shape, dtype)

    monkeypatch.setattr(recorder, "counted_memory", room)
    monkeypatch.setattr(recorder, "_all_room", lambda: 200 << 20)
    recording, mebibyte = BlockRecorder(), dense(0, 1, (1 << 18,))
    for _ in range(69):
        recording.add(mebibyte)
    assert asked == [4, 4 + 64, 68 + 200]


def test_there_is_room_for_half_of_the_memory_where_setting_it_aside_costs_nothing(monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 24}.__getitem__)
    monkeypatch.setattr("sys.platform", "linux")
    assert recorder._all_room() == 32 << 30
    monkeypatch.setattr("sys.platform", "darwin")
    assert recorder._all_room() == 1 << 30


def test_elements_without_one_shape_are_joined_up_to_64_mib():
    recording = BlockRecorder()
    for _ in range(5):
        recording.add(Block.from_elements([b"", bytes(1 << 24)]))
    assert [block.size for block in recording.finish()] == [8, 2]
