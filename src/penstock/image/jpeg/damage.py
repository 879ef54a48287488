"""The segments of a JPEG, the errors of a file that libjpeg complains about, and the part of it that is intact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, PenstockError
from penstock.image.checks import not_a

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Decode = Callable[[bytes, Any, bool], npt.NDArray[np.uint8]]  # contents, memory, and True to be strict


START = b"\xff\xd8"
END = b"\xff\xd9"
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def segments(contents: bytes | memoryview) -> Iterator[tuple[int, bytes]]:
    """Yield the segments up to the first scan: their kinds, and their bytes from the marker on."""
    at = 2
    while at + 4 <= len(contents) and contents[at] == 0xFF:
        kind = contents[at + 1]
        end = at + (1 if kind == 0xFF else 2 + int.from_bytes(contents[at + 2 : at + 4], "big"))
        yield kind, bytes(contents[at:end])
        if kind == 0xDA:
            return
        at = end


def next_marker(contents: bytes, at: int) -> int:
    """Return the position of the next marker from `at` on (its last fill byte), or the length of `contents`."""
    while at + 1 < len(contents):
        at = contents.find(b"\xff", at)
        if at < 0 or at + 1 >= len(contents):
            break
        if contents[at + 1] not in (0x00, 0xFF):
            return at
        at += 1 if contents[at + 1] == 0xFF else 2
    return len(contents)


def frame(contents: bytes | memoryview) -> bytes:
    """Return the segment with the size and the components."""
    return next((segment for kind, segment in segments(contents) if kind in FRAMES), b"")


def size_of(contents: bytes | memoryview) -> tuple[int, int]:
    """Return the rows and columns in the header."""
    header = frame(contents)
    return int.from_bytes(header[5:7], "big"), int.from_bytes(header[7:9], "big")


def components(contents: bytes | memoryview) -> int:
    """Return the number of components in the header, 0 if there is none."""
    header = frame(contents)
    return header[9] if len(header) > 9 else 0


def without_capacity(contents: bytes | memoryview) -> bool:
    r"""Return True if the bound of pixels per byte holds. Arithmetic coding may use less than a bit per block.

    >>> without_capacity(b"\xff\xd8\xff\xc9\x00\x11")
    False
    """
    return not any(kind in (0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF) for kind, _ in segments(contents))


def with_width(contents: bytes | memoryview, width: int) -> bytes:
    """Return `contents` with another width in its header."""
    parts, at = [bytes(contents[:2])], 2
    for kind, segment in segments(contents):
        at += len(segment)
        parts.append(segment[:7] + width.to_bytes(2, "big") + segment[9:] if kind in FRAMES else segment)
    return b"".join(parts) + bytes(contents[at:])


ALL_OF_A_BLOCK = b"\x00\x3f\x00"  # the parameters of a scan of a sequential file
GIVEN_UP = b"\xff\xc0\x00\x02" * 20000  # headers, of which there must not be two, farther than a segment may reach
REFUSALS = (ValueError, KeyError)  # simplejpeg's; KeyError for a cut header, whose subsampling has no name


def describe(contents: bytes, complaint: str) -> PenstockError:
    r"""Return the error for `contents`, after libjpeg's message `complaint`.

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
    """Return True if the message is about sampling factors that TurboJPEG or simplejpeg has no name for."""
    return "subsampling level" in complaint or complaint.isdigit()


def sampling(contents: bytes | memoryview) -> str:
    """Return the sampling factors in a header, columns by rows, such as 2x2, 1x1, 1x1, or "" if they are invalid."""
    return ", ".join(f"{columns}x{rows}" for columns, rows in _factors(contents))


def oddly_sampled(contents: bytes | memoryview) -> bool:
    """Return True if a file that simplejpeg cannot read has a size, and three components with a valid sampling."""
    return components(contents) == 3 and sampling(contents) != "" and 0 not in size_of(contents)


def is_whole(contents: bytes | memoryview) -> bool:
    """Return True if the finest sampling is a multiple of the sampling of all components."""
    return all(max(side) % factor == 0 for side in zip(*_factors(contents), strict=True) for factor in side)


def _factors(contents: bytes | memoryview) -> list[tuple[int, int]]:
    pairs = [(factors >> 4, factors & 15) for factors in frame(contents)[11::3]]
    possible = len(pairs) == components(contents) and all(1 <= factor <= 4 for pair in pairs for factor in pair)
    return pairs if possible else []


def despite_damage(
    contents: bytes, complaint: str, decode: Decode, memory: npt.NDArray[np.uint8], *, cut: bool
) -> npt.NDArray[np.uint8]:
    """Return libjpeg's image of `contents`, after its message `complaint`, if TensorFlow accepts this image.

    TensorFlow accepts it if libjpeg fills in the damaged part, and an end marker follows or the file may be `cut`.

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
    """Return the image with libjpeg's fillings, or None if libjpeg gives up. simplejpeg hides this after a warning."""
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
    """Return True if rows are decoded while the only scan is read, and not after all scans."""
    found = dict(segments(contents))
    progressive = any(kind in found for kind in (0xC2, 0xC6, 0xCA, 0xCE))
    return not progressive and found.get(0xDA, b"")[4:5] == bytes([components(contents)])


def _ends(contents: bytes, *, cut: bool) -> bool:
    """Return True if libjpeg does not give up between the first row of the only scan and the end marker.

    libjpeg skips invalid markers up to the next restart marker, so a restart marker must follow.
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
    r"""Return `contents` without the parts that libjpeg and TensorFlow ignore before the rows.

    No pixel depends on these parts: bytes between segments, an invalid JFIF version, scan parameters that only a
    progressive file has, and an invalid colour mark of Adobe. libjpeg replaces the last one by the usual colours.

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
    """Return the number of rows of a truncated JPEG that do not depend on the missing data.

    The file is continued in two ways, and the results are compared. Rows that differ depend on missing data.
    """
    one, other = (decode(contents + filler * 64 + END) for filler in (b"\x00", b"\x55"))
    differs = (one != other).reshape(len(one), -1).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else len(one)
