"""The segments of a JPEG in front of its first scan, and what they say of the picture."""

from __future__ import annotations

from collections.abc import Iterator

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
