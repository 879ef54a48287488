"""`tf.nn`: the functions that input pipelines use. Layers and losses are in `tf.keras`."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.op import named, op
from penstock.compat.teaching import missing_in
from penstock.compat.tf import math as _math
from penstock.compat.tf.image import _spread
from penstock.compat.values import array_of, whole
from penstock.errors import InvalidArgumentError

for _name in ["in_top_k", "l2_normalize", "log_softmax", "moments", "sigmoid", "softmax", "softplus", "tanh", "top_k"]:
    globals()[_name] = getattr(_math, _name)


@op("nn.relu", exact=True, ragged=True)
def relu(features: Any) -> Any:
    array = array_of(features)
    return np.maximum(array, np.zeros((), np.asarray(array).dtype))


def _pooled(name: str, over: str) -> Any:
    """Return a pooling function for images (batch, height, width, channels)."""

    @op(f"nn.{name}")
    def call(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC") -> Any:
        if data_format != "NHWC":
            message = f"{name} takes images as NHWC, got data_format={data_format!r}."
            raise InvalidArgumentError(message, hint="tf.transpose(images, [0, 2, 3, 1]) has the channels last.")
        array = whole(input)
        (height, width), (down, right) = _pair(ksize), _pair(strides)
        rows, above, below = _spread(array.shape[1], height, down, 1, padding.upper())
        columns, left, beside = _spread(array.shape[2], width, right, 1, padding.upper())
        widths = [(0, 0), (above, below), (left, beside), (0, 0)]
        least = -np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).min
        padded = np.pad(array, widths, constant_values=least if over == "max" else 0)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (1, 2))
        windows = windows[:, ::down, ::right][:, :rows, :columns]
        if over == "max":
            return windows.max((-2, -1))
        there = np.lib.stride_tricks.sliding_window_view(
            np.pad(np.ones(array.shape[1:3], array.dtype), widths[1:3]), (height, width)
        )[::down, ::right][:rows, :columns].sum((-2, -1))
        return windows.sum((-2, -1), dtype=array.dtype) / there[None, :, :, None]

    return named(call, name, f"The {'greatest' if over == 'max' else 'mean'} value of each window of images.")


def _pair(value: Any) -> tuple[int, int]:
    parts = [int(part) for part in np.asarray(value).reshape(-1).tolist()]
    parts = parts * 2 if len(parts) == 1 else parts[1:3] if len(parts) == 4 else parts
    return parts[0], parts[1]


max_pool2d, avg_pool2d = _pooled("max_pool2d", "max"), _pooled("avg_pool2d", "mean")


__getattr__ = missing_in(
    "tf.nn", globals(), dict.fromkeys(("conv2d", "max_pool", "dropout"), "Use tf.keras.layers, or tf.keras.ops.")
)
