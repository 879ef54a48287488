"""map_fn gives what tf.map_fn gives, by whatever way it runs, and says what is wrong with what it got."""

import sys

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.physical.vectorise import ELEMENTS

RAGGED = ps.RaggedTensor(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
SPARSE = ps.SparseTensor(np.array([[0, 0], [0, 2]]), np.array([1, 2]), np.array([2, 3]))


def as_written(fn):
    """The same function in a form that nothing is known about, so that it is called row by row."""
    calls = []

    def call(row):
        calls.append(1)
        return fn(row)

    return call


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


FUNCTIONS = {
    "number": (lambda x: x * 2 + 1, np.arange(5)),
    "rows": (lambda x: x / 2, np.arange(12, dtype=np.float32).reshape(4, 3)),
    "tuple": (lambda pair: pair[0] * pair[1], (np.arange(3), np.arange(3) + 4)),
    "tuple of tuples": (lambda nest: (nest[1][0], nest[0]), (np.arange(3), (np.ones((3, 2)), np.zeros(3)))),
    "dict": (lambda d: {"sum": d["a"] + d["b"], "one": 1}, {"a": np.arange(2), "b": np.arange(4).reshape(2, 2)}),
    "constant": (lambda x: b"same", np.arange(3)),
    "strings": (lambda x: x, np.array(["a", "bcd"])),
    "itself": (lambda x: x, np.arange(4).reshape(2, 2)),
    "image": (ps.image.flip_left_right, np.arange(36, dtype=np.uint8).reshape(2, 2, 3, 3)),
    "one row": (lambda x: x + x, np.float64([[0.1, 0.2]])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_by_block_is_row_by_row(name):
    fn, elems = FUNCTIONS[name]
    assert same(ps.map_fn(fn, elems), ps.map_fn(as_written(fn), elems))


def calls_of(function, run):
    """How often `function` is entered while `run()` runs, without the function's knowledge."""
    seen = []

    def profile(frame, event, argument):
        if event == "call" and frame.f_code is function.__code__:
            seen.append(1)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return len(seen)


def test_a_known_function_is_called_a_few_times_for_any_number_of_rows():
    """Once on a stand-in, and on a few rows to compare."""

    def double(x):
        return x * 2

    assert 3 <= calls_of(double, lambda: ps.map_fn(double, np.arange(1000))) <= 1 + ELEMENTS


def test_a_function_of_which_nothing_is_known_is_called_for_every_row_in_order():
    seen = []

    def noticed(x):
        seen.append(int(x))
        return x * 2

    assert ps.map_fn(noticed, np.arange(4)).tolist() == [0, 2, 4, 6]
    assert seen == [0, 1, 2, 3]


def test_branches_on_rows():
    assert ps.map_fn(lambda x: x if x > 1 else -x, np.array([0, 1, 2, 3])).tolist() == [0, -1, 2, 3]


@pytest.mark.parametrize("elems", [np.int32([1, 2, 3]), [1, 2, 3], (np.int32([1, 2, 3]),), np.array([[1], [2], [3]])])
def test_the_dtype_is_that_of_the_first_result(elems):
    found = ps.map_fn(lambda row: np.float16(len(elems)), elems)
    assert found.dtype == np.float16
    assert found.tolist() == [len(elems)] * 3


@pytest.mark.parametrize(
    ("result", "signature", "dtype"),
    [
        (1.5, np.float64, "float64"),
        (1, np.float32, "float32"),
        (True, np.int8, "int8"),
        (1, ps.TensorSpec((), np.uint16), "uint16"),
        ("a", bytes, "object"),
        (2j, np.complex128, "complex128"),
    ],
)
def test_python_values_take_the_dtype_wanted(result, signature, dtype):
    for fn in (lambda row: result, as_written(lambda row: result)):
        found = ps.map_fn(fn, np.arange(2), fn_output_signature=signature)
        assert (found.dtype, found.shape) == (dtype, (2,))


def test_dtype_is_the_signature_where_that_is_missing():
    assert ps.map_fn(lambda x: 1, np.arange(2), np.float64).dtype == np.float64
    assert ps.map_fn(lambda x: 1, np.arange(2), np.float64, fn_output_signature=np.int8).dtype == np.int8
    assert ps.map_fn(lambda x: (1, 2), np.arange(2), (np.int8, np.int16))[1].dtype == np.int16


# What TensorFlow 2.21 gives for the same calls.
def test_ragged_results():
    found = ps.map_fn(np.arange, np.array([3, 0, 2]), fn_output_signature=ps.RaggedTensorSpec((None,), np.int64))
    assert found.equals(ps.RaggedTensor(np.array([0, 1, 2, 0, 1]), np.array([0, 3, 3, 5])))
    spec = ps.RaggedTensorSpec((None,), np.int64, row_splits_dtype=np.int32)
    assert ps.map_fn(np.arange, np.array([3, 0, 2]), fn_output_signature=spec).row_splits.dtype == np.int32


def test_ragged_rows_of_more_dimensions():
    spec = ps.RaggedTensorSpec((None, 2), np.float32)
    found = ps.map_fn(lambda n: np.ones((n, 2), np.float32), np.array([2, 0, 1]), fn_output_signature=spec)
    assert found.to_list() == [[[1, 1], [1, 1]], [], [[1, 1]]]


def test_ragged_and_sparse_rows():
    assert ps.map_fn(lambda row: row.sum(), RAGGED).tolist() == [3, 0, 3]
    spec = ps.RaggedTensorSpec((None,), np.int64)
    assert ps.map_fn(lambda row: row * 2, RAGGED, fn_output_signature=spec).to_list() == [[2, 4], [], [6]]
    nested = ps.RaggedTensor(RAGGED, np.array([0, 2, 2, 3]))
    assert ps.map_fn(lambda row: row, nested).to_list() == [[[1, 2], []], [], [[3]]]
    assert ps.map_fn(lambda row: row.to_dense().sum(), SPARSE).tolist() == [3, 0]
    assert ps.map_fn(lambda row: row, SPARSE).to_list() == [[1, 0, 2], [0, 0, 0]]


@pytest.mark.parametrize(
    ("signature", "shape", "dtype"),
    [
        (None, (0, 3), "float32"),  # the function says it
        (np.float32, (0, 3), "float32"),
        (ps.TensorSpec((2, 5), np.int8), (0, 2, 5), "int8"),
        (ps.TensorSpec((), bytes), (0,), "object"),
    ],
)
def test_no_rows(signature, shape, dtype):
    found = ps.map_fn(lambda row: row + 1, np.zeros((0, 3), np.float32), fn_output_signature=signature)
    assert (found.shape, found.dtype) == (shape, dtype)


def test_no_ragged_rows():
    found = ps.map_fn(np.arange, np.zeros(0, int), fn_output_signature=ps.RaggedTensorSpec((None,), np.int64))
    assert found.equals(ps.RaggedTensor(np.zeros(0, np.int64), np.zeros(1, np.int64)))


@pytest.mark.parametrize("signature", [None, np.float32, ps.TensorSpec((None,), np.float32), (np.float32, np.int8)])
def test_no_rows_and_nothing_known(signature):
    with pytest.raises(InvalidArgumentError, match="got no rows, so it does not know") as caught:
        ps.map_fn(as_written(lambda row: row), np.zeros((0, 3), np.float32), fn_output_signature=signature)
    assert "TensorSpec" in caught.value.hint


def test_rows_cannot_be_written_to_and_results_can():
    def write(row):
        row[0] = 7
        return row

    batch = np.zeros((2, 2))
    with pytest.raises(ValueError, match="read-only") as caught:
        ps.map_fn(write, batch)
    assert "map_fn: row 0" in caught.value.__notes__
    result = ps.map_fn(lambda row: row, batch)
    result[0, 0] = 9
    assert batch.tolist() == [[0, 0], [0, 0]]


def test_an_array_filled_again_and_again():
    memory = np.zeros(2)

    def fill(row):
        memory[:] = row
        return memory

    assert ps.map_fn(fill, np.arange(3)).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_an_error_of_the_function_names_the_row():
    with pytest.raises(ZeroDivisionError) as caught:
        ps.map_fn(lambda x: 1 // int(x), np.array([2, 1, 0]))
    assert caught.value.__notes__ == ["map_fn: row 2"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ps.map_fn(3, np.arange(3)), InvalidTypeError, "takes a function and the elements for it, got int"),
        (lambda: ps.map_fn(abs, 3), InvalidTypeError, "elems is a scalar int"),
        (lambda: ps.map_fn(len, {"a": [1], "b": "x"}), InvalidTypeError, r"component \['b'\] of elems is a scalar str"),
        (lambda: ps.map_fn(abs, ()), InvalidArgumentError, "needs at least one array"),
        (lambda: ps.map_fn(abs, object()), InvalidTypeError, "type object cannot be part"),
        (
            lambda: ps.map_fn(lambda t: t[0], (np.arange(3), np.arange(2))),
            InvalidArgumentError,
            r"same number of rows: \[0\] has 3, \[1\] has 2",
        ),
        (lambda: ps.map_fn(lambda x: None, np.arange(2)), InvalidTypeError, "map_fn, row 0: None is no value"),
        (
            lambda: ps.map_fn(lambda x: (x, x) if x else x, np.arange(2)),
            InvalidTypeError,
            "map_fn, row 1: A value of type tuple",
        ),
        (
            lambda: ps.map_fn(lambda x: x if x else 1.5, np.arange(2)),
            InvalidTypeError,
            "row 1 is not: the first has float32 of rank 0, this one int64",
        ),
        (
            lambda: ps.map_fn(np.arange, np.array([1, 2])),
            InvalidArgumentError,
            r"row 0 is \(1,\), that of row 1 \(2,\)",
        ),
        (
            lambda: ps.map_fn(
                lambda n: np.ones((n, n)), np.arange(3), fn_output_signature=ps.RaggedTensorSpec((None, None), float)
            ),
            InvalidArgumentError,
            r"row 0 is \(0, 0\), that of row 1 \(1, 1\)",
        ),
        (lambda: ps.map_fn(lambda x: 1.5, np.arange(2), np.int32), InvalidTypeError, "1.5, not int32"),
        (lambda: ps.map_fn(lambda x: 300, np.arange(2), np.uint8), InvalidArgumentError, "300, beyond uint8"),
        (lambda: ps.map_fn(lambda x: x, np.arange(2), np.float32), InvalidTypeError, "signature says float32"),
        (
            lambda: ps.map_fn(lambda x: [x, x], np.arange(2), ps.TensorSpec((3,), np.int64)),
            InvalidTypeError,
            r"TensorSpec\(shape=\(2,\), dtype=int64\), fn_output_signature says TensorSpec\(shape=\(3,\)",
        ),
        (lambda: ps.map_fn(lambda x: x, np.arange(2), {"a": np.int64}), InvalidTypeError, "structure of the element"),
        (lambda: ps.map_fn(lambda x: x, np.arange(2), [np.int64]), InvalidTypeError, "a nest of tuples and dicts"),
        (lambda: ps.map_fn(lambda x: x, np.arange(2), "flot"), InvalidTypeError, "dtype must be a numpy dtype"),
        (lambda: ps.RaggedTensorSpec((None,), np.int64, np.int8), InvalidTypeError, "int32 or int64, got int8"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_inside_a_map_it_runs_with_the_block():
    ds = ps.Dataset.range(10).batch(4).map(lambda batch: ps.map_fn(lambda x: x * 2 + 1, batch))
    assert [batch.tolist() for batch in ds] == [[1, 3, 5, 7], [9, 11, 13, 15], [17, 19]]
    assert "runs by Block: map_fn" in str(ds.explain())


def test_inside_a_map_with_nests_and_pictures():
    pictures = np.random.default_rng(0).integers(0, 256, (7, 5, 4, 3), np.uint8)
    labels = np.arange(7)

    def row(pair):
        return {"picture": ps.image.flip_left_right(pair[0]), "label": pair[1] * 10, "one": 1.0}

    ds = ps.Dataset.from_tensor_slices((pictures, labels)).batch(3)
    found = list(ds.map(lambda p, n: ps.map_fn(row, (p, n))))
    assert [len(batch["label"]) for batch in found] == [3, 3, 1]
    assert np.array_equal(np.concatenate([batch["picture"] for batch in found]), pictures[:, :, ::-1])
    assert np.concatenate([batch["label"] for batch in found]).tolist() == list(range(0, 70, 10))
    assert {batch["one"].dtype.name for batch in found} == {"float32"}


def test_inside_a_map_a_function_that_must_be_called_is_called():
    seen = []
    ds = ps.Dataset.range(4).batch(2).map(lambda batch: ps.map_fn(lambda x: seen.append(int(x)) or x, batch))
    assert [batch.tolist() for batch in ds] == [[0, 1], [2, 3]]
    assert seen == [0, 1, 2, 3]


def test_inside_a_map_batches_that_differ_in_size():
    sizes = [2, 2, 3, 0, 1]
    ds = ps.Dataset.from_generator(
        lambda: (np.arange(n) for n in sizes), output_signature=ps.TensorSpec((None,), np.int64)
    )
    signature = ps.TensorSpec((), np.int64)
    found = ds.map(lambda batch: ps.map_fn(lambda x: x + 1, batch, fn_output_signature=signature))
    assert [batch.tolist() for batch in found] == [[1, 2], [1, 2], [1, 2, 3], [], [1]]


def test_inside_a_map_random_rows_follow_from_the_element():
    def jitter(x):
        return x * 0 + np.random.default_rng(ps.element_key()).integers(1000)

    ds = ps.Dataset.range(12).batch(4).map(lambda batch: ps.map_fn(jitter, batch))
    first, again = ([batch.tolist() for batch in ds.iterator(epoch=0)] for _ in range(2))
    assert first == again
    assert len({value for batch in first for value in batch}) > 9


def test_the_element_spec_is_known():
    ds = ps.Dataset.range(8).batch(4, drop_remainder=True).map(lambda batch: ps.map_fn(lambda x: x * 0.5, batch))
    assert ds.element_spec == ps.TensorSpec((4,), np.float64)


RANDOM = {
    "brightness": lambda x: ps.image.random_brightness(x, 0.1),
    "two, one of them by seed": lambda x: ps.image.random_flip_up_down(ps.image.random_hue(x, 0.1, seed=4)),
    "cutout": lambda x: ps.image.random_cutout(x, 4),
    "erasing": lambda x: ps.image.random_erasing(x, value="random"),
    "crop": lambda x: ps.image.random_crop(x, (4, 5, 3)),
    "chain": lambda x: ps.image.resize(ps.image.random_contrast(ps.image.random_flip_left_right(x), 0.5, 1.5), (4, 4)),
    "rows of rows": lambda x: ps.map_fn(lambda row: ps.image.random_flip_left_right(row[None])[0], x),
    "a result for each": lambda x: {"a": ps.image.random_hue(x, 0.2), "b": (ps.image.random_hue(x, 0.2), x)},
}


@pytest.mark.parametrize("name", RANDOM)
def test_rows_of_all_batches_draw_what_row_by_row_calls_draw(name):
    """Also in a batch that is shorter, and what is drawn before and behind them."""
    fn = RANDOM[name]
    pictures = np.random.default_rng(0).integers(0, 256, (14, 6, 7, 3), np.uint8)

    def of_batch(batch):
        batch = ps.image.random_brightness(batch, 0.2)
        return ps.map_fn(fn, batch), ps.image.random_flip_left_right(batch), ps.map_fn(fn, batch[:2])

    def elements(by_block):
        options = ps.Options(seed=3)
        options.experimental_optimization.map_vectorization.enabled = by_block
        ds = ps.Dataset.from_tensor_slices(pictures).batch(4).map(of_batch).with_options(options)
        return ds, [element for epoch in (0, 1) for element in ds.iterator(epoch=epoch)]

    (ds, fast), (_, plain) = elements(by_block=True), elements(by_block=False)
    assert "by Block" in str(ds.explain())
    assert all(same(a, b) for a, b in zip(fast, plain, strict=True))
    assert not same(fast[0], fast[4])


@pytest.mark.parametrize("name", [name for name in RANDOM if name != "rows of rows"])
@pytest.mark.parametrize("frames", [5, None])
def test_the_frames_of_a_clip_share_random_numbers(name, frames):
    """Each clip has its own, by Block and row by row; calls after it do not repeat them."""
    fn = RANDOM[name]
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)
    clips = [np.stack([image] * (frames or n)) for n in (5, 5, 5, 3)]

    def alone(clip):
        return ps.map_fn(fn, clip, same_random_numbers=True)

    def of_clip(clip):
        return alone(clip), ps.image.random_brightness(image, 0.2)

    def elements(function, *, by_block):
        options = ps.Options(seed=3)
        options.experimental_optimization.map_vectorization.enabled = by_block
        ds = ps.Dataset.from_generator(lambda: clips, output_signature=ps.TensorSpec((frames, 6, 7, 3), np.uint8))
        ds = ds.map(function).with_options(options)
        return ds, list(ds)

    for function in (alone, of_clip):
        (ds, fast), (_, plain) = elements(function, by_block=True), elements(function, by_block=False)
        assert function is of_clip or "map(alone) runs by Block" in ds.explain()
        assert all(same(a, b) for a, b in zip(fast, plain, strict=True))
    results = [leaf for clip, _ in fast for leaf in ps.block.structure.flatten(clip)[0]]
    assert all(np.array_equal(frame, result[0]) for result in results for frame in result)
    assert not same(fast[0], fast[1])


def test_frames_share_random_numbers_outside_of_a_data_set():
    clip = np.stack([np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)] * 4)

    def shift(frame):
        keys = np.uint64(ps.element_key()), np.uint64(ps.element_key(seed=2))
        return ps.image.random_brightness(ps.image.random_hue(frame, 0.5), 0.5), *keys

    (first, keys, seeded), (second, *_) = (ps.map_fn(shift, clip, same_random_numbers=True) for _ in range(2))
    assert all(np.array_equal(frame, first[0]) for frame in first)
    assert len(set(keys.tolist())) == 1
    assert set(seeded.tolist()) == {ps.element_key(seed=2)}
    assert not np.array_equal(first, second)
