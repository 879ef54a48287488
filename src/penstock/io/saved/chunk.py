"""Chunk: one Arrow IPC file of a saved data set, and the checksums that tell whether it is as it was written."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import DataLossError

PAGE = 1 << 20  # bytes that share a checksum


def remedy(folder: str) -> str:
    """What to do about files in a folder that are damaged."""
    return f"Save the data set again; a snapshot is written again once the folder {folder!r} is deleted."


@dataclass(frozen=True)
class Chunk:
    """An Arrow IPC file: neighbouring elements of a shard. All its record batches but the last have `rows` elements.

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
        """The inverse of `to_json`. Raises ValueError, TypeError or KeyError for anything else."""
        file, crcs = found["file"], found["crcs"]
        shard, elements, rows, size = found["shard"], found["elements"], found["rows"], found["bytes"]
        sound = type(file) is type(crcs) is str and type(shard) is type(elements) is type(rows) is type(size) is int
        sound = sound and elements > 0 < rows and size > 0 and len(crcs) == 8 * -(-size // PAGE)
        if not sound or file.startswith("/") or ".." in file or "\0" in file:  # not below the folder
            message = f"{found!r:.80} is no chunk"
            raise ValueError(message)
        return cls(file, shard, elements, rows, size, struct.unpack(f">{len(crcs) // 8}I", bytes.fromhex(crcs)))

    def to_json(self) -> dict[str, Any]:
        """Fields for a manifest; the checksums as 8 hexadecimal digits each, which is read in a third of the time."""
        return {**self.__dict__, "crcs": struct.pack(f">{len(self.crcs)}I", *self.crcs).hex()}

    def check(self, content: memoryview, name: str) -> None:
        """Raise DataLossError, with the place of the first damage, unless this is the content that was written.

        `name` is what the error calls the file.
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
        """What to do when the file, of this name, is damaged."""
        return remedy(name.removesuffix(self.file).rstrip("/"))


def checksums(content: memoryview) -> Iterator[int]:
    """The CRC32C of each page of bytes. They run as fast as memory is read, and without the GIL."""
    import crc32c

    for start in range(0, len(content), PAGE):
        yield crc32c.crc32c(content[start : start + PAGE])
