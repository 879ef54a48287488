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
