"""The reported spec holds for every element, and each column has one type in all batches, whatever the lengths are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.spec import ValueSpec
from penstock.block.structure import flatten
from penstock.compat import tf


def opaque(function):
    """The same function, of which nothing is known before it runs."""

    def call(*element):
        str(element)
        return function(*element)

    return call


SOURCES = {
    "range": lambda lengths: ps.Dataset.range(len(lengths)),
    "slices": lambda lengths: ps.Dataset.from_tensor_slices(np.array(lengths)),
    "sequence": lambda lengths: ps.Dataset.from_sequence([int(n) for n in lengths]),
    "generator": lambda lengths: ps.Dataset.from_generator(lambda: iter(lengths)),
    "signature": lambda lengths: ps.Dataset.from_generator(
        lambda: iter(lengths), output_signature=ps.TensorSpec((), np.int64)
    ),
    "inner": lambda lengths: ps.Dataset.range(1).flat_map(lambda _: ps.Dataset.from_tensor_slices(np.array(lengths))),
    "opaque": lambda lengths: ps.Dataset.from_tensor_slices(np.array(lengths)).map(opaque(lambda x: x)),
}
FUNCTIONS = {
    "scalar": lambda x: x + 1,
    "fixed": lambda x: np.ones((2, 3)) * x,
    "length": lambda x: np.zeros(x),
    "numbers": lambda x: np.arange(x),
    "matrix": lambda x: np.zeros((x, 2)),
    "pair": lambda x: (x, np.arange(x)),
    "dict": lambda x: {"a": np.ones(3), "b": np.zeros((2, x)), "c": x},
    "text": lambda x: b"ab" * int(x),
}
TENSORS = {
    "zeros": lambda x: tf.zeros([x]),
    "range": lambda x: (x, tf.range(x)),
    "tile": lambda x: tf.tile([[1.0, 2.0]], [x, 1]),
    "repeat": lambda x: {"a": tf.repeat([1, 2], x), "b": tf.fill([3], x)},
    "one_hot": lambda x: tf.one_hot(1, tf.cast(x, tf.int32)),
    "one_hot of fixed depth": lambda x: tf.one_hot(x, 4),
    "reshape": lambda x: tf.reshape(tf.zeros([x, 2]), [-1]),
    "slice": lambda x: tf.slice(tf.range(5), [0], [tf.cast(x, tf.int32)]),
    "gather": lambda x: tf.gather(tf.constant([[1, 2], [3, 4], [5, 6], [7, 8]]), x),
    "words": lambda x: tf.strings.split(tf.strings.as_string(x)),
    "where": lambda x: tf.where(tf.range(4) < tf.cast(x, tf.int32)),
}
MADE = [
    *((name, kind, function) for name, function in FUNCTIONS.items() for kind in ("plain", "opaque")),
    *((name, "tensors", function) for name, function in TENSORS.items()),
]
LENGTHS = st.lists(st.integers(0, 3), min_size=1, max_size=7)


def mapped(source, kind, function):
    if kind == "tensors":
        return tf.data.Dataset.zip(source).map(function)
    return source.map(opaque(function) if kind == "opaque" else function)


def check(ds):
    """Hold the elements of a data set against its spec; return how many there are."""
    specs, structure = flatten(ds.element_spec)
    elements = list(ps.Dataset.iterator(ds))
    for element in elements:
        leaves, found = flatten(element)
        assert found.same_as(structure)
        for spec, value in zip(specs, leaves, strict=True):
            assert spec.admits(value), (spec, value)
    return len(elements)


CASES = st.tuples(st.sampled_from(list(SOURCES)), st.sampled_from(MADE)).map(lambda case: (case[0], *case[1][1:]))


def kinds(ds):
    return [leaf.value_type if isinstance(leaf, ValueSpec) else np.ndarray for leaf in flatten(ds.element_spec)[0]]


@given(CASES, LENGTHS, st.integers(1, 4), st.booleans())
def test_the_spec_holds_for_every_element_and_every_ragged_batch(case, lengths, size, drop):
    source, kind, function = case
    made = mapped(SOURCES[source](lengths), kind, function)
    assert check(made) == len(lengths)
    if size <= len(lengths):
        assert check(made.ragged_batch(size, drop_remainder=drop))


@given(CASES, st.integers(0, 3), st.integers(1, 7), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_rows_that_happen_to_be_as_long_change_no_type(case, length, count, size, other, drop):
    source, kind, function = case
    rows = SOURCES[source]([length] * count).map(lambda x: x * 0 + length)
    made = mapped(rows, kind, function)
    size = min(size, count)
    assert check(made.batch(size, drop_remainder=drop))
    check(made.batch(size, drop_remainder=drop).rebatch(other))
    check(made.batch(size).ragged_batch(2))
    assert kinds(made.ragged_batch(size)) == kinds(mapped(SOURCES[source]([3, 1]), kind, function).ragged_batch(2))


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda ds: ds.batch(4, drop_remainder=True).rebatch(2), (2,)),
        (lambda ds: ds.batch(4, drop_remainder=True).rebatch([2, 2]), (2,)),
        (lambda ds: ds.batch(4, drop_remainder=True).rebatch(3), (None,)),
        (lambda ds: ds.batch(4, drop_remainder=True).rebatch([1, 2]), (None,)),
        (lambda ds: ds.batch(4).rebatch(2), (None,)),
        (lambda ds: ds.map(opaque(lambda x: np.ones(3))).batch(4, drop_remainder=True).rebatch(2), (2, None)),
        (lambda ds: ds.map(opaque(lambda x: np.ones(4))).rebatch(2), (None,)),
        (lambda ds: ds.map(opaque(lambda x: np.ones(4))).rebatch(2, drop_remainder=True), (2,)),
        (lambda ds: ds.flat_map(lambda x: ps.Dataset.from_tensors(np.ones(x))), (None,)),
        (lambda ds: ds.flat_map(lambda x: ps.Dataset.from_tensors(np.ones(3))), (3,)),
        (lambda ds: ds.window(2).flat_map(lambda w: w.batch(2, drop_remainder=True)), (2,)),
    ],
)
def test_shapes_that_follow_from_declared_ones(made, shape):
    ds = made(ps.Dataset.range(8))
    assert ds.element_spec.shape == shape
    assert check(ds)


def broken(x):
    return x.tolist().nope


@pytest.mark.parametrize("of", [lambda ds: ds.element_spec, lambda ds: iter(tf.data.Dataset.zip(ds)).element_spec])
@pytest.mark.parametrize("made", [lambda ds: ds, lambda ds: ds.batch(2), lambda ds: tf.data.Dataset.zip(ds).batch(2)])
def test_an_error_of_a_function_is_shown_when_the_spec_is_asked_for(made, of):
    with pytest.raises(AttributeError, match="'int' object has no attribute 'nope'"):
        of(made(ps.Dataset.range(3).map(broken)))
