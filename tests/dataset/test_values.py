"""Python's values as elements, and back: every place where they come in gives what a plain definition of it says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.testing import difference

D = ps.Dataset


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Record:
    image: Any
    label: Any


class Attribute:
    """What attrs says of an attribute; attrs itself may not be there."""

    def __init__(self, name):
        self.name = name
        self.alias = name.lstrip("_")
        self.init = True
        self.converter = self.validator = None


class WithAttributes:
    """As `attrs.define` makes a class."""

    __attrs_attrs__ = (Attribute("image"), Attribute("_label"))

    def __init__(self, image, label):
        self.image = image
        self._label = label


# -- the definition


class Refused(Exception):
    """No element is made of this."""


def element_of(value, *, returned=False):
    """What a value becomes as an element, and as one that a function returns."""
    if returned and isinstance(value, list):
        if not value:
            raise Refused
        value = tuple(value)
    if value is None:
        raise Refused
    return nest_of(value)


def nest_of(value):
    if value is None:
        return None
    if type(value) is tuple:
        return tuple(nest_of(part) for part in value)
    if isinstance(value, dict):
        return {name: nest_of(part) for name, part in value.items()}
    if isinstance(value, Pair):
        return Pair(nest_of(value.left), nest_of(value.right))
    if isinstance(value, Record):
        return Record(nest_of(value.image), nest_of(value.label))
    if isinstance(value, WithAttributes):
        return WithAttributes(nest_of(value.image), nest_of(value._label))
    return leaf_of(value)


def leaf_of(value):
    match value:
        case list():
            return array_of(value)
        case range():
            return array_of(list(value)) if value else np.zeros(0, np.int64)
        case np.ndarray():
            if value.dtype.kind not in "SUO":
                return value
            found = np.empty(value.shape, object)
            for place, text in np.ndenumerate(value):
                found[place] = text.encode() if isinstance(text, str) else bytes(text)
            return found
        case bytes() | str():  # numpy's, too
            return value.encode() if isinstance(value, str) else bytes(value)
        case np.generic():
            return value
        case bool():
            return np.bool_(value)
        case int():
            return np.int64(fitting(value))
        case float():
            return np.float32(value)
    raise AssertionError(value)


def array_of(values):
    """One array of a list: of its items one beside the other, all of one shape, all text or none of them."""
    pure = list(numbers_of(values))
    if None not in pure:
        kind = max((rank_of(number) for number in pure), default=2)
        dtype = (np.bool_, np.int64, np.float32)[kind]
        shape = shape_of(values)
        if dtype == np.int64:
            pure = [fitting(number) for number in pure]
        return np.array(pure, dtype).reshape(shape)
    parts = [array_of(list(value)) if isinstance(value, (list, tuple)) else leaf_in_list(value) for value in values]
    texts = {isinstance(part, bytes) or part.dtype == object for part in parts}
    if len(texts) > 1 or len({np.shape(part) for part in parts}) > 1:
        raise Refused
    dtype = object if texts == {True} else np.result_type(*[part.dtype for part in parts])
    found = np.empty((len(parts), *np.shape(parts[0])), dtype)
    for row, part in enumerate(parts):
        found[row] = part
    return found


def leaf_in_list(value):
    if value is None or isinstance(value, (dict, Record, WithAttributes)):
        raise Refused
    return leaf_of(value)


def numbers_of(values):
    """Python's own numbers in a list; None for anything else."""
    for value in values:
        if isinstance(value, (list, tuple, range)):
            yield from numbers_of(value)
        else:
            yield value if type(value) in (bool, int, float) else None


def rank_of(number):
    return (bool, int, float).index(type(number))


def shape_of(value):
    if not isinstance(value, (list, tuple, range)):
        return ()
    shapes = {shape_of(item) for item in value}
    if len(shapes) > 1:
        raise Refused
    return (len(value), *shapes.pop()) if shapes else (0,)


def fitting(number):
    if not -(2**63) <= number < 2**63:
        raise Refused
    return number


# -- values of all kinds

FLOATS = st.floats(width=32) | st.sampled_from([0.1, -0.0, math.nan])
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.sampled_from([2**63, 2**64, -(2**63) - 1])
BYTES = st.binary(max_size=4) | st.sampled_from([b"a\0", b"\0", b"\0\0", b""])
TEXTS = BYTES | st.text(max_size=3) | st.sampled_from(["a\0", np.bytes_(b"a\0"), np.str_("é")])
SCALARS = st.one_of(
    st.booleans(), INTEGERS, FLOATS, TEXTS, st.sampled_from([np.int8(3), np.float64(0.1), np.uint64(2**64 - 1)])
)
RANGES = st.builds(range, st.integers(-3, 3), st.integers(-3, 5), st.sampled_from([1, 2, -1]))
ARRAYS = st.sampled_from(
    [
        np.arange(3),
        np.zeros((0, 2), np.float32),
        np.array(["a", "é"]),
        np.array([b"a\0", "b"], object),
        np.array(1.5),
        np.arange(4, dtype=">i2").reshape(2, 2),
    ]
)
ROWS = st.one_of(  # lists that mostly are arrays
    st.lists(TEXTS, max_size=3),
    st.lists(st.integers(-3, 3) | st.booleans(), max_size=3),
    st.lists(FLOATS | st.integers(-3, 3), max_size=3),
    st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=2),
    st.lists(st.tuples(st.integers(0, 3), FLOATS), max_size=2),
    st.lists(st.lists(SCALARS, min_size=1, max_size=2), max_size=2),
    st.lists(SCALARS | RANGES | ARRAYS | st.none(), max_size=2),
    st.lists(RANGES, max_size=2),
)


def nests(parts):
    return st.one_of(
        st.tuples(parts),
        st.tuples(parts, parts),
        st.dictionaries(st.sampled_from("abc"), parts, min_size=1, max_size=2),
        st.builds(Pair, parts, parts),
        st.builds(Record, parts, parts),
        st.builds(WithAttributes, parts, parts),
    )


LEAVES = SCALARS | RANGES | ARRAYS | ROWS
VALUES = st.recursive(LEAVES | st.none(), nests, max_leaves=4)
AS_COMPONENTS = st.lists(VALUES, min_size=1, max_size=3)


def native(value):
    """As `difference` compares: a big-endian array comes back in the machine's own order."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def agree(make, value, wanted, *, returned=False, count=1):
    """`make()` gives `wanted` of the value's element, or refuses it where the definition does."""
    try:
        expected = element_of(value, returned=returned)
    except Refused:
        with pytest.raises((InvalidTypeError, InvalidArgumentError)):
            list(make())
        return
    found = list(make())
    assert len(found) == count
    for one in found:
        message = difference(one, wanted(expected))
        assert message is None, message


def same(expected):
    return leafwise(native, expected)


def leafwise(function, value):
    if value is None:
        return None
    if type(value) is tuple:
        return tuple(leafwise(function, part) for part in value)
    if isinstance(value, dict):
        return {name: leafwise(function, part) for name, part in value.items()}
    if isinstance(value, (Pair, Record)):
        return type(value)(
            *[leafwise(function, part) for part in (value if isinstance(value, Pair) else vars(value).values())]
        )
    if isinstance(value, WithAttributes):
        return WithAttributes(leafwise(function, value.image), leafwise(function, value._label))
    return function(value)


NAMED = [
    [b"a\0", b"b"],
    [0, b"hello", 10],
    [1, "a"],
    (1, None),
    [1, None],
    None,
    [None],
    ([1, "a"], 2),
    [[b"x\0"], ["y"]],
    range(3),
    (range(0), [range(2), range(2)]),
    [],
    ([], [[]]),
    [2**63],
    WithAttributes(1, None),
    np.bytes_(b"a\0"),
]


def named(test):
    for value in NAMED:
        test = example(value)(test)
    return test


# -- where they come in


@named
@given(VALUES)
def test_sources_take_a_value_as_one_element(value):
    agree(lambda: D.from_tensors(value), value, same)
    agree(lambda: D.from_list([value, value]), value, same, count=2)
    agree(lambda: D.from_generator(lambda: iter([value, value])), value, same, count=2)
    agree(lambda: D.from_sequence(Thrice(value)), value, same, count=3)


class Thrice:
    def __init__(self, value):
        self.value = value

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.value


@given(
    st.integers(1, 3).flatmap(lambda n: nests(st.lists(TEXTS, min_size=n, max_size=n) | st.just(range(n)) | st.none()))
)
def test_slices_of_lists_are_the_items_of_their_arrays(nest):
    columns = nest_of(nest)
    sizes = []
    leafwise(lambda column: sizes.append(len(column)), columns)
    if not sizes:
        with pytest.raises(InvalidArgumentError):
            D.from_tensor_slices(nest)
        return
    found = list(D.from_tensor_slices(nest))
    assert len(found) == sizes[0]
    for row, element in enumerate(found):
        message = difference(element, leafwise(lambda column: column[row], columns))  # noqa: B023
        assert message is None, message


@named
@given(VALUES | AS_COMPONENTS)
def test_a_function_returns_an_element_and_its_list_is_a_tuple(value):
    def opaque(x):
        return value if x >= 0 else None

    def constant(x):
        return value

    for how in ({}, {"executor": "inline"}, {"num_parallel_calls": 2, "executor": "thread"}):
        for function in (opaque, constant):
            agree(lambda: D.range(3).map(function, **how), value, same, returned=True, count=3)  # noqa: B023


@given(VALUES | AS_COMPONENTS)
def test_map_fn_stacks_what_its_function_returns(value):
    def stacked(expected):
        return leafwise(stack, expected)

    agree(lambda: [ps.map_fn(lambda row: value, np.arange(2))], value, stacked, returned=True)


def stack(leaf):
    leaf = native(leaf)
    if isinstance(leaf, bytes) or leaf.dtype == object:
        found = np.empty((2, *np.shape(leaf)), object)
        found[:] = [leaf] if isinstance(leaf, np.ndarray) else leaf
        return found
    return np.stack([leaf, leaf])


@named
@given(VALUES)
def test_scan_hands_on_states_and_elements(value):
    agree(lambda: D.range(2).scan(0, lambda state, x: (state, value)), value, same, count=2)
    agree(lambda: D.range(2).scan(value, lambda state, x: (state, state)), value, same, count=2)
    agree(lambda: D.range(2).scan(value, lambda state, x: (value, state)), value, same, count=2)
    agree(lambda: [D.range(2).reduce(value, lambda state, x: value)], value, same)


@named
@given(VALUES)
def test_steps_hand_values_on_as_they_are(value):
    try:
        expected = same(element_of(value))
    except Refused:
        return
    ds = D.from_list([value, value])
    for steps in (
        ds.batch(2).unbatch(),
        ds.padded_batch(2).unbatch(),
        ds.shuffle(2, seed=1),
        ds.shuffle(ps.ALL, seed=1),
        ds.cache(),
        D.zip(ds, ds).map(lambda one, other: other),
        ds.filter(lambda *parts: True),
        ds.flat_map(lambda *parts: ds.take(1)),
    ):
        found = [*steps, *steps.iterator(epoch=1)]
        assert len(found) == 4
        for one in found:
            message = difference(one, expected)
            assert message is None, message


STORED = {
    "none": ((1, None), {"a": None, "b": [b"a\0", b"b"]}),
    "named": Pair(Record("x", None), range(3)),
    "attrs": WithAttributes(np.arange(3), {"key": None}),
    "text": ["a", b"\0"],
}


@pytest.mark.parametrize("kind", STORED)
def test_files_and_processes_hand_values_on_as_they_are(kind, tmp_path):
    value = STORED[kind]
    ds = D.from_list([value, value])
    ds.save(tmp_path / "saved")
    places = {
        "cache": ds.cache(tmp_path / "cache"),
        "cached": ds.cache(tmp_path / "cache"),
        "snapshot": ds.snapshot(tmp_path / "snapshot"),
        "of a snapshot": ds.snapshot(tmp_path / "snapshot"),
        "load": D.load(tmp_path / "saved"),
        "process": D.range(2).map(Returning(value), num_parallel_calls=2, executor="process"),
        "through a process": ds.map(first, num_parallel_calls=2, executor="process"),
    }
    for place, steps in places.items():
        wanted = same(element_of(value, returned=place == "process"))
        found = list(steps)
        assert len(found) == 2
        for one in found:
            message = difference(one, wanted)
            assert message is None, f"{place}: {message}"
        assert difference(steps.element_spec, ds.element_spec) is None or place == "process"


class Returning:
    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return self.value


def first(*parts):
    return parts if len(parts) > 1 else parts[0]


def test_a_list_in_a_list_that_is_returned_is_an_array():
    found = list(D.range(2).map(lambda x: [x, [x, x + 1]]))
    assert difference(found[1], (np.int64(1), np.array([1, 2]))) is None


def test_lists_that_differ_in_length_say_how_one_array_is_returned():
    ds = D.range(3).map(lambda x: [int(x)] * (int(x) + 1))
    with pytest.raises(InvalidTypeError, match=r"np\.array\(list, dtype\)"):
        list(ds)
    assert [len(x) for x in D.range(3).map(lambda x: np.array([int(x)] * (int(x) + 1)))] == [1, 2, 3]


def test_what_a_function_did_not_return_is_no_element():
    with pytest.raises(InvalidTypeError, match="on every path"):
        list(D.range(3).map(lambda x: None))
    with pytest.raises(InvalidTypeError, match="expected \\(·, None\\), got \\(·, ·\\)"):
        list(D.range(3).map(lambda x: (x, None if x < 2 else 3)))


# -- data sets as elements


def ints(ds):
    return [int(x) for x in ds]


def test_each_item_of_a_list_of_data_sets_is_an_element():
    both = [D.range(3), D.range(5, 7)]
    ds = D.from_tensor_slices(both)
    assert len(ds) == 2
    assert ints(ds[1]) == [5, 6]
    assert ints(ds.flat_map(lambda inner: inner)) == [0, 1, 2, 5, 6]
    assert ints(ds.shuffle(2, seed=1).interleave(lambda inner: inner, cycle_length=2, block_length=9)) in (
        [0, 1, 2, 5, 6],
        [5, 6, 0, 1, 2],
    )
    pairs = D.from_tensor_slices({"ds": both, "n": [10, 20]}).flat_map(lambda e: e["ds"].map(lambda x: x + e["n"]))
    assert ints(pairs) == [10, 11, 12, 25, 26]


def test_data_sets_are_components_and_no_part_of_an_array():
    pair = D.range(2).map(lambda x: [D.range(x), D.range(2)])
    assert ints(pair.flat_map(lambda one, other: one.concatenate(other))) == [0, 1, 0, 0, 1]
    for call in (
        lambda: D.from_tensors([D.range(2), D.range(3)]),
        lambda: D.from_tensor_slices([D.range(2), 3]),
        lambda: list(D.range(2).map(lambda x: (x, [D.range(2)]))),
        lambda: list(D.from_tensor_slices([D.range(2), D.range(3)]).batch(2)),
    ):
        with pytest.raises(InvalidTypeError, match="data sets"):
            call()
    with pytest.raises(InvalidArgumentError, match="is a data set"):
        D.from_tensor_slices(D.range(3))


def test_other_data_sets_are_another_content(tmp_path):
    def cached(*counts):
        ds = D.from_tensor_slices([D.range(count) for count in counts])
        return ints(ds.flat_map(lambda inner: inner).cache(tmp_path))

    assert cached(2, 1) == [0, 1, 0]
    assert cached(1, 2) == [0, 0, 1]


# -- generators with a signature

SIGNED = {
    "a tuple for an array": ((3,), np.int64, (1, 2, 3), np.array([1, 2, 3])),
    "nested tuples": ((2, 2), np.float32, ((1, 2), (3, 4)), np.array([[1, 2], [3, 4]], np.float32)),
    "a list": ((None,), np.uint8, [1, 255], np.array([1, 255], np.uint8)),
    "a range": ((3,), np.int8, range(3), np.array([0, 1, 2], np.int8)),
    "a double": ((), np.float64, 0.1, np.float64(0.1)),
    "a tuple of texts": ((2,), bytes, ("a", b"\0"), leaf_of(np.array([b"a", b"\0"], object))),
    "an empty list": ((None,), np.int64, [], np.zeros(0, np.int64)),
    "numpy's numbers in a list": ((2,), np.int32, [np.int64(1), 2], np.array([1, 2], np.int32)),
}


@pytest.mark.parametrize("case", SIGNED)
def test_a_signature_says_where_a_tuple_is_an_array(case):
    shape, dtype, value, wanted = SIGNED[case]
    spec = ps.TensorSpec(shape, dtype)
    nests = (
        (spec, value, wanted),
        ((spec, {"a": spec}, None), (value, {"a": value}, None), (wanted, {"a": wanted}, None)),
    )
    for signature, element, expected in nests:
        ds = D.from_generator(lambda: iter([element]), output_signature=signature)  # noqa: B023
        (found,) = ds
        message = difference(found, expected)
        assert message is None, message


def test_types_alone_are_a_signature_that_leaves_the_shapes_open():
    def pairs():
        yield [1, 2], "a"
        yield (3,), b"b"

    ds = D.from_generator(pairs, output_types=(np.int32, bytes))
    assert ds.element_spec == (ps.TensorSpec(None, np.int32), ps.TensorSpec(None, bytes))
    wanted = [(np.array([1, 2], np.int32), b"a"), (np.array([3], np.int32), b"b")]
    for found, expected in zip(ds, wanted, strict=True):
        assert difference(found, expected) is None
    shapes = ([None], None)
    ds = D.from_generator(pairs, output_types=(np.int32, bytes), output_shapes=shapes)
    assert ds.element_spec == (ps.TensorSpec([None], np.int32), ps.TensorSpec(None, bytes))
    (found,) = ds.padded_batch(2)
    assert found[0].tolist() == [[1, 2], [3, 0]]
    with pytest.raises(InvalidTypeError, match="int32"):
        list(D.from_generator(lambda: iter([1.5]), output_types=np.int32))
    with pytest.raises(InvalidTypeError, match="a nest like output_types"):
        D.from_generator(pairs, output_types=(np.int32, bytes), output_shapes=[2])
    assert [x.shape for x in D.from_generator(lambda: iter([1, [1]]), output_types=np.int64)] == [(), (1,)]


REFUSED = {
    "a part of a number": ((), np.int64, 1.5),
    "numbers in a list": ((2,), np.int64, [1, 2.5]),
    "too large": ((1,), np.uint8, [256]),
    "a number that is too large": ((), np.uint8, 256),
    "too large for numpy's": ((1,), np.uint8, [np.int64(256)]),
    "text": ((1,), np.int64, ["1"]),
    "another length": ((2,), np.int64, (1, 2, 3)),
    "text and numbers": ((2,), np.int64, [1, "a"]),
    "differing rows": ((2, None), np.int64, ((1,), (1, 2))),
    "none": ((), np.int64, None),
    "data sets": ((2, 2), np.int64, [D.range(2), D.counter()]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_signature_refuses_what_would_be_another_value(case):
    shape, dtype, value = REFUSED[case]
    ds = D.from_generator(lambda: iter([value]), output_signature=ps.TensorSpec(shape, dtype))
    with pytest.raises((InvalidTypeError, InvalidArgumentError)):
        list(ds)


NUMBERS = np.random.default_rng(0).normal(size=(12, 33, 41))
LIES = {  # how arrays lie that come out of sources and functions
    "Fortran's order": np.asfortranarray,
    "turned": lambda x: x.T,
    "turned and new": lambda x: x.T + 1,
    "from its end": lambda x: x[::-1],
    "every second": lambda x: x[:, ::2],
    "one row again and again": lambda x: np.broadcast_to(x[0], x.shape),
    "a matrix": lambda x: np.asfortranarray(x).view(np.matrix),
}
FROM = {
    "a source": lambda lies: D.from_tensor_slices(NUMBERS.T[..., ::-1]).take(12),
    "one element": lambda lies: D.from_tensors(lies(NUMBERS[0])),
    "a generator": lambda lies: D.from_generator(lambda: map(lies, NUMBERS)),
    "a function": lambda lies: D.from_tensor_slices(NUMBERS).map(lies),
    "a function that is not read": lambda lies: D.from_tensor_slices(NUMBERS).map(lambda x: (str(x.shape), lies(x))[1]),
    "a scan": lambda lies: D.from_tensor_slices(NUMBERS).scan(0, lambda s, x: (s, lies(x))),
}
WAYS = {
    "itself": lambda ds, f: ds.map(f),
    "not fused": lambda ds, f: ds.prefetch(1).map(f),
    "shuffled": lambda ds, f: ds.shuffle(1).map(f),
    "kept": lambda ds, f: ds.cache().map(f),
    "batched": lambda ds, f: ds.batch(5).unbatch().map(f),
    "map_fn": lambda ds, f: ds.batch(5).map(lambda batch: ps.map_fn(f, batch)).unbatch(),
}


@pytest.mark.parametrize("where", FROM)
@pytest.mark.parametrize("lies", LIES)
def test_what_is_computed_of_an_array_does_not_depend_on_the_way_it_took(lies, where):
    """numpy adds in the order in which numbers lie: they lie in C order wherever a function is given them."""
    for f in (lambda x: (str(x.strides), x.sum(), x @ x.T)[1:], lambda x: x.sum(axis=0)):
        expected = [f(np.array(x, order="C")) for x in FROM[where](LIES[lies])]
        for way in WAYS.values():
            assert difference(tuple(way(FROM[where](LIES[lies]), f)), tuple(expected)) is None


def test_nor_on_who_calls_the_function():
    made = FROM["a source"](None).map(lambda x: (str(x.shape), np.asfortranarray(x))[1], 2)
    here, there = (list(made.map(lambda x: str(x.strides), 2, executor=way)) for way in ("thread", "process"))
    assert here == there == [b"(96, 8)"] * 12
