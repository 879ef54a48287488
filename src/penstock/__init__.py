"""penstock: input pipelines in plain Python. Names as in tf.data; numpy in, numpy out.

>>> import penstock as ps
>>> list(ps.Dataset.range(4).map(lambda x: x + 1).batch(2))
[array([1, 2]), array([3, 4])]
"""

import importlib
from typing import TYPE_CHECKING, Any

from penstock import errors, experimental, image, io
from penstock.block.provenance import Provenance
from penstock.block.ragged_spec import RaggedTensorSpec
from penstock.block.spec import TensorSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.dataset import schedule as mixing
from penstock.dataset.array_record import ArrayRecordDataset
from penstock.dataset.arrow import ArrowDataset
from penstock.dataset.dataset import Dataset
from penstock.dataset.fixed_length import FixedLengthRecordDataset
from penstock.dataset.image_folder import ImageFolderDataset
from penstock.dataset.indexed_tfrecord import IndexedTFRecordDataset
from penstock.dataset.json_lines import JsonLinesDataset
from penstock.dataset.lmdb import LmdbDataset
from penstock.dataset.map_fn import map_fn
from penstock.dataset.numpy_files import NumpyDataset
from penstock.dataset.parquet import ParquetDataset
from penstock.dataset.text_line import TextLineDataset
from penstock.dataset.tfrecord import TFRecordDataset
from penstock.dataset.webdataset import WebDataset
from penstock.habits.tables import NAMES
from penstock.habits.teach import unknown_in
from penstock.options import Options, ThreadingOptions
from penstock.plan.indexing import ALL
from penstock.plan.mix_weights import MixWeights
from penstock.plan.node import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from penstock.runtime.instrument import Recorder
from penstock.runtime.run import Iterator
from penstock.trace.drawing import element_key

__version__ = "0.1.0"

__all__ = [
    "ALL",
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "ArrayRecordDataset",
    "ArrowDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "ImageFolderDataset",
    "IndexedTFRecordDataset",
    "Iterator",
    "JsonLinesDataset",
    "LmdbDataset",
    "MixWeights",
    "NumpyDataset",
    "Options",
    "ParquetDataset",
    "Provenance",
    "RaggedTensor",
    "RaggedTensorSpec",
    "Recorder",
    "SparseTensor",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "WebDataset",
    "element_key",
    "errors",
    "experimental",
    "image",
    "io",
    "map_fn",
    "mixing",
]

_LATER = ("catalog", "formats", "profiler", "service", "viz")  # packages that are imported when they are asked for
_FROM = {"monitor": "penstock.profiler.live.monitor"}  # functions, in the same way


def __dir__() -> list[str]:
    return sorted([*__all__, *_LATER, *_FROM, "__version__"])


if TYPE_CHECKING:
    from penstock import catalog as catalog
    from penstock import formats as formats
    from penstock import profiler as profiler
    from penstock import service as service
    from penstock import viz as viz
    from penstock.profiler.live.monitor import monitor as monitor
else:
    _unknown = unknown_in("penstock", NAMES, __dir__())

    def __getattr__(name: str) -> Any:
        if name in _FROM:
            return getattr(importlib.import_module(_FROM[name]), name)
        return importlib.import_module(f"penstock.{name}") if name in _LATER else _unknown(name)
