"""Compare reading CSV by TensorFlow's rules with pyarrow.csv alone.

    python benchmarks/csv_rows.py [--rounds 5] [--megabytes 8]

Both sides return Blocks of rows with the byte at which each row starts. pyarrow's side is its best case: it reads
chunks of a megabyte that end at a line end outside of quotes. It has no wrong row, and no field that Arrow and
TensorFlow read differently, and it does not check for either. If pyarrow would refuse a file, its side reads the file
without the faults. The figure is the CPU time of one thread. The ratio is pyarrow's time divided by penstock's, from
the medians of rounds in turn.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from _common.duel import checked, timed

import penstock as ps
from penstock.block.arrow import from_arrow
from penstock.block.block import Block
from penstock.block.origin import Origin

CHUNK = 1 << 20
READ = 4096  # rows per read

Defaults = list[Any]


def words(rng: random.Random, *, quote: bool) -> str:
    text = "".join(rng.choices("abcdefghij", k=rng.randint(4, 16)))
    return f'"{text}, {text}"' if quote else text


def _integers(rng: random.Random) -> str:
    return ",".join(str(rng.randint(0, 99999)) for _ in range(10))


def _short_floats(rng: random.Random) -> str:
    return ",".join(f"{rng.uniform(-100, 100):.4f}" for _ in range(10))


def _full_floats(rng: random.Random) -> str:
    return ",".join(repr(rng.uniform(-100, 100)) for _ in range(10))


def _pixels(rng: random.Random) -> str:
    return ",".join(str(rng.randint(0, 255) if rng.random() < 0.2 else 0) for _ in range(785))


def _mixed(rng: random.Random, *, quote: bool = False, gaps: bool = False) -> str:
    price = "" if gaps and rng.random() < 0.2 else f"{rng.uniform(0, 100):.2f}"
    numbers = f"{rng.randint(0, 10**6)},{rng.randint(0, 9)},{price},{rng.uniform(0, 1):.6f}"
    return f"{words(rng, quote=quote)},{numbers},{words(rng, quote=quote)}"


MIXED: Defaults = [b"", np.int64(0), np.int64(0), np.float32(0), np.float32(0), b""]
FILES: dict[str, tuple[Callable[[random.Random], str], Defaults, list[int] | None]] = {
    "10 integers": (_integers, [np.int64(0)] * 10, None),
    "10 floats of 4 digits": (_short_floats, [np.float32(0)] * 10, None),
    "10 floats of 17 digits, as pandas writes them": (_full_floats, [np.float32(0)] * 10, None),
    "the same as float64": (_full_floats, [np.float64(0)] * 10, None),
    "785 pixels": (_pixels, [np.int64(0)] * 785, None),
    "text and numbers": (_mixed, MIXED, None),
    "the same, text in quotes": (lambda rng: _mixed(rng, quote=True), MIXED, None),
    "the same, a fifth of the prices missing": (lambda rng: _mixed(rng, gaps=True), MIXED, None),
    "2 of its 6 columns": (_mixed, [np.int64(0), np.float32(0)], [1, 3]),
}
SPOILT: dict[str, tuple[str, Callable[[int, str], str]]] = {
    "10 integers with a plus sign": ("10 integers", lambda _, line: "+" + line.replace(",", ",+")),
    "10 integers, an error in every 500th row": ("10 integers", lambda i, line: line if i % 500 else "x" + line),
    "10 floats, an error in every 500th row": (
        "10 floats of 4 digits",
        lambda i, line: line if i % 500 else "x" + line,
    ),
    "text and numbers, a row in 500 too long": ("text and numbers", lambda i, line: line if i % 500 else line + ",x"),
    "text and numbers, a stray quote in 1 of 500": (
        "text and numbers",
        lambda i, line: line if i % 500 else line + '"',
    ),
    "text and numbers, a stray quote in each row": ("text and numbers", lambda _, line: line + '"'),
}


def ours(path: Path, defaults: Defaults, select: list[int] | None) -> Callable[[], int]:
    source: Any = ps.experimental.CsvDataset(path, defaults, select_cols=select)._plan
    return lambda: _counted(source.source)


def _counted(source: Any) -> int:
    reader, count = source.open(), 0
    while True:
        try:
            block = reader.read(READ)
        except ps.errors.InvalidArgumentError:
            count += 1
            continue
        if block is None:
            return count
        count += block.size


def arrow(path: Path, defaults: Defaults, select: list[int] | None) -> Callable[[], int]:
    return lambda: sum(block.size for block in _arrow_blocks(path, defaults, select))


def _arrow_blocks(path: Path, defaults: Defaults, select: list[int] | None) -> Iterator[Block]:
    content = np.memmap(path, np.uint8, "r")
    width = content[: int(np.argmax(content == 10))].tobytes().count(b",") + 1
    if select is None and width != len(defaults):  # delimiters inside quotes
        width = len(defaults)
    wanted = [f"f{i}" for i in (range(width) if select is None else select)]
    types = {
        name: pa.binary() if isinstance(default, bytes) else pa.from_numpy_dtype(default.dtype)
        for name, default in zip(wanted, defaults, strict=True)
    }
    convert = pyarrow.csv.ConvertOptions(column_types=types, include_columns=wanted, null_values=[""])
    parse = pyarrow.csv.ParseOptions(ignore_empty_lines=False)
    read = pyarrow.csv.ReadOptions(
        use_threads=False, block_size=CHUNK * 2, column_names=[f"f{i}" for i in range(width)]
    )
    filled = dict(zip(wanted, defaults, strict=True))
    at = 0
    while at < len(content):
        stop = min(at + CHUNK, len(content))
        while content[stop - 1] != 10:
            stop -= 1
        piece = content[at:stop]
        table = pyarrow.csv.read_csv(pa.BufferReader(pa.py_buffer(piece)), read, parse, convert)
        (batch,) = table.combine_chunks().to_batches()
        block = from_arrow(batch, fill_null=filled)
        ends = np.flatnonzero(piece == 10) + 1 + at
        assert len(ends) == block.size
        origin = Origin.of_file(str(path), np.concatenate([[at], ends[:-1]]))
        yield Block(block.structure, block.columns, block.size, origin)
        at = stop


def measured(run: Callable[[], int], rows: int) -> float:
    return timed(checked(run, rows))[1]


def _as_it_is(_: int, line: str) -> str:
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=8)
    arguments = parser.parse_args()
    print(f"{'file':48}  {'penstock, MB/s':>9}  {'pyarrow':>7}  {'ratio':>5}  spread of ratios")
    files = {name: (name, _as_it_is) for name in FILES} | SPOILT
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (kind, spoil)) in enumerate(files.items()):
            row, defaults, select = FILES[kind]
            rng, good, spoilt = random.Random(number), Path(folder) / "good.csv", Path(folder) / "spoilt.csv"
            lines: list[str] = []
            nbytes = 0
            while nbytes < arguments.megabytes * 1e6:
                lines.append(row(rng))
                nbytes += len(lines[-1]) + 1
            good.write_text("".join(f"{line}\n" for line in lines))
            spoilt.write_text("".join(f"{spoil(i, line)}\n" for i, line in enumerate(lines)))
            sides = [ours(spoilt, defaults, select), arrow(good, defaults, select)]
            for run in sides:
                measured(run, len(lines))
            times = [[measured(run, len(lines)) for run in sides] for _ in range(arguments.rounds)]
            mine, theirs = (statistics.median(side) for side in zip(*times, strict=True))
            ratios = sorted(b / a for a, b in times)
            speeds = f"{nbytes / mine / 1e6:9.1f}  {nbytes / theirs / 1e6:7.0f}"
            print(f"{name:48}  {speeds}  {theirs / mine:5.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
