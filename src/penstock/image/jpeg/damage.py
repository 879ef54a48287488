"""The segments of a JPEG, what is wrong with one that libjpeg complains about, and how much of it can be kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, PenstockError
from penstock.image.checks import not_a

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Decode = Callable[[bytes, Any, bool], npt.NDArray[np.uint8]]  # contents, memory, and whether to be strict


START = b"\xff\xd8"
END = b"\xff\xd9"
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def segments(contents: bytes | memoryview) -> Iterator[tuple[int, bytes]]:
    """The segments up to the first scan: their kinds, and their bytes from the marker on."""
    at = 2
    while at + 4 <= len(contents) and contents[at] == 0xFF:
        kind = contents[at + 1]
        end = at + (1 if kind == 0xFF else 2 + int.from_bytes(contents[at + 2 : at + 4], "big"))
        yield kind, bytes(contents[at:end])
        if kind == 0xDA:
            return
        at = end


def next_marker(contents: bytes, at: int) -> int:
    """Where the marker at `at` or behind begins, its last fill byte; the length of `contents` if there is none."""
    while at + 1 < len(contents):
        at = contents.find(b"\xff", at)
        if at < 0 or at + 1 >= len(contents):
            break
        if contents[at + 1] not in (0x00, 0xFF):
            return at
        at += 1 if contents[at + 1] == 0xFF else 2
    return len(contents)


def frame(contents: bytes | memoryview) -> bytes:
    """The segment that says how large it is, and of what."""
    return next((segment for kind, segment in segments(contents) if kind in FRAMES), b"")


def size_of(contents: bytes | memoryview) -> tuple[int, int]:
    """Rows and columns that the header says."""
    header = frame(contents)
    return int.from_bytes(header[5:7], "big"), int.from_bytes(header[7:9], "big")


def components(contents: bytes | memoryview) -> int:
    """How many the header names, 0 if there is none."""
    header = frame(contents)
    return header[9] if len(header) > 9 else 0


def without_capacity(contents: bytes | memoryview) -> bool:
    r"""Whether the bound of pixels per byte holds: for all but arithmetic coding, which may use less than a bit.

    >>> without_capacity(b"\xff\xd8\xff\xc9\x00\x11")
    False
    """
    return not any(kind in (0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF) for kind, _ in segments(contents))


def with_width(contents: bytes | memoryview, width: int) -> bytes:
    """`contents` whose header says another width."""
    parts, at = [bytes(contents[:2])], 2
    for kind, segment in segments(contents):
        at += len(segment)
        parts.append(segment[:7] + width.to_bytes(2, "big") + segment[9:] if kind in FRAMES else segment)
    return b"".join(parts) + bytes(contents[at:])


ALL_OF_A_BLOCK = b"\x00\x3f\x00"  # the parameters of a scan of a sequential file
GIVEN_UP = b"\xff\xc0\x00\x02" * 20000  # headers, of which there must not be two, farther than a segment may reach
REFUSALS = (ValueError, KeyError)  # simplejpeg's; KeyError for a cut header, whose subsampling has no name


def describe(contents: bytes, complaint: str) -> PenstockError:
    r"""The error for `contents`, of which libjpeg said `complaint`.

    >>> print(describe(b"GIF89a...", "?"))
    decode_jpeg: these 9 bytes are not a JPEG but GIF.
      Use decode_image, which finds out the format.
    >>> print(describe(b"\xff\xd8\xff\xe0", "Premature end of JPEG file"))
    JPEG cut short: it ends after 4 bytes without its end marker (libjpeg: Premature end of JPEG file).
      Write the file again, or accept the loss with try_recover_truncated=True.
    """
    if not contents.startswith(START):
        return not_a("JPEG", "decode_jpeg", contents)
    if "Premature end of JPEG file" in complaint or END not in contents[-1024:]:
        message = f"JPEG cut short: it ends after {len(contents)} bytes without its end marker (libjpeg: {complaint})."
        hint = "Write the file again, or accept the loss with try_recover_truncated=True."
        return DataLossError(message, hint=hint)
    factors = sampling(contents) if is_unnamed(complaint) else ""
    if factors:
        message = f"decode_jpeg: this JPEG samples its components {factors}, which simplejpeg does not read."
        return InvalidArgumentError(message, hint="Write it again as 4:4:4, 4:2:2 or 4:2:0; OpenCV can read it.")
    return DataLossError(f"JPEG damaged: libjpeg reports {complaint!r} in {len(contents)} bytes.")


def is_unnamed(complaint: str) -> bool:
    """Whether it is about factors of sampling that TurboJPEG, or simplejpeg, has no name for."""
    return "subsampling level" in complaint or complaint.isdigit()


def sampling(contents: bytes | memoryview) -> str:
    """The sampling factors in a header, such as 2x2, 1x1, 1x1: columns by rows; nothing if there can be no such."""
    return ", ".join(f"{columns}x{rows}" for columns, rows in _factors(contents))


def oddly_sampled(contents: bytes | memoryview) -> bool:
    """Whether a file that simplejpeg does not read has a size, and three components in a sampling that is possible."""
    return components(contents) == 3 and sampling(contents) != "" and 0 not in size_of(contents)


def is_whole(contents: bytes | memoryview) -> bool:
    """Whether all components are sampled in whole ratios to the most finely sampled one."""
    return all(max(side) % factor == 0 for side in zip(*_factors(contents), strict=True) for factor in side)


def _factors(contents: bytes | memoryview) -> list[tuple[int, int]]:
    pairs = [(factors >> 4, factors & 15) for factors in frame(contents)[11::3]]
    possible = len(pairs) == components(contents) and all(1 <= factor <= 4 for pair in pairs for factor in pair)
    return pairs if possible else []


def despite_damage(
    contents: bytes, complaint: str, decode: Decode, memory: npt.NDArray[np.uint8], *, cut: bool
) -> npt.NDArray[np.uint8]:
    """What libjpeg makes of `contents`, of which it has said `complaint`, where TensorFlow takes that.

    That is wherever it fills in what is wrong, if an end marker stands behind it or the file may be `cut`.

    Raises:
        DataLossError: what is wrong is not filled in.
        InvalidArgumentError: not a JPEG, or none that simplejpeg reads.
    """
    sound = mended(contents)
    if sound != contents:
        try:
            return decode(sound, memory, True)
        except REFUSALS as error:
            complaint = str(error)
    if _of_one_scan(sound):
        ends = _ends(sound, cut=cut)
    else:
        ends = cut or _filled_in(sound + GIVEN_UP, decode, memory) is not None
    image = _filled_in(sound, decode, memory) if ends else None
    if image is None:
        raise describe(contents, complaint)
    return image


def _filled_in(contents: bytes, decode: Decode, memory: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | None:
    """What libjpeg fills in, or None where it gives up: simplejpeg does not tell, if there was a warning before."""
    for level in (1, 2):
        memory[:] = level
        try:
            image = decode(contents, memory, False)
        except REFUSALS:
            return None
        if (image != level).any():
            return image
    return None


def _of_one_scan(contents: bytes) -> bool:
    """Whether rows are made as the only scan is read, and not when all scans have been."""
    found = dict(segments(contents))
    progressive = any(kind in found for kind in (0xC2, 0xC6, 0xCA, 0xCE))
    return not progressive and found.get(0xDA, b"")[4:5] == bytes([components(contents)])


def _ends(contents: bytes, *, cut: bool) -> bool:
    """Whether nothing that libjpeg gives up at stands between the first row of the only scan and the end marker.

    Marks that mean nothing are passed over at the next restart marker, which so has to follow.
    """
    restarts, meaningless = False, False
    at = 2
    for kind, segment in segments(contents):
        restarts |= kind == 0xDD and segment[4:] != b"\0\0"
        at += len(segment)
    while (at := next_marker(contents, at)) + 2 <= len(contents):
        kind = contents[at + 1]
        at += 2
        if kind == END[1]:
            return not meaningless
        if 0xE0 <= kind <= 0xEF or kind == 0xFE:
            at += int.from_bytes(contents[at : at + 2], "big")
        elif 0xD0 <= kind <= 0xD7:
            meaningless = False
        elif restarts and kind < 0xC0:
            meaningless = True
        elif kind != 0x01:
            return False
    return cut and not meaningless


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
        at = next_marker(contents, at)
        kind, end = contents[at + 1 : at + 2], at + 2
        if not kind or kind[0] in (0x01, *range(0xD0, 0xDA)):
            return b"".join(parts) + contents[at:]
        end += int.from_bytes(contents[at + 2 : at + 4], "big")
        segment = contents[at:end]
        sequential |= kind in (b"\xc0", b"\xc1")
        if kind == b"\xe0" and segment[4:9] == b"JFIF\0":
            segment = segment[:9] + b"\x01\x01" + segment[11:]
        if kind == b"\xee" and segment[4:9] == b"Adobe" and segment[15:16] not in (b"\0", b""):
            segment = segment[:15] + (b"\x02" if components(contents) == 4 else b"\x01") + segment[16:]
        if kind == b"\xda" and sequential:
            segment = segment[:-3] + ALL_OF_A_BLOCK
        if kind == b"\xda" or end <= at + 3:
            return b"".join(parts) + segment + contents[end:]
        parts.append(segment)
        at = end


def intact_rows(contents: bytes, decode: Callable[[bytes], npt.NDArray[Any]]) -> int:
    """How many rows of a cut JPEG do not depend on what is missing.

    Found by continuing the file in two ways and comparing: where the results differ, data is missing.
    """
    one, other = (decode(contents + filler * 64 + END) for filler in (b"\x00", b"\x55"))
    differs = (one != other).reshape(len(one), -1).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else len(one)
