"""A tensor is immutable, and shows what TensorFlow's shows."""

import copy
import pickle
import sys

import numpy as np
import pytest

from penstock.compat import tf


def test_operators_in_place_make_a_new_tensor():
    bias = tf.constant([1.0, 2.0])
    kept = bias
    bias += 1
    bias *= [2.0, 2.0]
    bias -= 1
    bias /= 2
    assert (kept.numpy().tolist(), bias.numpy().tolist()) == ([1.0, 2.0], [1.5, 2.5])


def test_a_captured_tensor_does_not_grow_with_the_elements():
    start = tf.zeros([2])

    def add(x):
        total = start
        total += x
        return total

    ds = tf.data.Dataset.from_tensor_slices([1.0, 1.0, 1.0]).map(add)
    assert [x.numpy().tolist() for x in ds] == [[1.0, 1.0]] * 3
    assert "per element" not in str(ds.explain())


def test_elements_can_be_changed_in_place_by_name():
    def normalise(x):
        x /= 255.0
        x -= [0.5, 0.5]
        return x

    ds = tf.data.Dataset.from_tensor_slices(np.full((3, 2), 255, np.float32)).map(normalise)
    assert [x.numpy().tolist() for x in ds] == [[0.5, 0.5]] * 3
    assert "per element" not in str(ds.explain())


@pytest.mark.parametrize(
    "make", [tf.convert_to_tensor, tf.constant, tf.identity, lambda a: tf.reshape(a, [-1]), tf.squeeze]
)
def test_arrays_of_the_user_are_not_shared(make):
    array = np.arange(4.0)
    x = make(array)
    array[0] = 9.0
    assert x.numpy().tolist() == [0.0, 1.0, 2.0, 3.0]
    x.numpy()[1] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[2] = 9.0
    assert x.numpy().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_item_assignment_names_the_function_that_stands_for_it():
    x = tf.zeros([2])
    with pytest.raises(TypeError, match=r"does not support item assignment(.|\n)*tf\.tensor_scatter_nd_update"):
        x[0] = 1.0

    def write(x):
        x[0] = 1.0
        return x

    with pytest.raises(TypeError, match="item assignment"):
        list(tf.data.Dataset.from_tensors([1.0]).map(write))


@pytest.mark.parametrize(
    ("name", "function"),
    {
        "astype": "tf.cast",
        "mean": "tf.reduce_mean",
        "sum": "tf.reduce_sum",
        "reshape": "tf.reshape",
        "T": "tf.transpose",
    }.items(),
)
def test_what_only_arrays_have_names_the_function_of_tf(name, function):
    with pytest.raises(AttributeError, match=function):
        getattr(tf.constant([1.0]), name)
    with pytest.raises(AttributeError, match=function):
        list(tf.data.Dataset.from_tensors([1.0]).map(lambda x: getattr(x, name)))


def test_functions_of_numpy_give_arrays():
    x = tf.constant([[1.0, 2.0]])
    assert not isinstance(x, np.ndarray)
    for found in (np.sqrt(x), np.add(x, 1), np.stack([x, x]), np.reshape(x, -1), np.asarray(x), np.array(x)):
        assert type(found) is np.ndarray
    assert (np.mean(x), np.shape(x), np.size(x), np.ndim(x)) == (1.5, (1, 2), 2, 2)
    assert np.array([1.0, 1.0]) + x is not None
    assert tf.is_tensor(np.array([1.0, 1.0]) + x)
    assert tf.is_tensor(np.float64(2) * x)


def test_text_is_a_tensor():
    text = tf.constant("ab")
    assert (text.numpy(), text.dtype == tf.string, text.shape.rank) == (b"ab", True, 0)
    assert text[tf.newaxis].numpy().tolist() == [b"ab"]
    assert (bool(text == "ab"), bool(text != b"ab"), (text + "c").numpy()) == (True, False, b"abc")
    assert tf.constant(b"a\0").numpy() == (tf.constant("a") + b"\0").numpy() == b"a\0"
    with pytest.raises(AttributeError, match=r"x.numpy\(\).decode\(\)"):
        text.decode()


def test_equality_is_by_element():
    x = tf.constant([1, 2])
    assert (x == [1, 3]).numpy().tolist() == (x == (1, 3)).numpy().tolist() == [True, False]
    assert (bool(x == [1, 2, 3]), bool(x != [1, 2, 3]), x == None, x != None) == (False, True, False, True)  # noqa: E711
    assert 2 in x


def test_python_asks_a_tensor():
    x = tf.constant([1, 2])
    assert (len(x), [int(item) for item in x], float(x[0]), [5, 6, 7][x[1]], list(range(x[1]))) == (
        2,
        [1, 2],
        1.0,
        7,
        [0, 1],
    )
    assert (f"{x}", f"{tf.constant(1.5):.2f}", str(x)) == ("[1 2]", "1.50", "tf.Tensor([1 2], shape=(2,), dtype=int32)")
    assert repr(tf.constant(1.5)) == "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>"
    for wrong in (
        lambda: len(x[0]),
        lambda: iter(x[0]),
        lambda: hash(x),
        lambda: x[0.5],
        lambda: x[[0, 1]],
        lambda: +x,
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        x[5]
    assert ({x.ref(): 1}[x.ref()], x.ref().deref() is x) == (1, True)


def test_a_tensor_can_be_sent_and_copied():
    for x in (tf.constant([1, 2]), tf.constant(2.5), tf.constant("ab")):
        for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert (type(other), other.dtype, other.shape) == (type(x), x.dtype, x.shape)
            assert np.all(other == x)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have buffers from Python 3.12 on")
def test_a_tensor_is_a_buffer_for_reading():
    assert memoryview(tf.constant([1, 2])).tolist() == [1, 2]
    assert memoryview(tf.constant([1, 2])).readonly


def test_dtypes_and_shapes_of_tensors_and_specs():
    ds = tf.data.Dataset.from_tensor_slices((np.zeros((4, 3), np.float32), ["a"] * 4)).batch(2)
    numbers, text = ds.element_spec
    assert (numbers.dtype.is_floating, numbers.dtype.as_numpy_dtype, text.dtype) == (True, np.float32, tf.string)
    assert (numbers.shape.as_list(), numbers.shape.rank, numbers.shape.is_compatible_with([2, 3])) == (
        [None, 3],
        2,
        True,
    )
    assert numbers == tf.TensorSpec([None, 3], tf.float32)
    assert numbers.is_compatible_with(next(iter(ds))[0])
    assert not text.is_compatible_with(next(iter(ds))[0])
    assert pickle.loads(pickle.dumps(numbers)) == numbers
    assert (ds.cardinality().numpy(), (ds.cardinality() == 2)) == (2, True)
    assert tf.math.top_k([1, 3, 2], 2).indices.numpy().tolist() == [1, 2]


def test_maximum_of_a_number_of_numpys_depends_on_the_place():
    x = tf.constant([0.5, 2.0])
    assert tf.maximum(np.float64(1), x).dtype == tf.float32
    with pytest.raises(TypeError):
        list(tf.data.Dataset.from_tensors(x).map(lambda x: tf.maximum(np.float64(1), x)))
    ds = tf.data.Dataset.from_tensors(x).map(
        lambda x: tf.py_function(lambda y: tf.maximum(np.float64(1), y), [x], tf.float32)
    )
    assert next(iter(ds)).numpy().tolist() == [1.0, 2.0]


def test_functions_of_python_get_memory_of_their_own():
    def write(array):
        array[0] = 9
        return array

    ds = tf.data.Dataset.from_tensors([1, 2]).map(lambda x: (tf.numpy_function(write, [x], tf.int32), x))
    assert [part.numpy().tolist() for part in next(iter(ds))] == [[9, 2], [1, 2]]


@pytest.mark.parametrize("function", [
    lambda: tf.bitwise.bitwise_and(True, False),
    lambda: tf.bitwise.bitwise_or(tf.constant([True]), [False]),
    lambda: tf.bitwise.bitwise_xor(tf.constant(True), tf.constant(False)),
    lambda: tf.bitwise.invert(tf.constant(True)),
])  # fmt: skip
def test_bitwise_functions_refuse_truth_values(function):
    with pytest.raises(TypeError, match="no tensor of bool"):
        function()


def test_set_shape_tells_the_spec_and_checks_each_element():
    def split(features):
        inputs = features[:, :5]
        inputs.set_shape([None, 5, None])
        return inputs

    ds = tf.data.Dataset.from_tensor_slices(np.zeros((12, 4), np.float32)).window(6).flat_map(lambda w: w.batch(6))
    assert ds.batch(2).map(split).element_spec.shape == (None, 5, 4)
    assert [x.shape.as_list() for x in ds.batch(2).map(split)] == [[2, 5, 4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(2, 3, 4\)(.|\n)*tf.reshape"):
        list(ds.map(lambda x: x[:3]).batch(2).map(split))


def test_decoders_read_the_formats_of_the_others():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    png, jpeg = tf.io.encode_png(image), tf.io.encode_jpeg(image)
    still = b"GIF89a" + bytes(4) + b"\x80\0\0" + b"\1\2\3\4\5\6" + b",\0\0\0\0\1\0\1\0\0\2\2\x4c\1\0;"
    for decode in (tf.io.decode_jpeg, tf.image.decode_png):
        for contents in (png, jpeg, still):
            wanted = tf.io.decode_image(contents, expand_animations=False).numpy()
            np.testing.assert_array_equal(decode(contents).numpy(), wanted)
    assert tf.io.decode_gif(png).shape == (1, 4, 5, 3)
    assert tf.io.decode_png(jpeg, 1, tf.uint16).dtype == tf.uint16
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a JPEG but BMP"):
        tf.io.decode_jpeg(b"BM" + bytes(60))


def test_a_png_among_jpegs_is_decoded_in_a_map():
    def prepare(contents):
        return tf.image.resize(tf.io.decode_jpeg(contents, channels=3), (7, 5)) / 255.0

    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    files = (
        [tf.io.encode_jpeg(image).numpy()] * 5 + [tf.io.encode_png(image).numpy()] + [tf.io.encode_jpeg(image).numpy()]
    )
    ds = tf.data.Dataset.from_tensor_slices(files).map(prepare)
    assert "image.decode_resize" in str(ds.explain())
    for found, contents in zip(ds, files, strict=True):
        np.testing.assert_array_equal(found.numpy(), prepare(contents).numpy())


@pytest.mark.parametrize(("function", "casts"), [
    (lambda x: x * np.float64(0.5), ["numbers of float64 to int64"]),
    (lambda x: x * np.array([1.5, 2.0]) + np.float32(0.25), [f"numbers of float{n} to int64" for n in (64, 32)]),
    (lambda x: x * np.float64(2.0) + np.array([300], np.int32), []),
    (lambda x: tf.cast(x, tf.float32) * np.float64(0.5), []),
])  # fmt: skip
def test_lint_names_numpy_operands_whose_values_a_cast_changes(function, casts):
    report = tf.data.Dataset.range(3).map(function).lint()
    found = [advice.message for advice in report if advice.code == "lossy-operands"]
    assert [message.partition(" casts ")[2] for message in found] == [f"{cast}, which changes them." for cast in casts]
