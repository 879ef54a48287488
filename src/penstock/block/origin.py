"""Where the elements of a Block were read: file and byte offset, kept beside the data so that errors can name them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Origin:
    """Per element (or per element of a batch) an index into `files` and a byte offset.

    `file` and `offset` are int64 arrays of equal shape, elements along axis 0; a batch adds an axis.
    """

    __slots__ = ("file", "files", "offset")

    def __init__(self, files: tuple[str, ...], file: np.ndarray, offset: np.ndarray) -> None:
        self.files = files
        self.file = file
        self.offset = offset

    @classmethod
    def of_file(cls, name: str, offset: np.ndarray) -> Origin:
        return cls((name,), np.zeros(len(offset), np.int64), offset)

    def __len__(self) -> int:
        return len(self.file)

    def at(self, row: int, inner: int = 0) -> tuple[str, int]:
        """File and offset of element `row`; `inner` picks one of a batch."""
        files, offsets = self.file[row].reshape(-1), self.offset[row].reshape(-1)
        return self.files[int(files[inner])], int(offsets[inner])

    def slice(self, start: int, stop: int) -> Origin:
        return Origin(self.files, self.file[start:stop], self.offset[start:stop])

    def take(self, rows: np.ndarray) -> Origin:
        return Origin(self.files, self.file[rows], self.offset[rows])

    def batched(self, size: int) -> Origin:
        shape = (len(self) // size, size, *self.file.shape[1:])
        return Origin(self.files, self.file.reshape(shape), self.offset.reshape(shape))

    def unbatched(self) -> Origin | None:
        """Origins of the parts of every element, or None for elements that were read as one."""
        if self.file.ndim < 2:
            return None
        shape = (self.file.shape[0] * self.file.shape[1], *self.file.shape[2:])
        return Origin(self.files, self.file.reshape(shape), self.offset.reshape(shape))


def concat_origins(origins: Sequence[Origin | None]) -> Origin | None:
    """One after the other; None as soon as one part has no origin or another shape."""
    first = origins[0]
    if first is None or len(origins) == 1:
        return first
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins) or any(o.file.shape[1:] != first.file.shape[1:] for o in known):
        return None
    files: dict[str, int] = {}
    parts = []
    for origin in known:
        local = np.array([files.setdefault(name, len(files)) for name in origin.files], np.int64)
        parts.append(local[origin.file])
    return Origin(tuple(files), np.concatenate(parts), np.concatenate([origin.offset for origin in known]))
