"""Read the blocks of a GIF: its frames, packed as they are, and what their numbers mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image.formats import format_of

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


class _Reader:
    """Takes bytes off the front, and knows where it is when there are none."""

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
        """The colours that follow if `flags` says so."""
        if not flags & 0x80:
            return None
        return np.frombuffer(self.take(3 << ((flags & 7) + 1)), np.uint8).reshape(-1, 3)

    def blocks(self) -> bytes:
        """The contents of a chain of blocks."""
        found = []
        while size := self.take(1)[0]:
            found.append(self.take(size))
        return b"".join(found)


def read_gif(op: str, data: bytes) -> Iterator[GifFrame]:
    r"""The frames of a GIF, one after the other; what comes after its end is not looked at.

    >>> next(read_gif("decode_gif", b"GIF89a" + bytes(7) + b",\0\0\0\0\1\0\1\0\0\2\1\x44\0")).height
    1

    Raises:
        DataLossError: the file is cut short or damaged, or has no frame.
        InvalidArgumentError: not a GIF.
    """
    other = format_of(data)
    if other != "GIF":
        message = f"{op}: these {len(data)} bytes are not a GIF" + (f" but {other}." if other else ".")
        raise InvalidArgumentError(message, hint="Use decode_image, which finds out the format." if other else None)
    reader = _Reader(data)
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
        message = "GIF damaged: it has no frame."
        raise DataLossError(message)


def _frame(reader: _Reader, shared: npt.NDArray[np.uint8] | None, transparent: int) -> GifFrame:
    at = reader.at - 1
    left, top, width, height = reader.numbers(4)
    flags = reader.take(1)[0]
    own = reader.colours(flags)
    bits = reader.take(1)[0]
    if not height or not width or bits > 8:
        message = f"GIF damaged: the frame at byte {at} has {width} x {height} pixels of {bits} bits."
        raise DataLossError(message)
    colours = shared if own is None else own
    return GifFrame(top, left, height, width, bool(flags & 0x40), colours, transparent, bits, reader.blocks())
