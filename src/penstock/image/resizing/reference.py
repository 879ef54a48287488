"""What each kernel computes, in plain numpy: the definition that every faster version must match bit for bit.

All arithmetic is float32 in the order written here, which is TensorFlow's on a CPU: first along a row, then between
the two rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock.image.resizing.spans import Spans
    from penstock.image.resizing.taps import Taps


def resize_bilinear(
    images: npt.NDArray[Any],
    y: Taps,
    x: Taps,
    *,
    multiply: float | None = None,
    divide: float | None = None,
) -> npt.NDArray[np.float32]:
    """Resize `images` (N, H, W, C) to float32 (N, len(y.low), len(x.low), C), then scale if asked to.

    >>> from penstock.image.resizing.taps import bilinear_taps
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

    >>> from penstock.image.resizing.spans import filter_spans
    >>> pixels = np.array([7, 7, 7, 0, 0, 0], np.uint8).reshape(1, 1, 6, 1)
    >>> y, x = (filter_spans(*sizes, "triangle", True) for sizes in ((1, 1), (6, 2)))
    >>> resize_spans(pixels, y, x).ravel().round(3).tolist()
    [6.125, 0.875]
    """
    return _along(_along(images, y, 1), x, 2)


def resize_area(images: npt.NDArray[Any], y: Spans, x: Spans, factor: np.float32) -> npt.NDArray[np.float32]:
    """Weighted sums over columns, then over rows, times `factor`; a position beyond the input is its edge.

    >>> from penstock.image.resizing.spans import area_spans
    >>> pixels = np.array([4, 8, 0], np.uint8).reshape(1, 1, 3, 1)
    >>> resize_area(pixels, area_spans(1, 1), area_spans(3, 2), np.float32(0.5)).ravel().tolist()
    [4.0, 2.0]
    """
    return _along(_along(images, x, 2), y, 1) * factor


def _along(images: npt.NDArray[Any], spans: Spans, axis: int) -> npt.NDArray[np.float32]:
    shape = list(images.shape)
    shape[axis] = len(spans.starts)
    total = np.zeros(shape, np.float32)
    last = images.shape[axis] - 1
    for k in range(spans.weights.shape[1]):
        weight = np.expand_dims(spans.weights[:, k], tuple(range(1, images.ndim - axis)))
        total += weight * images.take(np.minimum(spans.starts + k, last), axis=axis).astype(np.float32)
    return total
