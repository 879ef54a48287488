"""Values at the edges, as TensorFlow 2.21 gives them: no values, infinite ones, the least integer, signs and widths."""

import numpy as np
import pytest

from penstock.compat import tf
from penstock.errors import InvalidArgumentError

INF = float("inf")
EDGES = {
    "the mean of bytes does not overflow": (lambda: tf.reduce_mean(tf.constant([200, 200], tf.uint8)), np.uint8(200)),
    "the greatest of none": (lambda: tf.reduce_max(tf.zeros([0])), np.float32(-INF)),
    "the least of none": (lambda: tf.reduce_min(tf.zeros([0], tf.int32)), np.int32(2147483647)),
    "all minus infinity": (lambda: tf.reduce_logsumexp(tf.constant([-INF, -INF])), np.float32(-INF)),
    "one infinite": (lambda: tf.reduce_logsumexp(tf.constant([INF, 0.0])), np.float32(INF)),
    "weights are summed": (
        lambda: tf.math.bincount(tf.constant([1, 1, 3]), weights=tf.constant([0.5, 0.5, 1.0])),
        np.array([0, 1, 0, 1], np.float32),
    ),
    "the least integer is last": (
        lambda: tf.math.top_k(tf.constant([-128, 5, 127], tf.int8), 2)[1],
        np.array([2, 1], np.int32),
    ),
    "a norm over all axes": (lambda: tf.norm(tf.constant([[3.0, 4.0], [6.0, 8.0]]), ord=1), np.float32(21)),
    "integers by zero": (
        lambda: tf.math.divide_no_nan(tf.constant([1, 2]), tf.constant([0, 2])),
        np.array([0.0, 1.0]),
    ),
    "a negative length is all the rest": (lambda: tf.strings.substr("hello", 1, -2), b"ello"),
    "zeros stand behind the sign": (
        lambda: tf.strings.as_string(tf.constant([12, -3]), width=5, fill="0"),
        [b"00012", b"-0003"],
    ),
    "blanks on the right": (lambda: tf.strings.as_string(tf.constant([12]), width=5, fill="-"), [b"12   "]),
    "a variable on the right": (lambda: 2.0 ** tf.Variable([1.0, 2.0]), np.array([2, 4], np.float32)),
    "what is left of a variable": (lambda: 7 % tf.Variable([2, 3]), np.array([1, 1], np.int32)),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_tensorflows(name):
    call, wanted = EDGES[name]
    found = call()
    found = found.numpy() if hasattr(found, "numpy") else found
    if isinstance(wanted, (list, bytes)):
        assert np.asarray(found).tolist() == wanted
    else:
        np.testing.assert_array_equal(found, wanted)
        assert np.asarray(found).dtype == wanted.dtype


REFUSED = {
    "more than there are": lambda: tf.math.top_k(tf.constant([1.0, 2.0]), 3),
    "numbers as Python writes them": lambda: tf.strings.to_number(["1_000"]),
    "another shape": lambda: tf.Variable([1.0, 2.0]).assign([[1.0, 2.0]]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_tensorflow_refuses(name):
    with pytest.raises(InvalidArgumentError):
        REFUSED[name]()
