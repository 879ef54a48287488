"""Check that each listed difference exists, and that the reference table has it."""

from __future__ import annotations

import gzip
import re
import sqlite3
from pathlib import Path

import penstock as ps
from _parity.check import Check, Comparer
from _parity.difference import difference
from _parity.readers import folder

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "tf-data.md"

# a member of the table, and a pipeline that differs
DIFFERENCES: tuple[tuple[str, str], ...] = (
    ("Dataset.__iter__", "K.Dataset.range(6).map(lambda x: K.fail_if(x, x == 2)).cache().batch(2).ignore_errors()"),
    ("Dataset.__iter__", "K.Dataset.range(6).map(lambda x: K.fail_if(x, x == 1)).take(3).ignore_errors()"),
    (
        "Dataset.choose_from_datasets",
        "K.Dataset.choose_from_datasets([K.Dataset.range(3)] * 2, K.Dataset.from_tensors(np.int32(1)))",
    ),
    ("Dataset.counter", "K.Dataset.counter(0.0, 0.1, dtype=K.dtype(np.float32)).take(200)"),
    ("Dataset.from_tensor_slices", "K.Dataset.from_tensor_slices([1, 2])"),
    ("Dataset.from_tensors", "K.Dataset.from_tensors((1, [2]))"),
    ("Dataset.list_files", "K.Dataset.list_files('/nowhere/*')"),
    ("Dataset.map", "K.Dataset.range(3).map(lambda x: int(x))"),
    (
        "Dataset.padded_batch",
        "K.Dataset.range(3).map(lambda x: K.arange(x)).map(lambda x: x / 2).padded_batch(3, padding_values=-1)",
    ),
    ("Dataset.ragged_batch", "K.Dataset.range(3).map(lambda x: K.full(2, x)).ragged_batch(3)"),
    ("Dataset.rebatch", "K.Dataset.range(3).batch(2).rebatch(0)"),
    ("Dataset.rebatch", "K.Dataset.range(3).batch(2).rebatch([])"),
    (
        "Dataset.rejection_resample",
        "K.Dataset.range(9).rejection_resample(lambda x: K.cast(x % 2, 'int32'), [2, 2], [2, 2])",
    ),
    ("Dataset.sample_from_datasets", "K.Dataset.sample_from_datasets([K.Dataset.range(3)] * 2, [0, 1])"),
    ("Dataset.sample_from_datasets", "K.Dataset.sample_from_datasets([K.Dataset.range(3)] * 2, [0.0, 0.0])"),
    ("Dataset.unique", "K.Dataset.from_tensor_slices(np.float32([1, 1, 2])).unique()"),
    ("Options", "K.Dataset.range(3).with_options(K.options(framework_type=['a']))"),
    ("TextLineDataset", "K.data.TextLineDataset(lines)"),
    ("TextLineDataset", "K.data.TextLineDataset(cut, 'GZIP')"),
    ("TFRecordDataset", "K.data.TFRecordDataset(damaged).ignore_errors()"),
    ("experimental.CsvDataset", "K.experimental.CsvDataset(numbers, [0])"),
    ("experimental.CsvDataset", "K.experimental.CsvDataset(hexadecimal, [K.dtype(np.float32)])"),
    ("experimental.SqlDataset", "K.experimental.SqlDataset('sqlite', database, 'select n from t', K.dtype(np.int64))"),
    ("experimental.at", "K.Dataset.from_tensors(K.experimental.at(K.Dataset.range(3), -1))"),
    (
        "experimental.pad_to_cardinality",
        "K.Dataset.range(3).filter(lambda x: x > 0).map(lambda x: {'a': x})"
        ".apply(K.experimental.pad_to_cardinality(4))",
    ),
)


def differences(compare: Comparer) -> None:
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (\w+) \|", TABLE.read_text(), re.MULTILINE))
    with folder() as here:
        files = _files(here)
        for member, text in DIFFERENCES:
            compare.count += 1
            if rows.get(member) != "differs":
                compare.differs(f"{member} is {rows.get(member, 'missing')} in {TABLE.name}, and differs: {text}")
            if difference(text, **files) is None:
                compare.differs(f"{member}: {text} is listed as a difference, but both give the same")


def _files(here: Path) -> dict[str, str]:
    contents = {
        "lines": b"a\rb\n",
        "cut": gzip.compress(b"a\nb\n" * 50)[:-9],
        "numbers": b"1\n",
        "hexadecimal": b"0x1p3\n",
    }
    for name, data in contents.items():
        (here / name).write_bytes(data)
    with sqlite3.connect(here / "database") as database:
        database.execute("create table t (n integer)")
        database.execute("insert into t values (NULL)")
    database.close()
    with ps.io.TFRecordWriter(here / "damaged") as writer:
        for record in (b"first", b"second", b"third"):
            writer.write(record)
    data = bytearray((here / "damaged").read_bytes())
    data[-40] ^= 1  # in the second record
    (here / "damaged").write_bytes(data)
    return {name: str(here / name) for name in (*contents, "database", "damaged")}


CHECKS = (Check("listed differences", differences),)
