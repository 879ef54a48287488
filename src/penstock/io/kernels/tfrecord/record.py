"""record: the header and the checksums of one record."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.loads import bits32, load64
from penstock.io.kernels.tfrecord.crc_by_instruction import crc_by_instruction
from penstock.io.kernels.tfrecord.crc_by_tables import crc_by_tables
from penstock.io.kernels.tfrecord.instruction import INSTRUCTION
from penstock.io.tfrecord.framing import (
    EVERYTHING,
    FINE,
    LENGTHS,
    SHORT_BODY,
    SHORT_HEADER,
    WRONG_DATA,
    WRONG_LENGTH,
)

U = np.uint64

_crc = crc_by_instruction if INSTRUCTION else crc_by_tables


@uncounted
@helper
def _matches(buffer: Any, start: Any, stop: Any) -> Any:
    """Whether the four bytes at `stop` are the masked checksum of buffer[start:stop]."""
    found = _crc(buffer, start, stop)
    rotated = ((found >> U(15)) | (found << U(17))) & U(0xFFFFFFFF)
    return (rotated + U(0xA282EAD8)) & U(0xFFFFFFFF) == U(bits32(buffer, stop))


@uncounted
@helper
def record(buffer: Any, at: Any, check: Any) -> Any:
    """(status, length of the data) of the record whose header begins at `at`, which is not past the end."""
    room = buffer.size - at
    if room < 12:
        return SHORT_HEADER, 0
    begin = U(at)
    length = load64(buffer, begin)
    if check >= LENGTHS and not _matches(buffer, begin, begin + U(8)):
        return WRONG_LENGTH, 0
    if room < 16 or length > U(room - 16):
        return SHORT_BODY, 0
    if check >= EVERYTHING and not _matches(buffer, begin + U(12), begin + U(12) + length):
        return WRONG_DATA, 0
    return FINE, np.int64(length)
