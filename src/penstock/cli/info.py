"""`penstock info FILE.tfrecord`."""

from __future__ import annotations

import argparse
from typing import Any

_SHOWN = 40


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Read TFRecord files, checksums included, and say how many records they hold and what is in the first."
    parser = commands.add_parser("info", help="say what is in TFRecord files", description=text)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a TFRecord file")
    parser.add_argument(
        "--compression", choices=("GZIP", "ZLIB"), metavar="TYPE", help="how the files are compressed: GZIP or ZLIB"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print count, sizes and the first record's features, file by file."""
    for file in chosen.files:
        _describe(file, chosen.compression)
    return 0


def _describe(file: str, compression: str | None) -> None:
    from penstock.io.tfrecord import RecordReader

    count = total = 0
    smallest, largest, first = 0, 0, None
    with RecordReader(file, compression_type=compression) as reader:
        while (chunk := reader.read(max_records=4096, max_bytes=1 << 24)) is not None:
            first = chunk.records()[0] if first is None else first
            least, most = int(chunk.lengths.min()), int(chunk.lengths.max())
            smallest, largest = min(smallest, least) if count else least, max(largest, most)
            count += len(chunk)
            total += int(chunk.lengths.sum())
    print(f"{file}: {count} records, {total} bytes")
    if first is None:
        return
    print(f"  record size: {smallest} to {largest} bytes, {total / count:.0f} on average")
    print("\n".join(f"  {line}" for line in _features(first)))


def _features(record: bytes) -> list[str]:
    """One line for each feature of a serialized tf.train.Example."""
    from penstock.errors import PenstockError
    from penstock.io import decode_example

    try:
        example = decode_example(record)
    except PenstockError:
        return [f"the first record is no tf.train.Example; it begins with {record[:_SHOWN]!r}"]
    return [f"{name}: {_value(values)}" for name, values in sorted(example.items())]


def _value(values: Any) -> str:
    kind = values.dtype.name if hasattr(values, "dtype") else "bytes"
    if len(values) != 1:
        return f"{kind}, {len(values)} values"
    value = values[0]
    if kind != "bytes":
        return f"{kind}, {value}"
    return f"bytes, {value!r}" if len(value) <= _SHOWN else f"bytes, {len(value)} of them: {value[:12]!r}…"
