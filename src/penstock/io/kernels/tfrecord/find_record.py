"""find_record: where records go on behind a damage; compiled when this is imported."""

from __future__ import annotations

from typing import Any

import numba

from penstock.compiled.kernel import kernel, only_for, uncounted
from penstock.io.kernels.tfrecord.record import BUFFER, record
from penstock.io.tfrecord.framing import EVERYTHING, FINE, SHORT_BODY, SHORT_HEADER

types: Any = numba.types


@only_for(types.UniTuple(types.int64, 2)(BUFFER, types.int64))
@uncounted
@kernel
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
