"""TFRecord files: each library reads the other's files. Uncompressed files are equal byte for byte."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import penstock as ps
from _parity.check import Check, Comparer

COMPRESSIONS = ("", "GZIP", "ZLIB")


def _payloads() -> list[bytes]:
    rng = np.random.default_rng(0)
    sizes = [0, 1, 7, 8, 9, 4095, 4096, 300_000, *rng.integers(2000, size=60)]
    return [rng.bytes(size) for size in sizes]


def files_both_ways(compare: Comparer) -> None:
    """Compare all compressions with both writers and both readers."""
    records = _payloads()
    with tempfile.TemporaryDirectory() as folder:
        for compression in COMPRESSIONS:
            ours, theirs = str(Path(folder, f"ours{compression}")), str(Path(folder, f"theirs{compression}"))
            with ps.io.TFRecordWriter(ours, compression) as writer:
                for record in records:
                    writer.write(record)
            with tf.io.TFRecordWriter(theirs, compression) as writer:
                for record in records:
                    writer.write(record)
            for file in (ours, theirs):
                what = f"{Path(file).name} ({compression or 'plain'})"
                compare.same(f"penstock reads {what}", list(ps.TFRecordDataset(file, compression)), records)
                read = tf.data.TFRecordDataset(file, compression)
                compare.same(f"tensorflow reads {what}", list(read.as_numpy_iterator()), records)
            if not compression:
                compare.same("the file's bytes", Path(ours).read_bytes(), Path(theirs).read_bytes())


def damaged_files(compare: Comparer) -> None:
    """Compare a truncated file, and a file with one flipped bit at each position.

    TensorFlow treats a truncated header as the end of the file; penstock refuses it.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        with ps.io.TFRecordWriter(file) as writer:
            for record in (b"first", b"second one", b"x" * 100):
                writer.write(record)
        whole = file.read_bytes()
        damages = [whole[:size] for size in range(1, len(whole))]
        damages += [_flipped(whole, bit) for bit in range(0, 8 * len(whole), 5)]
        for number, damage in enumerate(damages):
            file.write_bytes(damage)
            compare.same_or_both_refuse(
                f"damage {number}",
                lambda: list(ps.TFRecordDataset(file)),
                lambda: list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator()),
                may_refuse=number < len(whole) - 1,
            )


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


CHECKS = (Check("TFRecord files, written and read", files_both_ways), Check("damaged TFRecords", damaged_files))
