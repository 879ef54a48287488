"""parse: a kernel that reads JSON Lines objects with known keys and kinds into columns.

It knows the bytes of each key and expects a key order. So most of a line is compared instead of searched. Its results
equal those of `json`. A line with an error or unusual content is only marked, and `json` reads it.

Floats are rounded with the algorithm of Eisel and Lemire (Lemire, "Number Parsing at a Gigabyte per Second", 2021).
`json` reads the few numbers that the algorithm cannot decide. Several bytes are tested at once with the method of
Mycroft and Lamport.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core.extending import intrinsic

from penstock.io.kernels.loads import load64
from penstock.native.kernel import helper, inlined, kernel
from penstock.sources.json_tables import (
    BOOL,
    DEFAULT,
    HIGH,
    INT,
    ITEMS,
    KEY,
    KIND,
    LEAST_POWER,
    LIST,
    LOW,
    MISSING,
    MOST_POWER,
    OBJECT,
    OTHER_KEY,
    OTHER_SIZE,
    SIZE,
    TEXT,
    TEXTS,
    TO,
)

U = np.uint64
N = np.int64
types: Any = numba.types

_I64, _I128 = ir.IntType(64), ir.IntType(128)

_ONES, _HIGHS = 0x0101010101010101, 0x8080808080808080
_LINE_END, _SPACE, _QUOTE, _COMMA, _MINUS, _POINT, _ZERO, _COLON = 10, 32, 34, 44, 45, 46, 48, 58
_OPEN_LIST, _BACKSLASH, _CLOSE_LIST, _OPEN, _CLOSE = 91, 92, 93, 123, 125
_EXACT = 1 << 53  # larger integers may not be exact in float64
_TENS = np.array([10**i for i in range(9)], np.uint64)
_ESCAPED = np.zeros(256, np.uint8)  # the byte for each escape character, or 0 if there is no single byte
for _byte, _made in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _ESCAPED[_byte] = _made
_DIGITS = np.full(256, -1)  # values of hexadecimal digits
for _byte in b"0123456789abcdefABCDEF":
    _DIGITS[_byte] = int(chr(_byte), 16)


def _trailing(typing: Any, word: Any) -> Any:
    """Return the number of trailing zero bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


def _leading(typing: Any, word: Any) -> Any:
    """Return the number of leading zero bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


def _high_product(typing: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of a 128-bit product."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.mul(builder.zext(args[0], _I128), builder.zext(args[1], _I128))
        return builder.trunc(builder.lshr(product, _I128(64)), _I64)

    return types.uint64(types.uint64, types.uint64), generate


trailing: Any = intrinsic(_trailing)
leading: Any = intrinsic(_leading)
high_product: Any = intrinsic(_high_product)


@inlined
def put64(buffer, at, word):
    """Write eight bytes, little-endian. LLVM compiles it to one store."""
    i = U(at)
    buffer[i] = np.uint8(word)
    buffer[i + U(1)] = np.uint8(word >> U(8))
    buffer[i + U(2)] = np.uint8(word >> U(16))
    buffer[i + U(3)] = np.uint8(word >> U(24))
    buffer[i + U(4)] = np.uint8(word >> U(32))
    buffer[i + U(5)] = np.uint8(word >> U(40))
    buffer[i + U(6)] = np.uint8(word >> U(48))
    buffer[i + U(7)] = np.uint8(word >> U(56))


@inlined
def behind_space(content, at):
    """Return the position of the first byte from `at` on that is no space, tab or carriage return."""
    while content[U(at)] <= _SPACE and (content[U(at)] == _SPACE or content[U(at)] == 9 or content[U(at)] == 13):
        at += 1
    return at


@inlined
def digits(content, at, value):
    """Return (position after the digits at `at`, `value` followed by these digits), modulo 2**64."""
    count = U(8)
    while count == U(8):
        word = load64(content, at) ^ U(0x3030303030303030)
        other = (((word & U(0x7F7F7F7F7F7F7F7F)) + U(0x7676767676767676)) | word) & U(_HIGHS)
        if other != U(0):
            count = trailing(other) >> U(3)
            if count == U(0):
                break
        word <<= (U(8) - count) << U(3)  # the first digit is in the lowest byte: prepend zeros
        word = (word * U(10)) + (word >> U(8))
        pairs = (word & U(0x000000FF000000FF)) * U(0x000F424000000064)
        pairs += ((word >> U(16)) & U(0x000000FF000000FF)) * U(0x0000271000000001)
        value = value * U(_TENS[count]) + (pairs >> U(32))
        at += N(count)
    return at, value


@helper
def number(content, at):
    """Return (position after a number, is an integer, is negative, digits, power of ten, digits were cut off).

    The position is -1 if there is no number, or if its exponent has many digits. At most 19 digits are returned.
    """
    minus = content[U(at)] == _MINUS
    at += N(minus)
    begin = at
    value = U(0)
    if content[U(at)] == _ZERO:
        at += 1
        if U(content[U(at)]) - U(_ZERO) < U(10):
            return N(-1), False, False, U(0), N(0), False
    else:
        at, value = digits(content, at, value)
        if at == begin:
            return N(-1), False, False, U(0), N(0), False
    count = at - begin
    whole = True
    power = N(0)
    if content[U(at)] == _POINT:
        whole = False
        at += 1
        point = at
        at, value = digits(content, at, value)
        if at == point:
            return N(-1), False, False, U(0), N(0), False
        power = point - at
        count += at - point
    cut = False
    if count > 19:
        value = U(0)
        count = N(0)
        for i in range(begin, at):
            if content[U(i)] == _POINT:
                continue
            if count < 19:
                value = value * U(10) + U(content[U(i)] - _ZERO)
                count += N(value != U(0))  # leading zeros do not count as digits
            else:
                power += 1
                cut = True
    if content[U(at)] | 32 == 101:
        whole = False
        at += 1
        down = content[U(at)] == _MINUS
        at += N(down or content[U(at)] == 43)
        begin = at
        at, more = digits(content, at, U(0))
        if at == begin or at - begin > 6:
            return N(-1), False, False, U(0), N(0), False
        power += -N(more) if down else N(more)
    return at, whole, minus, value, power, cut


@helper
def float_bits(value, power, powers):
    """Return (True, bits of the float64 nearest to `value` times ten to the `power`), or False if uncertain."""
    if value == U(0):
        return True, U(0)
    if power < LEAST_POWER or power > MOST_POWER:
        return False, U(0)
    zeros = leading(value)
    value <<= zeros
    i = U(2) * U(power - LEAST_POWER)
    low = value * powers[i]
    high = high_product(value, powers[i])
    if high & U(0x1FF) == U(0x1FF):
        more = high_product(value, powers[i + U(1)])
        low += more
        high += U(low < more)
    if low == U(0xFFFFFFFFFFFFFFFF) and (power < -27 or power > 55):
        return False, U(0)
    upper = high >> U(63)
    mantissa = high >> (upper + U(9))
    exponent = ((N(217706) * power) >> N(16)) + 63 + N(upper) - N(zeros) + 1023
    if exponent <= 0:
        return False, U(0)  # the result is subnormal
    half_way = low <= U(1) and power >= -4 and power <= 23 and mantissa << (upper + U(9)) == high
    if half_way and mantissa & U(3) == U(1):
        mantissa &= ~U(1)  # round half to even
    mantissa += mantissa & U(1)
    mantissa >>= U(1)
    if mantissa >= U(1 << 53):
        mantissa = U(1 << 52)
        exponent += 1
    if exponent >= 2047:
        return False, U(0)
    return True, (mantissa & U((1 << 52) - 1)) | (U(exponent) << U(52))


@inlined
def is_word(content, at, word, mask):
    return (load64(content, at) & U(mask)) == U(word)


@helper
def other_number(content, at):
    """Return (position after NaN, Infinity or -Infinity, its bits), or position -1."""
    if is_word(content, at, 0x4E614E, 0xFFFFFF):
        return at + 3, N(0x7FF8000000000000)
    minus = N(content[U(at)] == _MINUS)
    if is_word(content, at + minus, 0x7974696E69666E49, 0xFFFFFFFFFFFFFFFF):
        return at + minus + 8, N(0x7FF0000000000000) | (-minus << N(63))
    return N(-1), N(0)


@inlined
def hexadecimal(content, at):
    """Return the value of four hexadecimal digits, or a negative number if they are none."""
    upper = _DIGITS[content[U(at)]] << 12 | _DIGITS[content[U(at + 1)]] << 8
    return upper | _DIGITS[content[U(at + 2)]] << 4 | _DIGITS[content[U(at + 3)]]


@helper
def code_point(content, at, texts, to):
    """Decode an escaped character, with its second surrogate. Return (position after it, end of its UTF-8), or -1."""
    point = hexadecimal(content, at)
    at += 4
    if point >= 0xD800 and point <= 0xDFFF:
        if point >= 0xDC00 or content[U(at)] != _BACKSLASH or content[U(at + 1)] != 117:
            return N(-1), to
        second = hexadecimal(content, at + 2)
        if second < 0xDC00 or second > 0xDFFF:
            return N(-1), to
        point = 0x10000 + ((point - 0xD800) << 10) + second - 0xDC00
        at += 6
    if point < 0:
        return N(-1), to
    if point < 0x80:
        texts[U(to)] = np.uint8(point)
        return at, to + 1
    if point < 0x800:
        texts[U(to)] = np.uint8(0xC0 | point >> 6)
        texts[U(to + 1)] = np.uint8(0x80 | point & 63)
        return at, to + 2
    if point < 0x10000:
        texts[U(to)] = np.uint8(0xE0 | point >> 12)
        texts[U(to + 1)] = np.uint8(0x80 | point >> 6 & 63)
        texts[U(to + 2)] = np.uint8(0x80 | point & 63)
        return at, to + 3
    texts[U(to)] = np.uint8(0xF0 | point >> 18)
    texts[U(to + 1)] = np.uint8(0x80 | point >> 12 & 63)
    texts[U(to + 2)] = np.uint8(0x80 | point >> 6 & 63)
    texts[U(to + 3)] = np.uint8(0x80 | point & 63)
    return at, to + 4


@helper
def wide(content, at):
    """Return the number of UTF-8 bytes of the non-ASCII character at `at`, or 0 if it is invalid."""
    first = content[U(at)]
    second = content[U(at + 1)]
    if second & 0xC0 != 0x80:
        return N(0)
    if first < 0xE0:
        return N(2) if first >= 0xC2 else N(0)
    if content[U(at + 2)] & 0xC0 != 0x80:
        return N(0)
    if first < 0xF0:
        return N(0) if (first == 0xE0 and second < 0xA0) or (first == 0xED and second >= 0xA0) else N(3)
    if content[U(at + 3)] & 0xC0 != 0x80 or first > 0xF4:
        return N(0)
    return N(0) if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second >= 0x90) else N(4)


@helper
def text(content, at, texts, to):
    """Copy a string. Return (position after the closing quote, end of its bytes in `texts`), or position -1."""
    while True:
        word = load64(content, at)
        put64(texts, to, word)
        quotes = word ^ U(_QUOTE * _ONES)
        slashes = word ^ U(_BACKSLASH * _ONES)
        found = ((quotes - U(_ONES)) & ~quotes) | ((slashes - U(_ONES)) & ~slashes)
        found = (found | ((word - U(_SPACE * _ONES)) & ~word) | word) & U(_HIGHS)
        if found == U(0):
            at += 8
            to += 8
            continue
        # The lowest set bit is right; higher bits may be wrong because of carries.
        count = N(trailing(found) >> U(3))
        at += count
        to += count
        if content[U(at)] == _QUOTE:
            return at + 1, to
        if content[U(at)] < _SPACE:
            return N(-1), to
        while content[U(at)] == _BACKSLASH:
            byte = _ESCAPED[content[U(at + 1)]]
            if byte != 0:
                texts[U(to)] = byte
                at += 2
                to += 1
                continue
            if content[U(at + 1)] != 117:
                return N(-1), to
            at, to = code_point(content, at + 2, texts, to)
            if at < 0:
                return at, to
        while content[U(at)] >= 0x80:
            size = wide(content, at)
            if size == 0:
                return N(-1), to
            put64(texts, to, load64(content, at))
            at += size
            to += size


@inlined
def is_key(content, at, keys, key, size):
    """Return True if the `size` bytes at `at` equal those of `keys` at `key`. Both arrays have seven more bytes."""
    while size > 8:
        if load64(content, at) != load64(keys, key):
            return False
        at += 8
        key += 8
        size -= 8
    return (load64(content, at) ^ load64(keys, key)) << (U(64) - (U(size) << U(3))) == U(0)


@helper
def slot_of(content, at, keys, slots, first, end, near):
    """Return (slot with the key at `at`, position after it), or (-1, -1). The search starts at slot `near`."""
    for i in range(end - first):
        slot = near + i
        if slot >= end:
            slot -= end - first
        if is_key(content, at, keys, slots[slot, KEY], slots[slot, SIZE]):
            return slot, at + slots[slot, SIZE]
        if slots[slot, OTHER_SIZE] > 0 and is_key(content, at, keys, slots[slot, OTHER_KEY], slots[slot, OTHER_SIZE]):
            return slot, at + slots[slot, OTHER_SIZE]
    return N(-1), N(-1)


@helper
def scalar(content, at, slots, slot, powers):
    """Return (position after a number or truth value of the slot's kind, its bits), or position -1."""
    kind = slots[slot, KIND] & ~LIST
    if kind == BOOL:
        if is_word(content, at, 0x65757274, 0xFFFFFFFF):
            return at + 4, N(1)
        if is_word(content, at, 0x65736C6166, 0xFFFFFFFFFF):
            return at + 5, N(0)
        return N(-1), N(0)
    begin = at
    if kind == INT and content[U(at)] > _ZERO:
        at, value = digits(content, at, U(0))
        if at - begin > 0 and at - begin < 19 and value <= U(slots[slot, HIGH]):
            return at, N(value)
        at = begin
    at, whole, minus, value, power, cut = number(content, at)
    if kind == INT:
        if at < 0 or not whole or cut or value > U(0x7FFFFFFFFFFFFFFF) + U(minus):
            return N(-1), N(0)
        found = -N(value) if minus else N(value)
        if found < slots[slot, LOW] or found > slots[slot, HIGH]:
            return N(-1), N(0)
        return at, found
    if at < 0:
        return other_number(content, begin)
    if whole and value > U(_EXACT):
        return N(-1), N(0)  # `json` reads an exact integer, which becomes a float32 without an intermediate float64
    certain, bits = float_bits(value, power, powers)
    if cut and certain:
        certain, above = float_bits(value + U(1), power, powers)
        certain = certain and above == bits
    if not certain:
        return N(-1), N(0)
    if minus and not (whole and value == U(0)):
        bits |= U(1 << 63)
    return at, N(bits)


@helper
def items_of(content, at, slots, slot, powers, texts, items, taken):
    """Add the values of a list to `items`.

    Return the position after it, or -1 for an error. `at` is after the bracket.
    """
    at = behind_space(content, at)
    if content[U(at)] == _CLOSE_LIST:
        return at + 1
    isa_text = slots[slot, KIND] == TEXT | LIST
    while True:
        to = taken[ITEMS]
        if isa_text:
            if content[U(at)] != _QUOTE:
                return N(-1)
            at, end = text(content, at + 1, texts, taken[TEXTS])
            items[U(to)] = taken[TEXTS]
            items[U(to + 1)] = end - taken[TEXTS]
            taken[TEXTS] = end
            taken[ITEMS] = to + 2
        else:
            at, found = scalar(content, at, slots, slot, powers)
            items[U(to)] = found
            taken[ITEMS] = to + 1
        if at < 0:
            return at
        at = behind_space(content, at)
        byte = content[U(at)]
        at += 1
        if byte == _CLOSE_LIST:
            return at
        if byte != _COMMA:
            return N(-1)
        at = behind_space(content, at)


@helper
def line(content, at, row, tables, out):
    """Read the line at `at`. Return the position after its object, or -1 if `json` must read the line.

    `tables` and `out` are arguments of `parse`.
    """
    keys, slots, objects, seen, outer, powers = tables
    values, sizes, missing, texts, items, taken = out
    at = behind_space(content, at)
    if content[U(at)] != _OPEN:
        return N(-1)
    at += 1
    found = depth = this = N(0)
    near = objects[0, 0]
    inside = False  # True inside an object, after a value
    while True:
        at = behind_space(content, at)
        if content[U(at)] == _CLOSE:
            at += 1
            if depth == 0:
                break
            depth -= 1
            this = outer[depth, 0]
            near = outer[depth, 1]
            inside = True
            continue
        if inside:
            if content[U(at)] != _COMMA:
                return N(-1)
            at = behind_space(content, at + 1)
        if content[U(at)] != _QUOTE:
            return N(-1)
        if near == objects[this, 1]:
            near = objects[this, 0]
        if near < objects[this, 1] and is_key(content, at + 1, keys, slots[near, KEY], slots[near, SIZE]):
            slot = near
            at += 1 + slots[near, SIZE]
        else:
            slot, at = slot_of(content, at + 1, keys, slots, objects[this, 0], objects[this, 1], near)
            if slot < 0:
                return slot
        near = slot + 1
        if seen[slot] == row + 1:
            return N(-1)
        seen[slot] = row + 1
        at = behind_space(content, at)
        if content[U(at)] != _COLON:
            return N(-1)
        at = behind_space(content, at + 1)
        inside = True
        kind = slots[slot, KIND]
        to = slots[slot, TO]
        if content[U(at)] == 110:  # null
            if not is_word(content, at, 0x6C6C756E, 0xFFFFFFFF):
                return N(-1)
            at += 4
            if kind != OBJECT:
                seen[slot] = -row - 1  # treat null like a missing key
                if not slots[slot, DEFAULT]:
                    return N(-1)
        elif kind == TEXT:
            if content[U(at)] != _QUOTE:
                return N(-1)
            at, end = text(content, at + 1, texts, taken[TEXTS])
            values[to, row] = taken[TEXTS]
            sizes[to, row] = end - taken[TEXTS]
            taken[TEXTS] = end
            found += 1
        elif kind < LIST:
            at, bits = scalar(content, at, slots, slot, powers)
            values[to, row] = bits
            found += 1
        elif kind == OBJECT:
            if content[U(at)] != _OPEN:
                return N(-1)
            at += 1
            outer[depth, 0] = this
            outer[depth, 1] = near
            depth += 1
            this = to
            near = objects[this, 0]
            inside = False
        else:
            if content[U(at)] != _OPEN_LIST:
                return N(-1)
            begin = taken[ITEMS]
            at = items_of(content, at + 1, slots, slot, powers, texts, items, taken)
            values[to, row] = begin
            sizes[to, row] = taken[ITEMS] - begin
            found += 1
        if at < 0:
            return at
    if found < values.shape[0]:
        for slot in range(slots.shape[0]):
            if slots[slot, KIND] != OBJECT and seen[slot] != row + 1:
                if not slots[slot, DEFAULT]:
                    return N(-1)
                missing[slots[slot, TO], row] = 1
                taken[MISSING] += 1
    return behind_space(content, at)


@kernel(
    "content: u8[:], starts: w i64[:], keys: u8[:], slots: w i64[:, :], objects: w i64[:, :], seen: w i64[:], "
    "outer: w i64[:, :], powers: w u64[:], values: w i64[:, :], sizes: w i64[:, :], missing: w u8[:, :], texts: w "
    "u8[:], items: w i64[:], taken: w i64[:], odd: w u8[:]"
)
def parse(content, starts, keys, slots, objects, seen, outer, powers, values, sizes, missing, texts, items, taken, odd):
    """Read the lines that begin at `starts`.

    A line ends with a newline, and `content` has 64 newlines at its end. `keys` has the bytes of the keys, and eight
    more bytes. The keys of object o are `slots[objects[o, 0] : objects[o, 1]]` in the expected order. Object 0 is the
    line. `seen` is zero for each slot. `outer` has a row for each object.

    Leaf k of line i is `values[k, i]`. It is an integer, 0 or 1, or the bits of a float64. For a string it is the start
    in `texts`, for a list the start in `items`. `texts` is as long as `content` plus the part of `texts` in use before;
    `items` is as long as `content`. `sizes` has the bytes of a string and the words of a list. The items of a list are
    encoded like `values`. A string in a list has two words, its start and its size. `missing` is all zeros and becomes
    1 for missing values.

    `taken` has the used sizes of `texts` and `items`, and the number of missing values. `odd` is all zeros and becomes
    1 for lines that `json` must read.
    """
    tables, out = (keys, slots, objects, seen, outer, powers), (values, sizes, missing, texts, items, taken)
    for row in range(starts.size):
        texts_before = taken[TEXTS]
        items_before = taken[ITEMS]
        end = line(content, starts[row], row, tables, out)
        if end < 0 or content[U(end)] != _LINE_END:
            taken[TEXTS] = texts_before
            taken[ITEMS] = items_before
            odd[row] = 1
