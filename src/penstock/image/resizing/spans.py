"""Resizing by weighted sums: the input pixels and weights of each output pixel, and the sums.

Weights are computed once per pair of sizes, in float32 and in the order of TensorFlow's ScaleAndTranslate, with equal
bits. Only a sine and an exponential are computed in float64 and rounded. The float32 sine of TensorFlow's C library
differs in some last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.resizing import reference
from penstock.image.resizing.reference import Spans
from penstock.native.library import Kernels

Floats = npt.NDArray[np.float32]


_F = np.float32


class ResizeFilter(NamedTuple):
    """A filter. `weigh` takes distances of at least 0. Beyond `radius` all weights are 0."""

    radius: np.float32
    weigh: Callable[[Floats], Floats]


def _triangle(x: Floats) -> Floats:
    return np.where(x < _F(1), _F(1) - x, _F(0))


def _keys_cubic(x: Floats) -> Floats:
    """R. G. Keys, Cubic convolution interpolation for digital image processing, 1981."""
    near = ((_F(1.5) * x - _F(2.5)) * x) * x + _F(1)
    far = ((_F(-0.5) * x + _F(2.5)) * x - _F(4)) * x + _F(2)
    return np.where(x >= _F(2), _F(0), np.where(x >= _F(1), far, near))


def _mitchell_cubic(x: Floats) -> Floats:
    """D. P. Mitchell and A. N. Netravali, Reconstruction filters in computer graphics, 1988."""
    near = ((_F(7) / _F(6) * x - _F(2)) * x) * x + _F(8) / _F(9)
    far = ((_F(-7) / _F(18) * x + _F(2)) * x - _F(10) / _F(3)) * x + _F(16) / _F(9)
    return np.where(x >= _F(2), _F(0), np.where(x >= _F(1), far, near))


def _gaussian(x: Floats) -> Floats:
    """Return Gaussian weights with a standard deviation of half a pixel, cut off at 1.5 pixels."""
    return np.where(x >= _F(1.5), _F(0), np.exp((-x * x).astype(np.float64) / 0.5).astype(np.float32))


def _lanczos(radius: int) -> Callable[[Floats], Floats]:
    pi, square = _F(np.pi), _F(np.pi) * _F(np.pi)

    def weigh(x: Floats) -> Floats:
        far = np.maximum(x, _F(1e-3))  # closer to 0 the formula loses precision
        wave = _F(radius) * _sine(pi * far) * _sine(pi * far / _F(radius)) / (square * far * far)
        return np.where(x > _F(radius), _F(0), np.where(x <= _F(1e-3), _F(1), wave))

    return weigh


def _sine(x: Floats) -> Floats:
    return np.sin(x.astype(np.float64)).astype(np.float32)


FILTERS = {
    "triangle": ResizeFilter(_F(1), _triangle),
    "keyscubic": ResizeFilter(_F(2), _keys_cubic),
    "mitchellcubic": ResizeFilter(_F(2), _mitchell_cubic),
    "gaussian": ResizeFilter(_F(1.5), _gaussian),
    "lanczos3": ResizeFilter(_F(3), _lanczos(3)),
    "lanczos5": ResizeFilter(_F(5), _lanczos(5)),
}


_TABLE = 1024  # fractions of a pixel to which ResizeBicubic rounds positions
_TINY = _F(1000) * np.finfo(np.float32).tiny  # weights with a smaller sum count as 0


@lru_cache(maxsize=1024)
def filter_spans(n_in: int, n_out: int, name: str, antialias: bool) -> Spans:
    """Return the spans of a resize with one of `FILTERS`, as in TensorFlow's ScaleAndTranslate.

    With `antialias` and fewer outputs than inputs, the filter is widened by their ratio.

    >>> spans = filter_spans(4, 2, "triangle", True)  # (3, 3, 1) / 7 and (1, 3, 3) / 7
    >>> spans.starts.tolist(), [[round(float(7 * w)) for w in row] for row in spans.weights]
    ([0, 1], [[3, 3, 1], [1, 3, 3]])
    >>> filter_spans(4, 2, "triangle", False).weights.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    radius, weigh = FILTERS[name]
    half = _F(0.5)
    step = _F(1) / (_F(n_out) / _F(n_in))  # TensorFlow inverts the scale, which rounds twice
    widening = max(step, _F(1)) if antialias else _F(1)
    reach = radius * widening
    centre = (np.arange(n_out, dtype=np.float32) + half) * step
    starts = np.clip(np.ceil(centre - reach - half).astype(np.int64), 0, n_in - 1)
    stops = np.clip(np.floor(centre + reach - half).astype(np.int64), 0, n_in - 1) + 1
    at = starts[:, None] + np.arange((stops - starts).max())
    distance = np.abs((at.astype(np.float32) + half - centre[:, None]) * (_F(1) / widening))
    weights = np.where(at < stops[:, None], weigh(distance), _F(0))
    _normalise(weights)
    weights[centre > _F(n_in)] = 0  # a centre that rounding moved off the input has no weights
    return _tight(starts, weights, n_in)


@lru_cache(maxsize=1024)
def cubic_spans(n_in: int, n_out: int) -> Spans:
    """Return the spans of a bicubic resize, as in TensorFlow's ResizeBicubic with half-pixel centres.

    Its weights come from a table, with positions rounded to 1/1024 of a pixel.

    >>> [[round(float(16 * w)) for w in row] for row in cubic_spans(8, 4).weights[1:3]]
    [[-1, 9, 9, -1], [-1, 9, 9, -1]]
    """
    half = _F(0.5)
    centre = (np.arange(n_out, dtype=np.float32) + half) * (_F(n_in) / _F(n_out)) - half
    floor = np.floor(centre)
    offset = np.rint((centre - floor) * _F(_TABLE)).astype(np.int64)
    near, far = _cubic_table()
    weights = np.stack([far[offset], near[offset], near[_TABLE - offset], far[_TABLE - offset]], axis=1)
    starts = floor.astype(np.int64) - 1
    at = starts[:, None] + np.arange(4)
    weights[(at < 0) | (at >= n_in)] = 0
    _normalise(weights)
    return _tight(starts, weights, n_in)


@lru_cache(maxsize=1)
def _cubic_table() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return Keys' cubic at the distances i / 1024, and one pixel further, computed in float64 as in TensorFlow."""
    x = np.arange(_TABLE + 1) / _TABLE
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    y = x + 1
    far = ((a * y - 5 * a) * y + 8 * a) * y - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


@lru_cache(maxsize=1024)
def area_spans(n_in: int, n_out: int) -> Spans:
    """Return the share of each input pixel that an output pixel covers, as in TensorFlow's ResizeArea.

    >>> spans = area_spans(3, 2)
    >>> spans.starts.tolist(), spans.weights.tolist()
    ([0, 1], [[1.0, 0.5], [0.5, 1.0]])
    """
    step = _F(n_in) / _F(n_out)
    begin = np.arange(n_out).astype(np.float32) * step
    end = np.arange(1, n_out + 1).astype(np.float32) * step
    starts = np.floor(begin).astype(np.int64)
    stops = np.ceil(end).astype(np.int64)
    at = starts[:, None] + np.arange((stops - starts).max())
    low, high = at.astype(np.float32), (at + 1).astype(np.float32)
    begin, end = begin[:, None], end[:, None]
    inner = np.where(high > end, end - low, _F(1))
    first = np.where(high > end, step, high - begin)
    weights = np.where(at < stops[:, None], np.where(low < begin, first, inner), _F(0))
    return _tight(starts, weights, max(n_in, int(stops.max())))


def _normalise(weights: npt.NDArray[np.float32]) -> None:
    """Normalise each row to sum 1, added in order of position. Rows with too small sums become 0."""
    total = np.zeros(len(weights), np.float32)
    for k in range(weights.shape[1]):
        total += weights[:, k]
    enough = np.abs(total) >= _TINY
    weights *= np.where(enough, _F(1) / np.where(enough, total, _F(1)), _F(0))[:, None]


def _tight(starts: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], n_in: int) -> Spans:
    """Return equal sums with as few weights as the longest span needs, none of them beyond the input."""
    counts = weights != 0
    first = counts.argmax(axis=1)
    last = np.maximum(weights.shape[1] - 1 - counts[:, ::-1].argmax(axis=1), first)
    last[~counts.any(axis=1)] = 0
    length = int((last - first).max()) + 1
    tight = np.clip(starts + first, 0, n_in - length)
    source = (tight - starts)[:, None] + np.arange(length)
    inside = (source >= 0) & (source < weights.shape[1])
    moved = np.take_along_axis(weights, np.clip(source, 0, weights.shape[1] - 1), axis=1)
    return Spans(reference.frozen(tight), reference.frozen(np.where(inside, moved, _F(0))))


_NATIVE = Kernels("penstock.image.resizing.spans_native")

# The filter of each method. Bilinear and bicubic without antialias do not use it.
_FILTER_OF = {
    "bilinear": "triangle",
    "bicubic": "keyscubic",
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
    "gaussian": "gaussian",
    "mitchellcubic": "mitchellcubic",
}


def resize_spans(
    images: npt.NDArray[Any], height: int, width: int, method: str, *, antialias: bool = False
) -> npt.NDArray[np.float32]:
    """Return the resize of `images` (N, H, W, C), uint8 or float32, for every method but nearest and plain bilinear.

    Rows are summed up before columns, for "area" after them, as TensorFlow does it. Runs without the GIL, for all
    images of a batch in one go.

    >>> resize_spans(np.array([4, 8, 0, 2], np.uint8).reshape(1, 1, 4, 1), 1, 2, "area").ravel().tolist()
    [6.0, 1.0]
    """
    sizes = (images.shape[1], height), (images.shape[2], width)
    if method == "area":
        return _area(images, *sizes)
    if method == "bicubic" and not antialias:
        y, x = (cubic_spans(*pair) for pair in sizes)
    else:
        y, x = (filter_spans(*pair, _FILTER_OF[method], antialias) for pair in sizes)
    return _summed(images, y, x)


def _area(images: npt.NDArray[Any], of_y: tuple[int, int], of_x: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Sum columns, then rows.

    Rounding may let the last span reach one pixel beyond the input. That pixel equals the last one.
    """
    y, x = area_spans(*of_y), area_spans(*of_x)
    below, right = (max(int(one.starts[-1]) + one.weights.shape[1] - n, 0) for one, (n, _) in ((y, of_y), (x, of_x)))
    if below or right:
        images = np.pad(images, ((0, 0), (0, below), (0, right), (0, 0)), "edge")
    along = _summed(images, _each_pixel(images.shape[1]), x)
    result = _summed(along, y, _each_pixel(along.shape[2]))
    height, width = (np.float32(n_in) / np.float32(n_out) for n_in, n_out in (of_y, of_x))
    result *= np.float32(1.0 / float(height * width))  # one over the area of an output pixel, rounded as in TensorFlow
    return result


def _each_pixel(count: int) -> Spans:
    return Spans(np.arange(count), np.ones((count, 1), np.float32))


def _summed(images: npt.NDArray[Any], y: Spans, x: Spans) -> npt.NDArray[np.float32]:
    """Return weighted sums over rows, then over columns."""
    native = _NATIVE.loaded()
    if native is None or not len(images):
        return reference.resize_spans(images, y, x)
    result = np.empty((len(images), len(y.starts), len(x.starts), images.shape[3]), np.float32)
    pixels = np.require(images, requirements=["C", "A"]).reshape(-1)
    if native.resize_spans(pixels, *images.shape[1:], *y, *x, result.reshape(-1)) != 0:
        message = f"resize: the kernel refused images of shape {images.shape} for a result of shape {result.shape}."
        raise InvalidArgumentError(message)
    return result
