"""Windows: factors for the samples of a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def hann_window(window_length: int, periodic: bool = True, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return a Hann window, as `tf.signal.hann_window` does.

    Args:
        window_length: Number of values.
        periodic: If False, the window is symmetric: its last value is its first.
        dtype: Dtype of the result.

    Returns:
        Factors of shape (window_length,).

    Example:
        >>> hann_window(4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    return _window(0.5, int(window_length), bool(periodic), np.dtype(dtype))


def hamming_window(window_length: int, periodic: bool = True, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return a Hamming window, as `tf.signal.hamming_window` does.

    Args:
        window_length: Number of values.
        periodic: If False, the window is symmetric: its last value is its first.
        dtype: Dtype of the result.

    Returns:
        Factors of shape (window_length,).

    Example:
        >>> [round(factor, 2) for factor in hamming_window(2).tolist()]
        [0.08, 1.0]
    """
    return _window(0.54, int(window_length), bool(periodic), np.dtype(dtype))


def _window(high: float, size: int, periodic: bool, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if size == 1:
        return np.ones(1, dtype)
    count = dtype.type(size + periodic * (size % 2 == 0) - 1)
    turned = np.cos(dtype.type(2 * np.pi) * np.arange(size, dtype=dtype) / count)
    return (dtype.type(high) - dtype.type(1 - high) * turned).astype(dtype)
