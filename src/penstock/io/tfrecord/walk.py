"""scan, find_record, gather: the walk over the framing of a file, compiled, or in plain Python until that is there."""

from __future__ import annotations

import numpy as np

from penstock.compiled import Compiled
from penstock.io.tfrecord.framing import plain_find, plain_gather, plain_scan

_KERNELS = "penstock.io.kernels.tfrecord"
_SCAN = Compiled(f"{_KERNELS}.scan")
_FIND = Compiled(f"{_KERNELS}.find_record")
_GATHER = Compiled(f"{_KERNELS}.gather")


def scan(
    buffer: np.ndarray, at: int, max_bytes: int, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int, int]:
    """Fill `starts` and `lengths` with records from `at` on; returns (records, next position, status).

    Stops when the arrays are full, at the end, after `max_bytes` of data, or in front of the first damaged record.
    """
    kernels = _SCAN.ready()
    walk = plain_scan if kernels is None else kernels.scan
    found: tuple[int, int, int] = walk(buffer, at, max_bytes, check, starts, lengths)
    return found


def find_record(buffer: np.ndarray, at: int) -> tuple[int, int]:
    """Where the next record begins, from `at` on, and its status.

    FINE is a record whose both checksums match, SHORT_BODY one with a good header that the buffer does not hold to its
    end. SHORT_HEADER stands for none, at the first place where a header would not fit.
    """
    kernels = _FIND.ready()
    find = plain_find if kernels is None else kernels.find_record
    found: tuple[int, int] = find(buffer, at)
    return found


def gather(
    buffer: np.ndarray, offsets: np.ndarray, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int]:
    """The records whose headers begin at `offsets`; returns (records before the first damaged one, its status)."""
    kernels = _GATHER.ready()
    take = plain_gather if kernels is None else kernels.gather
    found: tuple[int, int] = take(buffer, offsets, check, starts, lengths)
    return found
