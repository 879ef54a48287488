"""scan, gather: the next records of a file, and the records at given offsets."""

from __future__ import annotations

from penstock.io.kernels.tfrecord.record import record
from penstock.io.tfrecord.framing import FINE, SHORT_HEADER
from penstock.native.kernel import kernel


@kernel("buffer: u8[:], at: i64, max_bytes: i64, check: i64, starts: w i64[:], lengths: w i64[:] -> i64, i64, i64")
def scan(buffer, at, max_bytes, check, starts, lengths):
    """Fill `starts` and `lengths` with records from `at` on. Return (records, next position, status).

    The scan stops when the arrays are full, at the end, after `max_bytes` of data, or before the first damaged record.
    """
    count = 0
    taken = 0
    while count < starts.size and at < buffer.size and (taken < max_bytes or count == 0):
        status, length = record(buffer, at, check)
        if status != FINE:
            return count, at, status
        starts[count] = at + 12
        lengths[count] = length
        count += 1
        taken += length
        at += length + 16
    return count, at, FINE


@kernel("buffer: u8[:], offsets: w i64[:], check: i64, starts: w i64[:], lengths: w i64[:] -> i64, i64")
def gather(buffer, offsets, check, starts, lengths):
    """Read the records whose headers begin at `offsets`. Return (records before the first damaged one, its status)."""
    for i in range(offsets.size):
        at = offsets[i]
        if at < 0 or at >= buffer.size:
            return i, SHORT_HEADER
        status, length = record(buffer, at, check)
        if status != FINE:
            return i, status
        starts[i] = at + 12
        lengths[i] = length
    return offsets.size, FINE
