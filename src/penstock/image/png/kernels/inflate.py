"""inflate: compiled decompression of a deflate stream (RFC 1951), and its and PNG's checksums.

It is at least as strict as zlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.image.png.kernels.memory import B, S, U, W, load_word, store_word
from penstock.native.kernel import helper, maker

# Entries of the decoding tables, uint32. Bits 0-5: the bits to drop from the stream, with those of the extra number.
# Bits 6-9: the length of the code. Bits 16-30: the byte, or the base of a length or distance. Other bits are marks.
LITERAL = 1 << 31
ODD = 1 << 15  # no match: a longer code (without other marks), the end of the block, or an invalid code
END = 1 << 14
BAD = 1 << 13


def _entries() -> tuple[Any, Any, Any]:
    """Return the table entries of each symbol of the three alphabets, without the length of its code."""
    literals = np.full(288, ODD | BAD, np.uint32)
    literals[:256] = LITERAL | np.arange(256) << 16
    literals[256] = ODD | END
    base = 3
    for symbol in range(257, 285):
        extra = max(0, (symbol - 261) // 4)
        literals[symbol] = base << 16 | extra
        base += 1 << extra
    literals[285] = 258 << 16
    distances = np.full(32, ODD | BAD, np.uint32)
    base = 1
    for symbol in range(30):
        extra = max(0, symbol // 2 - 1)
        distances[symbol] = base << 16 | extra
        base += 1 << extra
    return literals, distances, np.arange(19, dtype=np.uint32) << np.uint32(16)


def _reversed_bytes() -> Any:
    return np.array([int(f"{value:08b}"[::-1], 2) for value in range(256)], np.int64)


def _crc_tables() -> Any:
    """Return tables for slicing by eight: table k advances a byte by k more zero bytes."""
    tables = np.zeros((8, 256), np.uint32)
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        tables[0, value] = crc
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> np.uint32(8) ^ tables[0][tables[k - 1] & np.uint32(255)]
    return tables


LITERALS, DISTANCES, LENGTHS = _entries()
REVERSED = _reversed_bytes()
CRC = _crc_tables()
ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)


@helper
def crc32(data, start, stop):
    crc = W(0xFFFFFFFF)
    at = start
    while at + 8 <= stop:
        word = load_word(data, at) ^ U(crc)
        crc = (
            CRC[7, word & U(255)]
            ^ CRC[6, word >> U(8) & U(255)]
            ^ CRC[5, word >> U(16) & U(255)]
            ^ CRC[4, word >> U(24) & U(255)]
            ^ CRC[3, word >> U(32) & U(255)]
            ^ CRC[2, word >> U(40) & U(255)]
            ^ CRC[1, word >> U(48) & U(255)]
            ^ CRC[0, word >> U(56)]
        )
        at += 8
    while at < stop:
        crc = W(CRC[0, (U(crc) ^ U(data[U(at)])) & U(255)] ^ W(crc >> W(8)))
        at += 1
    return W(crc ^ W(0xFFFFFFFF))


@helper
def adler32(data, size):
    one, two = U(1), U(0)
    at = 0
    while at < size:
        count = min(size - at, 4096)  # the weighted sum of this many bytes fits 32 bits
        plain, weighted = W(0), W(0)
        for i in range(count):
            value = W(data[U(at + i)])
            plain = W(plain + value)
            weighted = W(weighted + W(W(count - i) * value))
        two = (two + U(count) * one + U(weighted)) % U(65521)
        one = (one + U(plain)) % U(65521)
        at += count
    return two << U(16) | one


LITERAL_BITS, DISTANCE_BITS, LENGTH_BITS = 11, 8, 7  # bits of the tables; longer codes are found bit by bit


@helper
def _build(lengths, first, count, entries, bits, found, offsets):
    """Fill a table for the canonical code of `lengths[first : first + count]`. Return False if the code is invalid.

    `found` has the table, `counts` and `sorted_`. The table grows by code length: a code of n bits takes one of 2**n
    places, and the table is doubled by a copy of itself. `counts` and `sorted_` are for codes of more than `bits` bits.
    `offsets` is memory for 17 numbers.
    """
    table, counts, sorted_ = found
    for i in range(16):
        counts[i] = 0
    for i in range(count):
        counts[lengths[first + i]] += 1
    unused = counts[0]
    counts[0] = 0
    left = 1
    offsets[1] = 0
    for n in range(1, 16):
        left = 2 * left - counts[n]
        if left < 0:
            return False
        offsets[n + 1] = offsets[n] + counts[n]
    if left > 0 and not (count - unused == 0 or (count - unused == 1 and counts[1] == 1)):
        return False  # zlib refuses all other incomplete codes too
    for i in range(count):
        n = S(lengths[first + i])
        if n:
            sorted_[offsets[n]] = i
            offsets[n] += 1
    table[0] = W(ODD | BAD if left > 0 else ODD)
    size = 1
    code = 0
    at = 0
    for n in range(1, bits + 1):
        for i in range(size):
            table[U(size + i)] = table[U(i)]
        size *= 2
        code <<= 1
        for _ in range(counts[n]):
            place = (REVERSED[U(code & 255)] << 8 | REVERSED[U(code >> 8)]) >> (16 - n)
            entry = entries[U(sorted_[U(at)])]
            table[U(place)] = W(entry + W(n << 6) + W(n))
            code += 1
            at += 1
    return True


@helper
def _long_code(buffer, counts, sorted_, entries):
    """Return the entry for a code of any length, found bit by bit."""
    code, first, index = 0, 0, 0
    for n in range(1, 16):
        code |= S(buffer >> U(n - 1) & U(1))
        count = S(counts[n])
        if code - count < first:
            entry = entries[U(sorted_[U(index + code - first)])]
            return W(entry + W(n << 6) + W(n))
        index += count
        first = (first + count) << 1
        code <<= 1
    return W(ODD | BAD)


@maker
def inflate(source, start, stop, out, size):
    """Decompress the deflate stream `source[start:stop]` to exactly `size` bytes of `out`. Return its end, or -1.

    Both arrays are longer by SLACK than `stop` and `size`.
    """
    literals = np.empty(1 << LITERAL_BITS, np.uint32)
    distances = np.empty(1 << DISTANCE_BITS, np.uint32)
    literal_counts, literal_sorted = np.empty(16, np.int64), np.empty(288, np.int64)
    distance_counts, distance_sorted = np.empty(16, np.int64), np.empty(32, np.int64)
    lengths, offsets = np.empty(320 + 140, np.int64), np.empty(17, np.int64)
    codes = (literals, literal_counts, literal_sorted), (distances, distance_counts, distance_sorted)
    return _inflated(source, start, stop, out, size, codes, lengths, offsets)


@helper
def _inflated(source, start, stop, out, size, codes, lengths, offsets):
    """Run `inflate` with memory for its tables. `codes` has what `_build` fills, for literals and for distances."""
    of_literals, of_distances = codes
    literals, literal_counts, literal_sorted = of_literals
    distances, distance_counts, distance_sorted = of_distances
    buffer, bits = U(0), U(0)
    at, to = start, 0
    last = False
    while not last:
        if at > stop + 8:
            return -1
        buffer |= load_word(source, at) << bits
        at += S((U(63) - bits) >> U(3))
        bits |= U(56)
        last = (buffer & U(1)) != U(0)
        kind = buffer >> U(1) & U(3)
        buffer >>= U(3)
        bits -= U(3)
        if kind == U(0):
            at -= S(bits >> U(3))
            buffer, bits = U(0), U(0)
            if at + 4 > stop:
                return -1
            count = S(source[at]) | S(source[at + 1]) << 8
            check = S(source[at + 2]) | S(source[at + 3]) << 8
            at += 4
            if count ^ check != 0xFFFF or at + count > stop or to + count > size:
                return -1
            for i in range(count):
                out[U(to + i)] = source[U(at + i)]
            at += count
            to += count
            continue
        if kind == U(3):
            return -1
        if kind == U(1):
            for i in range(288):
                lengths[i] = 8 if i < 144 else 9 if i < 256 else 7 if i < 280 else 8
            for i in range(32):
                lengths[288 + i] = 5
            literal_count, distance_count = 288, 32
        else:
            literal_count = S(buffer & U(31)) + 257
            distance_count = S(buffer >> U(5) & U(31)) + 1
            length_count = S(buffer >> U(10) & U(15)) + 4
            buffer >>= U(14)
            bits -= U(14)
            if literal_count > 286 or distance_count > 30:
                return -1
            for i in range(19):
                lengths[i] = 0
            for i in range(length_count):
                if i == 12:  # there were at least 39 bits, 3 for each length
                    if at > stop + 8:
                        return -1
                    buffer |= load_word(source, at) << bits
                    at += S((U(63) - bits) >> U(3))
                    bits |= U(56)
                lengths[ORDER[i]] = S(buffer & U(7))
                buffer >>= U(3)
                bits -= U(3)
            if not _build(lengths, 0, 19, LENGTHS, LENGTH_BITS, of_distances, offsets):
                return -1
            total = literal_count + distance_count
            i = 0
            while i < total:
                if bits < U(14):
                    if at > stop + 8:
                        return -1
                    buffer |= load_word(source, at) << bits
                    at += S((U(63) - bits) >> U(3))
                    bits |= U(56)
                entry = U(distances[buffer & U((1 << LENGTH_BITS) - 1)])
                if entry & U(ODD):
                    return -1
                buffer >>= entry & U(63)
                bits -= entry & U(63)
                symbol = S(entry >> U(16))
                if symbol < 16:
                    lengths[i] = symbol
                    i += 1
                    continue
                value = 0
                if symbol == 16:
                    if i == 0:
                        return -1
                    value = lengths[i - 1]
                    repeat = 3 + S(buffer & U(3))
                    drop = U(2)
                elif symbol == 17:
                    repeat = 3 + S(buffer & U(7))
                    drop = U(3)
                else:
                    repeat = 11 + S(buffer & U(127))
                    drop = U(7)
                buffer >>= drop
                bits -= drop
                for k in range(repeat):  # at most 138 lengths after `total`, which have room
                    lengths[i + k] = value
                i += repeat
            if i > total or lengths[256] == 0:
                return -1
        if not _build(lengths, 0, literal_count, LITERALS, LITERAL_BITS, of_literals, offsets):
            return -1
        if not _build(lengths, literal_count, distance_count, DISTANCES, DISTANCE_BITS, of_distances, offsets):
            return -1
        while True:
            if at > stop + 8 or to > size:
                return -1
            buffer |= load_word(source, at) << bits
            at += S((U(63) - bits) >> U(3))
            bits |= U(56)
            entry = U(literals[buffer & U((1 << LITERAL_BITS) - 1)])
            if entry & U(LITERAL):  # three literals leave 23 of the 56 bits
                buffer >>= entry & U(63)
                bits -= entry & U(63)
                out[U(to)] = B(entry >> U(16))
                to += 1
                entry = U(literals[buffer & U((1 << LITERAL_BITS) - 1)])
                if entry & U(LITERAL):
                    buffer >>= entry & U(63)
                    bits -= entry & U(63)
                    out[U(to)] = B(entry >> U(16))
                    to += 1
                    entry = U(literals[buffer & U((1 << LITERAL_BITS) - 1)])
                    if entry & U(LITERAL):
                        buffer >>= entry & U(63)
                        bits -= entry & U(63)
                        out[U(to)] = B(entry >> U(16))
                        to += 1
                        continue
            if entry & U(ODD):
                if not entry & U(END | BAD):
                    entry = U(_long_code(buffer, literal_counts, literal_sorted, LITERALS))
                if entry & U(BAD):
                    return -1
                if entry & U(LITERAL):
                    buffer >>= entry & U(63)
                    bits -= entry & U(63)
                    out[U(to)] = B(entry >> U(16))
                    to += 1
                    continue
                if entry & U(END):
                    buffer >>= entry & U(63)
                    bits -= entry & U(63)
                    break
            drop = entry & U(63)
            code = entry >> U(6) & U(15)
            length = S(entry >> U(16)) + S((buffer & ((U(1) << drop) - U(1))) >> code)
            buffer >>= drop
            bits -= drop
            if bits < U(28):
                buffer |= load_word(source, at) << bits
                at += S((U(63) - bits) >> U(3))
                bits |= U(56)
            entry = U(distances[buffer & U((1 << DISTANCE_BITS) - 1)])
            if entry & U(ODD):
                if not entry & U(BAD):
                    entry = U(_long_code(buffer, distance_counts, distance_sorted, DISTANCES))
                if entry & U(BAD):
                    return -1
            drop = entry & U(63)
            code = entry >> U(6) & U(15)
            distance = S(entry >> U(16)) + S((buffer & ((U(1) << drop) - U(1))) >> code)
            buffer >>= drop
            bits -= drop
            if distance > to or to > size:
                return -1
            source_at = to - distance
            if distance >= 8:
                for k in range(0, length, 8):
                    store_word(out, to + k, load_word(out, source_at + k))
            else:
                for k in range(length):
                    out[U(to + k)] = out[U(source_at + k)]
            to += length
    at -= S(bits >> U(3))
    return at if to == size and at <= stop else -1
