"""Byte streams for the reader, plain or decompressed. `read` returns b"" at the end or after damage."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

from penstock.errors import DataLossError
from penstock.io.compression import WINDOW_BITS
from penstock.io.tfrecord.framing import damaged_compression

_PIECE = 1 << 16  # compressed bytes per step, and the bytes to decompress again to find the position of damage


class PlainStream:
    """The unchanged bytes of a file."""

    failure: DataLossError | None = None

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def close(self) -> None:
        self._file.close()


class InflatedStream:
    """The content of a GZIP or ZLIB file. Several compressed streams in sequence count as one.

    All bytes before damage are returned. Then `failure` has the error.
    """

    def __init__(self, file: BinaryIO, compression: str, name: str) -> None:
        self.failure: DataLossError | None = None
        self._file = file
        self._compression = compression
        self._name = name
        self._inflate: Any = zlib.decompressobj(WINDOW_BITS[compression])
        self._waiting = b""
        self._head = b""
        self._taken = 0
        self._finished = False

    def read(self, size: int) -> bytes:
        while not self._finished:
            piece = self._waiting or self._file.read(_PIECE)
            fresh = 0 if self._waiting else len(piece)
            self._waiting = b""
            if not self._taken:
                self._head = piece[:2]
            self._taken += fresh
            found = self._step(piece, size)
            if found:
                return found
        return b""

    def _step(self, piece: bytes, size: int) -> bytes:
        """Decompress up to `size` bytes from `piece`, and detect the end of the stream."""
        before = self._inflate.copy()
        try:
            found: bytes = self._inflate.decompress(piece, size)
        except zlib.error as error:
            return self._fail(str(error), _salvage(before, piece))
        self._waiting = self._inflate.unconsumed_tail
        if self._inflate.eof:
            self._waiting = self._inflate.unused_data or self._file.read(_PIECE)
            if self._waiting:
                self._taken += 0 if self._inflate.unused_data else len(self._waiting)
                self._inflate = zlib.decompressobj(WINDOW_BITS[self._compression])
            else:
                self._finished = True
        elif not piece and not found:
            if self._taken:
                return self._fail("the file ends before the compressed data does", b"")
            self._finished = True  # an empty file has no records
        return found

    def _fail(self, reason: str, found: bytes) -> bytes:
        self._finished = True
        at_start = self._taken <= _PIECE and not found
        self.failure = damaged_compression(
            self._compression, reason, self._name, self._taken, self._head, at_start=at_start
        )
        return found

    def close(self) -> None:
        self._file.close()


def _salvage(inflate: Any, piece: bytes) -> bytes:
    """Return the content of `piece` before the byte that zlib rejects."""
    found = []
    try:
        for i in range(len(piece)):
            found.append(inflate.decompress(piece[i : i + 1]))  # noqa: PERF401 - the loop ends by an exception
    except zlib.error:
        return b"".join(found)
    return b"".join(found)
