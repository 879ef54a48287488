"""Arithmetic on pieces of large arrays gives the bits of arithmetic on the whole arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.block.column import DenseColumn, ListColumn
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF
from penstock.testing import assert_same_elements
from penstock.trace import pieces
from penstock.trace.arithmetic import ASTYPE, RESHAPE, UFUNCS
from penstock.trace.graph import Const, GraphBuilder, Ref
from penstock.trace.pieces import is_of_each_value, run_in_pieces

CONSTANTS = {
    "one": np.float32(3),
    "channel": np.array([1, 2, 3], np.float32),
    "pixel": np.arange(1, 13, dtype=np.float32).reshape(4, 3),
}
STEPS = [
    *((ufunc, other) for ufunc in (np.add, np.subtract, np.multiply, np.divide) for other in (*CONSTANTS, "x", "y")),
    *((np.square, None), (np.greater, "y"), (ASTYPE, None)),
]


def graph_of(steps, *columns):
    """Return a graph of `steps`. Each step uses the result before it. The outputs are the last and the first result."""
    builder = GraphBuilder(tuple(TensorSpec(column.array.shape[1:], column.array.dtype) for column in columns))
    named = {name: Const(one) for name, one in CONSTANTS.items()}
    named |= {"x": Ref(-1, 0), "y": Ref(-1, len(columns) - 1)}
    results = [named["x"]]
    for step, other in steps:
        if step is ASTYPE:
            results += builder.bind(ASTYPE, [results[-1]], {"dtype": np.dtype(np.float64)})
        else:
            results += builder.bind(UFUNCS[step], [results[-1], *([] if other is None else [named[other]])], {})
    return builder.finish([results[-1], results[1], results[-1]], LEAF)


@settings(max_examples=80)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=6),
    shape=st.sampled_from([(1, 9, 4, 3), (5, 4, 3), (2, 3, 5, 4, 3), (7, 1, 4, 3)]),
    dtype=st.sampled_from([np.uint8, np.float32, np.int64]),
    piece=st.integers(1, 40),
    offered=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_pieces_give_the_bits_of_the_whole(steps, shape, dtype, piece, offered):
    rng = np.random.default_rng(piece)
    columns = [DenseColumn(rng.integers(0, 200, shape).astype(dtype)) for _ in range(2)]
    graph = graph_of(steps, *columns)
    assert is_of_each_value(graph)
    whole = graph.run(columns, shape[0])
    places = [np.zeros_like(column.array) for column in whole]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", piece)
        made = run_in_pieces(graph, columns, (lambda k: lambda *_: places[k]) if offered else None)
    if len(shape) == 3 and any(other == "pixel" for _, other in steps):  # the constant has the axis that is cut
        assert made is None
        return
    for k, (one, other) in enumerate(zip(made, whole, strict=True)):
        assert one.array.dtype == other.array.dtype
        np.testing.assert_array_equal(one.array, other.array)
        assert not offered or one.array is places[k]


def test_other_columns_and_graphs_are_not_cut(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1)
    column = DenseColumn(np.ones((4, 4, 3), np.float32))
    steps = [(np.add, "one"), (np.multiply, "channel")]
    graph = graph_of(steps, column)
    assert run_in_pieces(graph, [column], None) is not None
    assert run_in_pieces(graph, [ListColumn([*column.array])], None) is None
    assert run_in_pieces(graph, [DenseColumn(column.array[:, ::2])], None) is None
    assert run_in_pieces(graph, [DenseColumn(column.array[:, 0])], None) is None
    assert not is_of_each_value(graph_of(steps[:1], column))
    builder = GraphBuilder((column.spec(),))
    (turned,) = builder.bind(RESHAPE, [Ref(-1, 0)], {"shape": (3, 4)})
    assert not is_of_each_value(builder.finish(builder.bind(UFUNCS[np.square], [turned], {}), LEAF))
    monkeypatch.undo()
    assert run_in_pieces(graph, [column], None) is None


def test_batches_of_pictures_are_normalised_equally(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    pictures = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), np.uint8)
    mean, std = np.float32([0.4, 0.5, 0.6]), np.float32([0.2, 0.3, 0.25])
    batches = ps.Dataset.from_tensor_slices(pictures).batch(4).map(lambda x: (x.astype(np.float32) / 255 - mean) / std)
    assert_same_elements([*batches.unbatch()], [(x.astype(np.float32) / 255 - mean) / std for x in pictures])
