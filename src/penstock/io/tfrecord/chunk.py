"""RecordChunk: neighbouring records of a file, as positions in a buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class RecordChunk:
    """Record i is `buffer[starts[i] : starts[i] + lengths[i]]`; nothing is copied out of the buffer.

    `buffer` is read-only uint8 and never changes afterwards; `starts`, `lengths` and `offsets` are int64 of shape (n,).
    `offsets` says where each record's header begins in the file (in its uncompressed content), for error messages.
    """

    buffer: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def slice(self, start: int, stop: int) -> RecordChunk:
        """The records from number `start` up to, not including, number `stop`."""
        return RecordChunk(self.buffer, self.starts[start:stop], self.lengths[start:stop], self.offsets[start:stop])

    def records(self) -> list[bytes]:
        """The records as byte strings, copied."""
        view = self.buffer.data
        spans = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [bytes(view[start : start + length]) for start, length in spans]
