"""File and byte offset from which each element of a Block was read, so that errors can name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NOBODY = -1  # file number of padding after the last element of a batch


class Origin:
    """An index into `files` and a byte offset (-1 if unknown) per element, or per element of a batch.

    `file` and `offset` are int64 arrays of equal shape, with elements along axis 0. A batch adds an axis. Batches
    smaller than others are padded with the file `NOBODY`. `position` has the same shape and holds the number of the
    element in its source. It is None unless provenance was requested.
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
        """Return the origin of elements with these numbers, for a source without files."""
        return cls((name,), np.zeros(len(position), np.int64), np.full(len(position), -1), position)

    def __len__(self) -> int:
        return len(self.file)

    def at(self, row: int, inner: int = 0) -> tuple[str | None, int | None]:
        """Return file and offset of element `row`, or (None, None); `inner` is the index within a batch."""
        files, offsets = self.file[row].reshape(-1), self.offset[row].reshape(-1)
        offset = int(offsets[inner])
        return (None, None) if offset < 0 else (self.files[int(files[inner])], offset)

    def slice(self, start: int, stop: int) -> Origin:
        position = None if self.position is None else self.position[start:stop]
        return Origin(self.files, self.file[start:stop], self.offset[start:stop], position)

    def apart(self) -> Origin:
        """Return a copy in its own arrays, without unused files."""
        used, places = np.unique(self.file, return_inverse=True)
        names = tuple([self.files[number] for number in used.tolist() if number != NOBODY])
        file = places.reshape(self.file.shape) - (used[:1] == NOBODY).sum()
        position = None if self.position is None else self.position.copy()
        return Origin(names, file.astype(np.int64), self.offset.copy(), position)

    def take(self, rows: np.ndarray) -> Origin:
        return self._each(lambda values: values[rows])

    def batched(self, size: int) -> Origin:
        shape = (len(self) // size, size, *self.file.shape[1:])
        return self._each(lambda values: values.reshape(shape))

    def unbatched(self, lengths: Sequence[int]) -> Origin | None:
        """Return the origins of the parts of every element; `lengths` are the numbers of parts.

        Return None if the elements were read as a whole.
        """
        if self.file.ndim < 2:
            return None
        there = (self.file != NOBODY).reshape(*self.file.shape[:2], -1).any(axis=2)
        if there.sum(axis=1).tolist() != list(lengths):
            return None
        return self._each(lambda values: values[there])

    def sizes(self) -> list[tuple[int, ...]]:
        """Return the shape that each element needs: its size if it is a batch."""
        there = self.file != NOBODY
        axes = range(1, there.ndim)
        found = [there.any(axis=tuple(other for other in axes if other != axis)).sum(axis=1) for axis in axes]
        return list(zip(*(extents.tolist() for extents in found), strict=True)) or [()] * len(self)

    def widened(self, shape: tuple[int, ...]) -> Origin:
        """Return the origin padded to batches of these sizes; existing batches may be smaller."""
        if self.file.shape[1:] == shape:
            return self
        widths = [(0, 0), *((0, size - own) for size, own in zip(shape, self.file.shape[1:], strict=True))]
        position = None if self.position is None else np.pad(self.position, widths, constant_values=-1)
        file = np.pad(self.file, widths, constant_values=NOBODY)
        return Origin(self.files, file, np.pad(self.offset, widths, constant_values=-1), position)

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> Origin:
        position = None if self.position is None else change(self.position)
        return Origin(self.files, change(self.file), change(self.offset), position)


def concat_origins(origins: Sequence[Origin | None]) -> Origin | None:
    """Join origins, one after the other. Return None if a part has no origin, or is batched more often than another."""
    first = origins[0]
    if first is None or len(origins) == 1:
        return first
    known = [origin for origin in origins if origin is not None]
    if len(known) < len(origins) or any(o.file.ndim != first.file.ndim for o in known):
        return None
    shape = common_shape(known)
    known = [origin.widened(shape) for origin in known]
    numbers: dict[str, int] = {}
    if all(origin.files == first.files for origin in known):
        names, file = first.files, np.concatenate([origin.file for origin in known])
    elif first.file.ndim == 1 and {len(origin.files) for origin in known} == {1}:
        # one file per element, as with many small files
        one_each = [numbers.setdefault(origin.files[0], len(numbers)) for origin in known]
        names, file = tuple(numbers), np.array(one_each, np.int64).repeat([len(origin.file) for origin in known])
    else:
        file = np.concatenate([numbered(origin, numbers) for origin in known])
        names = tuple(numbers)
    positions = [origin.position for origin in known if origin.position is not None]
    position = np.concatenate(positions) if len(positions) == len(known) else None
    return Origin(names, file, np.concatenate([origin.offset for origin in known]), position)


def common_shape(origins: Sequence[Origin]) -> tuple[int, ...]:
    """Return the smallest shape that holds the largest batches of all origins."""
    return tuple(max(sizes) for sizes in zip(*(origin.file.shape[1:] for origin in origins), strict=True))


def numbered(origin: Origin, files: dict[str, int]) -> np.ndarray:
    """Return the files of an origin by their numbers in `files`, and add new names to `files`."""
    numbers = np.array([*(files.setdefault(name, len(files)) for name in origin.files), NOBODY], np.int64)
    return numbers[origin.file]
