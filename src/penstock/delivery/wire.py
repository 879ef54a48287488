"""Wire: the choice of compression for results that travel between machines.

On one machine nothing is compressed, because shared memory is faster than any codec. Between machines, each codec is
measured on the first large results. The codec with the least total time per byte is then used. The time includes the
worker, the network and the consumer. All codecs are measured again from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.runtime.processes.link import Pickled

CODECS = (None, "lz4", "zstd")
_NAMES = {"AUTO": "auto", "LZ4": "lz4", "ZSTD": "zstd"}
_LEAST = 1 << 16  # bytes; a smaller result is not compressed, and not used for measurements
_EACH = 2  # results per codec in a measurement
_AGAIN = 512  # results between two measurements


def check_compression(compression: Any) -> str | None:
    """Return the normalised setting. Raises InvalidArgumentError for an unknown one."""
    if compression is None:
        return None
    found = _NAMES.get(compression.upper()) if isinstance(compression, str) else None
    if found is None:
        message = f"compression must be 'AUTO', None, 'LZ4' or 'ZSTD', got compression={compression!r}."
        raise InvalidArgumentError(message, hint="'AUTO' compresses where that was measured to be faster.")
    return found


def compressed(packed: Pickled, codec: str | None) -> tuple[bytes, list[Any], list[int] | None, float]:
    """Return content and buffers to send, the sizes of buffers, and the seconds of compression.

    The sizes are None if the buffers are not compressed.
    """
    if codec is None or packed.nbytes < _LEAST:
        return packed.content, packed.buffers, None, 0.0
    import pyarrow as pa

    began = time.perf_counter()
    buffers = [pa.compress(memoryview(buffer), codec, asbytes=True) for buffer in packed.buffers]
    return packed.content, buffers, list(packed.sizes), time.perf_counter() - began


def plain(buffers: Sequence[Any], codec: str | None, sizes: Sequence[int] | None) -> list[Any]:
    """Return the decompressed buffers."""
    if sizes is None:
        return list(buffers)
    import pyarrow as pa

    return [pa.decompress(buffer, size, codec) for buffer, size in zip(buffers, sizes, strict=True)]


class Wire:
    """One consumer's measurements of the transport from workers on other machines."""

    def __init__(self, setting: str | None = "auto") -> None:
        self._setting = setting
        self._seconds: dict[str | None, list[float]] = {}
        self._best: str | None = None
        self._since = 0

    @property
    def measuring(self) -> bool:
        """True if a codec has not been measured yet."""
        return self._setting == "auto" and any(len(self._seconds.get(codec, ())) < _EACH for codec in CODECS)

    def codec(self) -> str | None:
        """Return the codec for the next result from another machine."""
        if self._setting != "auto":
            return self._setting
        untried = [codec for codec in CODECS if len(self._seconds.get(codec, ())) < _EACH]
        return untried[0] if untried else self._best

    def saw(self, codec: str | None, nbytes: int, seconds: float) -> None:
        """Record the total seconds of a result with `nbytes` uncompressed bytes."""
        if nbytes < _LEAST or self._setting != "auto":
            return
        found = self._seconds.setdefault(codec, [])
        if len(found) < _EACH:
            found.append(seconds / nbytes)
        if len(self._seconds) == len(CODECS) and all(len(each) == _EACH for each in self._seconds.values()):
            self._best = min(CODECS, key=lambda each: min(self._seconds[each]))
            self._since += 1
            if self._since >= _AGAIN:
                self._seconds.clear()
                self._since = 0
