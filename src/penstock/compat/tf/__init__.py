"""`tf`: the part of TensorFlow that input pipelines are written with, on numpy arrays."""

from __future__ import annotations

import builtins
import importlib
from importlib.util import find_spec
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.spec import SparseTensorSpec as _Sparse
from penstock.compat.composites import RaggedTensor, SparseTensor
from penstock.compat.dtypes import DTYPES, DType, as_dtype, plain
from penstock.compat.specs import TensorSpec
from penstock.compat.teaching import Namespace, unknown
from penstock.compat.tf.arrays import *  # noqa: F403
from penstock.compat.tf.arrays import bitcast, broadcast_to, cast, constant, convert_to_tensor
from penstock.compat.tf.gathering import *  # noqa: F403
from penstock.compat.tf.variable import Variable
from penstock.compat.values import Tensor, TensorShape

__version__ = "2.21.0"
version = Namespace("tf.version", VERSION=__version__)
__name__ = "penstock.compat.tf"

AUTOTUNE = ps.AUTOTUNE
_bool = builtins.bool  # `bool` is a dtype here


class _InstancesOf(type):
    kind: type  # the class of penstock whose objects are instances

    def __instancecheck__(cls, value: object) -> _bool:
        return isinstance(value, cls.kind)


class SparseTensorSpec(metaclass=_InstancesOf):
    """Shape and dtype of a sparse tensor."""

    kind = _Sparse

    def __new__(cls, shape: Any = None, dtype: Any = "float32") -> Any:
        return _Sparse(shape, plain(dtype))


class RaggedTensorSpec(metaclass=_InstancesOf):
    """Shape and dtype of a ragged tensor."""

    kind = ps.RaggedTensorSpec

    def __new__(
        cls, shape: Any = None, dtype: Any = "float32", ragged_rank: Any = None, row_splits_dtype: Any = "int64"
    ) -> Any:
        rank = len(shape) - 1 if ragged_rank is None and shape is not None else ragged_rank
        return ps.RaggedTensorSpec(shape, plain(dtype), as_dtype(row_splits_dtype).dtype, rank)


float16, float32, float64 = DTYPES["float16"], DTYPES["float32"], DTYPES["float64"]
int8, int16, int32, int64 = DTYPES["int8"], DTYPES["int16"], DTYPES["int32"], DTYPES["int64"]
uint8, uint16, uint32, uint64 = DTYPES["uint8"], DTYPES["uint16"], DTYPES["uint32"], DTYPES["uint64"]
complex64, complex128, string = DTYPES["complex64"], DTYPES["complex128"], DTYPES["string"]
bool = DTYPES["bool"]
half, double = float16, float64

# Names of `tf.math` and other modules that TensorFlow also has at its top level.
_FROM = {
    "calling": """case cond enable_eager_execution enable_v2_behavior executing_eagerly foldl function map_fn
        numpy_function py_func py_function scan switch_case vectorized_map while_loop""",
    "math": """abs acos add add_n argmax argmin asin atan atan2 ceil clip_by_norm clip_by_value cos cosh cumsum divide
        equal exp floor floordiv floormod greater greater_equal less less_equal log logical_and logical_not logical_or
        matmul maximum minimum mod multiply negative norm not_equal pow reduce_all reduce_any reduce_logsumexp
        reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance round rsqrt sigmoid sign sin
        sinh sqrt square squared_difference subtract tan tanh tensordot truediv softmax is_nan is_inf is_finite log1p
        count_nonzero in_top_k cumprod bincount reciprocal logical_xor einsum searchsorted clip_by_global_norm
        histogram_fixed_width realdiv truncatediv truncatemod real imag conj accumulate_n scalar_mul bitwise complex""",
    "io": """parse_example parse_single_example parse_single_sequence_example decode_raw decode_csv read_file write_file
        FixedLenFeature FixedLenSequenceFeature VarLenFeature matching_files decode_base64 encode_base64 parse_tensor
        serialize_tensor gfile""",
    "image": "random_crop",
    "random": "set_random_seed",
    "strings": "as_string regex_replace substr",
    "debugging": """Assert assert_equal assert_greater assert_greater_equal assert_less assert_less_equal
        assert_positive assert_non_negative assert_rank""",
    "scopes": "device name_scope control_dependencies group no_op",
}
_ALSO = {
    "TensorArray": ("tensor_array", "TensorArray"),
    "print": ("calling", "tf_print"),
    "random_uniform": ("random", "uniform"),
    "random_normal": ("random", "normal"),
    "random_shuffle": ("random", "shuffle"),
    "truncated_normal": ("random", "truncated_normal"),
    "string_split": ("strings", "split"),
    "string_to_number": ("strings", "to_number"),
    "string_join": ("strings", "join"),
    "reduce_join": ("strings", "reduce_join"),
    "sparse_tensor_to_dense": ("sparse", "to_dense"),
    **{name: (module, name) for module, names in _FROM.items() for name in names.split()},
}
_MODULES = [
    "audio", "autograph", "compat", "config", "data", "debugging", "distribute", "dtypes", "errors", "io", "image",
    "linalg", "lookup", "math", "nest", "nn", "profiler", "python", "ragged", "random", "raw_ops", "signal", "sparse",
    "strings", "train",
]  # fmt: skip

_MISSING = {
    "Session": "Leave it out: what is called gives its value.",
    "placeholder": "Give the value itself.",
    "global_variables_initializer": "Leave it out: variables have their values.",
    "get_default_graph": "There is no graph.",
    "Graph": "There is no graph: leave it out.",
    "GradientTape": "Training is the framework's: torch, JAX, or tf.keras.",
    "Module": "Write a class; models are tf.keras.Model.",
    **dict.fromkeys(("to_double", "to_float", "to_int32", "to_int64"), "Write tf.cast(x, dtype)."),
    "contrib": "Write tf.data.experimental, and ps.image.rotate for tf.contrib.image.",
    "python_io": "Write tf.io.TFRecordWriter and tf.data.TFRecordDataset.",
    "estimator": "Write model.fit of tf.keras.",
    "app": "Write absl.app, or if __name__ == '__main__'.",
    "flags": "Write argparse or absl.flags.",
    "logging": "Write import logging.",
    "test": "Write unittest or pytest; numpy.testing.assert_allclose compares arrays.",
    "set_shape": "It is a method: x.set_shape(shape).",
    "TypeSpec": "Write tf.TensorSpec or tf.RaggedTensorSpec; ds.element_spec describes the elements.",
    "summary": "Write torch.utils.tensorboard, or ps.profiler.Profiler for the pipeline.",
    "saved_model": "It belongs to a model: model.save of tf.keras.",
    "bfloat16": "Install ml_dtypes, and it is there; or cast the batch where it is trained.",
    **dict.fromkeys(
        ("layers", "losses", "metrics", "initializers", "optimizers"), "It belongs to a model: tf.keras has it."
    ),
    "experimental": "Write the function of tf itself, or numpy's.",
    "sets": "Write np.intersect1d, np.union1d or np.setdiff1d in a function.",
    "get_logger": "Write logging.getLogger('penstock').",
    "extract_image_patches": "Write tf.image.extract_patches.",
    "edit_distance": "Write a function of your own, with rapidfuzz or nltk, for tf.numpy_function.",
}


def __getattr__(name: str) -> Any:
    if name == "keras":
        from penstock.compat.tf.with_keras import keras

        found: Any = keras
    elif name == "bfloat16" and find_spec("ml_dtypes"):
        found = DTYPES[name]
    elif name in _MODULES:
        found = importlib.import_module(f"penstock.compat.tf.{name}")
    elif name in _ALSO:
        module, known = _ALSO[name]
        found = getattr(importlib.import_module(f"penstock.compat.tf.{module}"), known)
    else:
        raise unknown("tf", name, _MISSING, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({"keras", *(name for name in globals() if not name.startswith("_")), *_ALSO, *_MODULES})
