"""Walking over a tar archive in memory: where its members begin and how they are called, in all formats in use.

A member is a header of 512 bytes and its data, filled up to a multiple of 512. POSIX (pax) and GNU archives put
further members of their own in front of one whose name or size does not fit its header. Source: POSIX.1-2024, pax,
"ustar Interchange Format" and "pax Interchange Format"; GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLOCK = 512
_ZEROS = bytes(BLOCK)
_SPACES = 8 * ord(" ")
_MOST_DIGITS = 20  # of a size; Python itself refuses what has thousands
_SHOWN = 40  # bytes of what is said of a damage

_EXTENSIONS = b"xgLKX"  # pax header, global pax header, GNU long name, GNU long link, Solaris pax header
_FILES = b"0\x007"
_WITHOUT_DATA = b"123456"  # links, devices, directories, pipes; what is of another type has data that is passed over


class TarDamage(Exception):
    """What is wrong at byte `at` of the buffer."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.at = at


class CutShort(TarDamage):
    """The buffer ends before the member does, which has `wanted` bytes from where it begins."""

    def __init__(self, what: str, at: int, wanted: int) -> None:
        super().__init__(what, at)
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class Member:
    """One member: `begin` is its first header, `start` its data, `stop` where the next one begins."""

    name: bytes
    begin: int
    start: int
    size: int
    stop: int
    is_file: bool


def read_member(buffer: np.ndarray, begin: int) -> Member | None:
    """The member whose first header stands at `begin`, or None at the end of the archive. Raises TarDamage.

    >>> import io, tarfile
    >>> out = io.BytesIO()
    >>> with tarfile.open(fileobj=out, mode="w") as archive:
    ...     member = tarfile.TarInfo("a/1.txt")
    ...     member.size = 2
    ...     archive.addfile(member, io.BytesIO(b"hi"))
    >>> found = read_member(np.frombuffer(out.getvalue(), np.uint8), 0)
    >>> found.name, found.start, found.size, found.stop
    (b'a/1.txt', 512, 2, 1024)
    """
    view = buffer.data
    at = begin
    name: bytes | None = None
    size: int | None = None
    while True:
        head = bytes(view[at : at + BLOCK])
        if len(head) < BLOCK:
            if not head and at == begin:
                return None
            what = f"a header has {BLOCK} bytes, and {len(head)} are left"
            raise CutShort(what, at, at + BLOCK - begin)
        if head == _ZEROS:
            return None
        length = _checked_size(head, at)
        start, kind = at + BLOCK, head[156:157]
        if kind not in _EXTENSIONS:
            break
        stop = start + _padded(length)
        if stop > len(view):
            message = f"the {length} bytes of an extended header end behind the file"
            raise CutShort(message, at, stop - begin)
        body = bytes(view[start : start + length])
        if kind == b"L":
            name = body.partition(b"\0")[0]
        elif kind in b"xX":
            fields = _pax_fields(body, at)
            name = fields.get(b"path", name)
            size = int(fields[b"size"]) if b"size" in fields else size
        at = stop
    if size is not None:
        length = size
    if kind == b"S":
        message = "a sparse file, of which no bytes can be given as they are"
        raise TarDamage(message, at)
    if name is None:
        name = _name(head)
    held = 0 if kind in _WITHOUT_DATA else length
    stop = start + _padded(held)
    if stop > len(view):
        message = f"a member takes {stop - start} bytes, and {len(view) - start} are left"
        raise CutShort(message, at, stop - begin)
    return Member(name, begin, start, held, stop, kind in _FILES and not name.endswith(b"/"))


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _name(head: bytes) -> bytes:
    name = head[:100].partition(b"\0")[0]
    prefix = head[345:500].partition(b"\0")[0] if head[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _checked_size(head: bytes, at: int) -> int:
    """The size that a header states; raises TarDamage when its checksum does not match."""
    stated = _octal(head[148:156])
    field = head[148:156]
    if stated != sum(head) - sum(field) + _SPACES and stated != _signed_sum(head) - _signed_sum(field) + _SPACES:
        message = "the checksum of a header does not match"
        raise TarDamage(message, at)
    text = head[124:136]
    if text[0] & 0x80:
        return int.from_bytes(bytes([text[0] & 0x7F]) + text[1:], "big")
    size = _octal(text)
    if size is None:
        message = f"the size in a header is no number: {text!r}"
        raise TarDamage(message, at)
    return size


def _octal(text: bytes) -> int | None:
    """The number in a field of a header; none where there are other bytes than digits, such as a sign."""
    digits = text.strip(b"\0 ") or b"0"
    return int(digits, 8) if not digits.translate(None, b"01234567") else None


def _signed_sum(part: bytes) -> int:
    """The sum that some old archivers wrote."""
    return sum(byte - 256 if byte > 127 else byte for byte in part)


def _pax_fields(body: bytes, at: int) -> dict[bytes, bytes]:
    """The records of a pax header: `length key=value` and a newline, where the length counts all of that."""
    found: dict[bytes, bytes] = {}
    place = 0
    while place < len(body) and body[place]:
        number, space, _ = body[place : place + 24].partition(b" ")
        length = int(number) if space and number.isdigit() else 0
        record = body[place + len(number) + 1 : place + length]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n"):
            message = f"an extended header holds {body[place : place + 24]!r}"
            raise TarDamage(message, at)
        found[key] = value[:-1]
        place += length
    size = found.get(b"size", b"0")
    if not size.isdigit() or len(size) > _MOST_DIGITS:
        message = f"an extended header says that the size is {size[:_SHOWN]!r}"
        raise TarDamage(message, at)
    return found
