"""encode_png: each row with its best filter, compressed by zlib."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.image import rules
from penstock.image.checks import check_choice
from penstock.image.checks import check_encodable as _checked
from penstock.image.png.chunks import GREY, GREY_ALPHA, RGB, RGBA, SIGNATURE
from penstock.native.library import Kernels
from penstock.trace.lift import of_nature

NATIVE = Kernels("penstock.image.png.kernels.filters")
COLOUR_TYPES = {1: GREY, 2: GREY_ALPHA, 3: RGB, 4: RGBA}


@of_nature(rules.COSTLY)
def encode_png(image: npt.NDArray[Any], compression: int = -1) -> bytes:
    """Encode a uint8 or uint16 image (H, W, 1 to 4) as PNG, without loss.

    Args:
        image: Grey, grey with alpha, RGB or RGBA.
        compression: 0 (none) to 9 (smallest); -1 is zlib's default, 6.

    Returns:
        The bytes of the file.

    Raises:
        InvalidArgumentError: If the shape, the dtype or an argument is out of range.

    Example:
        >>> encode_png(np.zeros((4, 6, 3), np.uint8))[1:4]
        b'PNG'
    """
    array = _checked("encode_png", image, (np.uint8, np.uint16), (1, 2, 3, 4))
    check_choice("encode_png", "compression", compression, tuple(range(-1, 10)))
    height, width, channels = array.shape
    depth = 8 * array.dtype.itemsize
    header = struct.pack(">IIBBBBB", width, height, depth, COLOUR_TYPES[channels], 0, 0, 0)
    packed = zlib.compress(_filtered(array).tobytes(), compression)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def _filtered(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return each row with PNG's best filter by the usual measure: the least sum of absolute differences."""
    height = array.shape[0]
    stride = array.shape[2] * array.dtype.itemsize
    rows = array.astype(array.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    best = np.empty((height, rows.shape[1] + 1), np.uint8)
    native = NATIVE.loaded()
    if native is None:
        _choose(rows, stride, best)
    else:
        native.choose(rows, stride, best, np.empty(best.shape[1], np.uint8))
    return best


def _choose(rows: npt.NDArray[np.uint8], stride: int, best: npt.NDArray[np.uint8]) -> None:
    """Write each of `rows` into `best`, after the number of its filter."""
    height = rows.shape[0]
    least = np.full(height, np.iinfo(np.int64).max)
    for kind, guess in enumerate(_predictions(rows, stride)):
        difference = rows - guess  # modulo 256, as the format says
        cost = np.abs(difference.view(np.int8).astype(np.int16)).sum(axis=1, dtype=np.int64)
        better = cost < least
        least[better] = cost[better]
        best[better, 0] = kind
        best[better, 1:] = difference[better]


def _predictions(rows: npt.NDArray[np.uint8], stride: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield the predictions of PNG's filters 0 to 4 for each byte, from its neighbours."""
    left = np.zeros_like(rows)
    left[:, stride:] = rows[:, :-stride]
    up = np.zeros_like(rows)
    up[1:] = rows[:-1]
    corner = np.zeros_like(rows)
    corner[1:, stride:] = rows[:-1, :-stride]
    yield np.zeros_like(rows)
    yield left
    yield up
    a, b, c = left.astype(np.int16), up.astype(np.int16), corner.astype(np.int16)
    yield ((a + b) >> 1).astype(np.uint8)
    to_left, to_up, to_corner = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    nearest_left = (to_left <= to_up) & (to_left <= to_corner)
    yield np.where(nearest_left, left, np.where(to_up <= to_corner, up, corner))
