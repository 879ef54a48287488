"""A JPEG encoder for sampling factors, scans and restarts that the installed libraries do not write."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Factors = tuple[tuple[int, int], ...]  # columns and rows of blocks per unit, by component

K = np.arange(8)
DCT = np.where(K[:, None] == 0, np.sqrt(1 / 8), 0.5 * np.cos((2 * K + 1) * K[:, None] * np.pi / 16))
ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, (i // 8 if (i // 8 + i % 8) % 2 else i % 8)))
DC_SYMBOLS, AC_SYMBOLS = list(range(12)), [run << 4 | size for run in range(16) for size in range(11)]


def segment(kind: int, payload: bytes) -> bytes:
    return bytes([0xFF, kind]) + struct.pack(">H", len(payload) + 2) + payload


def huffman(kind: int, symbols: list[int]) -> bytes:
    """Build codes of one length for all `symbols`: 5 bits for DC, 8 for AC."""
    counts = [0] * 16
    counts[7 if kind else 4] = len(symbols)
    return segment(0xC4, bytes([kind << 4]) + bytes(counts) + bytes(symbols))


@dataclass
class Bits:
    """Writer that collects bits and returns bytes."""

    bits: list[str] = field(default_factory=list)

    def add(self, value: int, length: int) -> None:
        if length:
            self.bits.append(f"{value:0{length}b}")

    def signed(self, value: int) -> None:
        length = abs(value).bit_length()
        self.add(value if value > 0 else value + (1 << length) - 1, length)

    def taken(self) -> bytes:
        text = "".join(self.bits)
        self.bits = []
        text += "1" * (-len(text) % 8)
        return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")


def coefficients(plane: NDArray[np.float64], rows: int, columns: int, step: int) -> NDArray[np.int64]:
    """Return the coefficients of shape (rows, columns, 64) in zigzag order. The edge of the plane is repeated."""
    tall, wide = rows * 8 - plane.shape[0], columns * 8 - plane.shape[1]
    padded = np.pad(plane, ((0, tall), (0, wide)), "edge")
    blocks = padded.reshape(rows, 8, columns, 8).swapaxes(1, 2) - 128
    return np.round(DCT @ blocks @ DCT.T / step).astype(np.int64).reshape(rows, columns, 64)[..., ZIGZAG]


@dataclass
class Encoder:
    """Encoder of one image with at most three components."""

    planes: list[NDArray[np.float64]]  # of the size of the image
    factors: Factors
    step: int = 12
    restart: int = 0
    names: tuple[int, ...] = (1, 2, 3)
    header: bytes = b""

    def __post_init__(self) -> None:
        height, width = self.planes[0].shape
        across, down = (max(pair[i] for pair in self.factors) for i in (0, 1))
        self.units = -(-height // (8 * down)), -(-width // (8 * across))
        self.size = height, width
        self.blocks, self.own = [], []
        for plane, (h, v) in zip(self.planes, self.factors, strict=True):
            rows, columns = -(-height * v // down), -(-width * h // across)
            y, x = (
                (np.arange(rows) * down // v).clip(0, height - 1),
                (np.arange(columns) * across // h).clip(0, width - 1),
            )
            self.blocks.append(coefficients(plane[y][:, x], self.units[0] * v, self.units[1] * h, self.step))
            self.own.append((-(-rows // 8), -(-columns // 8)))

    def order(self, chosen: list[int]) -> Iterator[list[tuple[int, NDArray[np.int64]]]]:
        """Yield the blocks of each unit of a scan."""
        if len(chosen) == 1:
            c = chosen[0]
            rows, columns = self.own[c]
            yield from ([(c, self.blocks[c][y, x])] for y in range(rows) for x in range(columns))
            return
        for y in range(self.units[0]):
            for x in range(self.units[1]):
                yield [
                    (c, self.blocks[c][y * v + j, x * h + i])
                    for c in chosen
                    for h, v in (self.factors[c],)
                    for j in range(v)
                    for i in range(h)
                ]

    def scan(self, chosen: list[int], first: int = 0, last: int = 63, high: int = 0, low: int = 0) -> bytes:
        """Write a scan of DC, AC or both, or of a later bit of DC (`high`, then `low`)."""
        head = bytes([len(chosen)]) + b"".join(bytes([self.names[c], 0]) for c in chosen)
        parts = [segment(0xDA, head + bytes([first, last, high << 4 | low]))]
        bits, before, count = Bits(), [0] * 4, 0
        for number, unit in enumerate(self.order(chosen)):
            if self.restart and number and number % self.restart == 0:
                parts += [bits.taken(), bytes([0xFF, 0xD0 + count % 8])]
                before, count = [0] * 4, count + 1
            for c, block in unit:
                if high:
                    bits.add(int(block[0] >> low) & 1, 1)
                elif first == 0:
                    value = int(block[0] >> low)
                    difference, before[c] = value - before[c], value
                    bits.add(abs(difference).bit_length(), 5)
                    bits.signed(difference)
                if last:
                    self._ac(block, max(first, 1), last, bits)
        return b"".join([*parts, bits.taken()])

    def _ac(self, block: NDArray[np.int64], first: int, last: int, bits: Bits) -> None:
        run = 0
        for k in range(first, last + 1):
            value = int(block[k])
            if not value:
                run += 1
                continue
            while run > 15:
                bits.add(AC_SYMBOLS.index(0xF0), 8)
                run -= 16
            bits.add(AC_SYMBOLS.index(run << 4 | abs(value).bit_length()), 8)
            bits.signed(value)
            run = 0
        if run:
            bits.add(AC_SYMBOLS.index(0), 8)

    def file(self, scans: str = "one") -> bytes:
        """Write a file. `scans`: one, each (one for each component), or progressive."""
        every = list(range(len(self.planes)))
        frame = struct.pack(">BHHB", 8, *self.size, len(every))
        frame += b"".join(bytes([self.names[c], h << 4 | v, 0]) for c, (h, v) in enumerate(self.factors))
        parts = [b"\xff\xd8", self.header, segment(0xDB, bytes([0]) + bytes([self.step] * 64))]
        parts += [segment(0xC2 if scans == "progressive" else 0xC0, frame)]
        parts += [huffman(0, DC_SYMBOLS), huffman(1, AC_SYMBOLS)]
        if self.restart:
            parts.append(segment(0xDD, struct.pack(">H", self.restart)))
        if scans == "one":
            parts.append(self.scan(every))
        elif scans == "each":
            parts += [self.scan([c]) for c in every]
        else:
            parts += [self.scan(every, 0, 0, 0, 1), *(self.scan([c], 1, 5) for c in every)]
            parts += [self.scan(every, 0, 0, 1, 0), *(self.scan([c], 6, 63) for c in reversed(every))]
        return b"".join([*parts, b"\xff\xd9"])


def planes_of_waves(height: int, width: int, seed: int) -> list[NDArray[np.float64]]:
    """Return three planes with gradients, edges and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = (110 + 60 * np.sin(x / (4 + 2 * c) + y / (5 + c)) + 50 * (x + c > y) for c in range(3))
    return [np.clip(wave + rng.normal(0, 5, (height, width)), 0, 255) for wave in waves]
