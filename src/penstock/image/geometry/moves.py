"""Windows, transforms, arithmetic and covered rectangles of a whole batch, with few passes over each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.geometry.transform_reference import CONSTANT, ProjectiveTransform
from penstock.native.library import Kernels

PIXELS = 256  # pixels per step of arithmetic: long vectors whose values stay in the first cache
_NATIVE = Kernels("penstock.image.geometry.moves_native")


class CropWindow(NamedTuple):
    """The selected pixels: `rows` (N, out height) and `columns` (N, out width). -1 stands for `fill`."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    fill: Any = 0


class Cover(NamedTuple):
    """Rectangles (top, left, height, width), (N, 4), which may lie outside. `values`, one per channel, cover them."""

    boxes: npt.NDArray[np.int64]
    values: npt.NDArray[Any]


def ready() -> bool:
    """Return True if the kernel is loaded. Without it the single operations run."""
    return _NATIVE.loaded() is not None


def moves_into(
    images: npt.NDArray[Any],
    out: npt.NDArray[Any],
    window: CropWindow | None,
    turn: ProjectiveTransform | None = None,
    arithmetic: Sequence[tuple[int, npt.NDArray[np.float32]]] = (),
    covers: Sequence[Cover] = (),
) -> None:
    """Write `images`, windowed, transformed, changed and covered, into `out`. Runs without the GIL, once for all.

    Each value equals, to the last bit, what `window`, `transform`, float32 arithmetic with a number for each channel,
    and the filling of rectangles give one after the other.

    >>> from penstock.image.kernels import MULTIPLY
    >>> images = np.array([[[[1], [2], [3]]]], np.uint8)
    >>> out = np.empty((1, 1, 3, 1), np.float32)
    >>> two = np.array([2], np.float32)
    >>> here = CropWindow(np.array([[0]]), np.array([[2, 1, -1]]), 9)
    >>> moves_into(images, out, here, None, [(MULTIPLY, two)], [Cover(np.array([[0, 1, 1, 1]]), two)])
    >>> out.ravel().tolist()
    [6.0, 2.0, 18.0]

    Args:
        images: (N, H, W, C) of uint8 or float32.
        out: (N, out height, out width, C), C-contiguous, of the same dtype, or float32.
        window: The part of each image. None for whole images, if there is a `turn`.
        turn: The transform of the part, or None.
        arithmetic: MULTIPLY, DIVIDE, ADD or SUBTRACT of `kernels.codes`, each with a float32 for each channel; `out` is
            float32 then.
        covers: rectangles with values of the dtype of `out`, later ones on top.

    Raises:
        InvalidArgumentError: shapes that do not fit together.
    """
    native = _NATIVE.loaded()
    count, channels = len(images), images.shape[3]
    codes = np.array([code for code, _ in arithmetic], np.int64)
    numbers = np.empty((len(arithmetic), PIXELS * channels), np.float32)
    for row, (_, per_channel) in zip(numbers, arithmetic, strict=True):
        row[:] = np.tile(per_channel, PIXELS)
    boxes = np.empty((count, len(covers), 4), np.int64)
    values = np.empty((len(covers), channels), np.float32)
    for k, cover in enumerate(covers):
        boxes[:, k], values[k] = cover
    nowhere = np.empty((0, 0), np.int64)
    window = window or CropWindow(nowhere, nowhere)
    turn = turn or ProjectiveTransform(np.empty((0, 8), np.float32), CONSTANT, False, 0)
    status = native.moves(
        np.require(images, requirements=["C", "A"]).reshape(-1),
        *images.shape,
        *(np.ascontiguousarray(axis, np.int64) for axis in window[:2]),
        np.float32(np.array(window.fill, images.dtype)),
        np.ascontiguousarray(turn.numbers),
        turn.mode,
        turn.bilinear,
        np.full(channels, turn.fill, images.dtype).astype(np.float32),
        *out.shape[1:3],
        codes,
        numbers,
        boxes,
        values,
        out.reshape(-1),
    )
    if status != 0:
        message = f"The kernel refused images of shape {images.shape} for a result of shape {out.shape}."
        raise InvalidArgumentError(message)
