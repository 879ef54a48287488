"""Resizing by weighted sums straight into memory that the caller owns, such as one image's place in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compiled import Compiled
from penstock.errors import InvalidArgumentError
from penstock.image.kernels import reference
from penstock.image.kernels.spans import area_spans, cubic_spans, filter_spans

if TYPE_CHECKING:
    import numpy.typing as npt


_NATIVE = Compiled("penstock.image.kernels.spans_native")

# The filter of each method; without antialias bilinear and bicubic have ways of their own.
_FILTER_OF = {
    "bilinear": "triangle",
    "bicubic": "keyscubic",
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
    "gaussian": "gaussian",
    "mitchellcubic": "mitchellcubic",
}


def resize_spans_into(
    src: npt.NDArray[Any], dst: npt.NDArray[np.float32], method: str, *, antialias: bool = False
) -> None:
    """Write the resize of `src` to the size of `dst` into `dst`, for every method but nearest and plain bilinear.

    Rows are summed up before columns, for "area" after them, as TensorFlow does it. Runs without the GIL, for all
    images of a batch in one go.

    >>> batch = np.zeros((2, 1, 2, 1), np.float32)
    >>> resize_spans_into(np.array([4, 8, 0, 2], np.uint8).reshape(1, 4, 1), batch[1], "area")
    >>> batch.ravel().tolist()
    [0.0, 0.0, 6.0, 1.0]

    Args:
        src: uint8 or float32, (H, W, C) or (N, H, W, C), at least one pixel and channel.
        dst: C-contiguous float32 of the same rank, N and C.
        method: "bilinear", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or "mitchellcubic".
        antialias: widen the filter when shrinking.

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit.
    """
    if (
        src.dtype not in (np.uint8, np.float32)
        or dst.dtype != np.float32
        or (src.shape[:-3], src.shape[-1]) != (dst.shape[:-3], dst.shape[-1])
        or not dst.flags.c_contiguous
        or 0 in src.shape[-3:]
    ):
        message = (
            f"resize: the fast path takes uint8 and float32 and writes C-contiguous float32 of the same batch and "
            f"channels; got {src.dtype} {src.shape} and {dst.dtype} {dst.shape}."
        )
        raise InvalidArgumentError(message)
    if dst.size == 0:
        return
    height, width, channels = src.shape[-3:]
    sizes = (height, dst.shape[-3]), (width, dst.shape[-2])
    area = method == "area"
    if area:
        y, x = (area_spans(*pair) for pair in sizes)
    elif method == "bicubic" and not antialias:
        y, x = (cubic_spans(*pair) for pair in sizes)
    else:
        y, x = (filter_spans(*pair, _FILTER_OF[method], antialias) for pair in sizes)
    factor = _area_factor(*sizes) if area else np.float32(1)
    native = _NATIVE.ready()
    if native is None:
        whole = src if src.ndim == 4 else src[None]
        result = reference.resize_area(whole, y, x, factor) if area else reference.resize_spans(whole, y, x)
        dst[...] = result if src.ndim == 4 else result[0]
        return
    # Readable only, so that the kernel compiles once for arrays of both kinds.
    pixels = np.ascontiguousarray(src).reshape(-1).view()
    pixels.flags.writeable = False
    kernel = native.resize_area if area else native.resize_spans
    status = kernel(pixels, height, width, channels, *y, *x, factor, dst.reshape(-1))
    if status != 0:
        message = f"resize: the kernel refused an image of shape {src.shape} for a result of shape {dst.shape}."
        raise InvalidArgumentError(message)


def _area_factor(y: tuple[int, int], x: tuple[int, int]) -> np.float32:
    """One over the area of an output pixel, in TensorFlow's order of rounding."""
    height, width = (np.float32(n_in) / np.float32(n_out) for n_in, n_out in (y, x))
    return np.float32(1.0 / float(height * width))
