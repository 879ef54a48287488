"""Which input pixels each output pixel of a resize sums up, and with which weights, once per pair of sizes.

All of it in float32 and in the order of TensorFlow's operations, so that the weights have the same bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.image.kernels.spans_filters import FILTERS

if TYPE_CHECKING:
    import numpy.typing as npt

_F = np.float32
_TABLE = 1024  # steps of a pixel that ResizeBicubic rounds positions to
_TINY = _F(1000) * np.finfo(np.float32).tiny  # weights that sum to less count nothing


class Spans(NamedTuple):
    """For one axis: output i is the sum over k of `weights[i, k] * input[starts[i] + k]`, in this order; read-only.

    Only the spans of an area resize may reach one pixel beyond the input, which stands for the last pixel.
    """

    starts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


@lru_cache(maxsize=1024)
def filter_spans(n_in: int, n_out: int, name: str, antialias: bool) -> Spans:
    """Spans of a resize by one of `FILTERS`, as in TensorFlow's ScaleAndTranslate.

    With `antialias` and fewer outputs than inputs the filter is as much wider.

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
    weights[centre > _F(n_in)] = 0  # a centre that rounding pushed off the input sees nothing
    return _tight(starts, weights, n_in)


@lru_cache(maxsize=1024)
def cubic_spans(n_in: int, n_out: int) -> Spans:
    """Spans of a bicubic resize, as in TensorFlow's ResizeBicubic with half-pixel centres.

    Its weights come from a table: positions are rounded to the 1024th part of a pixel.

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
    """Keys' cubic at the distances i / 1024, and at those one pixel further: computed in float64, as there."""
    x = np.arange(_TABLE + 1) / _TABLE
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    y = x + 1
    far = ((a * y - 5 * a) * y + 8 * a) * y - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


@lru_cache(maxsize=1024)
def area_spans(n_in: int, n_out: int) -> Spans:
    """How much of each input pixel an output pixel covers, as in TensorFlow's ResizeArea; not yet divided by the area.

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
    """Make each row sum to 1, added up in order of position; nothing is left of weights too small for that."""
    total = np.zeros(len(weights), np.float32)
    for k in range(weights.shape[1]):
        total += weights[:, k]
    enough = np.abs(total) >= _TINY
    weights *= np.where(enough, _F(1) / np.where(enough, total, _F(1)), _F(0))[:, None]


def _tight(starts: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], n_in: int) -> Spans:
    """The same sums with as few weights as the longest needs, none of them beyond the input."""
    counts = weights != 0
    first = counts.argmax(axis=1)
    last = np.maximum(weights.shape[1] - 1 - counts[:, ::-1].argmax(axis=1), first)
    last[~counts.any(axis=1)] = 0
    length = int((last - first).max()) + 1
    tight = np.clip(starts + first, 0, n_in - length)
    source = (tight - starts)[:, None] + np.arange(length)
    inside = (source >= 0) & (source < weights.shape[1])
    moved = np.take_along_axis(weights, np.clip(source, 0, weights.shape[1] - 1), axis=1)
    return Spans(_frozen(tight), _frozen(np.where(inside, moved, _F(0))))  # type: ignore[arg-type]


def _frozen(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    array.flags.writeable = False
    return array
