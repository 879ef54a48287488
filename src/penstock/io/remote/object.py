"""RemoteObject: an object behind a URL as it was when it was opened, whose bytes are had by ranges.

They come from its store or from BlockCache: blocks in a local folder, which several processes share.
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
_CHECK = 4  # bytes of a checksum behind each block
_ABANDONED = 600.0  # seconds, behind which a file that was never given its name is nobody's
_EACH = 16  # parts of the limit: so often a process that writes looks at the sizes of all


class BlockCache:
    """Files of one block each, called after a digest of the object's URL and version, and the number of the block.

    A block gets its name when it is whole, and is held against its checksum when it is read: a process that is killed
    leaves at most a file without a name, which goes later. Those used longest ago go first when all have more than
    `most` bytes; processes that write at the same time may pass that by what they have in hand. A disk that is full, or
    not there, costs requests and no error.
    """

    def __init__(self, folder: str, most: int) -> None:
        self._folder = Path(folder)
        self._most = most
        self._written = most  # of this process, since it looked: at first it does
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def read(self, key: str, size: int, start: int, stop: int, ask: Callable[[int, int], bytes]) -> bytes:
        """Bytes of an object: from blocks that are here, and by `ask` where they are not."""
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
            if not asked:  # the object is had in another way from now on
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
    """That of the settings, if they name a folder."""
    limits = settings()
    return None if limits.cache is None else _cache_in(limits.cache, limits.cache_bytes)


@cache
def _cache_in(folder: str, most: int) -> BlockCache:
    return BlockCache(folder, most)


GAP = 1 << 18  # bytes between two ranges that are read and thrown away, rather than asked for apart
LARGEST = 1 << 23  # bytes of one request
_CHANGED = "Objects must not be replaced while they are read. Start again, or write new data under a new name."
_log = logging.getLogger("penstock.io")


class RemoteObject:
    """`size` bytes of one version; what a server sends of another one is a DataLossError.

    A server that gives no ranges is asked for the whole object once, which goes into a temporary file without a name.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = new_lock()
        self._spool: Any = None
        self._unchecked = False  # whether a reply did not say which version it is of
        self._opened = False  # whether bytes were given: then the version is settled
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
        """What the server tells versions apart by, or ""."""
        return self._stat.version

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, both inside of the object; asked for again while that may help.

        Raises DataLossError where they are no longer those that were opened, and what `retrying` raises.
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
        """The bytes of ranges, asked for in parallel; neighbours together, large ones in parts."""
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
        """All bytes were given: look once more at the version, where no reply said it."""
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
        """Whether what was opened by an old listing could be opened anew: nobody has seen bytes or the size of it."""
        with self._lock:
            if self._opened or not old.listed:
                return False
            if self._stat is old:
                fresh = head(self.url, fresh=True)
                if fresh.size != old.size:  # which a reader has asked for already
                    return False
                self._stat = fresh
            return True

    def _changed(self, offset: int) -> NoReturn:
        message = f"The object {redacted(self.url)!r} is not the one that was opened: it was replaced or cut short."
        raise DataLossError(message, hint=_CHANGED, file=self.url, offset=offset)

    def _stat_key(self) -> str:
        return f"{self.url}\n{self._stat.size}\n{self._stat.version}"

    def _download(self) -> None:
        """Get the whole object into a temporary file: its server has no ranges."""
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
        except ValueError as error:  # fsspec's way to say that the server sends what nobody asked for
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
        """Let go of the temporary file, if there is one. Idempotent."""
        if self._spool is not None:
            self._spool.close()


def coalesced(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in ascending order, those with small gaps between them as one.

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
