"""Definition of what maps each level to another: tables of 256 entries, and the counts that some follow from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image.colour.units import from_unit, to_unit

if TYPE_CHECKING:
    import numpy.typing as npt

    Levels = npt.NDArray[np.uint8]


def looked_up(images: Levels, tables: Levels) -> Levels:
    """Each value replaced by the table's entry; `tables` is (256,), or (N, C, 256) for images (N, H, W, C).

    >>> looked_up(np.array([0, 3], np.uint8).reshape(1, 1, 2, 1), np.arange(255, -1, -1, np.uint8)).ravel().tolist()
    [255, 252]
    """
    if tables.ndim == 1:
        return tables[images]
    count, _, _, channels = images.shape
    rows = np.arange(count)[:, None, None, None]
    return tables[rows, np.arange(channels), images]


def counted(images: Levels) -> npt.NDArray[np.int64]:
    """How often each level occurs in each channel of (N, H, W, C), as (N, C, 256).

    >>> counted(np.array([3, 3, 1], np.uint8).reshape(1, 3, 1, 1))[0, 0, :4].tolist()
    [0, 1, 0, 2]
    """
    count, _, _, channels = images.shape
    found = np.zeros((count, channels, 256), np.int64)
    for n in range(count):
        for c in range(channels):
            found[n, c] = np.bincount(images[n, :, :, c].reshape(-1), minlength=256)
    return found


def stretching(counts: npt.NDArray[np.int64]) -> Levels:
    """Make of (..., 256) counts the tables that stretch what occurs to 0 to 255, as torchvision rounds it.

    >>> stretching(np.bincount([10, 20, 30], minlength=256))[[10, 20, 30]].tolist()
    [0, 127, 255]
    """
    present = counts > 0
    low = present.argmax(axis=-1)[..., None].astype(np.float32)
    high = (255 - present[..., ::-1].argmax(axis=-1))[..., None].astype(np.float32)
    flat = high <= low
    scale = np.float32(1) / np.where(flat, np.float32(1), high - low) * np.where(flat, np.float32(1), np.float32(255))
    levels = np.arange(256, dtype=np.float32)
    values = (levels - np.where(flat, np.float32(0), low)) * scale
    return np.clip(values, 0, 255).astype(np.uint8)


def equalising(counts: npt.NDArray[np.int64]) -> Levels:
    """Make of (..., 256) counts the tables that make all levels about equally frequent, as PIL's ImageOps.equalize.

    >>> equalising(np.full(256, 7))[[0, 100, 255]].tolist()
    [0, 100, 255]
    """
    last = counts.shape[-1] - 1 - (counts > 0)[..., ::-1].argmax(axis=-1)
    step = (counts.sum(axis=-1) - np.take_along_axis(counts, last[..., None], -1)[..., 0]) // 255
    before = counts.cumsum(axis=-1) - counts
    spread = (before + step[..., None] // 2) // np.maximum(step, 1)[..., None]
    tables = np.where(step[..., None] == 0, np.arange(256), np.minimum(spread, 255))
    return tables.astype(np.uint8)


def power_table(gamma: float, gain: float) -> Levels:
    """The table of `gain * x ** gamma` for x from 0 to 1.

    >>> power_table(2.0, 1.0)[[0, 128, 255]].tolist()
    [0, 64, 255]
    """
    values: npt.NDArray[Any] = to_unit(np.arange(256, dtype=np.uint8))
    return from_unit(powers(values, gamma, gain), np.dtype(np.uint8))


def powers(values: npt.NDArray[np.float32], gamma: float, gain: float) -> npt.NDArray[np.float32]:
    """`gain * values ** gamma`; the power in float64, so that it does not depend on the machine's mathematical library.

    >>> powers(np.array([0.25], np.float32), 0.5, 2.0).tolist()
    [1.0]
    """
    with np.errstate(all="ignore"):
        return np.float32(gain) * np.power(values.astype(np.float64), np.float64(np.float32(gamma))).astype(np.float32)
