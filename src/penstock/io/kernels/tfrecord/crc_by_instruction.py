"""crc_by_instruction: CRC-32C by the instruction of x86-64 (SSE 4.2) or ARM64, on processors that have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.loads import load64
from penstock.io.kernels.tfrecord.instruction import step1, step8
from penstock.io.kernels.tfrecord.tables import BEHIND_LANE, LANE

U = np.uint64


@uncounted
@inlined
def _behind_lane(crc: Any) -> Any:
    """What a checksum becomes when a lane of zeros follows."""
    return (
        BEHIND_LANE[0, crc & U(255)]
        ^ BEHIND_LANE[1, (crc >> U(8)) & U(255)]
        ^ BEHIND_LANE[2, (crc >> U(16)) & U(255)]
        ^ BEHIND_LANE[3, crc >> U(24)]
    )


@uncounted
@helper
def crc_by_instruction(buffer: Any, start: Any, stop: Any) -> Any:
    """CRC-32C of buffer[start:stop]; the caller has checked the bounds.

    The instruction gives its result after three cycles and can begin one in each, so three lanes go side by side.
    """
    found = U(0xFFFFFFFF)
    at = start
    lane = U(LANE)
    while stop - at >= U(3) * lane:
        second = third = U(0)
        end = at + lane
        while at < end:
            found = step8(found, load64(buffer, at))
            second = step8(second, load64(buffer, at + lane))
            third = step8(third, load64(buffer, at + U(2) * lane))
            at += U(8)
        found = _behind_lane(_behind_lane(found) ^ second) ^ third
        at += U(2) * lane
    while stop - at >= U(8):
        found = step8(found, load64(buffer, at))
        at += U(8)
    while at < stop:
        found = step1(found, U(buffer[at]))
        at += U(1)
    return found ^ U(0xFFFFFFFF)
