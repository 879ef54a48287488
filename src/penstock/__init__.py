"""penstock: input pipelines in plain Python. Names as in tf.data; numpy in, numpy out.

>>> import penstock as ps
>>> list(ps.Dataset.range(4).map(lambda x: x + 1).batch(2))
[array([1, 2]), array([3, 4])]
"""

from penstock import errors, image, io
from penstock.block.spec import TensorSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.dataset.dataset import Dataset
from penstock.dataset.tfrecord import TFRecordDataset
from penstock.options import Options
from penstock.plan.node import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from penstock.runtime.instrument import Recorder
from penstock.runtime.run import Iterator

__version__ = "0.1.0"

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "Iterator",
    "Options",
    "RaggedTensor",
    "Recorder",
    "SparseTensor",
    "TFRecordDataset",
    "TensorSpec",
    "errors",
    "image",
    "io",
]
