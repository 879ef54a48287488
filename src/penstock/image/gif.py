"""decode_gif: all frames of a GIF on one canvas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.compiled import Compiled
from penstock.errors import DataLossError
from penstock.image import rules
from penstock.image.checks import check_contents, refuse_absurd_size
from penstock.image.gif_blocks import GifFrame, read_gif
from penstock.image.kernels.lzw_reference import unpack
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt

NATIVE = Compiled("penstock.image.kernels.lzw_native")
PIXELS_PER_BYTE = 2731  # no code stands for more than 4096 pixels, and such a long one takes 12 bits
ROWS = ((0, 8), (4, 8), (2, 4), (1, 2))  # of an interlaced frame, the first and the step


@traceable("image.decode_gif", rules.decoded_frames)
def decode_gif(contents: bytes) -> npt.NDArray[np.uint8]:
    r"""Decode a GIF into (frames, height, width, 3) uint8, as tf.io.decode_gif does.

    The canvas is as high as the highest frame and as wide as the widest. What a frame leaves free or transparent is as
    in the frame before it, and black in the first; how a frame is to be disposed of is not regarded.

    >>> contents = b"GIF89a" + bytes(4) + b"\x80\0\0" + b"\1\2\3\4\5\6"  # two colours
    >>> decode_gif(contents + b",\0\0\0\0\1\0\1\0\0\2\2\x4c\1\0;").tolist()
    [[[[4, 5, 6]]]]

    Raises:
        DataLossError: the file is cut short or damaged, in whichever frame. (TensorFlow gives the frames before.)
        InvalidArgumentError: not a GIF, or an absurd size.
    """
    return gif_frames("decode_gif", bytes(check_contents("decode_gif", contents)), first_only=False)


def gif_frames(op: str, data: bytes, *, first_only: bool) -> npt.NDArray[np.uint8]:
    """The frames of `data`; or only the first, whatever follows it.

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not a GIF, or an absurd size.
    """
    frames = _frames(op, data, first_only=first_only)
    height, width = max(frame.height for frame in frames), max(frame.width for frame in frames)
    if first_only:
        frames = frames[:1]
    refuse_absurd_size(op, height * len(frames), width, 3)
    for number, frame in enumerate(frames):
        if frame.height * frame.width > PIXELS_PER_BYTE * len(frame.packed):
            raise _too_few(frame, number)
    out = np.zeros((len(frames), height, width, 3), np.uint8)
    for number, frame in enumerate(frames):
        if number:
            out[number] = out[number - 1]
        _draw(frame, number, out[number])
    return out


def _frames(op: str, data: bytes, *, first_only: bool) -> list[GifFrame]:
    frames: list[GifFrame] = []
    try:
        frames.extend(read_gif(op, data))
    except DataLossError:
        if not (first_only and frames):
            raise
    return frames


def _too_few(frame: GifFrame, number: int) -> DataLossError:
    return DataLossError(
        f"GIF damaged: the {len(frame.packed)} packed bytes of frame {number} do not unpack to "
        f"{frame.width} x {frame.height} pixels."
    )


def _draw(frame: GifFrame, number: int, canvas: npt.NDArray[np.uint8]) -> None:
    if frame.colours is None:
        message = f"GIF damaged: frame {number} has no colours."
        raise DataLossError(message)
    indices = _indices(frame, number)[: max(0, len(canvas) - frame.top), : max(0, canvas.shape[1] - frame.left)]
    if not indices.size:
        return
    seen = np.ones(indices.shape, np.bool_)
    if frame.transparent >= 0:  # numpy 2.1 crashes where it compares a part of an array of bytes with -1
        seen = indices != frame.transparent
    if indices.max(initial=0, where=seen) >= len(frame.colours):
        message = f"GIF damaged: frame {number} has pixels of a colour beyond its {len(frame.colours)}."
        raise DataLossError(message)
    part = canvas[frame.top : frame.top + len(indices), frame.left : frame.left + indices.shape[1]]
    part[seen] = frame.colours[indices[seen]]


def _indices(frame: GifFrame, number: int) -> npt.NDArray[np.uint8]:
    """The numbers of a frame's pixels, row by row."""
    height, width = frame.height, frame.width
    flat = np.empty(height * width, np.uint8)
    native = NATIVE.ready()
    if not (unpack if native is None else native.unpack)(np.frombuffer(frame.packed, np.uint8), frame.bits, flat):
        raise _too_few(frame, number)
    stored = flat.reshape(height, width)
    if not frame.interlaced:
        return stored
    indices = np.empty_like(stored)
    at = 0
    for first, step in ROWS:
        rows = indices[first::step]
        rows[...] = stored[at : at + len(rows)]
        at += len(rows)
    return indices
