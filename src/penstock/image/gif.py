"""decode_gif: all frames of a GIF on one canvas, with the parsing of blocks and LZW codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import DataLossError
from penstock.image import rules
from penstock.image.checks import check_contents, check_format, refuse_absurd_size
from penstock.native.library import Kernels
from penstock.trace.lift import of_nature, traceable

NATIVE = Kernels("penstock.image.gif_native")
PIXELS_PER_BYTE = 2731  # a code stands for at most 4096 pixels, and such a code takes 12 bits
ROWS = ((0, 8), (4, 8), (2, 4), (1, 2))  # of an interlaced frame: the first row and the step


@of_nature(rules.DECODER)
@traceable("image.decode_gif", rules.decoded_frames)
def decode_gif(contents: bytes) -> npt.NDArray[np.uint8]:
    r"""Decode all frames of a GIF, as tf.io.decode_gif does.

    The canvas is as high as the highest frame and as wide as the widest. What a frame leaves free or transparent is as
    in the frame before it, and black in the first; how a frame is to be disposed of is not regarded.

    Args:
        contents: The bytes of the file.

    Returns:
        uint8 array of shape (frames, height, width, 3).

    Raises:
        DataLossError: If the file is truncated, or if a frame is damaged. (TensorFlow returns the frames before the
            damage.)
        InvalidArgumentError: If the file is not a GIF, or if its size is implausible.

    Example:
        >>> contents = b"GIF89a" + bytes(4) + b"\x80\0\0" + b"\1\2\3\4\5\6"  # two colours
        >>> decode_gif(contents + b",\0\0\0\0\1\0\1\0\0\2\2\x4c\1\0;").tolist()
        [[[[4, 5, 6]]]]
    """
    return gif_frames("decode_gif", bytes(check_contents("decode_gif", contents)), first_only=False)


def gif_frames(op: str, data: bytes, *, first_only: bool) -> npt.NDArray[np.uint8]:
    """Return the frames of `data`, or only the first frame, whatever follows it.

    Raises:
        DataLossError: If the file is truncated or damaged.
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
        raise DataLossError(f"GIF damaged: frame {number} has no colours.")
    indices = _indices(frame, number)[: max(0, len(canvas) - frame.top), : max(0, canvas.shape[1] - frame.left)]
    if not indices.size:
        return
    painted: npt.NDArray[np.bool_] | bool = True
    if frame.transparent >= 0:  # numpy 2.1 crashes if it compares a slice of a uint8 array with -1
        painted = indices != frame.transparent
    if indices.max(initial=0, where=painted) >= len(frame.colours):
        raise DataLossError(f"GIF damaged: frame {number} has pixels of a colour beyond its {len(frame.colours)}.")
    part = canvas[frame.top : frame.top + len(indices), frame.left : frame.left + indices.shape[1]]
    for channel in range(3):
        colours = frame.colours[:, channel].take(indices, mode="clip")
        np.copyto(part[:, :, channel], colours, where=painted)


def _indices(frame: GifFrame, number: int) -> npt.NDArray[np.uint8]:
    """Return the colour numbers of a frame's pixels, row by row."""
    height, width = frame.height, frame.width
    flat = np.empty(height * width, np.uint8)
    native = NATIVE.loaded()
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


IMAGE, EXTENSION, TRAILER = 0x2C, 0x21, 0x3B
CONTROL = 0xF9


class GifFrame(NamedTuple):
    """A rectangle of the canvas. `bits` is the width of its numbers, `packed` their LZW codes."""

    top: int
    left: int
    height: int
    width: int
    interlaced: bool
    colours: npt.NDArray[np.uint8] | None
    transparent: int
    bits: int
    packed: bytes


class _ByteReader:
    """Reads bytes in order, and reports the position if no bytes are left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self.at : self.at + count]
        if len(taken) < count:
            message = f"GIF cut short: it ends after {len(self._data)} bytes, {count - len(taken)} too early."
            raise DataLossError(message)
        self.at += count
        return taken

    def numbers(self, count: int) -> list[int]:
        taken = self.take(2 * count)
        return [taken[i] | taken[i + 1] << 8 for i in range(0, 2 * count, 2)]

    def ended(self) -> bool:
        return self.at >= len(self._data)

    def colours(self, flags: int) -> npt.NDArray[np.uint8] | None:
        """Return the colour table that follows, or None if `flags` states none."""
        if not flags & 0x80:
            return None
        return np.frombuffer(self.take(3 << ((flags & 7) + 1)), np.uint8).reshape(-1, 3)

    def blocks(self) -> bytes:
        """Return the concatenated contents of a chain of blocks."""
        found = []
        while size := self.take(1)[0]:
            found.append(self.take(size))
        return b"".join(found)


def read_gif(op: str, data: bytes) -> Iterator[GifFrame]:
    r"""Yield the frames of a GIF. Data after its end is ignored.

    >>> next(read_gif("decode_gif", b"GIF89a" + bytes(7) + b",\0\0\0\0\1\0\1\0\0\2\1\x44\0")).height
    1

    Raises:
        DataLossError: the file is cut short or damaged, or has no frame.
        InvalidArgumentError: not a GIF.
    """
    check_format(op, "GIF", data)
    reader = _ByteReader(data)
    reader.take(10)
    shared = reader.colours(reader.take(3)[0])
    transparent = -1
    frames = 0
    while not (frames and reader.ended()):  # some writers leave out the end
        at = reader.at
        kind = reader.take(1)[0]
        if kind == TRAILER:
            break
        if kind == EXTENSION:
            label, content = reader.take(1)[0], reader.blocks()
            if label == CONTROL and len(content) >= 4:
                transparent = content[3] if content[0] & 1 else -1
        elif kind == IMAGE:
            yield _frame(reader, shared, transparent)
            frames += 1
            transparent = -1
        else:
            message = f"GIF damaged: a block must begin at byte {at}, but {kind:#04x} begins none."
            raise DataLossError(message)
    if not frames:
        raise DataLossError("GIF damaged: it has no frame.")


def _frame(reader: _ByteReader, shared: npt.NDArray[np.uint8] | None, transparent: int) -> GifFrame:
    at = reader.at - 1
    left, top, width, height = reader.numbers(4)
    flags = reader.take(1)[0]
    own = reader.colours(flags)
    bits = reader.take(1)[0]
    if not height or not width or bits > 8:
        raise DataLossError(f"GIF damaged: the frame at byte {at} has {width} x {height} pixels of {bits} bits.")
    colours = shared if own is None else own
    return GifFrame(top, left, height, width, bool(flags & 0x40), colours, transparent, bits, reader.blocks())


def unpack(packed: npt.NDArray[np.uint8], bits: int, out: npt.NDArray[np.uint8]) -> bool:
    """Fill `out` with the numbers of `bits` bits in `packed`. Return False if there are not enough.

    >>> out = np.empty(1, np.uint8)
    >>> unpack(np.array([0x44, 0x01], np.uint8), 2, out), out.tolist()
    (True, [0])
    """
    clear = 1 << bits
    start = [bytes([number & 255]) for number in range(clear)] + [b"", b""]
    table, width, before = list(start), bits + 1, b""
    done = bytearray()
    waiting, count = 0, 0
    following = iter(packed.tobytes())
    while len(done) < out.size:
        while count < width:
            byte = next(following, None)
            if byte is None:
                return False
            waiting |= byte << count
            count += 8
        code = waiting & ((1 << width) - 1)
        waiting >>= width
        count -= width
        if code == clear:
            table, width, before = list(start), bits + 1, b""
            continue
        if code == clear + 1 or code > len(table) or (code == len(table) and not (before and len(table) < 4096)):
            return False
        entry = table[code] if code < len(table) else before + before[:1]
        if before and len(table) < 4096:
            table.append(before + entry[:1])
        if len(table) == 1 << width and width < 12:
            width += 1
        done += entry
        before = entry
    out[:] = np.frombuffer(done, np.uint8, out.size)
    return True
