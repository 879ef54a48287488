"""The reference of each resizing kernel, in plain numpy. Every faster version must match it bit for bit.

Taps define the source positions of each output pixel. They follow from tf.image's half-pixel centres.

All arithmetic is float32 in the order written here, which is TensorFlow's on a CPU: first along a row, then between the
two rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

A = TypeVar("A", bound=np.ndarray)


def resize_bilinear(images: npt.NDArray[Any], y: Taps, x: Taps) -> npt.NDArray[np.float32]:
    """Resize `images` (N, H, W, C) to float32 (N, len(y.low), len(x.low), C).

    >>> from penstock.image.resizing.reference import bilinear_taps
    >>> pixels = np.array([0, 100], np.uint8).reshape(1, 1, 2, 1)
    >>> resize_bilinear(pixels, bilinear_taps(1, 1), bilinear_taps(2, 4)).ravel().tolist()
    [0.0, 25.0, 75.0, 100.0]
    """
    n, _, width, channels = images.shape
    used, places = np.unique((y.low, y.high), return_inverse=True)
    lower, upper = places.reshape(2, -1)
    rows = images if len(used) == images.shape[1] else images.take(used, axis=1)
    rows = rows.reshape(n, len(used), width * channels)
    left, right = ((at[:, None] * channels + np.arange(channels)).ravel() for at in (x.low, x.high))
    along = _between(
        rows.take(left, axis=2).astype(np.float32),
        rows.take(right, axis=2).astype(np.float32),
        np.repeat(x.weight, channels),
    )
    result = _between(along.take(lower, axis=1), along.take(upper, axis=1), y.weight[:, None])
    return result.reshape(n, len(y.low), len(x.low), channels)


def _between(low: npt.NDArray[Any], high: npt.NDArray[Any], weight: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Return `low + (high - low) * weight`, computed in the memory of `high`."""
    high -= low
    high *= weight
    high += low
    return high


def resize_nearest(images: npt.NDArray[Any], y: npt.NDArray[np.int64], x: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Copy the pixel at (y[i], x[j]) of each image (N, H, W, C). The dtype stays.

    >>> resize_nearest(np.arange(4).reshape(1, 2, 2, 1), np.array([1]), np.array([0, 1])).ravel().tolist()
    [2, 3]
    """
    return images.take(y, axis=1).take(x, axis=2)


class Spans(NamedTuple):
    """For one axis: output i is the sum over k of `weights[i, k] * input[starts[i] + k]`, in this order; read-only."""

    starts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def resize_spans(images: npt.NDArray[Any], y: Spans, x: Spans) -> npt.NDArray[np.float32]:
    """Return weighted sums over rows, then over columns, of `images` (N, H, W, C), in order of position.

    >>> from penstock.image.resizing.spans import filter_spans
    >>> pixels = np.array([7, 7, 7, 0, 0, 0], np.uint8).reshape(1, 1, 6, 1)
    >>> y, x = (filter_spans(*sizes, "triangle", True) for sizes in ((1, 1), (6, 2)))
    >>> resize_spans(pixels, y, x).ravel().round(3).tolist()
    [6.125, 0.875]
    """
    return _along(_along(images, y, 1), x, 2)


def _along(images: npt.NDArray[Any], spans: Spans, axis: int) -> npt.NDArray[np.float32]:
    shape = list(images.shape)
    shape[axis] = len(spans.starts)
    total = np.zeros(shape, np.float32)
    for k in range(spans.weights.shape[1]):
        weight = np.expand_dims(spans.weights[:, k], tuple(range(1, images.ndim - axis)))
        total += weight * images.take(spans.starts + k, axis=axis).astype(np.float32)
    return total


# Pixel i of n covers [i, i + 1), with its centre at i + 0.5. An output centre, scaled by in / out, is between two input
# centres. `low` and `high` are their indices (limited to the edge), and `weight` is the share of `high`. All of it is
# float32, as in TensorFlow. A float64 weight would differ in the last bit.


class Taps(NamedTuple):
    """For one axis: two input indices and the weight of the second, each of length `n_out`; read-only."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float32]


def frozen(array: A) -> A:
    """Return the array, made read-only, because the cache returns it to all callers."""
    array.flags.writeable = False
    return array


def _scale(n_in: int, n_out: int) -> np.float32:
    return np.float32(n_in) / np.float32(n_out)


@lru_cache(maxsize=4096)  # photographs come in many sizes; one entry is about 5 kB
def bilinear_taps(n_in: int, n_out: int) -> Taps:
    """Taps of a bilinear resize from `n_in` to `n_out` pixels.

    >>> taps = bilinear_taps(4, 2)
    >>> taps.low.tolist(), taps.high.tolist(), taps.weight.tolist()
    ([0, 2], [1, 3], [0.5, 0.5])
    >>> bilinear_taps(2, 4).weight.tolist()  # the outer centres lie beyond the input's: both taps are the edge
    [0.75, 0.25, 0.75, 0.25]
    """
    half = np.float32(0.5)
    at = (np.arange(n_out, dtype=np.float32) + half) * _scale(n_in, n_out) - half
    floor = np.floor(at)
    low = np.clip(floor.astype(np.int64), 0, n_in - 1)
    high = np.clip(floor.astype(np.int64) + 1, 0, n_in - 1)
    return Taps(frozen(low), frozen(high), frozen(at - floor))


@lru_cache(maxsize=4096)
def nearest_taps(n_in: int, n_out: int) -> npt.NDArray[np.int64]:
    """Return the input index of each output pixel of a nearest-neighbour resize.

    >>> nearest_taps(5, 2).tolist()
    [1, 3]
    """
    at = np.floor((np.arange(n_out, dtype=np.float32) + np.float32(0.5)) * _scale(n_in, n_out))
    return frozen(np.clip(at.astype(np.int64), 0, n_in - 1))
