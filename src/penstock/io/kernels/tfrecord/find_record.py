"""find_record: the position of the next whole record after a damaged one."""

from __future__ import annotations

from penstock.io.kernels.tfrecord.record import record
from penstock.io.tfrecord.framing import EVERYTHING, FINE, SHORT_BODY, SHORT_HEADER
from penstock.native.kernel import kernel


@kernel("buffer: u8[:], at: i64 -> i64, i64")
def find_record(buffer, at):
    """Return the start of the next record, from `at` on, and its status.

    FINE is a record with two valid checksums. SHORT_BODY is a record with a valid header that ends after the buffer.
    SHORT_HEADER means that no record was found; the position is the first one without space for a header.
    """
    while buffer.size - at >= 12:
        status, _ = record(buffer, at, EVERYTHING)
        if status in (FINE, SHORT_BODY):
            return at, status
        at += 1
    return at, SHORT_HEADER
