"""What each kernel computes, in plain numpy: the definition that every faster version must match bit for bit.

All arithmetic is float32 in the order written here, which is TensorFlow's on a CPU: first along a row, then between
the two rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock.image.kernels.taps import Spans, Taps


def resize_bilinear(
    images: npt.NDArray[Any],
    y: Taps,
    x: Taps,
    *,
    multiply: float | None = None,
    divide: float | None = None,
) -> npt.NDArray[np.float32]:
    """Resize `images` (N, H, W, C) to float32 (N, len(y.low), len(x.low), C), then scale if asked to.

    >>> from penstock.image.kernels.taps import bilinear_taps
    >>> pixels = np.array([0, 100], np.uint8).reshape(1, 1, 2, 1)
    >>> resize_bilinear(pixels, bilinear_taps(1, 1), bilinear_taps(2, 4)).ravel().tolist()
    [0.0, 25.0, 75.0, 100.0]
    """
    x_weight = x.weight[:, None]
    y_weight = y.weight[:, None, None]

    def along_row(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        left = rows[:, :, x.low].astype(np.float32)
        return left + (rows[:, :, x.high].astype(np.float32) - left) * x_weight

    top = along_row(images[:, y.low])
    result = top + (along_row(images[:, y.high]) - top) * y_weight
    if multiply is not None:
        result *= np.float32(multiply)
    if divide is not None:
        result /= np.float32(divide)
    return result


def resize_nearest(images: npt.NDArray[Any], y: npt.NDArray[np.int64], x: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Copy the pixel at (y[i], x[j]) of each image (N, H, W, C); the dtype stays.

    >>> resize_nearest(np.arange(4).reshape(1, 2, 2, 1), np.array([1]), np.array([0, 1])).ravel().tolist()
    [2, 3]
    """
    return images.take(y, axis=1).take(x, axis=2)


def resize_spans(images: npt.NDArray[Any], y: Spans, x: Spans) -> npt.NDArray[np.float32]:
    """Weighted sums over rows, then over columns, of `images` (N, H, W, C), added up in order of position.

    >>> from penstock.image.kernels.taps import triangle_spans
    >>> pixels = np.array([7, 7, 7, 0, 0, 0], np.uint8).reshape(1, 1, 6, 1)
    >>> resize_spans(pixels, triangle_spans(1, 1), triangle_spans(6, 2)).ravel().round(3).tolist()
    [6.125, 0.875]
    """
    rows = np.zeros((images.shape[0], len(y.starts), *images.shape[2:]), np.float32)
    for k in range(y.weights.shape[1]):
        at = np.minimum(y.starts + k, images.shape[1] - 1)  # beyond a span its weight is 0
        rows += y.weights[:, k, None, None] * images[:, at].astype(np.float32)
    result = np.zeros((*rows.shape[:2], len(x.starts), rows.shape[3]), np.float32)
    for k in range(x.weights.shape[1]):
        at = np.minimum(x.starts + k, rows.shape[2] - 1)
        result += x.weights[:, k, None] * rows[:, :, at]
    return result
