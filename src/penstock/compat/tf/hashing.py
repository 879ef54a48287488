"""The two hashes that TensorFlow spreads texts over buckets with: FarmHash's Fingerprint64, and SipHash-2-4."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _rotated(value: int, shift: int) -> int:  # to the right
    value &= _MASK
    return (value >> shift | value << (64 - shift)) & _MASK


def _mixed(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _of_two(u: int, v: int, mul: int) -> int:
    a = _mixed((u ^ v) * mul)
    return _mixed((v ^ a) * mul) * mul & _MASK


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def fingerprint64(text: bytes) -> int:
    """FarmHash's Fingerprint64: the same number on every machine and in every version.

    >>> fingerprint64(b"") == 0x9AE16A3B2F90404F, fingerprint64(b"penstock") % 1000
    (True, 362)
    """
    size = len(text)
    mul = _K2 + size * 2
    if size <= 16:
        return _up_to_16(text, size, mul)
    if size <= 64:
        return _up_to_64(text, size, mul)
    return _longer(text, size)


def _up_to_16(text: bytes, size: int, mul: int) -> int:
    if size >= 8:
        a, b = _word(text, 0) + _K2, _word(text, size - 8)
        c, d = _rotated(b, 37) * mul + a, (_rotated(a, 25) + b) * mul
        return _of_two(c & _MASK, d & _MASK, mul)
    if size >= 4:
        low, high = (int.from_bytes(text[at : at + 4], "little") for at in (0, size - 4))
        return _of_two(size + (low << 3), high, mul)
    if size:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _up_to_64(text: bytes, size: int, mul: int) -> int:
    far = size > 32
    a, b = _word(text, 0) * (_K2 if far else _K1), _word(text, 8)
    c, d = _word(text, size - 8) * mul, _word(text, size - 16) * _K2
    y, z = _rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c
    if not far:
        return _of_two(y & _MASK, z & _MASK, mul)
    z = _of_two(y & _MASK, z & _MASK, mul)
    e, f = _word(text, 16) * mul, _word(text, 24)
    g, h = (y + _word(text, size - 32)) * mul, (z + _word(text, size - 24)) * mul
    left, right = _rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g
    return _of_two(left & _MASK, right & _MASK, mul)


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(text, at + step) for step in (0, 8, 16, 24))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + _rotated(a, 44) + c) & _MASK


def _longer(text: bytes, size: int) -> int:
    x, y = 81 * _K2 + _word(text, 0), (81 * _K1 + 113) & _MASK
    z = _mixed(y * _K2 + 113) * _K2
    v, w = (0, 0), (0, 0)
    whole = range(0, (size - 1) // 64 * 64, 64)
    for part, at in enumerate((*whole, size - 64)):
        last = part == len(whole)  # the last 64 bytes, of which the part before has taken some
        mul, times = (_K1 + ((z & 0xFF) << 1), 9) if last else (_K1, 1)
        if last:
            w = (w[0] + ((size - 1) & 63), w[1])
            v = (v[0] + w[0], v[1])
            w = (w[0] + v[0], w[1])
        x = _rotated(x + y + v[0] + _word(text, at + 8), 37) * mul
        y = _rotated(y + v[1] + _word(text, at + 48), 42) * mul
        x = (x ^ w[1] * times) & _MASK
        y += v[0] * times + _word(text, at + 40)
        z = _rotated(z + w[0], 33) * mul
        v = _weak(text, at, v[1] * mul, x + w[0])
        w = _weak(text, at + 32, z + w[1], y + _word(text, at + 16))
        x, z = z & _MASK, x & _MASK
    left = _of_two(v[0], w[0], mul) + _mixed(y) * _K0 + z
    return _of_two(left & _MASK, (_of_two(v[1], w[1], mul) + x) & _MASK, mul)


def siphash(text: bytes, key0: int, key1: int) -> int:
    """SipHash-2-4 under a key of 128 bits.

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
