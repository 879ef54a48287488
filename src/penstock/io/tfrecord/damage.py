"""What a damaged file looks like to its reader: the errors of the framing and of the compression around it."""

from __future__ import annotations

import numpy as np

from penstock.errors import DataLossError
from penstock.io.tfrecord.framing import SHORT_BODY, SHORT_HEADER, WRONG_LENGTH

_REWRITE = "The writer did not close the file, or a copy was cut short: write or copy it again."
_NOT_OURS = "Is this a TFRecord file? Its first bytes are no record header."


def damaged_record(
    status: int, file: str, offset: int, head: np.ndarray, left: int, *, at_start: bool, passed: str = ""
) -> DataLossError:
    """The error for what `walk.scan` found.

    `head` is the record from its header on, as far as it is there; `left` counts the bytes up to the end of the file;
    `passed` says which bytes were passed over to find the next record.
    """
    if at_start and (hint := other_format(head)):
        message = "The file does not begin with a TFRecord header."
        return DataLossError(message, hint=hint, file=file, offset=offset)
    if status == SHORT_HEADER:
        message = f"Truncated record: {left} bytes are left, and a record header has 12."
        return DataLossError(message, hint=_REWRITE, file=file, offset=offset)
    length = int.from_bytes(head[:8].tobytes(), "little")
    if status == SHORT_BODY:
        message = f"Truncated record: it says {length} bytes of data, and {max(left - 16, 0)} are left.{passed}"
        return DataLossError(message, hint=_REWRITE, file=file, offset=offset)
    if status == WRONG_LENGTH:
        message = f"Corrupted record: the checksum of its length ({length}) does not match.{passed}"
        hint = _NOT_OURS if at_start else "Bytes of the file were changed, lost or added before this place."
        return DataLossError(message, hint=hint, file=file, offset=offset)
    message = f"Corrupted record: the checksum of its {length} bytes of data does not match."
    hint = "Bytes of the record were changed after it was written; restore the file from its source."
    return DataLossError(message, hint=hint, file=file, offset=offset)


def passed_over(start: int, stop: int, *, found: bool) -> str:
    """What is said about the bytes between a damage and the next record, or the end of the file."""
    if found:
        return f" Bytes {start} to {stop} were passed over: the next whole record begins there."
    return f" Bytes {start} to {stop}, the end of the file, are lost: no whole record begins among them."


def damaged_compression(
    compression: str, reason: str, file: str, compressed_offset: int, head: bytes, *, at_start: bool
) -> DataLossError:
    """The error for a stream that zlib rejects, near byte `compressed_offset` of the file."""
    if at_start and _kind(head) != compression:
        message = (
            f"compression_type={compression!r} was asked for, and the file does not begin like {compression} data."
        )
        other = _kind(head)
        hint = f'Pass compression_type="{other}".' if other else "Leave compression_type out for uncompressed files."
        return DataLossError(message, hint=hint, file=file, offset=0)
    message = f"The {compression} data is damaged near byte {compressed_offset} of the compressed file: {reason}."
    return DataLossError(message, hint=_REWRITE, file=file)


def _kind(head: bytes) -> str:
    """The compression whose streams begin with these bytes, or ""."""
    if head[:2] == b"\x1f\x8b":
        return "GZIP"
    if len(head) >= 2 and head[0] == 0x78 and (head[0] * 256 + head[1]) % 31 == 0:
        return "ZLIB"
    return ""


def other_format(head: np.ndarray) -> str | None:
    """What to do about a file whose first bytes are those of a compressed one."""
    kind = _kind(head[:4].tobytes())
    return f'It looks like {kind} data: pass compression_type="{kind}".' if kind else None
