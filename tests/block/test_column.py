"""Every column is a list of values for slice, take, concat, batched and unbatched."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block.block import Block, concat_blocks
from penstock.block.column import BytesColumn, DenseColumn, ListColumn, column_of, concat
from penstock.block.leaf import as_leaf
from penstock.block.origin import NOBODY, Origin, concat_origins
from penstock.block.rows import ElementRows
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.testing import assert_same_elements, difference

BINARY = st.binary(max_size=4)


def _strings(values, shape):
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(shape)


def _vectors(lengths):
    return [np.arange(n, dtype=np.int32) for n in lengths]


VALUES = st.one_of(
    st.lists(st.integers(-5, 5).map(np.int16), min_size=1, max_size=12),
    st.lists(BINARY, min_size=1, max_size=12),
    st.lists(st.integers(0, 4), min_size=1, max_size=12).map(_vectors),
    st.integers(1, 12).map(lambda n: list(np.arange(n * 6, dtype=np.float32).reshape(n, 2, 3))),
    st.integers(1, 12).map(lambda n: [_strings([b"a" * i, b"", b"c"], (3,)) for i in range(n)]),
    st.integers(1, 6).map(lambda n: [RaggedTensor(np.arange(i), np.array([0, i])) for i in range(n)]),
)


@given(VALUES)
def test_a_column_holds_what_it_was_made_of(values):
    column = column_of(values)
    assert len(column) == len(values)
    assert_same_elements(column.values(), values)
    assert all(column.spec().admits(value) for value in values)
    assert column.nbytes >= 0


@given(VALUES, st.data())
def test_slice_take_and_concat_do_what_lists_do(values, data):
    column = column_of(values)
    start = data.draw(st.integers(0, len(values) - 1))
    stop = data.draw(st.integers(start + 1, len(values)))
    assert_same_elements(column.slice(start, stop).values(), values[start:stop])
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=20))
    assert_same_elements(column.take(np.array(rows)).values(), [values[i] for i in rows])
    parts = [column.slice(0, stop), column.take(np.array(rows)), column_of(values[start:])]
    joined = concat(parts)
    assert_same_elements(joined.values(), values[:stop] + [values[i] for i in rows] + values[start:])
    assert_same_elements(joined.take(np.array(rows)).values(), [joined.values()[i] for i in rows])


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["dense", "bytes", "matrix"]))
def test_unbatched_undoes_batched(size, count, kind):
    number = size * count
    if kind == "bytes":
        values = [b"x" * i for i in range(number)]
    elif kind == "dense":
        values = list(np.arange(number))
    else:
        values = list(np.arange(number * 2).reshape(number, 2))
    column = column_of(values)
    batched = column.batched(size)
    assert len(batched) == count
    for i, batch in enumerate(batched.values()):
        assert batch.shape[0] == size
        assert_same_elements(list(batch), values[i * size : (i + 1) * size])
    assert_same_elements(batched.unbatched([size] * count).values(), values)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.sampled_from([(), (2,), (2, 1 << 13)]))
def test_arrays_of_differing_length_come_apart_into_their_rows(lengths, shape):
    arrays = [np.full((length, *shape), i, np.int16) for i, length in enumerate(lengths)]
    rows = ListColumn(arrays).unbatched(lengths)
    assert_same_elements(rows.values(), [row for array in arrays for row in array])
    assert rows.spec().dtype == np.int16


@given(st.integers(0, 2**32), st.integers(1, 30_000), st.sampled_from([(), (3,), (0,)]), st.sampled_from("?hfdO"))
def test_many_rows_are_taken_as_numpy_takes_them(seed, count, shape, dtype):
    draw = np.random.default_rng(seed)
    array = draw.integers(0, 100, (50, *shape)).astype(dtype)
    rows = draw.integers(0, 50, count)
    found = DenseColumn(array).take(rows).array
    assert found.dtype == array.dtype
    assert np.array_equal(found, array[rows])
    assert found.flags.writeable
    assert not np.may_share_memory(found, array)


@given(st.lists(st.one_of(st.text(max_size=20), st.text(st.characters(max_codepoint=127))), min_size=1))
def test_texts_are_kept_as_utf8(texts):
    column = BytesColumn.from_texts(texts)
    assert column.values() == [text.encode() for text in texts]
    assert len(column) == len(texts)


def test_half_a_character_is_refused_in_a_column_of_texts():
    with pytest.raises(InvalidArgumentError, match="surrogate without its other half"):
        BytesColumn.from_texts(["a", "b\ud800"])


def test_dense_slices_and_batches_share_memory():
    array = np.arange(12)
    column = DenseColumn(array)
    assert np.shares_memory(column.slice(3, 9).array, array)
    assert np.shares_memory(column.batched(4).array, array)


@given(st.data(), st.integers(1, 70), st.integers(1, 30), st.sampled_from([(), (2,)]))
def test_many_short_byte_strings_are_what_their_buffers_hold(data, width, count, shape):
    """Values are created all at once if no zeros are lost; some lie at the end of a buffer."""
    draw = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    least = data.draw(st.sampled_from([0, 1]))  # the lowest byte: numpy drops zeros at an end
    room = data.draw(st.sampled_from([0, width]))
    buffers = tuple(draw.integers(least, 4, 300 + room).astype(np.uint8) for _ in range(count))
    lengths = draw.integers(0, width + 1, (150, *shape))
    starts = draw.integers(0, 300 - lengths + 1)
    which = draw.integers(0, count, (150, *shape)).astype(np.int32)
    column = BytesColumn(buffers, starts, lengths, which if count > 1 else None)
    wanted = np.empty(starts.shape, object)
    for at in np.ndindex(starts.shape):
        wanted[at] = buffers[which[at] if count > 1 else 0][starts[at] : starts[at] + lengths[at]].tobytes()
    found = column.values()
    assert np.array_equal(np.array(found, object), wanted)
    assert {type(value) for value in np.array(found, object).flat} == {bytes}


def test_byte_strings_point_into_their_buffer():
    buffer = np.frombuffer(b"abcdef", np.uint8)
    column = BytesColumn((buffer,), np.array([0, 4, 1]), np.array([2, 2, 0]))
    assert column.values() == [b"ab", b"ef", b""]
    assert column.slice(1, 3).buffers[0] is buffer
    assert bytes(column.views()[1]) == b"ef"
    other = BytesColumn.from_values([b"xyz"])
    both = concat([column, other, column])
    assert both.values() == [b"ab", b"ef", b"", b"xyz", b"ab", b"ef", b""]
    assert len(both.buffers) == 2
    packed, starts, lengths = both.packed()
    assert [bytes(packed[a : a + n]) for a, n in zip(starts, lengths, strict=True)] == both.values()


def test_buffers_nobody_points_into_are_let_go():
    columns = [BytesColumn.from_values([bytes([i])]) for i in range(100)]
    few = concat(columns).take(np.array([3, 5]))
    assert few.values() == [b"\x03", b"\x05"]
    assert len(few.buffers) == 2


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([np.int64(1), np.int64(2), np.float32(1)], 2),
        ([b"a", np.int64(1)], 1),
        ([np.zeros(2), np.zeros((2, 2))], 1),
        ([np.zeros(2), np.zeros(2, np.float32)], 1),
        ([np.zeros(2), np.float64(1)], 1),
        ([np.float64(1), np.zeros(2)], 1),
        ([RaggedTensor(np.arange(1), np.array([0, 1])), np.int64(1)], 1),
    ],
)
def test_mixed_kinds_are_refused_at_their_row(values, row):
    with pytest.raises(InvalidTypeError) as caught:
        column_of(values)
    assert caught.value.context.element == row


def test_two_types_of_one_dtype_are_one_kind():
    column = column_of([np.int64(1), np.longlong(2)])
    assert [int(x) for x in column.values()] == [1, 2]


def test_large_arrays_are_not_copied_before_their_batch():
    arrays = [np.zeros(1 << 14) for _ in range(3)]
    column = column_of(arrays)
    assert isinstance(column, ListColumn)
    assert all(a is b for a, b in zip(column.items, arrays, strict=True))


def elements(draw_kind, numbers):
    kinds = {
        "int": lambda i: np.int32(i),
        "bytes": lambda i: b"ab" * (i % 3),
        "ragged": lambda i: np.arange(i % 4),
        "large": lambda i: np.full((1 << 14,), i),
        "pair": lambda i: (np.int32(i), {"b": b"x" * (i % 5)}),
    }
    return [kinds[draw_kind](i) for i in numbers]


@given(
    st.sampled_from(["int", "bytes", "ragged", "large", "pair"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(1, 4),
    st.data(),
)
def test_rows_keep_elements_by_slot(kind, first, capacity, data):
    """Compare ElementRows with a plain list of slots, through several rounds of put and gather with a Block."""
    rows, slots = ElementRows(capacity), [None] * capacity
    number = iter(range(1000))
    for _ in range(data.draw(st.integers(1, 4))):
        count = data.draw(st.integers(1, capacity))
        chosen = data.draw(st.permutations(range(capacity)))[:count]
        new = elements(kind, [next(number) for _ in range(count)])
        block = Block.from_elements(new)
        rows.put(np.array(chosen), block)
        for slot, element in zip(chosen, new, strict=True):
            slots[slot] = element
        beside = elements(kind, first)
        filled = [i for i in range(capacity) if slots[i] is not None]
        places = filled + [capacity + i for i in range(len(beside))]
        source = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=8))
        wanted = [slots[i] if i < capacity else beside[i - capacity] for i in source]
        found = rows.gather(np.array(source), Block.from_elements(beside))
        assert_same_elements(found.elements(), wanted)


def test_rows_keep_origins():
    rows = ElementRows(4)
    block = Block.single(column_of([np.int64(i) for i in range(3)]), Origin.of_file("a", np.array([0, 10, 20])))
    rows.put(np.array([2, 0, 1]), block)
    beside = Block.single(column_of([np.int64(9)]), Origin.of_file("b", np.array([5])))
    found = rows.gather(np.array([0, 4, 2]), beside)
    assert [found.origin.at(i) for i in range(3)] == [("a", 10), ("b", 5), ("a", 0)]


def test_origins_apart_keep_only_their_own_files():
    files = np.array([[2, NOBODY], [0, 2]])
    origin = Origin(("a", "b", "c"), files, np.array([[5, -1], [7, 9]]), files + 10)
    found = origin.slice(1, 2).apart()
    assert (found.files, found.at(0), found.at(0, 1)) == (("a", "c"), ("a", 7), ("c", 9))
    assert found.position.tolist() == [[10, 12]]
    assert all(array.base is None for array in (found.offset, found.position))
    assert (origin.apart().at(0, 1), origin.apart().at(0)) == ((None, None), ("c", 5))


def test_blocks_slice_take_and_join_with_their_origins():
    block = Block.single(column_of([np.int64(i) for i in range(6)]), Origin.of_file("a", np.arange(6) * 10))
    part = concat_blocks([block.slice(4, 6), block.take(np.array([1, 1]))])
    assert [int(x) for x in part.elements()] == [4, 5, 1, 1]
    assert [part.origin.at(i) for i in range(4)] == [("a", 40), ("a", 50), ("a", 10), ("a", 10)]
    batched = block.origin.batched(3)
    assert batched.at(1, 2) == ("a", 50)
    assert [batched.unbatched([3, 3]).at(i) for i in range(6)] == [("a", 10 * i) for i in range(6)]
    assert batched.unbatched([3, 2]) is None


def test_origins_of_batches_of_different_sizes_join():
    def batch(name, *offsets):
        return Origin.of_file(name, np.array(offsets)).batched(len(offsets))

    joined = concat_origins([batch("a", 1, 2), batch("b", 3), batch("a", 4, 5, 6)])
    assert joined.sizes() == [(2,), (1,), (3,)]
    assert [joined.at(1), joined.at(2, 2)] == [("b", 3), ("a", 6)]
    apart = joined.unbatched([2, 1, 3])
    assert [apart.at(i) for i in range(6)] == [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("a", 5), ("a", 6)]
    again = concat_origins([joined.take(np.array([2, 1])).batched(2), batch("c", 7).batched(1)])
    assert again.sizes() == [(2, 3), (1, 1)]
    assert concat_origins([joined, apart]) is None


def test_rows_keep_origins_of_batches_of_different_sizes():
    rows = ElementRows(3)
    for slot, offsets in enumerate(([1], [2, 3, 4], [5, 6])):
        origin = Origin.of_file(f"file {slot}", np.array(offsets)).batched(len(offsets))
        rows.put(np.array([slot]), Block.single(column_of([np.arange(len(offsets))]), origin))
    found = rows.gather(np.array([2, 0, 1])).origin
    assert found.sizes() == [(2,), (1,), (3,)]
    assert [found.at(0, 1), found.at(1), found.at(2, 2)] == [("file 2", 6), ("file 0", 1), ("file 1", 4)]


def test_blocks_of_other_structure_do_not_join_and_reordered_dicts_do():
    first = Block.from_elements([{"a": 1, "b": 2}])
    second = Block.from_elements([{"b": 20, "a": 10}])
    assert difference(concat_blocks([first, second]).elements()[1], {"a": np.int64(10), "b": np.int64(20)}) is None
    with pytest.raises(InvalidTypeError, match="structure of the element changed"):
        concat_blocks([first, Block.from_elements([(1, 2)])])


def test_frozen_blocks_refuse_writing():
    block = Block.from_elements([(np.zeros(3), as_leaf([1, 2]))]).freeze()
    for leaf in block.elements()[0]:
        with pytest.raises(ValueError, match="read-only"):
            leaf[0] = 1
