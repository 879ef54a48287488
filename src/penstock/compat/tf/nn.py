"""`tf.nn`: what input pipelines use of it. Layers and losses are `tf.keras`'s."""

from __future__ import annotations

from penstock.compat.op import op
from penstock.compat.teaching import missing_in
from penstock.compat.tf.math import (
    in_top_k,
    l2_normalize,
    log_softmax,
    moments,
    sigmoid,
    softmax,
    softplus,
    tanh,
    top_k,
)

__all__ = [
    "in_top_k", "l2_normalize", "log_softmax", "moments", "relu", "sigmoid", "softmax", "softplus", "tanh", "top_k",
]  # fmt: skip


@op("nn.relu")
def relu(features: object) -> object:
    import numpy as np

    from penstock.compat.values import array_of

    array = array_of(features)
    return np.maximum(array, np.zeros((), np.asarray(array).dtype))


__getattr__ = missing_in(
    "tf.nn", globals(), dict.fromkeys(("conv2d", "max_pool", "dropout"), "Use tf.keras.layers, or tf.keras.ops.")
)
