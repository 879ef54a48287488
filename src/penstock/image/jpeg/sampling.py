"""JPEGs whose colour is sampled in a way that simplejpeg does not read, component by component.

Each component becomes a JPEG of its own, coded bits for coded bits, which libjpeg-turbo decodes; what it does with
them then, enlarging the coarser ones and mixing colours, is done here in the same integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.compiled import Compiled
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image.backends import simplejpeg
from penstock.image.jpeg.damage import END, START, frame, next_marker, segments

if TYPE_CHECKING:
    import numpy.typing as npt

    Plane = npt.NDArray[np.int32]


_KERNELS = Compiled("penstock.image.jpeg.kernels.parting")

SEQUENTIAL, PROGRESSIVE = (0xC0, 0xC1), 0xC2
BLOCKS_IN_A_UNIT = 10  # at most, as libjpeg has it
DC_SIZES = bytes(4) + b"\x10" + bytes(11) + bytes(range(16))  # a code of 5 bits for each


class Unreadable(ValueError):
    """What cannot be taken apart, with the reason."""


class Frame(NamedTuple):
    """What the header says; for each component columns and rows of blocks in a unit, and the number of its table."""

    kind: int
    height: int
    width: int
    names: tuple[int, ...]
    factors: tuple[tuple[int, int], ...]
    tables: tuple[int, ...]

    @property
    def most(self) -> tuple[int, int]:
        """The largest factors."""
        return max(h for h, _ in self.factors), max(v for _, v in self.factors)

    def blocks(self, component: int) -> tuple[int, int]:
        """Rows and columns of blocks that a component has for itself."""
        h, v = self.factors[component]
        across, down = self.most
        return -(-self.height * v // (8 * down)), -(-self.width * h // (8 * across))


def frame_of(kind: int, payload: bytes) -> Frame:
    """Read a header's payload.

    Raises:
        Unreadable: it is not as it should be.
    """
    count = payload[5] if len(payload) > 5 else 0
    if not count or len(payload) != 6 + 3 * count or payload[0] != 8:
        message = "header of an unknown form"
        raise Unreadable(message)
    entries = [payload[6 + 3 * i : 9 + 3 * i] for i in range(count)]
    factors = tuple((entry[1] >> 4, entry[1] & 15) for entry in entries)
    height, width = int.from_bytes(payload[1:3], "big"), int.from_bytes(payload[3:5], "big")
    if not all(1 <= factor <= 4 for pair in factors for factor in pair) or not height or not width:
        message = "impossible sampling or size"
        raise Unreadable(message)
    return Frame(kind, height, width, tuple(e[0] for e in entries), factors, tuple(e[2] for e in entries))


def component_files(contents: bytes) -> tuple[Frame, list[bytes]]:
    """The header, and a file for each component, of whole blocks, whose pixels are the component's samples.

    Raises:
        Unreadable: it is damaged, or coded in another way than by Huffman's codes.
    """
    state = _State()
    at = 2
    while True:
        at = next_marker(contents, at)
        kind = contents[at + 1] if at + 2 <= len(contents) else 0
        if kind == 0xD9:
            break
        if kind in (0x01, *range(0xD0, 0xD8)):
            at += 2
            continue
        end = at + 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
        if not kind or end < at + 4 or end > len(contents):
            message = "premature end"
            raise Unreadable(message)
        payload = contents[at + 4 : end]
        at = end
        if kind == 0xDA:
            pieces, at = _pieces(contents, at)
            state.scan(payload, pieces, contents[end:at])
        else:
            state.segment(kind, payload)
    if state.frame is None or not all(state.files):
        message = "rows are missing"
        raise Unreadable(message)
    return state.frame, [b"".join([*file, END]) for file in state.files]


def _pieces(contents: bytes, at: int) -> tuple[list[bytes], int]:
    """What lies between the restart markers, and where the next other marker is."""
    pieces = []
    while True:
        end = next_marker(contents, at)
        pieces.append(contents[at:end].replace(b"\xff\0", b"\xff"))
        if contents[end + 1 : end + 2] != bytes([0xD0 + (len(pieces) - 1) % 8]):
            return pieces, end
        at = end + 2


class _State:
    """What has been read of a file so far."""

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self.quant: dict[int, bytes] = {}
        self.huffman: dict[int, bytes] = {}
        self.restart = 0
        self.files: list[list[bytes]] = []

    def segment(self, kind: int, payload: bytes) -> None:
        if kind == 0xDB:
            while payload:
                size = 129 if payload[0] >> 4 else 65
                self.quant[payload[0] & 15] = bytes([payload[0] & 0xF0]) + payload[1:size]
                payload = payload[size:]
        elif kind == 0xC4:
            while payload:
                size = 17 + sum(payload[1:17])
                self.huffman[payload[0]] = payload[1:size]
                payload = payload[size:]
        elif kind == 0xDD and len(payload) == 2:
            self.restart = int.from_bytes(payload, "big")
        elif kind in (*SEQUENTIAL, PROGRESSIVE) and self.frame is None:
            self.frame = frame_of(kind, payload)
            self.files = [[] for _ in self.frame.names]
        elif 0xC0 <= kind <= 0xCF or kind == 0xDD:
            message = f"segment {kind:#x} of an unknown form"
            raise Unreadable(message)

    def scan(self, header: bytes, pieces: list[bytes], coded: bytes) -> None:
        frame = self.frame
        count = header[0] if header else 0
        if frame is None or not count or len(header) != 4 + 2 * count:
            message = "scan without a header"
            raise Unreadable(message)
        names = header[1 : 1 + 2 * count : 2]
        if any(name not in frame.names for name in names) or len(set(names)) != count:
            message = "scan of unknown components"
            raise Unreadable(message)
        chosen = [frame.names.index(name) for name in names]
        tables = [(number >> 4, 0x10 | number & 15) for number in header[2 : 2 + 2 * count : 2]]
        if count == 1:
            found = [(number & 0x10, self.huffman[number]) for number in tables[0] if number in self.huffman]
            self._add(chosen[0], header[-3:], found, coded, self.restart)
            return
        mode = _mode(frame.kind, header[-3:])
        for component, (_, ac), data in self._parted(frame, chosen, tables, pieces, mode):
            found = [] if mode == "DC_BIT" else [(0, DC_SIZES)]
            if mode == "WHOLE":
                found.append((0x10, self.huffman[ac]))
            self._add(component, header[-3:], found, data, 0)

    def _add(
        self, component: int, parameters: bytes, tables: list[tuple[int, bytes]], coded: bytes, restart: int
    ) -> None:
        """One more scan of the component's file, which begins with the first."""
        assert self.frame is not None
        file = self.files[component]
        if not file:
            number = self.frame.tables[component]
            if number not in self.quant:
                message = "a table is missing"
                raise Unreadable(message)
            rows, columns = self.frame.blocks(component)
            sides = (8 * rows).to_bytes(2, "big") + (8 * columns).to_bytes(2, "big")
            file += [START, _segment(0xDB, self.quant[number])]
            file.append(_segment(self.frame.kind, b"\x08" + sides + b"\x01\x01\x11\x00"))
        file += [_segment(0xC4, bytes([kind]) + table) for kind, table in tables]
        file += [_segment(0xDD, restart.to_bytes(2, "big")), _segment(0xDA, b"\x01\x01\x00" + parameters), coded]

    def _parted(
        self, frame: Frame, chosen: list[int], tables: list[tuple[int, int]], pieces: list[bytes], mode: str
    ) -> Iterator[tuple[int, tuple[int, int], bytes]]:
        """For each component of the scan its number, the numbers of its tables, and its blocks, coded."""
        kernels = _KERNELS.get()
        holds = getattr(kernels, mode)
        across, down = frame.most
        units = np.array([-(-frame.height // (8 * down)), -(-frame.width // (8 * across))])
        factors = np.array([frame.factors[component] for component in chosen])
        sizes = factors.prod(axis=1) * units.prod()
        intervals = -(-int(units.prod()) // self.restart) if self.restart else 1
        if factors.prod(axis=1).sum() > BLOCKS_IN_A_UNIT or len(pieces) != intervals:
            message = "units too large, or restarts in other places than they should be"
            raise Unreadable(message)
        data = np.frombuffer(bytearray(b"".join(pieces) + bytes(8)), np.uint8)
        ends = np.cumsum([8 * len(piece) for piece in pieces])
        starts = ends - [8 * len(piece) for piece in pieces]
        blocks = np.zeros((sizes.sum(), 3), np.int64)
        nothing = np.zeros(1 << 16, np.int32)
        dc = np.stack([nothing if mode == "DC_BIT" else _lookup(self.huffman.get(number)) for number, _ in tables])
        ac = np.stack([_lookup(self.huffman.get(number)) if mode == "WHOLE" else nothing for _, number in tables])
        if not kernels.part_scan(data, starts, ends, units, self.restart, factors, dc, ac, holds, blocks):
            message = "bad Huffman code, or premature end"
            raise Unreadable(message)
        parts = np.split(blocks, np.cumsum(sizes)[:-1])
        for component, own, part, (h, _) in zip(chosen, tables, parts, factors.tolist(), strict=True):
            out = np.zeros((int((part[:, 2] - part[:, 1]).sum()) + 20 * len(part)) // 8 + 1, np.uint8)
            bits = kernels.write_scan(data, part, *frame.blocks(component), int(units[1]) * h, holds, out)
            if not bits:
                message = "coefficients out of range"
                raise Unreadable(message)
            out = out[: -(-bits // 8)]
            out[-1] |= 0xFF >> 8 - -bits % 8  # of the last byte what is left
            yield component, own, out.tobytes().replace(b"\xff", b"\xff\0")


def _mode(kind: int, parameters: bytes) -> str:
    """The kernels' name for what a scan of several components holds."""
    if kind != PROGRESSIVE:
        return "WHOLE"
    if parameters[:2] != b"\0\0":
        message = "a scan of several components that holds more than their means"
        raise Unreadable(message)
    return "DC_BIT" if parameters[2] >> 4 else "DC_FIRST"


def _lookup(table: bytes | None) -> npt.NDArray[np.int32]:
    """What 16 bits begin with: length << 8 | symbol of a code, or 0."""
    if table is None or len(table) < 16 or len(table) != 16 + sum(table[:16]):
        message = "a table is missing or damaged"
        raise Unreadable(message)
    found = np.zeros(1 << 16, np.int32)
    at, symbol = 0, 16
    for length in range(1, 17):
        for _ in range(table[length - 1]):
            found[at : at + (1 << (16 - length))] = length << 8 | table[symbol]
            at += 1 << (16 - length)
            symbol += 1
    return found


def _segment(kind: int, payload: bytes) -> bytes:
    return bytes([0xFF, kind]) + (len(payload) + 2).to_bytes(2, "big") + payload


def oddly_sampled(contents: bytes | memoryview) -> Frame | None:
    """The header, if it is one of three components in a sampling that is possible."""
    segment = frame(contents)
    try:
        found = frame_of(segment[1], segment[4:])
    except (Unreadable, IndexError):
        return None
    return found if len(found.names) == 3 else None


def decode_parts(
    contents: bytes, channels: int, ratio: int, *, fastdct: bool, fastupsample: bool
) -> npt.NDArray[np.uint8]:
    """The pixels, as TensorFlow gives them, of a file that is whole.

    Raises:
        DataLossError: the file is damaged.
        InvalidArgumentError: sampled so that libjpeg does not enlarge it.
    """
    try:
        header, files = component_files(contents)
        rgb = _holds_rgb(contents, header)
        wanted = range(3) if channels == 3 or rgb else range(1)
        samples = [_samples(header, files[c], c, ratio, fastdct=fastdct) for c in wanted]
    except (ValueError, KeyError) as error:
        message = f"JPEG damaged: {error} in {len(contents)} bytes."
        raise DataLossError(
            message, hint="Damage is filled in where colour is sampled as 4:4:4, 4:2:2 or 4:2:0."
        ) from None
    fancy = not fastupsample and ratio < 8
    planes = [_enlarged(header, each, c, ratio, fancy=fancy) for c, each in zip(wanted, samples, strict=True)]
    if not rgb and channels == 3:
        planes = _rgb(*planes)
    if channels == 1 and rgb:
        planes = [_fixed(planes[0], 0.299) + _fixed(planes[1], 0.587) + _fixed(planes[2], 0.114) + HALF >> 16]
    return np.stack(planes, axis=-1).astype(np.uint8)


HALF = 1 << 15


def _fixed(plane: Plane, factor: float) -> Plane:
    return plane * round(factor * 65536)


def _rgb(y: Plane, blue: Plane, red: Plane) -> list[Plane]:
    blue, red = blue - 128, red - 128
    green = -_fixed(blue, 0.34414) - _fixed(red, 0.71414) + HALF >> 16
    sums = (y + (_fixed(red, 1.402) + HALF >> 16), y + green, y + (_fixed(blue, 1.772) + HALF >> 16))
    return [np.clip(plane, 0, 255) for plane in sums]


def _holds_rgb(contents: bytes, header: Frame) -> bool:
    """Whether the components are red, green and blue, by the marks that libjpeg goes by."""
    jfif, transform = False, -1
    for kind, segment in segments(contents):
        jfif |= kind == 0xE0 and segment[4:9] == b"JFIF\0"
        if kind == 0xEE and segment[4:9] == b"Adobe" and len(segment) >= 16:
            transform = segment[15]
    return not jfif and (transform == 0 or (transform < 0 and bytes(header.names) == b"RGB"))


def _side(header: Frame, component: int, ratio: int) -> int:
    """Samples of a side that become of a block: as many as save enlarging them later."""
    h, v = header.factors[component]
    across, down = header.most
    side = smallest = 8 // ratio
    while side < 8 and across * smallest % (h * side * 2) == 0 and down * smallest % (v * side * 2) == 0:
        side *= 2
    return side


def _samples(header: Frame, file: bytes, component: int, ratio: int, *, fastdct: bool) -> Plane:
    """The samples of a component, as many as it has."""
    side = _side(header, component, ratio)
    rows, columns = (side * blocks for blocks in header.blocks(component))
    settings = {"min_height": rows, "min_width": columns, "min_factor": 8 // side} if side < 8 else {}
    image: npt.NDArray[np.uint8] = simplejpeg().decode_jpeg(file, "GRAY", fastdct=fastdct, **settings)
    (h, v), (across, down) = header.factors[component], header.most
    height, width = -(-header.height * v * side // (down * 8)), -(-header.width * h * side // (across * 8))
    return image[:height, :width, 0].astype(np.int32)


def _enlarged(header: Frame, samples: Plane, component: int, ratio: int, *, fancy: bool) -> Plane:
    """One sample for each pixel."""
    (h, v), most = header.factors[component], header.most
    side = _side(header, component, ratio)
    wide, wide_rest = divmod(most[0] * (8 // ratio), h * side)
    high, high_rest = divmod(most[1] * (8 // ratio), v * side)
    if wide_rest or high_rest:
        factors = ", ".join(f"{h}x{v}" for h, v in header.factors)
        message = (
            f"decode_jpeg: this JPEG samples its components {factors}: not in whole ratios, which libjpeg asks for."
        )
        raise InvalidArgumentError(message, hint="Write it anew as 4:4:4, 4:2:2 or 4:2:0.")
    if fancy and wide == 1 and high == 2:
        samples = _between(samples.T, lambda near, far, odd: near * 3 + far + 1 + odd >> 2).T
    elif fancy and wide == 2 and high == 1 and samples.shape[1] > 2:
        samples = _between(samples, lambda near, far, odd: near * 3 + far + 1 + odd >> 2)
    elif fancy and wide == 2 and high == 2 and samples.shape[1] > 2:
        taller = _between(samples.T, lambda near, far, _: near * 3 + far).T
        samples = _between(taller, lambda near, far, odd: near * 3 + far + 8 - odd >> 4)
    else:
        samples = samples.repeat(high, axis=0).repeat(wide, axis=1)
    return samples[: -(-header.height // ratio), : -(-header.width // ratio)]


def _between(samples: Plane, mixed: Callable[[Plane, Plane, int], Plane]) -> Plane:
    """Twice as many columns, each of the near sample and, at a quarter, of the one on its other side."""
    out = np.empty((samples.shape[0], 2 * samples.shape[1]), np.int32)
    out[:, ::2] = mixed(samples, np.concatenate([samples[:, :1], samples[:, :-1]], axis=1), 0)
    out[:, 1::2] = mixed(samples, np.concatenate([samples[:, 1:], samples[:, -1:]], axis=1), 1)
    return out
