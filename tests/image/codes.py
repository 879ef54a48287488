"""Grey JPEG files written code by code, with tables of any shape: what no encoder writes, allowed or not."""

import struct
from dataclasses import dataclass
from functools import cached_property
from random import Random

from hypothesis import strategies as st

END, ZEROS = 0x00, 0xF0  # of AC: no more of this block, and sixteen zeros
DC_SYMBOLS = tuple(range(12))
AC_SYMBOLS = (END, ZEROS, *(run << 4 | size for run in range(16) for size in range(1, 11)))


@dataclass(frozen=True)
class Table:
    """Symbols by their codes: `short` ones of 1, 2, 3 ... bits, and all others of `length` bits."""

    symbols: tuple
    short: int
    length: int

    @cached_property
    def codes(self):
        """The code of each symbol, and its length."""
        first = ((1 << self.short) - 1) << (self.length - self.short)
        codes = {symbol: ((2 << n) - 2, n + 1) for n, symbol in enumerate(self.symbols[: self.short])}
        return codes | {symbol: (first + n, self.length) for n, symbol in enumerate(self.symbols[self.short :])}

    def segment(self, kind):
        counts = [int(n < self.short) for n in range(16)]
        counts[self.length - 1] += len(self.symbols) - self.short
        return _segment(0xC4, bytes([kind, *counts, *self.symbols]))


@st.composite
def tables(draw, symbols):
    """A strategy for tables of these symbols."""
    short = draw(st.integers(0, 8))
    least = short + (len(symbols) - short).bit_length()
    return Table(tuple(draw(st.permutations(symbols))), short, draw(st.integers(least, 16)))


def coded(dc, ac, rows, columns, seed, *, too_far=False):
    """A file of so many blocks, whose codes are drawn; `too_far` ones may go past the end of their block."""
    rng, blocks = Random(seed), []
    for _ in range(rows * columns):
        symbols, k, full = [rng.choice(dc.symbols)], 1, rng.choice([1.0, 0.97, 0.5])
        while k < 64:
            among = ac.symbols[: ac.short + 1] if rng.random() < 0.5 else ac.symbols
            symbol = rng.choice(among) if rng.random() < full else END
            behind = 64 if symbol == END else k + (symbol >> 4) + 1
            if behind <= 64 or too_far:
                symbols.append(symbol)
                k = behind
        blocks.append(symbols)
    return written(dc, ac, rows, columns, blocks, seed)


def written(dc, ac, rows, columns, blocks, seed):
    """A file of these blocks, each the symbols of its codes; the values behind them are drawn."""
    rng = Random(seed)
    bits = "".join(_bits(ac if i else dc, symbol, rng) for block in blocks for i, symbol in enumerate(block))
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    frame = struct.pack(">BHHB", 8, 8 * rows, 8 * columns, 1) + b"\x01\x11\x00"
    return b"".join(
        (
            b"\xff\xd8",
            _segment(0xDB, bytes([0, *range(1, 65)])),
            _segment(0xC0, frame),
            dc.segment(0x00),
            ac.segment(0x10),
            _segment(0xDA, b"\x01\x01\x00\x00\x3f\x00"),
            scan,
            b"\xff\xd9",
        )
    )


def _bits(table, symbol, rng):
    code, length = table.codes[symbol]
    size = symbol & 15
    return f"{code:0{length}b}" + (f"{rng.getrandbits(size):0{size}b}" if size else "")


def _segment(marker, content):
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content
