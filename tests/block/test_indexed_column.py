"""Elements by their numbers in an array that does not move: equal to views of the array, never a copy."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block.block import Block
from penstock.block.column import DenseColumn, ListColumn, concat
from penstock.block.footprint import counted_memory, is_counted
from penstock.block.indexed_column import IndexedColumn, by_reference, indexed
from penstock.block.rows import ElementRows
from penstock.block.transport import pack, unpack
from penstock.testing import assert_same_elements

SMALL, LARGE, TINY = 1 << 10, 1 << 14, 4  # numbers in an element


def kept(first, count, numbers, dtype=np.float64):
    """Build elements like a memory cache; the first number of each element is its own number."""
    array = counted_memory((count, numbers), np.dtype(dtype))
    array[:] = 0
    array[:, 0] = np.arange(first, first + count)
    whole = DenseColumn(array[:])
    Block.single(whole).freeze()
    return whole.array


WHOLE = kept(0, 9, LARGE)
OTHER = kept(100, 9, LARGE)


def firsts(column):
    return [value[0] for value in column.values()]


@given(st.lists(st.integers(0, 8), min_size=1, max_size=9), st.data())
def test_it_is_the_list_of_its_views(rows, data):
    column, views = IndexedColumn(WHOLE, np.array(rows)), ListColumn([WHOLE[row] for row in rows])
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    again = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
    for found, wanted in (
        (column, views),
        (column.slice(start, stop), views.slice(start, stop)),
        (column.take(np.array(again, np.int64)), views.take(np.array(again, np.int64))),
        (concat([column, column.slice(start, stop)]), concat([views, views.slice(start, stop)])),
    ):
        assert isinstance(found, IndexedColumn)
        assert (len(found), found.nbytes, firsts(found)) == (len(wanted), wanted.nbytes, firsts(wanted))
        assert firsts(found.dense()) == firsts(wanted)
    assert column.spec() == views.spec()


def test_its_items_are_views_that_cannot_be_written_to():
    array = np.zeros((4, LARGE))
    (item,) = IndexedColumn(array, np.array([2])).items
    assert np.shares_memory(item, array[2])
    with pytest.raises(ValueError, match="read-only"):
        item[0] = 1


def test_picks_of_other_arrays_join_as_lists():
    joined = concat([IndexedColumn(WHOLE, np.array([3])), IndexedColumn(OTHER, np.array([1])), DenseColumn(WHOLE[:1])])
    assert type(joined) is ListColumn
    assert firsts(joined) == [3, 101, 0]


@given(st.integers(0, 8), st.integers(1, 9))
def test_a_part_knows_its_numbers(start, count):
    part = WHOLE[start : start + count]
    found = indexed(DenseColumn(part))
    assert found.whole is WHOLE.base
    assert firsts(found) == firsts(DenseColumn(part))


NO_PICKS = {
    "may be written to": np.zeros((4, 3))[1:],
    "is no part of another": np.broadcast_to(np.float64(0), (4, 3)).copy(),
    "of another shape": np.zeros(12).reshape(4, 3),
    "of another type": np.zeros((4, 3)).view(np.int64),
    "every other": np.zeros((4, 3))[::2],
    "begins inside an element": np.zeros((4, 3)).reshape(-1)[1:10].reshape(3, 3),
    "nothing in it": np.zeros((4, 0))[1:],
}


@pytest.mark.parametrize("name", NO_PICKS)
def test_what_has_no_numbers(name):
    array = NO_PICKS[name]
    array.flags.writeable = name == "may be written to"
    assert indexed(DenseColumn(array)) is None


def test_it_travels_as_its_elements_alone():
    column = IndexedColumn(np.zeros((1000, LARGE)), np.array([7]))
    content, buffers = pack(Block.single(column))
    assert len(content) + sum(buffer.raw().nbytes for buffer in buffers) < 2 * column.nbytes
    (found,) = unpack(content, buffers).columns
    assert type(found) is ListColumn
    assert (found.items[0] == 0).all()


@pytest.mark.parametrize(("numbers", "kind"), [(TINY, DenseColumn), (SMALL, IndexedColumn), (LARGE, IndexedColumn)])
def test_what_a_cache_keeps_stays_there_if_a_number_is_smaller(numbers, kind):
    (column,) = by_reference(Block.single(DenseColumn(kept(0, 5, numbers)[1:4]))).columns
    assert type(column) is kind
    assert firsts(column) == [1, 2, 3]


def test_small_elements_of_other_memory_are_copied():
    array = np.zeros((9, SMALL))
    array.flags.writeable = False
    part = DenseColumn(array[2:])
    assert by_reference(Block.single(part)).columns == (part,)


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 0), (0, 3)])
def test_counted_memory_begins_at_a_cache_line(shape):
    array = counted_memory(shape, np.dtype(np.int16))
    assert (array.shape, array.dtype) == (shape, np.int16)
    assert array.ctypes.data % 64 == 0 or not array.nbytes
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert is_counted(array)
    assert is_counted(array[1:])
    assert not is_counted(array.copy())


@functools.cache
def source(name, numbers, fixed):
    array = (
        kept(100, 20, numbers)
        if name.startswith("cache")
        else np.repeat(np.arange(200.0, 220), numbers).reshape(20, numbers)
    )
    array.flags.writeable = not fixed
    return array


KINDS = st.sampled_from([("cache", True), ("cache again", True), ("array", True), ("array", False)])


@pytest.mark.parametrize("numbers", [TINY, SMALL, LARGE])
@given(st.data())
def test_rows_keep_elements_of_several_arrays(numbers, data):
    """Compare with a plain list of slots, through several rounds of put and gather with a Block."""
    capacity = data.draw(st.integers(1, 5))
    rows, slots = ElementRows(capacity), [None] * capacity

    def block():
        name, fixed = data.draw(KINDS)
        start = data.draw(st.integers(0, 15))
        return Block.single(DenseColumn(source(name, numbers, fixed)[start : start + data.draw(st.integers(1, 5))]))

    for _ in range(data.draw(st.integers(1, 4))):
        new = block().slice(0, capacity)
        chosen = data.draw(st.permutations(range(capacity)))[: new.size]
        rows.put(np.array(chosen), new)
        for slot, element in zip(chosen, new.elements(), strict=True):
            slots[slot] = element
        beside = block()
        places = [i for i in range(capacity) if slots[i] is not None] + [capacity + i for i in range(beside.size)]
        places = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=8))
        wanted = [slots[i] if i < capacity else beside.elements()[i - capacity] for i in places]
        found = rows.gather(np.array(places), beside)
        assert_same_elements(found.elements(), wanted)
        assert numbers == LARGE or type(found.columns[0]) is DenseColumn


def test_rows_weigh_what_they_keep_alive():
    counted, own = ElementRows(100), ElementRows(100)
    counted.put(np.arange(9), Block.single(DenseColumn(WHOLE)))
    assert (counted.nbytes, counted.slot_bytes) == (0, 0)
    array = np.zeros((20, LARGE))
    part = array[3:12]
    part.flags.writeable = False
    own.put(np.arange(9), Block.single(DenseColumn(part)))
    assert (own.nbytes, own.slot_bytes) == (array.nbytes, None)
