"""Changes that networks, disks, careless writers and attackers make to the bytes of a file."""

from __future__ import annotations

import struct
from random import Random

_HUGE = (0, 1, -1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**60, 2**63 - 1, -(2**63))
_TEXTS = (
    *(b"9" * 6000, b"-" + b"1" * 400, b"1e999", b"NaN", b"null", b"-0000001", b"7777777777"),
    *(b"[" * 3000, b'{"a":' * 2000, b'"', b",", b"\\ud800", b"\xef\xbb\xbf"),
    *(b"\n", b"\r\n", b"\xff\xfe", b"\0" * 600),
)


def flip(data: bytearray, rng: Random, at: int) -> None:
    data[at] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: Random, at: int) -> None:
    data[at : at + 8] = rng.randbytes(len(data[at : at + rng.randint(1, 8)]))


def truncate(data: bytearray, rng: Random, at: int) -> None:
    del data[at:]


def duplicate(data: bytearray, rng: Random, at: int) -> None:
    data[at:at] = data[max(0, at - rng.choice((1, 8, 64, 600))) : at]


def swap(data: bytearray, rng: Random, at: int) -> None:
    other, length = rng.randrange(len(data)), rng.choice((1, 4, 32))
    one, two = bytes(data[at : at + length]), bytes(data[other : other + length])
    data[at : at + length], data[other : other + length] = (
        two[: len(one)].ljust(len(one)),
        one[: len(two)].ljust(len(two)),
    )


def insert(data: bytearray, rng: Random, at: int) -> None:
    data[at:at] = rng.randbytes(rng.choice((1, 3, 8, 100)))


def zero(data: bytearray, rng: Random, at: int) -> None:
    length = len(data[at : at + rng.choice((1, 4, 16, 512))])
    data[at : at + length] = bytes(length)


def delete(data: bytearray, rng: Random, at: int) -> None:
    del data[at : at + rng.choice((1, 2, 8, 64))]


def append(data: bytearray, rng: Random, at: int) -> None:
    data += rng.choice((rng.randbytes(rng.randint(1, 40)), bytes(data[-40:]), bytes(600)))


def huge(data: bytearray, rng: Random, at: int) -> None:
    """Replace any four or eight bytes by an impossible length, count or offset."""
    width, order = rng.choice(((4, "<I"), (8, "<Q"), (4, ">I"), (2, ">H")))
    at -= at % rng.choice((1, 4, 8))
    data[at : at + width] = struct.pack(order, rng.choice(_HUGE) % (1 << 8 * width))


def text(data: bytearray, rng: Random, at: int) -> None:
    """Insert text that a text format does not expect."""
    found = rng.choice(_TEXTS)
    data[at : at + rng.choice((0, 0, len(found)))] = found


WAYS = (flip, overwrite, truncate, duplicate, swap, insert, zero, delete, append, huge, text)


def mutated(content: bytes, rng: Random) -> bytes:
    """Return `content` with one change, sometimes with several."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not data:
            break
        at = rng.randrange(len(data))
        if rng.random() < 0.3:  # headers and footers matter most
            at = rng.choice((at % min(len(data), 64), len(data) - 1 - at % min(len(data), 200)))
        rng.choice(WAYS)(data, rng, at)
    return bytes(data)


def some_mutated(files: dict[str, bytes], rng: Random) -> dict[str, bytes]:
    """Change one of the files; sometimes one is missing, empty, or replaced by another."""
    name = rng.choice(sorted(files))
    way = rng.randrange(12)
    if way == 0 and len(files) > 1:
        return {other: content for other, content in files.items() if other != name}
    if way == 1:
        return {**files, name: rng.choice((b"", files[rng.choice(sorted(files))]))}
    return {**files, name: mutated(files[name], rng)}
