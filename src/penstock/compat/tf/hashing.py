"""The hashes with which TensorFlow assigns texts to buckets: FarmHash's Fingerprint64, SipHash-2-4, and Hash64.

The same code of Fingerprint64 serves Python's integers and arrays of uint64, whose texts must be in one size class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_CLASSES = (0, 3, 7, 16, 32, 64)  # most bytes of each class of texts; longer texts have a class per 64 bytes
Word = Callable[[Any], Any]  # returns the eight bytes at a place in a text


def _rotated(value: Any, shift: int) -> Any:  # to the right
    value = value & _MASK
    return (value >> shift | value << (64 - shift)) & _MASK


def _mixed(value: Any) -> Any:
    value = value & _MASK
    return value ^ value >> 47


def _of_two(u: Any, v: Any, mul: Any) -> Any:
    a = _mixed((u ^ v) * mul)
    return _mixed((v ^ a) * mul) * mul & _MASK


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def _words(words: np.ndarray, begins: np.ndarray, at: Any) -> Any:
    return words[(begins + at).view(np.int64)]


def fingerprint64(text: bytes) -> int:
    """Return FarmHash's Fingerprint64, which is the same on every machine and in every version.

    >>> fingerprint64(b"") == 0x9AE16A3B2F90404F, fingerprint64(b"penstock") % 1000
    (True, 362)
    """
    return _fingerprint(partial(_word, text), len(text), len(text))


def fingerprints(column: BytesColumn) -> np.ndarray:
    """Return `fingerprint64` of all texts of a column, as uint64.

    >>> fingerprints(BytesColumn.from_values([b"", b"penstock"])) % 1000
    array([263, 362], dtype=uint64)
    """
    data, starts, sizes = column.apart().packed()
    words = np.ndarray(data.size + 1, np.uint64, np.append(data, np.zeros(8, np.uint8)), strides=(1,))
    found = np.empty(sizes.shape, np.uint64)
    classes = np.where(sizes > 64, sizes + 63 >> 6, np.searchsorted(_CLASSES, sizes) - len(_CLASSES))
    for one in np.unique(classes).tolist():
        rows = np.flatnonzero(classes == one)
        begins, its = starts[rows].astype(np.uint64), sizes[rows].astype(np.uint64)
        found[rows] = _fingerprint(partial(_words, words, begins), its, int(its[0]))
    return found


def _fingerprint(word: Word, size: Any, least: int) -> Any:
    """Compute the fingerprint. `least` is the size of one text of the class, which determines the class."""
    mul = (_K2 + size * 2) & _MASK
    if least <= 16:
        return _up_to_16(word, size, mul, least)
    return _up_to_64(word, size, mul, least) if least <= 64 else _longer(word, size, least)


def _up_to_16(word: Word, size: Any, mul: Any, least: int) -> Any:
    if least >= 8:
        a, b = word(0) + _K2, word(size - 8)
        c, d = _rotated(b, 37) * mul + a, (_rotated(a, 25) + b) * mul
        return _of_two(c & _MASK, d & _MASK, mul)
    if least >= 4:
        low, high = word(0) & 0xFFFFFFFF, word(size - 4) & 0xFFFFFFFF
        return _of_two(size + (low << 3), high, mul)
    if least:
        first, middle, last = (word(at) & 0xFF for at in (0, size >> 1, size - 1))
        y, z = first + (middle << 8), size + (last << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _up_to_64(word: Word, size: Any, mul: Any, least: int) -> Any:
    far = least > 32
    a, b = word(0) * (_K2 if far else _K1), word(8)
    c, d = word(size - 8) * mul, word(size - 16) * _K2
    y, z = _rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c
    if not far:
        return _of_two(y & _MASK, z & _MASK, mul)
    z = _of_two(y & _MASK, z & _MASK, mul)
    e, f = word(16) * mul, word(24)
    g, h = (y + word(size - 32)) * mul, (z + word(size - 24)) * mul
    left, right = _rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g
    return _of_two(left & _MASK, right & _MASK, mul)


def _weak(word: Word, at: Any, a: Any, b: Any) -> tuple[Any, Any]:
    w, x, y, z = (word(at + step) for step in (0, 8, 16, 24))
    a = (a & _MASK) + w
    b = _rotated((b & _MASK) + a + z, 21)
    c = a
    a = a + x + y
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def _longer(word: Word, size: Any, least: int) -> Any:
    x, y = 81 * _K2 & _MASK, (81 * _K1 + 113) & _MASK
    z = _mixed(y * _K2 + 113) * _K2 & _MASK
    x = x + word(0)
    v, w = (0, 0), (0, 0)
    whole = range(0, (least - 1) // 64 * 64, 64)
    for part, at in enumerate((*whole, size - 64)):
        last = part == len(whole)  # the last 64 bytes, some of which belong to the previous part too
        mul, times = (_K1 + ((z & 0xFF) << 1), 9) if last else (_K1, 1)
        if last:
            w = (w[0] + ((size - 1) & 63), w[1])
            v = (v[0] + w[0], v[1])
            w = (w[0] + v[0], w[1])
        x = _rotated(x + y + v[0] + word(at + 8), 37) * mul
        y = _rotated(y + v[1] + word(at + 48), 42) * mul
        x = (x ^ w[1] * times) & _MASK
        y = y + v[0] * times + word(at + 40)
        z = _rotated(z + w[0], 33) * mul
        v = _weak(word, at, v[1] * mul, x + w[0])
        w = _weak(word, at + 32, z + w[1], y + word(at + 16))
        x, z = z & _MASK, x & _MASK
    left = _of_two(v[0], w[0], mul) + _mixed(y) * _K0 + z
    return _of_two(left & _MASK, (_of_two(v[1], w[1], mul) + x) & _MASK, mul)


def siphash(text: bytes, key0: int, key1: int) -> int:
    """Return SipHash-2-4 with a key of 128 bits.

    >>> hex(siphash(bytes(range(15)), 0x0706050403020100, 0x0F0E0D0C0B0A0908))
    '0xa129ca6149be45e5'
    """
    k0, k1 = key0 & _MASK, key1 & _MASK
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & _MASK
            v[2] = (v[2] + v[3]) & _MASK
            v[1] = _rotated(v[1], 51) ^ v[0]
            v[3] = _rotated(v[3], 48) ^ v[2]
            v[0] = _rotated(v[0], 32)
            v[2] = (v[2] + v[1]) & _MASK
            v[0] = (v[0] + v[3]) & _MASK
            v[1] = _rotated(v[1], 47) ^ v[2]
            v[3] = _rotated(v[3], 43) ^ v[0]
            v[2] = _rotated(v[2], 32)

    padded = text.ljust(len(text) // 8 * 8 + 7, b"\0") + bytes([len(text) & 0xFF])
    for at in range(0, len(padded), 8):
        word = _word(padded, at)
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def hash64(text: bytes) -> int:
    """Return TensorFlow's own Hash64, a form of MurmurHash.

    >>> hash64(b"") % 1000, hash64(b"hello world foo") % 1000
    (899, 794)
    """
    mul, whole = 0xC6A4A7935BD1E995, len(text) // 8 * 8
    found = 0xDECAFCAFFE ^ len(text) * mul & _MASK
    for at in range(0, whole, 8):
        found = (found ^ _mixed(_word(text, at) * mul) * mul & _MASK) * mul & _MASK
    if text[whole:]:
        found = (found ^ _word(text, whole)) * mul & _MASK
    return int(_mixed(_mixed(found) * mul))
