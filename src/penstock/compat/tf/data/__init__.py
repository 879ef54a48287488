"""`tf.data`: penstock's data sets under TensorFlow's names.

>>> ds = Dataset.range(5).shuffle(5).batch(2).prefetch(AUTOTUNE)
>>> len(ds)
3
"""

from __future__ import annotations

import logging
from typing import Any

import penstock as ps
from penstock.compat.dataset import Dataset, adopted
from penstock.compat.dataset import TensorIterator as Iterator
from penstock.compat.op import _emptied
from penstock.compat.teaching import missing_in
from penstock.compat.tf.data import experimental
from penstock.settings import WITHOUT_EFFECT

AUTOTUNE = ps.AUTOTUNE
INFINITE_CARDINALITY = ps.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY = ps.UNKNOWN_CARDINALITY
ThreadingOptions = ps.ThreadingOptions


class Options(ps.Options):
    """penstock's options. Further options of TensorFlow are accepted and have no effect.

    These options belong to TensorFlow's graph or strategies: `experimental_distribute`, `experimental_slack`,
    `threading.max_intra_op_parallelism`, `autotune.autotune_algorithm` and others. A log line reports each once.

    >>> options = Options()
    >>> options.experimental_distribute.auto_shard_policy = experimental.AutoShardPolicy.OFF
    >>> options.deterministic = False
    """

    def __init__(self, **settings: Any) -> None:
        vars(self)["experimental_distribute"] = experimental.DistributeOptions()
        super().__init__(**settings)

    def _passes_over(self, spelled: str) -> bool:
        reason = WITHOUT_EFFECT.get(spelled)
        if reason is not None and spelled not in _told:
            _told.add(spelled)
            _log.info("tf.data.Options.%s changes nothing: %s.", spelled, reason)
        return reason is not None


_told: set[str] = set()
_log = logging.getLogger("penstock.compat")


class _Files(Dataset):
    """A data set of files. `_made` is penstock's constructor."""

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


def make_initializable_iterator(dataset: Dataset, shared_name: Any = None) -> Iterator:
    """Return `iter(dataset)`, under TensorFlow 1's name."""
    return Iterator(dataset)


make_one_shot_iterator = make_initializable_iterator


def get_output_types(dataset: Dataset) -> Any:
    """Return the dtypes of an element."""
    return dataset.output_types


def get_output_shapes(dataset: Dataset) -> Any:
    """Return the shapes of an element."""
    return dataset.output_shapes


__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "FixedLengthRecordDataset", "Iterator",
    "Options", "TFRecordDataset", "TextLineDataset", "ThreadingOptions", "experimental", "get_output_shapes",
    "get_output_types", "make_initializable_iterator", "make_one_shot_iterator",
]  # fmt: skip

__getattr__ = missing_in(
    "tf.data",
    globals(),
    {
        "DatasetSpec": "ds.element_spec describes the elements.",
        "IteratorSpec": "ds.element_spec describes the elements.",
        "NumpyIterator": "Write ds.as_numpy_iterator().",
    },
)
