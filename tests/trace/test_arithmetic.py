"""A function gives the same bits on a whole Block and element by element, for all dtypes and all values."""

import itertools
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF, flatten
from penstock.physical.filter_transform import FilterTransform
from penstock.physical.transform import MapTransform
from penstock.physical.vectorise import Vectoriser
from penstock.testing import assert_same_elements
from penstock.trace.arithmetic import RESHAPE
from penstock.trace.graph import GraphBuilder, Primitive, Ref
from penstock.trace.traced import trace

DTYPES = [np.dtype(code) for code in "?bhiqBHIQefdFD"]
EDGES = {
    "f": [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 6e-8, 65504.0, 1e38],
    "c": [0, -0.0, 1 + 2j, complex(np.inf, -1), complex(0, np.nan), 3e20j, -1e-20 + 1j],
    "b": [True, False],
}


def values(dtype):
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, info.min, info.max, info.max // 2]
    else:
        edges = [edge for edge in EDGES[dtype.kind] if dtype != np.float16 or not 65504 < abs(edge) < np.inf]
    return st.one_of(st.sampled_from(edges), nps.from_dtype(dtype)).map(lambda v: np.array(v).astype(dtype)[()])


ONE = {
    "double": lambda x: x * 2,
    "half": lambda x: x / 2,
    "thirds": lambda x: x / 3 + 1,
    "negative": lambda x: -x,
    "absolute": lambda x: abs(x),
    "square": lambda x: np.square(x),
    "root": lambda x: np.sqrt(x),
    "sign": lambda x: np.sign(x),
    "floor": lambda x: np.floor(x),
    "rint": lambda x: np.rint(x),
    "truncated": lambda x: np.trunc(x),
    "remainder": lambda x: x % 3,
    "whole": lambda x: x // 3,
    "inverse": lambda x: 1 / x,
    "from below": lambda x: x - 0.5,
    "shifted": lambda x: x << 2,
    "shifted back": lambda x: x >> 1,
    "inverted": lambda x: ~x,
    "clipped": lambda x: np.clip(x, 1, 5),
    "not a number": lambda x: np.isnan(x),
    "finite": lambda x: np.isfinite(x),
    "logical": lambda x: np.logical_not(x),
    "where": lambda x: np.where(x > 1, x, 0),
    "chain": lambda x: ((x * 3 + 1) - x) * x,
    "float32": lambda x: x.astype(np.float32) * 0.1,
    "float16": lambda x: x.astype(np.float16),
    "int32 of bounded": lambda x: np.clip(x, -100, 100).astype(np.int32),
    "numpy constant": lambda x: x * np.float64(0.1),
    "large constant": lambda x: x + 100,
}
TWO = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "whole quotient": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "minimum": lambda x, y: np.minimum(x, y),
    "maximum": lambda x, y: np.maximum(x, y),
    "fmin": lambda x, y: np.fmin(x, y),
    "fmax": lambda x, y: np.fmax(x, y),
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y,
    "bits": lambda x, y: x & y,
    "either": lambda x, y: x ^ y | y,
    "shift": lambda x, y: x << y,
    "shift back": lambda x, y: x >> y,
    "logical": lambda x, y: np.logical_xor(x, y),
    "where": lambda x, y: np.where(x == y, x, y),
}


def per_element(function, block):
    """Return the results of a function called on each element, or None if a call raises."""
    transform = MapTransform(function, "plain", None, vectorise=False)
    outcome = transform.run(block, Numbers(0))
    return None if outcome.failures else outcome.block


def assert_equal_by_block(function, block):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = per_element(function, block)
        found = Vectoriser(function).run(block, None)
        if found is None:
            return False
        assert wanted is not None, "the Block form gave a result where an element raises"
        assert_same_elements(found.elements(), wanted.elements())
    return True


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=40)
@given(data=st.data())
def test_functions_of_one_scalar(dtype, data):
    column = np.array(data.draw(st.lists(values(dtype), min_size=1, max_size=40)), dtype)
    function = ONE[data.draw(st.sampled_from(sorted(ONE)))]
    assert_equal_by_block(function, Block.single(DenseColumn(column)))


@settings(max_examples=max(150, settings.default.max_examples))
@given(data=st.data())
def test_functions_of_two_scalars(data):
    first, second = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))
    size = data.draw(st.integers(1, 40))
    columns = [
        np.array(data.draw(st.lists(values(dtype), min_size=size, max_size=size)), dtype) for dtype in (first, second)
    ]
    function = TWO[data.draw(st.sampled_from(sorted(TWO)))]
    structure = flatten((0, 0))[1]
    assert_equal_by_block(function, Block(structure, [DenseColumn(c) for c in columns], size))


@pytest.mark.parametrize("name", ["minimum", "maximum", "fmin", "fmax"])
def test_of_two_zeros_the_one_is_chosen_that_is_chosen_for_each_element(name):
    ufunc = getattr(np, name)
    for first, second in product([np.float16, np.float32, np.float64, np.int8, np.int64], repeat=2):
        columns = np.ones(40, first), np.ones(40, second)
        for column, zeros in zip(columns, [[-0.0, 0.0], [0.0, -0.0]], strict=True):
            column[1:3] = zeros  # these elements are not among those that are compared first
        block = Block(flatten((0, 0))[1], [DenseColumn(column) for column in columns], 40)
        assert_equal_by_block(lambda x, y: ufunc(x, y), block)


@given(data=st.data())
def test_functions_of_arrays_broadcast_as_for_each_element(data):
    dtype = data.draw(st.sampled_from(DTYPES))
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 20))
    matrix = data.draw(nps.arrays(dtype, (rows, 2, columns), elements=values(dtype)))
    vector = data.draw(nps.arrays(dtype, (rows, columns), elements=values(dtype)))
    function = TWO[data.draw(st.sampled_from(sorted(TWO)))]
    structure = flatten((0, 0))[1]
    assert_equal_by_block(function, Block(structure, [DenseColumn(matrix), DenseColumn(vector)], rows))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.sampled_from(sorted(ONE)))
def test_functions_of_ragged_arrays(lengths, name):
    block = Block.from_elements([np.arange(n, dtype=np.float32) for n in lengths])
    assert_equal_by_block(ONE[name], block)


@settings(max_examples=60)
@given(nps.arrays(np.int32, st.integers(1, 30)), st.integers(-3, 3))
def test_predicates_keep_the_same_elements(array, c):
    block = Block.single(DenseColumn(array))
    kept = [
        FilterTransform(lambda x: (x % 4 > c) | (x == 7), "filter", None, vectorise=vectorise)
        .run(block, Numbers(0))
        .block
        for vectorise in (True, False)
    ]
    elements = [[] if found is None else found.elements() for found in kept]
    assert_same_elements(*elements)


def test_most_of_these_functions_do_run_by_block():
    """The tests of equality would prove nothing if all functions ran per element."""
    block = Block.single(DenseColumn(np.arange(1, 9, dtype=np.int64)))
    by_block = [name for name, function in ONE.items() if assert_equal_by_block(function, block)]
    assert len(by_block) > len(ONE) - 3, sorted(set(ONE) - set(by_block))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x if x > 3 else (x, x), "branch"),
        (lambda x: int(x), "converts"),
        (lambda x: x[0], "index"),
        (lambda x: [i for i in x], "loops"),  # noqa: C416 - a loop is the case it is about
        (lambda x: np.where(x > 1)[0], "np.where"),
        (lambda x: None, "not a leaf"),
        (lambda x: x + "a", "str"),
        (lambda x: np.add(x, 1, dtype=np.int8), "np.add"),
        (lambda x: np.add(x, 1, out=x), "writes into an array"),
        (lambda x, y: x, "raised TypeError"),
        (lambda x: print(x), "print"),
    ],
)
def test_what_cannot_be_traced_says_why(function, reason):
    spec = DenseColumn(np.arange(3)).spec()
    found = trace(function, LEAF, [spec])
    assert found.graph is None
    assert reason in found.reason
    vectoriser = Vectoriser(function)
    assert vectoriser.run(Block.single(DenseColumn(np.arange(3))), None) is None
    assert vectoriser.verdict.startswith("per element: ")


def test_a_block_form_that_differs_on_the_first_element_is_not_used():
    state = {"traced": True}

    def changing(x):
        return x * 2 if state.get("traced") else x * 3

    block = Block.single(DenseColumn(np.arange(1, 4)))
    vectoriser = Vectoriser(changing)
    assert vectoriser.run(block, None) is not None
    state["traced"] = False
    other = Vectoriser(changing).run(block, None)
    assert other is None or [int(x) for x in other.elements()] == [3, 6, 9]


def test_a_graph_reads_as_its_primitives():
    found = trace(lambda x: np.minimum(x * 2 + 1, 5), LEAF, [DenseColumn(np.arange(3)).spec()])
    assert found.graph.describe() == "multiply → add → minimum"


@given(st.lists(st.sampled_from(range(5)), max_size=6))
def test_outputs_that_may_share_memory_are_told_pair_by_pair(chosen):
    def function(x, y):
        views = [x, y, x + 1, x[:2], np.reshape(y, (2, 2))]
        return tuple(views[i] for i in chosen)

    block = Block.from_elements([(np.arange(4), np.arange(4))])
    graph = trace(function, block.structure, block.specs()).graph
    memory = [(0, 1, 2, 0, 1)[i] for i in chosen]
    wanted = [(i, j) for i, j in itertools.combinations(range(len(chosen)), 2) if memory[i] == memory[j]]
    assert list(graph.sharing()) == wanted


def test_a_result_that_may_be_a_view_is_told_with_all_outputs_but_those_of_its_call():
    many = Primitive("unknown", lambda specs, params: [specs[0]] * 2, lambda operands, params, rows, allocate: [])
    fresh = Primitive("known", lambda specs, params: specs, lambda operands, params, rows, allocate: [], fresh=True)
    spec = TensorSpec((4,), np.int64)
    builder = GraphBuilder((spec, spec))
    first, second = builder.bind(many, [Ref(-1, 0)], {})
    (view,) = builder.bind(RESHAPE, [first], {"shape": (2, 2)})
    (new,) = builder.bind(fresh, [Ref(-1, 0)], {})
    graph = builder.finish([first, second, view, new, Ref(-1, 1)], LEAF)
    apart = {(0, 1), (1, 2), (3, 4)}
    assert list(graph.sharing()) == [pair for pair in itertools.combinations(range(5), 2) if pair not in apart]


NUMBERS_OF_CHANNELS = {
    "norm": lambda x, few: (x - few) / (few + 1),
    "few first": lambda x, few: few - x * few,
    "compared": lambda x, few: (x > few, few >= x),
    "by row of the Block": lambda x, few: x * x[0, 0] + few,
}


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 96, 96, 3), (2, 2, 3), (3, 70, 80, 1), (5, 64, 70, 17), (3, 4000, 3)], ids=str)
@pytest.mark.parametrize("name", NUMBERS_OF_CHANNELS)
def test_a_few_numbers_repeated_give_the_same_bits(name, shape, dtype):
    """The number of rows may equal the number of channels. Large Blocks reuse memory."""
    rng = np.random.default_rng(3)
    source = rng.integers(0, 200, shape).astype(dtype)
    few = rng.integers(1, 50, shape[-1]).astype(np.float32)
    function = NUMBERS_OF_CHANNELS[name]

    assert assert_equal_by_block(lambda x: function(x, few), Block.single(DenseColumn(source)))
