"""The tracer's rules for image functions, which return the spec of a result, and the natures of functions.

`None` is an unknown dimension. Invalid arguments make a function untraceable. A call with a real element then raises
the function's own error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.lift import BlockForm, Nature, Sample, byte_string, random_op, tensor, traceable

# With two cores these functions take 0.56 of the time of one. A function faster than the hand-over to a worker has no
# nature.
COSTLY = Nature("works on images")
DECODER = Nature("works on images", decodes=True)


def decoded(spec: LeafSpec, *, channels: int | None = 0, dtype: Any = np.uint8, **_: Any) -> TensorSpec:
    """Return the spec of `decode_jpeg` and `decode_png`. Height and width are in the data."""
    byte_string(spec)
    return TensorSpec((None, None, channels or None), dtype)


def decoded_frames(spec: LeafSpec, *, channels: int | None = 3) -> TensorSpec:
    """Return the spec of `decode_gif` and `decode_webp`. The number of frames and their size are in the data."""
    byte_string(spec)
    return TensorSpec((None, None, None, channels or None), np.uint8)


def decoded_any(spec: LeafSpec, *, channels: int | None, dtype: Any, expand_animations: bool) -> TensorSpec:
    """Return the spec of `decode_image` for images without animation, which only the data can tell."""
    return decoded(spec, channels=channels, dtype=dtype)


def encoded(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Return the spec of `encode_jpeg` and `encode_png`."""
    tensor(spec)
    return TensorSpec((), bytes)


def told(spec: LeafSpec) -> TensorSpec:
    """Return the spec of `is_jpeg`."""
    byte_string(spec)
    return TensorSpec((), np.bool_)


def same_shape(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Return the spec of the flips."""
    return tensor(spec)


def retyped(spec: LeafSpec, *, dtype: Any, **_: Any) -> TensorSpec:
    """Return the spec of `cast` and `convert_image_dtype`."""
    return TensorSpec(tensor(spec).shape, dtype)


def resized(resize_shape: Callable[..., tuple[int | None, ...]]) -> Callable[..., TensorSpec]:
    """Return the rule of `resize`, which computes its own shape."""

    def rule(spec: LeafSpec, *, size: Any, method: str, preserve_aspect_ratio: bool, antialias: bool) -> TensorSpec:
        known = tensor(spec)
        height, width = (int(extent) for extent in size)
        shape = resize_shape(known.shape, (height, width), preserve_aspect_ratio=preserve_aspect_ratio)
        return TensorSpec(shape, known.dtype if method == "nearest" else np.float32)

    return rule


def as_float32(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Return the spec of `per_image_standardization` and `normalize`."""
    return TensorSpec(tensor(spec).shape, np.float32)


def one_channel(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Return the spec of `rgb_to_grayscale`."""
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], 1), known.dtype)


def three_channels(spec: LeafSpec, **_: Any) -> TensorSpec:
    """Return the spec of `grayscale_to_rgb`."""
    known = tensor(spec)
    return TensorSpec((*known.shape[:-1], 3), known.dtype)


F = TypeVar("F", bound=Callable[..., Any])


def image_op(
    rule: Callable[..., TensorSpec] = same_shape, *, block: BlockForm | None = None, fresh: bool = False
) -> Callable[[F], F]:
    """Declare a function of one image, or of each image of a batch, as the primitive `image.NAME`. See `traceable`."""

    def decorate(function: F) -> F:
        name = f"image.{function.__name__}"
        return traceable(name, rule, batches=_is_image, block=block, fresh=fresh)(function)

    return decorate


def random_image_op(
    *,
    sample: Sample,
    becomes: Callable[..., Any],
    rule: Callable[..., TensorSpec] = same_shape,
    fresh: bool = False,
) -> Callable[[F], F]:
    """Declare a random function of images as `image_op` does the others. See `random_op`."""

    def decorate(function: F) -> F:
        name = f"image.{function.__name__}"
        return random_op(name, rule, sample=sample, becomes=becomes, batches=_is_image, fresh=fresh)(function)

    return decorate


def _is_image(rank: int) -> bool:
    return rank == 3
