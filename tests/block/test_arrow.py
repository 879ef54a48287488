"""Blocks as Arrow record batches: written data comes back exactly, through memory, Parquet and IPC files."""

import io
import json
import math
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.arrow import from_arrow, schema_of, spec_from_schema, to_arrow
from penstock.block.arrow_values import numbers_array, numbers_of
from penstock.block.block import Block, concat_blocks
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError
from penstock.testing import assert_same_elements

DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[us]", "m8[ns]"]


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Sample:
    image: Any
    label: Any


# -- any Block


@st.composite
def values(draw, dtype, shape):
    """Draw arrays of a shape, with any bits; for `bytes`, object arrays with at least one item."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    if dtype is bytes:
        shape = tuple(max(extent, 1) for extent in shape)
        found = np.empty(math.prod(shape), object)
        found[:] = [rng.bytes(rng.integers(0, 4)) for _ in found]
        return found.reshape(shape)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    dtype = np.dtype(dtype)
    return np.frombuffer(rng.bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)


@st.composite
def ragged_tensors(draw, dtype):
    found = draw(values(dtype, (draw(st.integers(0, 5)), *draw(st.sampled_from([(), (2,), (0,)])))))
    for _ in range(draw(st.integers(1, 3))):
        cuts = sorted(draw(st.lists(st.integers(0, len(found)), max_size=3)))
        splits = np.array([0, *cuts, len(found)], draw(st.sampled_from([np.int32, np.int64])))
        found = ps.RaggedTensor(found, splits)
    return found


@st.composite
def sparse_tensors(draw, dtype):
    shape, count = draw(st.lists(st.integers(1, 4), max_size=3)), draw(st.integers(0, 3)) or int(dtype is bytes)
    indices = [[draw(st.integers(0, extent - 1)) for extent in shape] for _ in range(count)]
    indices = np.array(indices, np.int64).reshape(count, len(shape))
    return ps.SparseTensor(indices, draw(values(dtype, (count,))), np.array(shape, np.int64))


@st.composite
def leaves(draw, count):
    """Draw the values of one leaf for `count` elements."""
    dtype = draw(st.sampled_from([bytes, *DTYPES]))
    kind = draw(st.sampled_from(["scalar", "fixed", "ragged", "sparse", "ragged tensor"]))
    if kind == "scalar":
        return [draw(values(dtype, (1,)))[0] for _ in range(count)]
    if kind == "fixed":
        shape = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
        return [draw(values(dtype, shape)) for _ in range(count)]
    if kind == "ragged":
        rank = draw(st.integers(1, 3))
        shapes = [tuple(draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))) for _ in range(count)]
        return [draw(values(dtype, shape)) for shape in shapes]
    make = sparse_tensors if kind == "sparse" else ragged_tensors
    dtype = dtype if dtype is bytes or dtype[0] not in "cMm" else "i4"  # their `equals` distinguishes most NaNs
    return [draw(make(dtype)) for _ in range(count)]


@st.composite
def blocks(draw):
    count = draw(st.integers(1, 4))
    nest = draw(
        st.recursive(
            st.just(0),
            lambda inner: (
                st.lists(inner, max_size=3).map(tuple)
                | st.dictionaries(st.sampled_from(["a", "b.c", "", 7, True]), inner, max_size=3)
                | st.tuples(inner, inner).map(lambda parts: Pair(*parts))
                | st.tuples(inner, inner).map(lambda parts: Sample(*parts))
            ),
            max_leaves=5,
        )
    )
    structure = flatten(nest)[1]
    columns = [draw(leaves(count)) for _ in range(structure.size)]
    return Block.from_elements([structure.build([column[row] for column in columns]) for row in range(count)])


@given(blocks(), st.data())
def test_every_block_comes_back_from_memory(block, data):
    batch = to_arrow(block)
    batch.validate(full=True)
    assert_same_elements(from_arrow(batch).elements(), block.elements())
    start = data.draw(st.integers(0, block.size - 1))
    part = from_arrow(batch.slice(start))
    assert_same_elements(part.elements(), block.elements()[start:])
    rows = data.draw(st.lists(st.integers(0, block.size - 1), min_size=1, max_size=5))
    assert_same_elements(from_arrow(batch).take(np.array(rows)).elements(), [block.elements()[i] for i in rows])


@given(blocks())
def test_every_block_comes_back_from_files(block):
    batch = to_arrow(block)
    stored = io.BytesIO()
    with pa.ipc.new_stream(stored, batch.schema) as writer:
        writer.write_batch(batch)
    (found,) = pa.ipc.open_stream(stored.getvalue())
    assert_same_elements(from_arrow(found).elements(), block.elements())


@given(blocks())
def test_the_schema_knows_the_spec(block):
    batch = to_arrow(block)
    assert spec_from_schema(batch.schema) == block.structure.build(block.specs())


@given(st.data())
def test_blocks_of_one_file_share_the_schema_of_their_widest_spec(data):
    dtype = data.draw(st.sampled_from([bytes, *DTYPES]))
    rank = data.draw(st.integers(1, 3))
    parts = []
    for _ in range(2):
        shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank)))
        parts.append(Block.from_elements([data.draw(values(dtype, shape)) for _ in range(2)]))
    spec = concat_blocks(parts).specs()
    first, second = (to_arrow(part, spec) for part in parts)
    assert first.schema == second.schema == schema_of(parts[0].structure, spec)
    assert_same_elements(from_arrow(second).elements(), parts[1].elements())


def test_a_parquet_file_keeps_everything(tmp_path):
    elements = [
        {
            "x": np.float16(i),
            "z": np.full((2, 2), i + 1j, np.complex64),
            "text": (b"a" * i, np.array([b"", b"q" * i], object)),
            "ragged": np.zeros((i, 2), bool),
            "empty": np.zeros((2, 0), np.int8),
            "tensor": ps.RaggedTensor(np.arange(i, dtype=np.int16), np.array([0, i], np.int32)),
            "sparse": ps.SparseTensor(np.array([[0, i]]), np.array([b"v"], object), np.array([1, 9])),
        }
        for i in range(4)
    ]
    block = Block.from_elements(elements)
    batch = to_arrow(block)
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "a.parquet")
    (found,) = pq.read_table(tmp_path / "a.parquet").to_batches()
    assert_same_elements(from_arrow(found).elements(), block.elements())


def test_other_tools_see_plain_columns():
    block = Block.from_elements([({"image": np.zeros((2, 3), np.uint8), "name": "a"}, 0.5)])
    table = to_arrow(block)
    assert table.schema.names == ["0.image", "0.name", "1"]
    assert [str(kind) for kind in table.schema.types[1:]] == ["large_binary", "float"]
    assert table.column(0).to_numpy_ndarray().shape == (1, 2, 3)
    assert table.column(1).to_pylist() == [b"a"]
    assert b"pickle" not in table.schema.metadata[b"penstock"]


def test_numbers_and_neighbouring_strings_are_not_copied():
    array = np.arange(1000)
    block = Block.from_elements([(i, b"text") for i in range(3)])
    dense = Block.single(type(block.columns[0])(array))
    batch = to_arrow(dense)
    assert batch.column(0).buffers()[1].address == array.ctypes.data
    assert from_arrow(batch).columns[0].array.ctypes.data == array.ctypes.data
    strings = to_arrow(block).column(1)
    assert strings.buffers()[2].address == block.columns[1].buffers[0].ctypes.data


_NUMBERS = [
    pa.bool_(), pa.int8(), pa.uint16(), pa.float16(), pa.int32(), pa.float32(), pa.uint64(), pa.float64(),
    pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns", "Europe/Berlin"), pa.duration("ms"),
]  # fmt: skip


@pytest.mark.parametrize("kind", _NUMBERS, ids=str)
@pytest.mark.parametrize(("start", "count"), [(0, 0), (0, 40), (3, 8), (8, 13), (17, 1), (40, 0)])
def test_numbers_equal_those_of_arrow(kind, start, count):
    data = pa.py_buffer(np.random.default_rng(1).integers(0, 60, 40 * 8, np.uint8))
    array = pa.Array.from_buffers(kind, 40, [None, data]).slice(start, count)
    found, expected = numbers_of(array), array.to_numpy(zero_copy_only=False)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if not pa.types.is_temporal(kind):
        assert numbers_array(found).equals(array)
        assert numbers_array(found[::-2]).equals(pa.array(found[::-2].copy()))


def test_files_are_read_without_pandas(tmp_path):
    """Importing pandas takes as long as importing everything else that reading needs."""
    ps.Dataset.from_tensor_slices({"x": np.arange(5), "b": np.arange(5) > 2}).save(tmp_path / "saved")
    pq.write_table(pa.table({"x": [1, 2], "b": [True, False], "day": pa.array([1, 2], pa.date32())}), tmp_path / "a")
    code = f"""
import sys, penstock as ps
assert len(list(ps.Dataset.load({str(tmp_path / "saved")!r}))) == 5
assert len(list(ps.ParquetDataset({str(tmp_path / "a")!r}))) == 2
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_class_that_cannot_be_found_is_named_and_can_be_given():
    local = namedtuple("local", ["left", "right"])
    block = Block.from_elements([local(1, 2)])
    batch = to_arrow(block)
    with pytest.raises(InvalidTypeError, match=r"stored as .*:local with the fields left, right"):
        from_arrow(batch)
    assert from_arrow(batch, structure=block.structure).elements() == [local(1, 2)]


def test_a_class_whose_fields_changed_is_not_taken():
    batch = to_arrow(Block.from_elements([Pair(1, 2)]))
    stored = json.loads(batch.schema.metadata[b"penstock"])
    stored["nest"]["fields"] = ["left", "middle"]
    other = batch.replace_schema_metadata({b"penstock": json.dumps(stored).encode()})
    with pytest.raises(InvalidTypeError, match="fields left, middle"):
        from_arrow(other)


def test_data_of_a_later_format_is_refused():
    batch = to_arrow(Block.from_elements([1]))
    stored = {**json.loads(batch.schema.metadata[b"penstock"]), "version": 99}
    with pytest.raises(DataLossError, match="format 99"):
        from_arrow(batch.replace_schema_metadata({b"penstock": json.dumps(stored).encode()}))


def test_what_cannot_be_stored_is_refused():
    for value in (np.longdouble(1), np.zeros(1, "i4,f4")[0]):
        with pytest.raises(InvalidTypeError, match="cannot be stored"):
            to_arrow(Block.from_elements([value]))
    with pytest.raises(InvalidTypeError, match="dict key"):
        to_arrow(Block.from_elements([{1.5: 1}]))
    with pytest.raises(InvalidTypeError, match="Dataset inside an element"):
        to_arrow(Block.from_elements([ps.Dataset.range(2)]))
    with pytest.raises(InvalidTypeError, match="the file holds"):
        to_arrow(Block.from_elements([np.zeros(3)]), [TensorSpec((2,), np.float64)])


def test_elements_without_leaves_keep_their_number():
    block = Block.from_elements([(), (), ()])
    assert from_arrow(to_arrow(block)).elements() == [(), (), ()]


# -- record batches of other programs


def batch_of(**columns):
    (batch,) = pa.table(columns).to_batches()
    return batch


def test_arrow_types_become_leaves():
    batch = batch_of(
        int=pa.array([1, 2, 3], pa.uint16()),
        flag=[True, False, True],
        half=pa.array(np.array([1, 2, 3], np.float16)),
        text=["a", "bb", "ccc"],
        view=pa.array(["a", "b", "c"], pa.string_view()),
        fixed=pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        word=pa.array(["x", "y", "x"]).dictionary_encode(),
        time=pa.array([1, 2, 3], pa.timestamp("ms")),
        clock=pa.array([1, 2, 3], pa.time32("s")),
        list=[[1], [], [2, 3]],
        list_view=pa.array([[1], [], [2, 3]], pa.list_view(pa.int8())),
        texts=[["a"], [], ["b", "c"]],
        deep=[[[1], [2, 3]], [], [[4]]],
        box=pa.array([[1, 2]] * 3, pa.list_(pa.int32(), 2)),
        boxes=pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int32(), 2))),
        tensor=pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12).reshape(3, 2, 2)),
        struct=[{"x": 1, "y": "q"}] * 3,
        structs=[[{"x": 1}], [], [{"x": 2}, {"x": 3}]],
        map=pa.array([[("k", 1)], [], [("l", 2)]], pa.map_(pa.string(), pa.int32())),
    )
    found = from_arrow(batch)
    last = {
        "int": np.uint16(3),
        "flag": np.True_,
        "half": np.float16(3),
        "text": b"ccc",
        "view": b"c",
        "fixed": b"ef",
        "word": b"x",
        "time": np.datetime64(3, "ms"),
        "clock": np.timedelta64(3, "s"),
        "list": np.array([2, 3]),
        "list_view": np.array([2, 3], np.int8),
        "texts": np.array([b"b", b"c"], object),
        "deep": ps.RaggedTensor(np.array([4]), np.array([0, 1])),
        "box": np.array([1, 2], np.int32),
        "boxes": np.array([[3, 4], [5, 6]], np.int32),
        "tensor": np.array([[8, 9], [10, 11]]),
        "struct": {"x": np.int64(1), "y": b"q"},
        "structs": {"x": np.array([2, 3])},
        "map": {"key": np.array([b"l"], object), "value": np.array([2], np.int32)},
    }
    assert_same_elements(found.elements()[2:], [last])
    assert_same_elements(from_arrow(batch.slice(1)).elements(), found.elements()[1:])
    spec = spec_from_schema(batch.schema)
    assert spec["list"] == TensorSpec((None,), np.int64)
    assert spec["boxes"] == TensorSpec((None, 2), np.int32)
    specs, structure = flatten(spec)
    for element in found.elements():
        assert all(want.admits(leaf) for want, leaf in zip(specs, structure.flatten(element), strict=True))


def test_a_permuted_tensor_has_its_logical_shape():
    kind = pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0])
    storage = pa.array([list(range(6))], pa.list_(pa.int32(), 6))
    batch = pa.RecordBatch.from_arrays([pa.ExtensionArray.from_storage(kind, storage)], ["t"])
    assert from_arrow(batch).elements()[0]["t"].tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("column", "row"),
    [([1, None], 1), ([[1], [2, None]], 1), ([[1], None], 1), ([{"x": 1}, None], 1), ([[[1]], [[2], [3, None]]], 1)],
)
def test_a_null_is_named_with_its_row(column, row):
    with pytest.raises(InvalidArgumentError, match=rf"is null in row {row + 10}\.") as caught:
        from_arrow(batch_of(c=column), first_row=10)
    assert "fill_null" in caught.value.hint


@pytest.mark.parametrize(
    ("column", "fill", "wanted"),
    [
        ([1, None], {"c": -1}, [1, -1]),
        (["a", None], {"c": "z"}, [b"a", b"z"]),
        ([[1, None], [None]], {"c": 7}, [[1, 7], [7]]),
        ([[1], None], {"c": []}, [[1], []]),
        ([None, None], {"c": 0.5}, [0.5, 0.5]),
        ([{"x": 1}, None], {"c.x": 2}, [{"x": 1}, {"x": 2}]),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), {"c": [3, 4]}, [[1, 2], [3, 4]]),
    ],
)
def test_a_null_is_replaced(column, fill, wanted):
    found = [element["c"] for element in from_arrow(batch_of(c=column), fill_null=fill).elements()]
    assert [value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for value in found] == wanted


def test_what_stands_in_for_a_null_must_fit():
    with pytest.raises(InvalidTypeError, match="of the Arrow type string"):
        from_arrow(batch_of(c=["a", None]), fill_null={"c": 3})
    with pytest.raises(InvalidArgumentError, match="null in row 0"):
        from_arrow(batch_of(c=[None, [1]]), fill_null={"c": 3})
    with pytest.raises(InvalidArgumentError, match=r"names 'd', and the columns are c\."):
        spec_from_schema(batch_of(c=[1]).schema, {"d": 1})


def test_a_type_without_a_counterpart_is_named():
    intervals = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(InvalidTypeError, match="'c' is of the Arrow type month_day_nano_interval"):
        from_arrow(batch_of(c=intervals))
