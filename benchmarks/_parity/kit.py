"""The names for writing a pipeline once and running it in either library.

A pipeline is a text, such as `K.Dataset.range(5).map(lambda x: K.full(3, x))`. It is evaluated twice: K is penstock's
kit and then TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps


@dataclass(frozen=True)
class Kit:
    """The classes of one library, and operations on its values."""

    name: str
    data: Any  # the module with Dataset, Options, the readers and experimental
    spec: Callable[[Any, Any], Any]  # arguments: a shape, and a numpy dtype or bytes
    dtype: Callable[[Any], Any]  # argument: a numpy dtype, or bytes
    value: Callable[[Any], Any]  # wraps a numpy value, which tf.data may take for the number of a dtype
    arange: Callable[[Any], Any]  # the int64s below x
    full: Callable[[int, Any], Any]
    cast: Callable[[Any, str], Any]
    text: Callable[[Any], Any]  # the decimal digits of an integer
    size: Callable[[Any], Any]
    total: Callable[[Any], Any]
    length: Callable[[Any], Any]  # argument: a byte string
    fail_if: Callable[[Any, Any], Any]  # x, or an error

    @property
    def Dataset(self) -> Any:  # the library's own name
        return self.data.Dataset

    @property
    def experimental(self) -> Any:
        return self.data.experimental

    def options(self, **settings: Any) -> Any:
        """Return options with these settings. Two underscores in a name stand for a dot."""
        options = self.data.Options()
        for name, value in settings.items():
            *groups, last = name.split("__")
            group = options
            for part in groups:
                group = getattr(group, part)
            setattr(group, last, value)
        return options

    def build(self, text: str, **known: Any) -> Any:
        """Evaluate the text of a pipeline."""
        return eval(text, {"K": self, "np": np, **known})


def _fail_if(x: Any, bad: Any) -> Any:
    if bad:
        message = "refused by the function"
        raise ValueError(message)
    return x


def _their_fail_if(x: Any, bad: Any) -> Any:
    with tf.control_dependencies([tf.debugging.Assert(tf.logical_not(bad), ["refused by the function"])]):
        return tf.nest.map_structure(tf.identity, x)


def _their_spec(shape: Any, dtype: Any) -> Any:
    return tf.TensorSpec(shape, _their_dtype(dtype))


def _their_dtype(dtype: Any) -> Any:
    return tf.string if dtype is bytes else tf.as_dtype(dtype)


OURS = Kit(
    "penstock",
    ps,
    ps.TensorSpec,
    dtype=lambda dtype: dtype,
    value=lambda value: value,
    arange=lambda x: np.arange(x, dtype=np.int64),
    full=np.full,
    cast=lambda x, dtype: np.asarray(x).astype(dtype)[()],
    text=lambda x: str(int(x)),
    size=lambda x: np.int64(np.size(x)),
    total=lambda x: np.asarray(x).sum(dtype=np.asarray(x).dtype),
    length=len,
    fail_if=_fail_if,
)

THEIRS = Kit(
    "tensorflow",
    tf.data,
    _their_spec,
    dtype=_their_dtype,
    value=tf.constant,
    arange=lambda x: tf.range(x, dtype=tf.int64),
    full=lambda n, x: tf.fill([n], x),
    cast=lambda x, dtype: tf.cast(x, dtype),
    text=tf.strings.as_string,
    size=lambda x: tf.size(x, out_type=tf.int64),
    total=tf.reduce_sum,
    length=lambda x: tf.cast(tf.strings.length(x), tf.int64),
    fail_if=_their_fail_if,
)
