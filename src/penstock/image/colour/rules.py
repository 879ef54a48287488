"""What shape and dtype each colour function gives: the tracer's rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.lift import tensor


def as_float32(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Of `per_image_standardization` and `normalize`."""
    return TensorSpec(tensor(spec).shape, np.float32)


def one_channel(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Of `rgb_to_grayscale`."""
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], 1), known.dtype)


def three_channels(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Of `grayscale_to_rgb`."""
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], 3), known.dtype)
