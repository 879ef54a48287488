"""Wire: whether what travels between machines is compressed, and how: what was measured to take the least.

On the machine that it is made on nothing is: shared memory is faster than any codec. Between machines each way has its
turn on the first results that are worth it; from then on that is used which takes the worker, the network and the
consumer the least time for each byte. From time to time all are measured again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.runtime.processes.link import Packed

CODECS = (None, "lz4", "zstd")
_NAMES = {"AUTO": "auto", "LZ4": "lz4", "ZSTD": "zstd"}
_LEAST = 1 << 16  # bytes of a result from which on it is worth a codec's calls, and tells about the network
_EACH = 2  # results that each codec is measured with
_AGAIN = 512  # results behind which they are measured again


def check_compression(compression: Any) -> str | None:
    """The setting in our words. Raises InvalidArgumentError for another one."""
    if compression is None:
        return None
    found = _NAMES.get(compression.upper()) if isinstance(compression, str) else None
    if found is None:
        message = f"compression must be 'AUTO', None, 'LZ4' or 'ZSTD', got compression={compression!r}."
        raise InvalidArgumentError(message, hint="'AUTO' compresses where that was measured to be faster.")
    return found


def compressed(packed: Packed, codec: str | None) -> tuple[bytes, list[Any], list[int] | None, float]:
    """Content and buffers as they travel, the sizes they have, None where they are as they were, and the seconds."""
    if codec is None or packed.nbytes < _LEAST:
        return packed.content, packed.buffers, None, 0.0
    import pyarrow as pa

    began = time.perf_counter()
    buffers = [pa.compress(memoryview(buffer), codec, asbytes=True) for buffer in packed.buffers]
    return packed.content, buffers, list(packed.sizes), time.perf_counter() - began


def plain(buffers: Sequence[Any], codec: str | None, sizes: Sequence[int] | None) -> list[Any]:
    """The buffers as they were."""
    if sizes is None:
        return list(buffers)
    import pyarrow as pa

    return [pa.decompress(buffer, size, codec) for buffer, size in zip(buffers, sizes, strict=True)]


class Wire:
    """What one consumer has measured of the way to workers on other machines."""

    def __init__(self, setting: str | None = "auto") -> None:
        self._setting = setting
        self._seconds: dict[str | None, list[float]] = {}
        self._best: str | None = None
        self._since = 0

    @property
    def measuring(self) -> bool:
        """Whether there is a way that has not had its turn."""
        return self._setting == "auto" and any(len(self._seconds.get(codec, ())) < _EACH for codec in CODECS)

    def codec(self) -> str | None:
        """The one for the next result from another machine."""
        if self._setting != "auto":
            return self._setting
        untried = [codec for codec in CODECS if len(self._seconds.get(codec, ())) < _EACH]
        return untried[0] if untried else self._best

    def saw(self, codec: str | None, nbytes: int, seconds: float) -> None:
        """A result of so many bytes, before they were compressed, took so long in all."""
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
