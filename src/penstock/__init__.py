"""penstock: input pipelines in plain Python. Names as in tf.data; numpy in, numpy out.

>>> import penstock as ps
>>> list(ps.Dataset.range(4).map(lambda x: x + 1).batch(2))
[array([1, 2]), array([3, 4])]
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock import errors
from penstock.block.spec import RaggedTensorSpec, SparseTensorSpec, TensorSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import TFRecordDataset
from penstock.habits.tables import NAMES
from penstock.habits.teach import unknown_in
from penstock.options import Options, ThreadingOptions
from penstock.plan.indexing import ALL, Provenance
from penstock.plan.mix_weights import MixWeights
from penstock.plan.node import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY

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
    "LitDataset",
    "LmdbDataset",
    "MDSDataset",
    "MixWeights",
    "NumpyDataset",
    "Options",
    "ParquetDataset",
    "Provenance",
    "RaggedTensor",
    "RaggedTensorSpec",
    "Recorder",
    "SparseTensor",
    "SparseTensorSpec",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "TokenDataset",
    "WebDataset",
    "audio",
    "audio_dataset_from_directory",
    "catalog",
    "compat",
    "element_key",
    "errors",
    "experimental",
    "formats",
    "image",
    "image_dataset_from_directory",
    "io",
    "jax",
    "map_fn",
    "mixing",
    "monitor",
    "profiler",
    "progress",
    "service",
    "split_dataset",
    "testing",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
    "torch",
    "video",
    "viz",
]

# Packages and names that are imported at the first use; names with the modules that define them.
_PACKAGES = (
    *("audio", "catalog", "compat", "experimental", "formats", "image", "io", "jax", "profiler", "service"),
    *("testing", "torch", "video", "viz"),
)
_NAMES = {
    "ArrayRecordDataset": "penstock.dataset.record_files",
    "ArrowDataset": "penstock.dataset.table_files",
    "FixedLengthRecordDataset": "penstock.dataset.record_files",
    "ImageFolderDataset": "penstock.dataset.sample_files",
    "IndexedTFRecordDataset": "penstock.dataset.record_files",
    "Iterator": "penstock.runtime.run",
    "JsonLinesDataset": "penstock.dataset.table_files",
    "LmdbDataset": "penstock.dataset.record_files",
    "NumpyDataset": "penstock.dataset.table_files",
    "ParquetDataset": "penstock.dataset.table_files",
    "Recorder": "penstock.runtime.observers",
    "TextLineDataset": "penstock.dataset.record_files",
    "TokenDataset": "penstock.dataset.record_files",
    "WebDataset": "penstock.dataset.sample_files",
    "element_key": "penstock.trace.drawing",
    "map_fn": "penstock.dataset.map_fn",
    "monitor": "penstock.profiler.live.monitor",
    "progress": "penstock.profiler.live.progress",
    **dict.fromkeys(("LitDataset", "MDSDataset"), "penstock.dataset.sample_files"),
    **{f"{kind}_dataset_from_directory": "penstock.formats.keras_utils" for kind in ("audio", "image", "text")},
    **dict.fromkeys(("split_dataset", "timeseries_dataset_from_array"), "penstock.formats.keras_utils"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from penstock import audio, catalog, experimental, formats, image, io, profiler, service, video, viz
    from penstock.dataset import schedule as mixing
    from penstock.dataset.map_fn import map_fn as map_fn
    from penstock.dataset.record_files import ArrayRecordDataset as ArrayRecordDataset
    from penstock.dataset.record_files import FixedLengthRecordDataset as FixedLengthRecordDataset
    from penstock.dataset.record_files import IndexedTFRecordDataset as IndexedTFRecordDataset
    from penstock.dataset.record_files import LmdbDataset as LmdbDataset
    from penstock.dataset.record_files import TextLineDataset as TextLineDataset
    from penstock.dataset.record_files import TokenDataset as TokenDataset
    from penstock.dataset.sample_files import ImageFolderDataset, LitDataset, MDSDataset, WebDataset
    from penstock.dataset.table_files import ArrowDataset, JsonLinesDataset, NumpyDataset, ParquetDataset
    from penstock.formats.keras_utils import audio_dataset_from_directory as audio_dataset_from_directory
    from penstock.formats.keras_utils import image_dataset_from_directory as image_dataset_from_directory
    from penstock.formats.keras_utils import split_dataset as split_dataset
    from penstock.formats.keras_utils import text_dataset_from_directory as text_dataset_from_directory
    from penstock.formats.keras_utils import timeseries_dataset_from_array as timeseries_dataset_from_array
    from penstock.profiler.live.monitor import monitor as monitor
    from penstock.profiler.live.progress import progress as progress
    from penstock.runtime.observers import Recorder as Recorder
    from penstock.runtime.run import Iterator as Iterator
    from penstock.trace.drawing import element_key as element_key

    compat: ModuleType  # these import penstock
    jax: ModuleType
    testing: ModuleType
    torch: ModuleType
else:
    _unknown = unknown_in("penstock", NAMES, __dir__())

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return importlib.import_module(f"penstock.{name}")
        if name == "mixing":
            found = importlib.import_module("penstock.dataset.schedule")
        elif name in _NAMES:
            found = getattr(importlib.import_module(_NAMES[name]), name)
        else:
            return _unknown(name)
        globals()[name] = found
        return found
