"""BlockCache: blocks of objects in a local folder, which several processes share, and which has a limit."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

from penstock.io.remote.settings import settings

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
