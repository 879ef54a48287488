"""Where the elements of a Block were read: file and byte offset, kept beside the data so that errors can name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class Origin:
    """Per element (or per element of a batch) an index into `files` and a byte offset, -1 where there is none.

    `file` and `offset` are int64 arrays of equal shape, elements along axis 0; a batch adds an axis. `position`, of the
    same shape, is the number of the element in its source; it is there only where somebody asked for provenance.
    """

    __slots__ = ("file", "files", "offset", "position")

    def __init__(
        self, files: tuple[str, ...], file: np.ndarray, offset: np.ndarray, position: np.ndarray | None = None
    ) -> None:
        self.files = files
        self.file = file
        self.offset = offset
        self.position = position

    @classmethod
    def of_file(cls, name: str, offset: np.ndarray) -> Origin:
        return cls((name,), np.zeros(len(offset), np.int64), offset)

    @classmethod
    def of_source(cls, name: str, position: np.ndarray) -> Origin:
        """The elements with these numbers of a source that has no files."""
        return cls((name,), np.zeros(len(position), np.int64), np.full(len(position), -1), position)

    def __len__(self) -> int:
        return len(self.file)

    def at(self, row: int, inner: int = 0) -> tuple[str | None, int | None]:
        """File and offset of element `row`, if it comes from a file; `inner` picks one of a batch."""
        files, offsets = self.file[row].reshape(-1), self.offset[row].reshape(-1)
        offset = int(offsets[inner])
        return (None, None) if offset < 0 else (self.files[int(files[inner])], offset)

    def slice(self, start: int, stop: int) -> Origin:
        return self._each(lambda values: values[start:stop])

    def take(self, rows: np.ndarray) -> Origin:
        return self._each(lambda values: values[rows])

    def batched(self, size: int) -> Origin:
        shape = (len(self) // size, size, *self.file.shape[1:])
        return self._each(lambda values: values.reshape(shape))

    def unbatched(self) -> Origin | None:
        """Origins of the parts of every element, or None for elements that were read as one."""
        if self.file.ndim < 2:
            return None
        shape = (self.file.shape[0] * self.file.shape[1], *self.file.shape[2:])
        return self._each(lambda values: values.reshape(shape))

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> Origin:
        position = None if self.position is None else change(self.position)
        return Origin(self.files, change(self.file), change(self.offset), position)


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
    positions = [origin.position for origin in known if origin.position is not None]
    position = np.concatenate(positions) if len(positions) == len(known) else None
    return Origin(tuple(files), np.concatenate(parts), np.concatenate([origin.offset for origin in known]), position)
