"""Where each output pixel of a resize looks in its input: tf.image's half-pixel centres, once per pair of sizes.

Pixel i of n covers [i, i + 1) and its centre lies at i + 0.5. An output centre, scaled by in / out, falls between two
input centres; `low` and `high` are their indices (clamped to the edge) and `weight` the share of `high`. All of it in
float32, as TensorFlow computes it: a float64 weight would differ in the last bit.

A flip costs nothing here. A flip before the resize mirrors the indices, a flip after it reverses the order of the
taps; the two differ in the last bit of the result, so both exist.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Flip = Literal["", "before", "after"]


class Taps(NamedTuple):
    """For one axis: two input indices and the weight of the second, each of length `n_out`; read-only."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float32]


class Spans(NamedTuple):
    """For one axis: output i is the sum over k of `weights[i, k] * input[starts[i] + k]`; read-only."""

    starts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def _frozen(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    array.flags.writeable = False
    return array


def _scale(n_in: int, n_out: int) -> np.float32:
    return np.float32(n_in) / np.float32(n_out)


@lru_cache(maxsize=4096)  # photographs come in many sizes; one entry is about 5 kB
def bilinear_taps(n_in: int, n_out: int, flip: Flip = "") -> Taps:
    """Taps of a bilinear resize from `n_in` to `n_out` pixels.

    >>> taps = bilinear_taps(4, 2)
    >>> taps.low.tolist(), taps.high.tolist(), taps.weight.tolist()
    ([0, 2], [1, 3], [0.5, 0.5])
    >>> bilinear_taps(2, 4).weight.tolist()  # the outer centres lie beyond the input's: both taps are the edge
    [0.75, 0.25, 0.75, 0.25]
    >>> bilinear_taps(4, 2, "before").low.tolist()
    [3, 1]
    """
    half = np.float32(0.5)
    at = (np.arange(n_out, dtype=np.float32) + half) * _scale(n_in, n_out) - half
    floor = np.floor(at)
    low = np.clip(floor.astype(np.int64), 0, n_in - 1)
    high = np.clip(floor.astype(np.int64) + 1, 0, n_in - 1)
    weight = at - floor
    if flip == "before":
        low, high = n_in - 1 - low, n_in - 1 - high
    elif flip == "after":
        low, high, weight = low[::-1].copy(), high[::-1].copy(), weight[::-1].copy()
    return Taps(_frozen(low), _frozen(high), _frozen(weight))  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def nearest_taps(n_in: int, n_out: int) -> npt.NDArray[np.int64]:
    """The input index that each output pixel of a nearest-neighbour resize copies.

    >>> nearest_taps(5, 2).tolist()
    [1, 3]
    """
    at = np.floor((np.arange(n_out, dtype=np.float32) + np.float32(0.5)) * _scale(n_in, n_out))
    return _frozen(np.clip(at.astype(np.int64), 0, n_in - 1))  # type: ignore[return-value]


@lru_cache(maxsize=1024)
def triangle_spans(n_in: int, n_out: int) -> Spans:
    """Spans of an antialiased bilinear resize: a triangle as wide as the output pixel, at least as an input pixel.

    The formula is that of TensorFlow's ScaleAndTranslate; weights sum to 1.

    >>> spans = triangle_spans(4, 2)  # (3, 3, 1) / 7 and (1, 3, 3) / 7
    >>> spans.starts.tolist(), [[round(float(7 * w)) for w in row] for row in spans.weights]
    ([0, 1], [[3, 3, 1, 0], [1, 3, 3, 0]])
    """
    one, half = np.float32(1), np.float32(0.5)
    step = one / (np.float32(n_out) / np.float32(n_in))  # TensorFlow inverts the scale, which rounds twice
    radius = max(step, one)
    width = min(2 * int(np.ceil(radius)) + 1, n_in)
    centre = (np.arange(n_out, dtype=np.float32) + half) * step
    starts = np.clip(np.ceil(centre - radius - half).astype(np.int64), 0, n_in - 1)
    stops = np.clip(np.floor(centre + radius - half).astype(np.int64), 0, n_in - 1) + 1
    at = starts[:, None] + np.arange(width)
    distance = np.abs((at.astype(np.float32) + half - centre[:, None]) * (one / radius))
    weights = np.where(at < stops[:, None], np.maximum(one - distance, 0), 0).astype(np.float32)
    total = np.zeros(n_out, np.float32)
    for k in range(width):  # in order of position, as the formula's source adds them
        total += weights[:, k]
    weights *= (one / total)[:, None]
    weights[centre > n_in] = 0  # a centre that rounding pushed off the input sees nothing
    return Spans(_frozen(starts), _frozen(weights))  # type: ignore[arg-type]
