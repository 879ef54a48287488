"""OriginRows: where the elements in each slot were read."""

from __future__ import annotations

import numpy as np

from penstock.block.column_rows import grown
from penstock.block.origin import Origin, common_shape, numbered


class OriginRows:
    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._files: tuple[str, ...] = ()  # the same
        self._file: np.ndarray | None = None
        self._offset = np.empty(0, np.int64)
        self._position: np.ndarray | None = None
        self._reserved = 0

    slot_bytes = 16

    def nbytes(self, count: int) -> int:
        return 0 if self._file is None else count * self.slot_bytes

    def reserve(self, count: int) -> None:
        self._reserved = count
        if self._file is not None:
            self._file, self._offset = grown(self._file, count), grown(self._offset, count)
        if self._position is not None:
            self._position = grown(self._position, count)

    def put(self, slots: np.ndarray, origin: Origin | None) -> OriginRows | None:
        """Self, or None from the moment elements without an origin come."""
        if origin is None:
            return None
        if self._file is None:
            shape = (self._reserved, *origin.file.shape[1:])
            self._file, self._offset = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            self._position = None if origin.position is None else np.zeros(shape, np.int64)
        if origin.file.ndim != self._file.ndim:
            return None
        if origin.file.shape[1:] != self._file.shape[1:]:
            kept = Origin((), self._file, self._offset, self._position)
            shape = common_shape([kept, origin])
            kept, origin = kept.widened(shape), origin.widened(shape)
            self._file, self._offset, self._position = kept.file, kept.offset, kept.position
        self._file[slots] = self._numbers(origin)
        self._offset[slots] = origin.offset
        if self._position is not None and origin.position is not None:
            self._position[slots] = origin.position
        else:
            self._position = None
        return self

    def _numbers(self, origin: Origin) -> np.ndarray:
        if origin.files == self._files:
            return origin.file
        found = numbered(origin, self._names)
        if len(self._names) > len(self._files):
            self._files = tuple(self._names)
        return found

    def get(self, slots: np.ndarray) -> Origin:
        assert self._file is not None
        position = None if self._position is None else self._position[slots]
        return Origin(self._files, self._file[slots], self._offset[slots], position)
