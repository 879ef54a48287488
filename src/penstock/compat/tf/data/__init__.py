"""`tf.data`: penstock's data sets under TensorFlow's names.

>>> ds = Dataset.range(5).shuffle(5).batch(2).prefetch(AUTOTUNE)
>>> len(ds)
3
"""

from __future__ import annotations

from typing import Any

import penstock as ps
from penstock.compat.dataset import Dataset, Iterator, adopted
from penstock.compat.op import _emptied
from penstock.compat.teaching import missing_in
from penstock.compat.tf.data import experimental

AUTOTUNE = ps.AUTOTUNE
INFINITE_CARDINALITY = ps.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY = ps.UNKNOWN_CARDINALITY
Options = ps.Options
ThreadingOptions = ps.ThreadingOptions


class _Files(Dataset):
    """A data set of files: `_made` is what makes it in penstock."""

    _made: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("name", None)
        given, named = _emptied(args, []), _emptied(kwargs, [])
        return adopted(cls._made(*given, **named))


class TFRecordDataset(_Files):
    """The records of TFRecord files, as byte strings."""

    _made = __penstock_opens__ = staticmethod(ps.TFRecordDataset)


class TextLineDataset(_Files):
    """The lines of text files, as byte strings."""

    _made = __penstock_opens__ = staticmethod(ps.TextLineDataset)


class FixedLengthRecordDataset(_Files):
    """Records of a fixed number of bytes."""

    _made = __penstock_opens__ = staticmethod(ps.FixedLengthRecordDataset)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """TensorFlow 1's name for `iter(dataset)`."""
    return Iterator(dataset)


def make_initializable_iterator(dataset: Dataset, shared_name: Any = None) -> Iterator:
    """TensorFlow 1's name for `iter(dataset)`."""
    return Iterator(dataset)


def get_output_types(dataset: Dataset) -> Any:
    """The dtypes of an element."""
    return dataset.output_types


def get_output_shapes(dataset: Dataset) -> Any:
    """The shapes of an element."""
    return dataset.output_shapes


__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]

__getattr__ = missing_in(
    "tf.data",
    globals(),
    {
        "DatasetSpec": "ds.element_spec describes the elements.",
        "IteratorSpec": "ds.element_spec describes the elements.",
        "NumpyIterator": "Write ds.as_numpy_iterator().",
    },
)
