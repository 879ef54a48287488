"""What is wrong with a JPEG that libjpeg complains about, and how much of it can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, PenstockError
from penstock.image.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

START = b"\xff\xd8"
END = b"\xff\xd9"
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
ALL_OF_A_BLOCK = b"\x00\x3f\x00"  # the parameters of a scan of a sequential file


def describe(contents: bytes, complaint: str) -> PenstockError:
    r"""The error for `contents`, of which libjpeg said `complaint`.

    >>> print(describe(b"GIF89a...", "?"))
    decode_jpeg: these 9 bytes are not a JPEG but GIF.
      Use decode_image, which finds out the format.
    >>> print(describe(b"\xff\xd8\xff\xe0", "Premature end of JPEG file"))
    JPEG cut short: it ends after 4 bytes without its end marker (libjpeg: Premature end of JPEG file).
      Write the file anew, or accept the loss with try_recover_truncated=True.
    """
    if not contents.startswith(START):
        kind = format_of(contents)
        message = f"decode_jpeg: these {len(contents)} bytes are not a JPEG"
        if kind:
            return InvalidArgumentError(f"{message} but {kind}.", hint="Use decode_image, which finds out the format.")
        return InvalidArgumentError(f"{message}: they start with {contents[:8]!r}, a JPEG with {START!r}.")
    if "Premature end of JPEG file" in complaint or END not in contents[-1024:]:
        message = f"JPEG cut short: it ends after {len(contents)} bytes without its end marker (libjpeg: {complaint})."
        hint = "Write the file anew, or accept the loss with try_recover_truncated=True."
        return DataLossError(message, hint=hint)
    unnamed = "subsampling level" in complaint or complaint.lstrip("-").isdigit()  # a number without a name
    sampling = _sampling(contents) if unnamed else ""
    if sampling:
        message = f"decode_jpeg: this JPEG samples its components {sampling}, which simplejpeg does not read."
        return InvalidArgumentError(message, hint="Write it anew as 4:4:4, 4:2:2 or 4:2:0; OpenCV can read it.")
    return DataLossError(f"JPEG damaged: libjpeg reports {complaint!r} in {len(contents)} bytes.")


def _sampling(contents: bytes) -> str:
    """The sampling factors in a header, such as 2x2, 1x1, 1x1: columns by rows; nothing if there can be no such."""
    pairs = [(factors >> 4, factors & 15) for factors in _frame(contents)[11::3]]
    possible = len(pairs) == _components(contents) and all(1 <= factor <= 4 for pair in pairs for factor in pair)
    return ", ".join(f"{columns}x{rows}" for columns, rows in pairs) if possible else ""


def is_harmless(complaint: str) -> bool:
    """Whether libjpeg complains about bytes between the last row and the end marker, as cameras and servers leave them.

    >>> is_harmless("Corrupt JPEG data: 9 extraneous bytes before marker 0xd9")
    True
    """
    return "extraneous bytes before marker 0xd9" in complaint


def mended(contents: bytes) -> bytes:
    r"""`contents` without what libjpeg and TensorFlow pass over before the rows: no pixel depends on it.

    That is bytes between segments, a version of JFIF that does not exist, parameters of a scan that only a progressive
    file has, and Adobe's mark of colours that do not exist, in place of which libjpeg takes the usual ones.

    >>> mended(START + b"\xff\xe0\x00\x09JFIF\0\0\0" + b"junk" + END)[2:]
    b'\xff\xe0\x00\tJFIF\x00\x01\x01\xff\xd9'
    """
    if contents[2:3] != END[:1]:
        return contents
    parts = [contents[:2]]
    at, sequential = 2, False
    while True:
        at = _next_marker(contents, at)
        kind, end = contents[at + 1 : at + 2], at + 2
        if not kind or kind[0] in (0x01, *range(0xD0, 0xDA)):
            return b"".join(parts) + contents[at:]
        end += int.from_bytes(contents[at + 2 : at + 4], "big")
        segment = contents[at:end]
        sequential |= kind in (b"\xc0", b"\xc1")
        if kind == b"\xe0" and segment[4:9] == b"JFIF\0":
            segment = segment[:9] + b"\x01\x01" + segment[11:]
        if kind == b"\xee" and segment[4:9] == b"Adobe" and segment[15:16] not in (b"\0", b""):
            segment = segment[:15] + (b"\x02" if _components(contents) == 4 else b"\x01") + segment[16:]
        if kind == b"\xda" and sequential:
            segment = segment[:-3] + ALL_OF_A_BLOCK
        if kind == b"\xda" or end <= at + 3:
            return b"".join(parts) + segment + contents[end:]
        parts.append(segment)
        at = end


def _next_marker(contents: bytes, at: int) -> int:
    """Where the marker at `at` or behind begins, its last fill byte; the length of `contents` if there is none."""
    while at + 1 < len(contents):
        at = contents.find(b"\xff", at)
        if at < 0 or at + 1 >= len(contents):
            break
        if contents[at + 1] not in (0x00, 0xFF):
            return at
        at += 1 if contents[at + 1] == 0xFF else 2
    return len(contents)


def without_capacity(contents: bytes | memoryview) -> bool:
    r"""Whether the bound of pixels per byte holds: for all but arithmetic coding, which may use less than a bit.

    >>> without_capacity(b"\xff\xd8\xff\xc9\x00\x11")
    False
    """
    return not any(kind in (0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF) for kind, _ in _segments(contents))


def _components(contents: bytes) -> int:
    """How many the header names, 0 if there is none."""
    frame = _frame(contents)
    return frame[9] if len(frame) > 9 else 0


def _frame(contents: bytes) -> bytes:
    """The segment that says how large it is, and of what."""
    return next((segment for kind, segment in _segments(contents) if kind in FRAMES), b"")


def _segments(contents: bytes | memoryview) -> Iterator[tuple[int, bytes]]:
    """The segments up to the first scan: their kinds, and their bytes from the marker on."""
    at = 2
    while at + 4 <= len(contents) and contents[at] == 0xFF:
        kind = contents[at + 1]
        end = at + (1 if kind == 0xFF else 2 + int.from_bytes(contents[at + 2 : at + 4], "big"))
        yield kind, bytes(contents[at:end])
        if kind == 0xDA:
            return
        at = end


def intact_rows(contents: bytes, decode: Callable[[bytes], npt.NDArray[Any]]) -> int:
    """How many rows of a cut JPEG do not depend on what is missing.

    Found by continuing the file in two ways and comparing: where the results differ, data is missing.
    """
    one, other = (decode(contents + filler * 64 + END) for filler in (b"\x00", b"\x55"))
    differs = (one != other).reshape(len(one), -1).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else len(one)
