"""Chunk: one Arrow IPC file of a saved data set, with checksums of its content."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import DataLossError

PAGE = 1 << 20  # bytes per checksum


def remedy(folder: str) -> str:
    """Return the remedy for damaged files in a folder."""
    return f"Save the data set again; a snapshot is written again once the folder {folder!r} is deleted."


@dataclass(frozen=True)
class Chunk:
    """An Arrow IPC file with neighbouring elements of a shard.

    All its record batches except the last have `rows` elements.

    `crcs` are the CRC32Cs of its content, one for every MiB.
    """

    file: str  # relative to the manifest
    shard: int
    elements: int
    rows: int
    bytes: int
    crcs: tuple[int, ...]

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Chunk:
        """Return the Chunk of JSON fields, the inverse of `to_json`.

        Raises ValueError, TypeError or KeyError for other values.
        """
        file, crcs = found["file"], found["crcs"]
        shard, elements, rows, size = found["shard"], found["elements"], found["rows"], found["bytes"]
        sound = type(file) is type(crcs) is str and type(shard) is type(elements) is type(rows) is type(size) is int
        sound = sound and elements > 0 < rows and size > 0 and len(crcs) == 8 * -(-size // PAGE)
        if not sound or file.startswith("/") or ".." in file or "\0" in file:  # the file would not be below the folder
            message = f"{found!r:.80} is no chunk"
            raise ValueError(message)
        return cls(file, shard, elements, rows, size, struct.unpack(f">{len(crcs) // 8}I", bytes.fromhex(crcs)))

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a manifest.

        Checksums are 8 hexadecimal digits each, which parse in a third of the time.
        """
        return {**self.__dict__, "crcs": struct.pack(f">{len(self.crcs)}I", *self.crcs).hex()}

    def check(self, content: memoryview, name: str) -> None:
        """Raise DataLossError with the position of the first damage, unless this is the content that was written.

        `name` is the name of the file in the error.
        """
        for page, (found, wanted) in enumerate(zip(checksums(content[: self.bytes]), self.crcs, strict=False)):
            first, stop = page * PAGE, min(page * PAGE + PAGE, self.bytes)
            if found != wanted and len(content) >= stop:
                message = f"The file is damaged: bytes {first} to {stop - 1} are not those that were written."
                raise DataLossError(message, hint=self.remedy(name), file=name, offset=first)
        if len(content) != self.bytes:
            message = f"The file is damaged: it has {len(content)} bytes, and {self.bytes} were written."
            raise DataLossError(message, hint=self.remedy(name), file=name, offset=min(len(content), self.bytes))

    def remedy(self, name: str) -> str:
        """Return the remedy for the damaged file with this name."""
        return remedy(name.removesuffix(self.file).rstrip("/"))


def checksums(content: memoryview) -> Iterator[int]:
    """Yield the CRC32C of each page of bytes. The computation is as fast as memory reads, and releases the GIL."""
    import crc32c

    for start in range(0, len(content), PAGE):
        yield crc32c.crc32c(content[start : start + PAGE])
