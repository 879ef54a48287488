"""The filters of a resize by weighted sums: how much a pixel counts at a distance from an output's centre.

Each is that of TensorFlow's ScaleAndTranslate, in float32 and in its order of operations. Only a sine and an
exponential are taken in float64 and rounded; the float32 sine of TensorFlow's C library differs in some last bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

_F = np.float32


class Filter(NamedTuple):
    """`weigh` takes distances of at least 0; beyond `radius` all weights are 0."""

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
    """A standard deviation of half a pixel, cut off at three of them."""
    return np.where(x >= _F(1.5), _F(0), np.exp((-x * x).astype(np.float64) / 0.5).astype(np.float32))


def _lanczos(radius: int) -> Callable[[Floats], Floats]:
    pi, square = _F(np.pi), _F(np.pi) * _F(np.pi)

    def weigh(x: Floats) -> Floats:
        far = np.maximum(x, _F(1e-3))  # closer to 0 the formula loses its digits
        wave = _F(radius) * _sine(pi * far) * _sine(pi * far / _F(radius)) / (square * far * far)
        return np.where(x > _F(radius), _F(0), np.where(x <= _F(1e-3), _F(1), wave))

    return weigh


def _sine(x: Floats) -> Floats:
    return np.sin(x.astype(np.float64)).astype(np.float32)


FILTERS = {
    "triangle": Filter(_F(1), _triangle),
    "keyscubic": Filter(_F(2), _keys_cubic),
    "mitchellcubic": Filter(_F(2), _mitchell_cubic),
    "gaussian": Filter(_F(1.5), _gaussian),
    "lanczos3": Filter(_F(3), _lanczos(3)),
    "lanczos5": Filter(_F(5), _lanczos(5)),
}
