"""RemoteObject: one version of an object at a URL, read in ranges.

The bytes come from the server, or from BlockCache: blocks in a local folder that several processes share.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import Any, NoReturn

from penstock.errors import DataLossError, UnavailableError
from penstock.forked import new_lock
from penstock.hints import redacted
from penstock.io.remote.retry import ShortReplyError, retrying
from penstock.io.remote.system import POOL, file_system, settings
from penstock.io.remote.transport import NoRangesError, OtherVersionError, Stat, fetch, head, verify

BLOCK = 1 << 20
_CHECK = 4  # bytes of the checksum after each block
_ABANDONED = 600.0  # seconds after which a file without its final name counts as abandoned
_EACH = 16  # a writing process checks the total size after each such fraction of the limit


class BlockCache:
    """Files of one block each. The name is a digest of the object's URL and version, and the number of the block.

    A block gets its name when it is complete, and its checksum is verified when it is read. A killed process leaves at
    most a file without its final name, which is removed later. If the total exceeds `most` bytes, the least recently
    used blocks are removed. Processes that write at the same time may exceed the limit by their current blocks. A full
    or missing disk causes more requests, but no error.
    """

    def __init__(self, folder: str, most: int) -> None:
        self._folder = Path(folder)
        self._most = most
        self._written = most  # bytes written since the last check; the first write checks
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def read(self, key: str, size: int, start: int, stop: int, ask: Callable[[int, int], bytes]) -> bytes:
        """Return bytes of an object: from cached blocks, or from `ask` for missing blocks."""
        digest = hashlib.sha256(key.encode()).hexdigest()[:40]
        first, last = start // BLOCK, -(-stop // BLOCK)
        blocks = {number: self._get(digest, number, min(BLOCK, size - number * BLOCK)) for number in range(first, last)}
        number = first
        while number < last:
            if blocks[number] is not None:
                number += 1
                continue
            behind = number
            while behind < last and blocks[behind] is None:
                behind += 1
            asked = ask(number * BLOCK, min(behind * BLOCK, size))
            if not asked:  # the object is read in another way from now on
                return b""
            for each in range(number, behind):
                block = asked[(each - number) * BLOCK : (each - number + 1) * BLOCK]
                self._put(digest, each, block)
                blocks[each] = block
            number = behind
        whole = b"".join(block for block in blocks.values() if block is not None)
        return whole[start - first * BLOCK : stop - first * BLOCK]

    def _path(self, digest: str, number: int) -> Path:
        return self._folder / digest[:2] / f"{digest[2:]}.{number}"

    def _get(self, digest: str, number: int, size: int) -> bytes | None:
        import crc32c

        path = self._path(digest, number)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        block = content[:-_CHECK]
        if len(block) != size or crc32c.crc32c(block).to_bytes(_CHECK, "little") != content[-_CHECK:]:
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return block

    def _put(self, digest: str, number: int, block: bytes) -> None:
        import crc32c

        path = self._path(digest, number)
        part = path.with_name(f"{path.name}.{token_hex(4)}.part")
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            part.write_bytes(block + crc32c.crc32c(block).to_bytes(_CHECK, "little"))
            part.replace(path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            return
        self._written += len(block)
        if self._written >= self._most // _EACH:
            self._written = 0
            self._make_room()

    def _make_room(self) -> None:
        found = []
        total, now = 0, time.time()
        for path in self._folder.glob("??/*"):
            with suppress(OSError):
                state = path.stat()
                if path.suffix == ".part":
                    if now - state.st_mtime > _ABANDONED:
                        path.unlink()
                    continue
                total += state.st_size
                found.append((state.st_mtime_ns, state.st_size, path))
        for _, size, path in sorted(found):
            if total <= self._most - self._most // _EACH:
                return
            with suppress(OSError):
                path.unlink()
            total -= size


def block_cache() -> BlockCache | None:
    """Return the cache in the folder of the settings, or None."""
    limits = settings()
    return None if limits.cache is None else _cache_in(limits.cache, limits.cache_bytes)


@cache
def _cache_in(folder: str, most: int) -> BlockCache:
    return BlockCache(folder, most)


GAP = 1 << 18  # bytes; a smaller gap between two ranges is read and dropped, to save a request
LARGEST = 1 << 23  # bytes of one request
_CHANGED = "Objects must not be replaced while they are read. Start again, or write new data under a new name."
_log = logging.getLogger("penstock.io")


class RemoteObject:
    """`size` bytes of one version of an object. If the server sends another version, DataLossError is raised.

    If the server does not support ranges, the whole object is downloaded once to an unnamed temporary file.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = new_lock()
        self._spool: Any = None
        self._unchecked = False  # True if a reply did not state its version
        self._opened = False  # True if bytes were returned, after which the version is fixed
        self._stat = retrying(lambda: head(url), url, "Opening")
        self._cache: BlockCache | None = block_cache()
        if not self._stat.ranges or self._stat.size is None:
            self._download()

    @property
    def size(self) -> int:
        assert self._stat.size is not None
        return self._stat.size

    @property
    def version(self) -> str:
        """The server's identifier of the version, or ""."""
        return self._stat.version

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to `stop`, both inside of the object.

        The request is repeated while this may help.

        Raises DataLossError if the object has changed since it was opened, and the errors of `retrying`.
        """
        if start >= stop:
            return b""
        if self._spool is None:
            if self._cache is not None and self._stat.version:
                return self._cache.read(self._stat_key(), self.size, start, stop, self._ask)
            content = self._ask(start, stop)
            if self._spool is None:
                return content
        return self._spooled(start, stop)

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges, requested in parallel. Neighbours are merged, large ranges are split."""
        runs = coalesced(ranges)
        found: dict[int, bytes] = {}
        futures: list[tuple[int, list[Future[bytes]]]] = []
        for start, stop in runs:
            cuts = [*range(start, stop, LARGEST), stop]
            parts = list(pairwise(cuts))
            futures.append((start, [POOL.submit(lambda a=a, b=b: self.read(a, b)) for a, b in parts]))  # type: ignore[misc]
        try:
            for start, waiting in futures:
                found[start] = b"".join(future.result() for future in waiting)
        except BaseException:
            for _, waiting in futures:
                for future in waiting:
                    future.cancel()
            raise
        out = []
        for start, stop in ranges:
            first = max((begin for begin in found if begin <= start), default=start)
            out.append(found[first][start - first : stop - first] if start < stop else b"")
        return out

    def finish(self) -> None:
        """Check the version again after the last bytes, if a reply did not state it."""
        if not self._unchecked or not self._stat.version or self._spool is not None:
            return
        self._unchecked = False
        try:
            retrying(lambda: verify(self.url, self._stat), self.url, "Looking again at")
        except OtherVersionError:
            self._changed(self.size)

    def _ask(self, start: int, stop: int) -> bytes:
        try:
            content, checked = retrying(lambda: self._fetch(start, stop), self.url, "Reading", start)
        except OtherVersionError:
            self._changed(start)
        except NoRangesError:
            self._download()
            return b""
        if not checked:
            self._unchecked = True
        self._opened = True
        return content

    def _fetch(self, start: int, stop: int) -> tuple[bytes, bool]:
        stat = self._stat
        try:
            return fetch(self.url, stat, start, stop)
        except OtherVersionError:
            if not self._renewed(stat):
                raise OtherVersionError from None
            return fetch(self.url, self._stat, start, stop)
        except ShortReplyError:
            if head(self.url, fresh=True).size != stat.size:
                raise OtherVersionError from None
            raise

    def _renewed(self, old: Stat) -> bool:
        """Open the newest version, if the listing was old and no reader has seen bytes or another size.

        Return True if done.
        """
        with self._lock:
            if self._opened or not old.listed:
                return False
            if self._stat is old:
                fresh = head(self.url, fresh=True)
                if fresh.size != old.size:  # a reader may have used the old size
                    return False
                self._stat = fresh
            return True

    def _changed(self, offset: int) -> NoReturn:
        message = f"The object {redacted(self.url)!r} is not the one that was opened: it was replaced or cut short."
        raise DataLossError(message, hint=_CHANGED, file=self.url, offset=offset)

    def _stat_key(self) -> str:
        return f"{self.url}\n{self._stat.size}\n{self._stat.version}"

    def _download(self) -> None:
        """Download the whole object to a temporary file, because its server does not support ranges."""
        with self._lock:
            if self._spool is not None:
                return
            _log.warning(
                "%s: the server gives no ranges of bytes, so that the whole of it is copied to a temporary file.",
                redacted(self.url),
            )
            spool = tempfile.TemporaryFile(prefix="penstock-")  # noqa: SIM115 - open as long as the object is
            try:
                size = retrying(lambda: self._copy_to(spool), self.url, "Reading", 0)
            except BaseException:
                spool.close()
                raise
            self._stat = Stat(size, self._stat.version)
            self._spool = spool

    def _copy_to(self, spool: Any) -> int:
        spool.seek(0)
        spool.truncate()
        system, inner = file_system(self.url)
        try:
            with system.open(inner, "rb", block_size=0) as file:
                while piece := file.read(1 << 20):
                    spool.write(piece)
        except ValueError as error:  # fsspec raises it if the server sends unrequested bytes
            raise UnavailableError(redacted(str(error)), file=self.url) from None
        spool.flush()
        size = int(spool.tell())
        if self._stat.size is not None and size != self._stat.size:
            message = f"{size} of {self._stat.size} bytes came"
            raise ShortReplyError(message)
        return size

    def _spooled(self, start: int, stop: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._spool.fileno(), stop - start, start)
        with self._lock:
            self._spool.seek(start)
            return bytes(self._spool.read(stop - start))

    def close(self) -> None:
        """Close the temporary file, if there is one. Idempotent."""
        if self._spool is not None:
            self._spool.close()


def coalesced(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in ascending order. Ranges with small gaps between them are merged.

    >>> coalesced([(900_000, 900_010), (0, 100), (200, 300)])
    [(0, 300), (900000, 900010)]
    """
    found: list[tuple[int, int]] = []
    for start, stop in sorted(part for part in ranges if part[0] < part[1]):
        if found and start <= found[-1][1] + GAP:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found
