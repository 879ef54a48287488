"""find_record: the position of the next whole record after a damaged one."""

from __future__ import annotations

from typing import Any

from penstock.io.kernels.tfrecord.record import record
from penstock.io.tfrecord.framing import EVERYTHING, FINE, SHORT_BODY, SHORT_HEADER
from penstock.native.kernel import kernel


@kernel("buffer: u8[:], at: i64 -> i64, i64")
def find_record(buffer: Any, at: Any) -> Any:
    """Where the next record begins, from `at` on, and its status.

    FINE is a record whose both checksums match, SHORT_BODY one with a good header that the buffer does not hold to its
    end. SHORT_HEADER stands for none, at the first place where a header would not fit.
    """
    while buffer.size - at >= 12:
        status, _ = record(buffer, at, EVERYTHING)
        if status in (FINE, SHORT_BODY):
            return at, status
        at += 1
    return at, SHORT_HEADER
