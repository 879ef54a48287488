"""PNG from compiled code: inflate, undo the filters and bring to the wanted channels, for a Block without the GIL.

Imported inside functions only: numba takes a third of a second to load. What these kernels do not take or find damaged
they leave undone; the plain way then decodes it or says what is wrong. So they may be stricter, never more lenient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic
from numba.np import arrayobj

from penstock.image.kernels.deflate_tables import (
    BAD,
    CRC,
    DISTANCES,
    END,
    LENGTHS,
    LITERAL,
    LITERALS,
    ODD,
    ORDER,
    REVERSED,
)

U: Any = np.uint64
S: Any = np.int64
W: Any = np.uint32
B: Any = np.uint8
SLACK = 512  # bytes behind a buffer that may be read or written: a longest match and a vector are less

LITERAL_BITS, DISTANCE_BITS, LENGTH_BITS = 11, 8, 7  # of the tables; codes that are longer are found bit by bit
HALF = 5  # filter 3 in the first row, where nothing is above: half of what is to the left


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Where the element args[1] of the array args[0] is, as a pointer to eight bytes."""
    array: Any = arrayobj.make_array
    data = array(signature.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())


def _loading() -> Any:
    @intrinsic
    def load(typing: Any, array: Any, index: Any) -> Any:
        """Eight bytes at `index` as a little-endian number; the caller has checked that they are there."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_pointer(context, builder, signature, args))
            value.align = 1
            return value

        return types.uint64(array, types.int64), generate

    return load


def _storing() -> Any:
    @intrinsic
    def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
        """`value` to the eight bytes at `index`; the caller has checked that they are there."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], _pointer(context, builder, signature, args)).align = 1
            return context.get_dummy_value()

        return types.none(array, types.int64, types.uint64), generate

    return store


_load, _store = _loading(), _storing()


def _lanes(kind: int) -> Any:
    return ir.VectorType(ir.IntType(kind), 4)


def _widening() -> Any:
    @intrinsic
    def widen(typing: Any, array: Any, index: Any) -> Any:
        """Four bytes at `index` as four lanes of 16 bits; the caller has checked that they are there."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.bitcast(_pointer(context, builder, signature, args), _lanes(8).as_pointer())
            value = builder.load(place)
            value.align = 1
            return builder.bitcast(builder.zext(value, _lanes(16)), ir.IntType(64))

        return types.uint64(array, types.int64), generate

    return widen


def _narrowing() -> Any:
    @intrinsic
    def narrow(typing: Any, array: Any, index: Any, value: Any) -> Any:
        """The lanes of `value` as four bytes at `index`; the caller has checked that they are there."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            lanes = builder.trunc(builder.bitcast(args[2], _lanes(16)), _lanes(8))
            place = builder.bitcast(_pointer(context, builder, signature, args), _lanes(8).as_pointer())
            builder.store(lanes, place).align = 1
            return context.get_dummy_value()

        return types.none(array, types.int64, types.uint64), generate

    return narrow


def _guessing() -> Any:
    @intrinsic
    def add_paeth(typing: Any, value: Any, left: Any, up: Any, corner: Any) -> Any:
        """`_undo` of filter 4 for four lanes of 16 bits at once."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value, left, up, corner = (builder.bitcast(lanes, _lanes(16)) for lanes in args)
            thrice = builder.add(corner, builder.add(corner, corner))
            bound = builder.sub(thrice, builder.add(left, up))
            less = builder.icmp_signed("<", left, up)
            low, high = builder.select(less, left, up), builder.select(less, up, left)
            inner = builder.select(builder.icmp_signed("<=", high, bound), low, corner)
            guess = builder.select(builder.icmp_signed("<=", bound, low), high, inner)
            found = builder.and_(builder.add(value, guess), ir.Constant(_lanes(16), [255] * 4))
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(*(types.uint64,) * 4), generate

    return add_paeth


_widen, _narrow, _add_paeth = _widening(), _narrowing(), _guessing()


@njit(nogil=True, cache=True)
def _crc32(data: Any, start: int, stop: int) -> Any:
    crc = W(0xFFFFFFFF)
    at = start
    while at + 8 <= stop:
        word = _load(data, at) ^ U(crc)
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


@njit(nogil=True, cache=True)
def _adler32(data: Any, size: int) -> Any:
    one, two = U(1), U(0)
    at = 0
    while at < size:
        count = min(size - at, 4096)  # the weighted sum of so many bytes fits 32 bits
        plain, weighted = W(0), W(0)
        for i in range(count):
            value = W(data[U(at + i)])
            plain = W(plain + value)
            weighted = W(weighted + W(W(count - i) * value))
        two = (two + U(count) * one + U(weighted)) % U(65521)
        one = (one + U(plain)) % U(65521)
        at += count
    return two << U(16) | one


@njit(nogil=True, cache=True)
def _build(
    lengths: Any, first: int, count: int, entries: Any, bits: int, table: Any, counts: Any, sorted_: Any
) -> bool:
    """Fill `table` for the canonical code of `lengths[first : first + count]`; False if it is none.

    The table is grown code length by code length: a code of n bits takes one place among 2**n, and the table is doubled
    by copying itself. `counts` and `sorted_` serve codes of more than `bits` bits.
    """
    offsets = np.empty(17, np.int64)
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
        return False  # incomplete: zlib takes none but these either
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


@njit(nogil=True, cache=True)
def _long_code(buffer: Any, counts: Any, sorted_: Any, entries: Any) -> Any:
    """The entry for a code of any length, found bit by bit."""
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


@njit(nogil=True, cache=True)
def _inflate(source: Any, start: int, stop: int, out: Any, size: int) -> Any:
    """Unpack the deflate stream `source[start:stop]` to exactly `size` bytes of `out`; where it ends, or -1.

    Both arrays are longer by SLACK than `stop` and `size`.
    """
    literals = np.empty(1 << LITERAL_BITS, np.uint32)
    distances = np.empty(1 << DISTANCE_BITS, np.uint32)
    literal_counts, literal_sorted = np.empty(16, np.int64), np.empty(288, np.int64)
    distance_counts, distance_sorted = np.empty(16, np.int64), np.empty(32, np.int64)
    lengths = np.empty(320 + 140, np.int64)
    buffer, bits = U(0), U(0)
    at, to = start, 0
    last = False
    while not last:
        if at > stop + 8:
            return -1
        buffer |= _load(source, at) << bits
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
                if i == 12:  # 39 bits at least were there, 3 for each
                    if at > stop + 8:
                        return -1
                    buffer |= _load(source, at) << bits
                    at += S((U(63) - bits) >> U(3))
                    bits |= U(56)
                lengths[ORDER[i]] = S(buffer & U(7))
                buffer >>= U(3)
                bits -= U(3)
            if not _build(lengths, 0, 19, LENGTHS, LENGTH_BITS, distances, distance_counts, distance_sorted):
                return -1
            total = literal_count + distance_count
            i = 0
            while i < total:
                if bits < U(14):
                    if at > stop + 8:
                        return -1
                    buffer |= _load(source, at) << bits
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
                for k in range(repeat):  # at most 138 beyond `total`, for which there is room
                    lengths[i + k] = value
                i += repeat
            if i > total or lengths[256] == 0:
                return -1
        if not _build(lengths, 0, literal_count, LITERALS, LITERAL_BITS, literals, literal_counts, literal_sorted):
            return -1
        if not _build(
            lengths,
            literal_count,
            distance_count,
            DISTANCES,
            DISTANCE_BITS,
            distances,
            distance_counts,
            distance_sorted,
        ):
            return -1
        while True:
            if at > stop + 8 or to > size:
                return -1
            buffer |= _load(source, at) << bits
            at += S((U(63) - bits) >> U(3))
            bits |= U(56)
            entry = U(literals[buffer & U((1 << LITERAL_BITS) - 1)])
            if entry & U(LITERAL):  # three in a row leave 23 bits of the 56
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
                buffer |= _load(source, at) << bits
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
                    _store(out, to + k, _load(out, source_at + k))
            else:
                for k in range(length):
                    out[U(to + k)] = out[U(source_at + k)]
            to += length
    at -= S(bits >> U(3))
    return at if to == size and at <= stop else -1


@njit(nogil=True, cache=True)
def _paeth(left: Any, up: Any, corner: Any) -> Any:
    """The neighbour nearest to left + up - corner, in an order of comparisons that needs no branches."""
    bound = 3 * corner - (left + up)
    low, high = min(left, up), max(left, up)
    inner = low if high <= bound else corner
    return high if bound <= low else inner


@njit(nogil=True, cache=True)
def _undo(kind: int, value: Any, left: Any, up: Any, corner: Any) -> Any:
    """A byte under filter 1, 3 or 4, or HALF, from its difference and its three neighbours."""
    if kind == 1:
        return B(value + left)
    if kind == HALF:
        return B(value + (left >> 1))
    if kind == 3:
        return B(np.int32(value) + ((np.int32(left) + np.int32(up)) >> 1))
    return B(np.int32(value) + _paeth(np.int32(left), np.int32(up), np.int32(corner)))


@njit(nogil=True, cache=True)
def _undo_row(kind: int, raw: Any, source: int, out: Any, row: int, above: int, stride: int, step: int) -> None:
    """A row under filter 1, 3 or 4, or HALF; neighbours stay in registers, three channels side by side."""
    if step == 3:
        a, b, c = B(0), B(0), B(0)
        d, e, f = B(0), B(0), B(0)
        for x in range(0, stride, 3):
            u, v, w = out[U(above + x)], out[U(above + x + 1)], out[U(above + x + 2)]
            a = _undo(kind, raw[U(source + x)], a, u, d)
            b = _undo(kind, raw[U(source + x + 1)], b, v, e)
            c = _undo(kind, raw[U(source + x + 2)], c, w, f)
            out[U(row + x)], out[U(row + x + 1)], out[U(row + x + 2)] = a, b, c
            d, e, f = u, v, w
        return
    for first in range(step):
        left, corner = B(0), B(0)
        for x in range(first, stride, step):
            up = out[U(above + x)]
            left = _undo(kind, raw[U(source + x)], left, up, corner)
            out[U(row + x)] = left
            corner = up


@njit(nogil=True, cache=True)
def _last_pixel(data: Any, at: int, step: int) -> Any:
    """The pixel of three or four bytes at `at` as lanes of 16 bits, nothing behind it being read."""
    value = U(data[U(at)]) | U(data[U(at + 1)]) << U(16) | U(data[U(at + 2)]) << U(32)
    return value | U(data[U(at + 3)]) << U(48) if step == 4 else value


@njit(nogil=True, cache=True)
def _put_last(out: Any, at: int, value: Any, step: int) -> None:
    """The first `step` lanes of `value` as bytes, nothing behind them being written."""
    for c in range(step):
        out[U(at + c)] = B(value >> U(16 * c))


@njit(nogil=True, cache=True)
def _undo_two_paeth_rows(raw: Any, source: int, out: Any, row: int, stride: int, step: int) -> None:
    """Two rows under filter 4, of pixels of three or four bytes, three at least: the second is one pixel behind.

    A pixel waits for the one to its left, so that a row by itself leaves most of the processor idle. The bytes that a
    store writes too many, where pixels have three, are written over by the next pixel.
    """
    above, below, second = row - stride, row + stride, source + stride + 1
    corner = _widen(out, above)
    left = _add_paeth(_widen(raw, source), U(0), corner, U(0))
    _narrow(out, row, left)
    left_below, corner_below = U(0), U(0)
    last = stride - step
    for x in range(step, last, step):
        up = _widen(out, above + x)
        value = _add_paeth(_widen(raw, source + x), left, up, corner)
        left_below = _add_paeth(_widen(raw, second + x - step), left_below, left, corner_below)
        _narrow(out, row + x, value)
        _narrow(out, below + x - step, left_below)
        corner, corner_below, left = up, left, value
    value = _add_paeth(_last_pixel(raw, source + last, step), left, _last_pixel(out, above + last, step), corner)
    _put_last(out, row + last, value, step)
    left_below = _add_paeth(_widen(raw, second + last - step), left_below, left, corner_below)
    _narrow(out, below + last - step, left_below)
    value = _add_paeth(_last_pixel(raw, second + last, step), left_below, value, left)
    _put_last(out, below + last, value, step)


@njit(nogil=True, cache=True)
def unfilter(raw: Any, height: int, stride: int, step: int, out: Any, to: int) -> bool:
    """Undo the filters of `height` rows of `raw`, each a filter's number and `stride` bytes, into `out[to:]`.

    `step` is how many bytes before a byte its neighbour to the left is, and divides `stride`. False if a filter's
    number is none. The caller has checked that both arrays are long enough.
    """
    paired = (step == 3 or step == 4) and stride >= 3 * step
    done = 0  # rows that are finished already
    for y in range(height):
        if y < done:
            continue
        source = y * (stride + 1) + 1
        row = to + y * stride
        above = row - stride
        kind = S(raw[source - 1])
        if kind > 4:
            return False
        if paired and kind == 4 and 0 < y < height - 1 and raw[source + stride] == 4:
            _undo_two_paeth_rows(raw, source, out, row, stride, step)
            done = y + 2
            continue
        if y == 0:  # above the first row everything is 0
            above = row
            kind = 0 if kind == 2 else HALF if kind == 3 else 1 if kind == 4 else kind
        if kind == 0:
            for x in range(stride):
                out[U(row + x)] = raw[U(source + x)]
        elif kind == 1:
            _undo_row(1, raw, source, out, row, above, stride, step)
        elif kind == 2:
            for x in range(stride):
                out[U(row + x)] = B(raw[U(source + x)] + out[U(above + x)])
        elif kind == 3:
            _undo_row(3, raw, source, out, row, above, stride, step)
        elif kind == 4:
            _undo_row(4, raw, source, out, row, above, stride, step)
        else:
            _undo_row(HALF, raw, source, out, row, above, stride, step)
    return True


@njit(nogil=True, cache=True)
def _number(data: Any, at: int) -> Any:
    return S(data[U(at)]) << 24 | S(data[U(at + 1)]) << 16 | S(data[U(at + 2)]) << 8 | S(data[U(at + 3)])


@njit(nogil=True, cache=True)
def _gather(data: Any, start: int, stop: int, height: int, width: int, packed: Any, colours: Any, found: Any) -> bool:
    """Check the chunks of the file `data[start:stop]`; `packed` gets the pixels' stream, `colours` the palette.

    `found` gets: bytes in `packed`, colour type, whether there is transparency, whether there is a gamma. False for
    what is damaged or not taken: other sizes, depths other than 8, interlacing, critical chunks of no meaning here.
    """
    if stop - start < 57 or _number(data, start) != 0x89504E47 or _number(data, start + 4) != 0x0D0A1A0A:
        return False
    at = start + 8
    if _number(data, at) != 13 or _number(data, at + 4) != 0x49484452:  # IHDR
        return False
    colour = S(data[at + 17])
    if (
        _number(data, at + 8) != width
        or _number(data, at + 12) != height
        or data[at + 16] != 8
        or data[at + 18] != 0
        or data[at + 19] != 0
        or data[at + 20] != 0
        or not (colour == 0 or colour == 2 or colour == 3 or colour == 4 or colour == 6)
        or _crc32(data, at + 4, at + 21) != _number(data, at + 21)
    ):
        return False
    at += 25
    size, entries = 0, 0
    transparent, gamma, ended = False, False, False
    while True:
        if at + 12 > stop:
            return False
        length = _number(data, at)
        after = at + 12 + length
        if after > stop:
            return False
        kind = _number(data, at + 4)
        for i in range(4, 8):
            lower = data[at + i] | 32
            if lower < 97 or lower > 122:
                return False
        critical = data[at + 4] < 97
        known = kind == 0x74524E53  # tRNS
        if (critical or known) and _crc32(data, at + 4, after - 4) != _number(data, after - 4):
            return False
        if kind == 0x49444154:  # IDAT
            if ended:
                return False
            for i in range(length):
                packed[U(size + i)] = data[U(at + 8 + i)]
            size += length
        else:
            ended = size > 0
            if kind == 0x49454E44:  # IEND
                if length:
                    return False
                break
            if kind == 0x504C5445:  # PLTE
                if entries or ended or transparent or length == 0 or length > 768 or length % 3 or colour in (0, 4):
                    return False
                entries = length // 3
                for i in range(256):
                    for c in range(3):
                        colours[i, c] = data[at + 8 + 3 * i + c] if i < entries else 0
                    colours[i, 3] = 255
            elif critical:
                return False
            elif known:
                if transparent or ended or length == 0 or (colour == 3 and length > entries) or colour in (4, 6):
                    return False
                transparent = True
                if colour == 3:
                    for i in range(length):
                        colours[i, 3] = data[at + 8 + i]
            elif kind == 0x67414D41 or kind == 0x73524742:  # gAMA, sRGB
                gamma = True
        at = after
    found[0], found[1], found[2], found[3] = size, colour, transparent, gamma
    return size > 0 and (colour != 3 or entries > 0)


@njit(nogil=True, cache=True)
def _grey(red: Any, green: Any, blue: Any) -> Any:
    total = S(red) * 9797 + S(green) * 19234 + S(blue) * 3737
    return B(total >> 15)


@njit(nogil=True, cache=True)
def _convert(flat: Any, count: int, colour: int, colours: Any, channels: int, out: Any, to: int) -> None:
    """`count` pixels of the file's colour type as `channels` channels."""
    samples = 1 if colour == 0 or colour == 3 else 2 if colour == 4 else 3 if colour == 2 else 4
    for i in range(count):
        at = i * samples
        alpha = B(255)
        red = flat[U(at)]
        green, blue = red, red
        if colour == 3:
            index = U(red)
            red, green, blue, alpha = colours[index, 0], colours[index, 1], colours[index, 2], colours[index, 3]
        elif colour == 4:
            alpha = flat[U(at + 1)]
        elif colour != 0:
            green, blue = flat[U(at + 1)], flat[U(at + 2)]
            if colour == 6:
                alpha = flat[U(at + 3)]
        place = to + i * channels
        if channels < 3:
            out[U(place)] = red if colour == 0 or colour == 4 else _grey(red, green, blue)
            if channels == 2:
                out[U(place + 1)] = alpha
        else:
            out[U(place)], out[U(place + 1)], out[U(place + 2)] = red, green, blue
            if channels == 4:
                out[U(place + 3)] = alpha


@njit(nogil=True, cache=True)
def decode_block(
    data: Any, starts: Any, lengths: Any, as_stored: bool, height: int, width: int, out: Any, done: Any
) -> None:
    """Decode the files `data[starts[i] : starts[i] + lengths[i]]` into the flat `out`; `done[i]` is 1 where that went.

    `out` holds one image of `height` x `width` for each, of `out.size // (rows * height * width)` channels. With
    `as_stored` only files of just so many channels are taken, without it all are converted.
    """
    rows = starts.size
    for i in range(done.size):
        done[i] = 0
    if rows == 0 or lengths.size != rows or done.size != rows or height <= 0 or width <= 0:
        return
    if height > out.size // width or rows > out.size // (height * width):
        return
    pixels = height * width
    channels = out.size // (rows * pixels)
    if channels < 1 or channels > 4 or channels * rows * pixels != out.size:
        return
    longest = 0
    for i in range(rows):
        longest = max(longest, lengths[i])
    packed = np.empty(min(longest, data.size) + SLACK, np.uint8)
    raw = np.empty(height * (width * 4 + 1) + SLACK, np.uint8)
    flat = np.empty(pixels * 4, np.uint8)
    colours = np.empty((256, 4), np.uint8)
    found = np.empty(4, np.int64)
    for i in range(rows):
        start, length = starts[i], lengths[i]
        if start < 0 or length < 0 or start > data.size or length > data.size - start:
            continue
        if not _gather(data, start, start + length, height, width, packed, colours, found):
            continue
        packed_size, colour, transparent, gamma = found[0], found[1], found[2] != 0, found[3] != 0
        samples = 1 if colour == 0 or colour == 3 else 2 if colour == 4 else 3 if colour == 2 else 4
        own = (4 if transparent else 3) if colour == 3 else samples
        if as_stored and own != channels:
            continue
        if channels % 2 == 0 and transparent and colour != 3:
            continue  # one colour is transparent: left to the plain way
        if channels < 3 and gamma and colour in (2, 3, 6):
            continue  # grey by way of linear light: likewise
        head = S(packed[0]) << 8 | S(packed[1])
        if packed_size < 8 or head % 31 or (head >> 8 & 15) != 8 or head >> 12 > 7 or head & 32:
            continue
        stride = width * samples
        size = height * (stride + 1)
        at = _inflate(packed, 2, packed_size, raw, size)
        if at < 0 or at + 4 > packed_size or _adler32(raw, size) != U(_number(packed, at)):
            continue
        to = i * pixels * channels
        if colour != 3 and samples == channels:
            done[i] = unfilter(raw, height, stride, samples, out, to)
        elif unfilter(raw, height, stride, samples, flat, 0):
            _convert(flat, pixels, colour, colours, channels, out, to)
            done[i] = 1


def warm_up() -> None:
    """Compile for all files: the types are always the same."""
    nothing = np.zeros(1, np.uint8)
    where = np.zeros(1, np.int64)
    for array in (nothing, where):
        array.flags.writeable = False
    decode_block(nothing, where, where, False, 1, 1, np.zeros(3, np.uint8), np.zeros(1, np.uint8))
    unfilter(np.zeros(1, np.uint8), 1, 0, 1, np.zeros(1, np.uint8), 0)
