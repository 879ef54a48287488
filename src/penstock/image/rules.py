"""What shape and dtype each image function gives for what it is given: the tracer's rules; and natures of functions.

`None` is a dimension not known yet. Arguments that are wrong make a function untraceable: called with a real element,
it says itself what is wrong with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.lift import Nature, byte_string, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

# For these two cores need 0.56 of the time of one. What is done faster than it is handed to a worker declares nothing.
COSTLY = Nature("works on pictures")
DECODER = Nature("works on pictures", decodes=True)


def decoded(spec: LeafSpec, *, channels: int | None = 0, dtype: Any = np.uint8, **_: Any) -> TensorSpec:
    """The rule of `decode_jpeg` and `decode_png`: height and width are in the data."""
    byte_string(spec)
    return TensorSpec((None, None, channels or None), dtype)


def decoded_frames(spec: LeafSpec, *, channels: int | None = 3) -> TensorSpec:
    """The rule of `decode_gif` and `decode_webp`: how many frames and of what size is in the data."""
    byte_string(spec)
    return TensorSpec((None, None, None, channels or None), np.uint8)


def decoded_any(spec: LeafSpec, *, channels: int | None, dtype: Any, expand_animations: bool) -> TensorSpec:
    """The rule of `decode_image`: what is not animated, which only the data tells."""
    return decoded(spec, channels=channels, dtype=dtype)


def encoded(spec: LeafSpec, **_: Any) -> TensorSpec:
    """The rule of `encode_jpeg` and `encode_png`."""
    tensor(spec)
    return TensorSpec((), bytes)


def told(spec: LeafSpec) -> TensorSpec:
    """The rule of `is_jpeg`."""
    byte_string(spec)
    return TensorSpec((), np.bool_)


def same_shape(spec: LeafSpec, **_: Any) -> TensorSpec:
    """The rule of the flips."""
    return tensor(spec)


def retyped(spec: LeafSpec, *, dtype: Any, **_: Any) -> TensorSpec:
    """The rule of `cast` and `convert_image_dtype`."""
    return TensorSpec(tensor(spec).shape, dtype)


def resized(
    resize_shape: Callable[..., tuple[int | None, ...]],
) -> Callable[..., TensorSpec]:
    """The rule of `resize`, which knows its own shape rule."""

    def rule(spec: LeafSpec, *, size: Any, method: str, preserve_aspect_ratio: bool, antialias: bool) -> TensorSpec:
        known = tensor(spec)
        height, width = (int(extent) for extent in size)
        shape = resize_shape(known.shape, (height, width), preserve_aspect_ratio=preserve_aspect_ratio)
        return TensorSpec(shape, known.dtype if method == "nearest" else np.float32)

    return rule


def as_float32(spec: LeafSpec, **_: Any) -> TensorSpec:
    """The rule of `per_image_standardization` and `normalize`."""
    return TensorSpec(tensor(spec).shape, np.float32)


def one_channel(spec: LeafSpec, **_: Any) -> TensorSpec:
    """The rule of `rgb_to_grayscale`."""
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], 1), known.dtype)


def three_channels(spec: LeafSpec, **_: Any) -> TensorSpec:
    """The rule of `grayscale_to_rgb`."""
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], 3), known.dtype)
