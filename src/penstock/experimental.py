"""`tf.data.experimental`: what of it is not found as a method of `Dataset`.

>>> import penstock as ps
>>> ps.experimental.__name__
'penstock.experimental'
"""

from penstock.dataset.apply_functions import (
    Counter,
    RandomDataset,
    assert_cardinality,
    at,
    dense_to_ragged_batch,
    dense_to_sparse_batch,
    group_by_reducer,
    ignore_errors,
    index_shuffle,
    pad_to_cardinality,
)
from penstock.dataset.create import from_list
from penstock.dataset.make_datasets import make_batched_features_dataset, make_csv_dataset, parse_example_dataset
from penstock.dataset.table_files import CsvDataset, SqlDataset
from penstock.options import AutotuneOptions
from penstock.plan.grouping import Reducer
from penstock.rewrite.phases import OptimizationOptions

__all__ = [
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "OptimizationOptions",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "assert_cardinality",
    "at",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "from_list",
    "group_by_reducer",
    "ignore_errors",
    "index_shuffle",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "pad_to_cardinality",
    "parse_example_dataset",
]


def __dir__() -> list[str]:
    return sorted(__all__)
