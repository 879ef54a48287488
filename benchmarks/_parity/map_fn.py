"""map_fn: the same function, elements and signature in both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps
from _parity.check import Check, Comparer

FLOATS = np.float32([[1, 2, 3], [0.1, -0.2, 0.3]])
OURS = ps.RaggedTensor(np.int32([1, 2, 3]), np.array([0, 2, 2, 3]))
THEIRS = tf.RaggedTensor.from_row_splits(np.int32([1, 2, 3]), np.array([0, 2, 2, 3]))


def _tensors(elems: Any) -> Any:
    return tf.nest.map_structure(lambda x: THEIRS if x is OURS else tf.constant(x), elems)


def _specs(signature: Any) -> Any:
    """Convert the signature to TensorFlow's classes."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, ps.RaggedTensorSpec):
            return tf.RaggedTensorSpec(leaf.shape, leaf.dtype, row_splits_dtype=leaf.row_splits_dtype)
        return tf.TensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, ps.TensorSpec) else tf.as_dtype(leaf)

    return None if signature is None else tf.nest.map_structure(one, signature)


def _reversed_words(word: Any) -> Any:
    return tf.strings.reduce_join(tf.strings.bytes_split(word)[::-1]) if isinstance(word, tf.Tensor) else word[::-1]


CASES: tuple[tuple[str, Callable[[Any], Any], Any, Any], ...] = (
    ("arithmetic", lambda x: x * 2 + 1, FLOATS, None),
    ("itself", lambda x: x, np.arange(5), None),
    ("a tuple", lambda pair: pair[0] * pair[1], (FLOATS, FLOATS[:, :1]), np.float32),
    (
        "nests",
        lambda d: (d["a"], {"b": d["b"][0] + 1}),
        {"a": FLOATS, "b": (np.arange(2),)},
        (np.float32, {"b": "int64"}),
    ),
    ("a number", lambda x: 1, np.arange(3), np.float64),
    ("a flag", lambda x: True, np.arange(3), np.bool_),
    ("no int", lambda x: 1.5, np.arange(3), np.int32),
    ("words", _reversed_words, np.array([b"ab", b"", b"xyz"], object), "string"),
    ("another dtype than said", lambda x: x, FLOATS, np.float64),
    ("another nest than said", lambda x: (x, x), FLOATS, np.float32),
    ("another shape than said", lambda x: x, FLOATS, ps.TensorSpec((2,), np.float32)),
    ("a scalar", lambda x: x, np.float32(1), None),
    ("no two sizes", lambda pair: pair[0], (np.arange(3), np.arange(2)), np.int64),
    ("no rows, a spec", lambda x: x[:2], FLOATS[:0], ps.TensorSpec((2,), np.float32)),
    ("no rows, a ragged spec", lambda x: x[:2], FLOATS[:0], ps.RaggedTensorSpec((None,), np.float32)),
    (
        "ragged results",
        lambda x: x[x[0] :],
        np.int64([[1, 5, 6], [3, 7, 8], [0, 9, 9]]),
        ps.RaggedTensorSpec((None,), "int64"),
    ),
    (
        "ragged results, int32",
        lambda x: x[x[0] :],
        np.int64([[1, 5], [2, 7]]),
        ps.RaggedTensorSpec((None,), "int64", "int32"),
    ),
    ("results of differing length", lambda x: x[x[0] :], np.int64([[1, 5], [0, 7]]), None),
    ("ragged rows", lambda row: row * 2, OURS, ps.RaggedTensorSpec((None,), np.int32)),
    ("ragged rows to numbers", lambda row: 7, OURS, np.int32),
)


def mapped(compare: Comparer) -> None:
    for name, fn, elems, signature in CASES:
        compare.same_or_both_refuse(
            name,
            lambda: ps.map_fn(fn, elems, fn_output_signature=signature),  # noqa: B023
            lambda: tf.map_fn(fn, _tensors(elems), fn_output_signature=_specs(signature)),  # noqa: B023
        )


CHECKS = (Check("map_fn", mapped),)
