"""Readers of generated and unusual files: lines, fixed-length records, CSV, SQL, TFRecord."""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np

import penstock as ps
from _parity.check import Check, Comparer
from _parity.difference import difference

PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def check(compare: Comparer, text: str, contents: object, *, listed: str = "", **known: object) -> None:
    """Run the reader in both libraries and add a difference, with `contents`, to the Comparer.

    If a difference is `listed` with a reason, the results have to differ.
    """
    compare.count += 1
    found = difference(text, **known)
    if found is not None and not listed:
        compare.differs(f"{text} of {contents!r:.100}: {found}")
    if found is None and listed:
        compare.differs(f"{text} of {contents!r:.100} gives the same, but is listed as a difference: {listed}")


LINES = (
    b"",
    b"a",
    b"a\n",
    b"\n",
    b"\n\n\n",
    b"a\nb\n",
    b"a\r\nb\r\n",
    b"a\r\n\r\nb",
    b"a\r",
    b"\xc3\xa9\x00\xff\nx",
    b" a ",
)
LONG = b"\n".join(bytes([65 + i % 26]) * (i * 37 % 400) for i in range(200))


def lines(compare: Comparer) -> None:
    """Compare line ends of all kinds, small buffers, compression, and several files, one of them missing."""
    with folder() as here:
        path = here / "text"
        for data, packed, buffer in product((*LINES, LONG), PACK, ("", ", buffer_size=7")):
            path.write_bytes(PACK[packed](data))
            text = f"K.data.TextLineDataset(path, {packed!r}{buffer})"
            listed = "only the \\r of \\r\\n is dropped" if data.endswith(b"\r") else ""
            check(compare, text, data, listed=listed, path=str(path))
        paths = _written(here, [b"a\nb\nc", b"", b"d\n", b"e\nf\n\n"])
        missing = str(here / "missing")
        for names, reads in product(
            (paths, paths[:1], [*paths[:2], missing, paths[2]]), ("", ", num_parallel_reads=2")
        ):
            check(compare, f"K.data.TextLineDataset(paths{reads})", names, paths=names)
        check(compare, "K.data.TextLineDataset(K.Dataset.from_tensor_slices(paths).skip(1))", paths, paths=paths)
        path.write_bytes(gzip.compress(LONG)[:-20])
        listed = "a truncated compressed file is an error"
        check(compare, "K.data.TextLineDataset(path, 'GZIP')", "cut short", listed=listed, path=str(path))


def _written(here: Path, contents: Sequence[bytes]) -> list[str]:
    paths = []
    for number, data in enumerate(contents):
        path = here / f"part{number}"
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def fixed(compare: Comparer) -> None:
    """Compare headers, footers, and records that fill the file and that do not."""
    with folder() as here:
        path = here / "fixed"
        layouts = product((0, 1, 6, 7, 12, 300), (1, 3, 6), (None, 1, 4), (None, 2), PACK)
        for size, record, header, footer, packed in layouts:
            data = bytes(i % 256 for i in range(size))
            path.write_bytes(PACK[packed](data))
            inside = size - (header or 0) - (footer or 0)
            if inside < 0 or (packed and inside % record):
                continue  # see `damaged_files` in records.py
            text = f"K.data.FixedLengthRecordDataset(path, {record}, {header}, {footer}, 16, {packed!r})"
            check(compare, text, data, path=str(path))
        paths = _written(here, [b"abcdef", b"", b"ghi"])
        for reads in ("", ", num_parallel_reads=2"):
            check(compare, f"K.data.FixedLengthRecordDataset(paths, 3{reads})", paths, paths=paths)


BAD_HEADERS = (b'1,2,a"b\n', b'1,2,"ab\n')  # they are also bad rows
CSV_FILES = (
    b"",
    b"1,2.5,x\n",
    b"1,2.5,x",
    b"1,2.5,x\r\n2,3.5,y\r\n",
    b"1,2.5,x\n2,3.5,y\n\n",
    b"1,2.5,x\n\n2,3.5,y\n",
    b'1,"2.5","x, ""quoted"" y"\n2,3,"two\nlines"\n',
    b'1,2.5,""\n,,\n3,4,z\n',
    b"1,2.5\n2,3.5,y\n",
    b"1,2.5,x,4\n",
    b"a,b,c\n1,2.5,x\n",
    b"NA,2.5,NA\n1,NA,x\n",
    b" 1,2.5 , x \n",
    b"1,1e3,x\n-2,-.5,y\n+3,inf,z\n4,nan,w\n",
    b"9223372036854775807,3.4e38,x\n",
    b"9223372036854775808,1,x\n",
    b"1.0,2,x\n",
    b"x,2,x\n",
    *BAD_HEADERS,
    b"1;2.5;x\n",
    b"1\t2.5\tx\n",
    b"1,2.5,\xc3\xa9\xff\n",
)
CSV_SETTINGS = (
    "[K.value(np.int64(0)), K.value(np.float32(-1)), b'none']",
    "[K.value(np.int64(0)), K.value(np.float64(-1)), 'none'], header=True",
    "[K.dtype(np.int64), K.dtype(np.float32), K.dtype(bytes)]",
    "[K.value(np.int32(7)), K.value(np.float32(-1)), b''], na_value='NA'",
    "[K.value(np.int64(0)), b'', b'none'], use_quote_delim=False",
    "[K.value(np.int64(0)), K.value(np.float32(-1)), b'none'], field_delim=';'",
    "[K.value(np.int64(0)), K.value(np.float32(-1)), b'none'], field_delim='\\t'",
    "[K.value(np.float32(9)), b'none'], select_cols=[1, 2]",
    "[K.value(np.int64(0)), b'none'], exclude_cols=[1]",
    "[b'', b'', b''], buffer_size=5",
)


def csv(compare: Comparer) -> None:
    """Compare each setting on each file, and compressed files, several files, and a missing one."""
    with folder() as here:
        path = here / "table.csv"
        for data, settings in product(CSV_FILES, CSV_SETTINGS):
            path.write_bytes(data)
            bad_header = "header=True" in settings and data in BAD_HEADERS
            listed = "a first row is skipped without parsing" if bad_header else ""
            check(compare, f"K.experimental.CsvDataset(path, {settings})", data, listed=listed, path=str(path))
        data = CSV_FILES[3]
        for packed in PACK:
            path.write_bytes(PACK[packed](data))
            text = f"K.experimental.CsvDataset(path, {CSV_SETTINGS[0]}, compression_type={packed!r})"
            check(compare, text, data, path=str(path))
        paths = [*_written(here, [b"a,b,c\n1,2,x\n", b"a,b,c\n", b"", b"a,b,c\n3,4,y"]), str(here / "missing")]
        for names in (paths[:4], paths):
            check(compare, f"K.experimental.CsvDataset(paths, {CSV_SETTINGS[1]})", names, paths=names)


TABLES = (
    b"n,x,s\n1,2.5,a\n2,3,b\n3,-1e3,c\n",
    b"n,x,s\n1,2.5,a\n,,\n4000000000,4,c",
    b"n,x,s\r\n1,2.5,a\r\n2,1e300,b\r\n",
    b'"n","x","s s"\n1,"2","a,b"\n',
    b"n,x,s\n",
    b"n,x,s\n1,NA,a\n2,3,NA\n",
    b"n,x,s\n1,2\n3,4,c\n",
    b"n,n,s\n1,2,a\n",
    b"n;x;s\n1;2;a\n",
)
CALLS = (
    "2",
    "2, label_name='s'",
    "2, label_name='missing'",
    "3, column_names=['a', 'b', 'c']",
    "3, column_names=['a', 'b', 'c'], header=False",
    "3, header=False",
    "2, column_defaults=[K.value(np.int64(1)), K.value(np.float32(2)), b'three']",
    "2, column_defaults=[K.value(np.int64(1))]",
    "2, select_columns=['n', 's']",
    "2, select_columns=[1, 2], label_name='s'",
    "2, select_columns=['s'], column_defaults=[b'q']",
    "2, na_value='NA'",
    "2, field_delim=';'",
    "2, num_rows_for_inference=1",
    "2, ignore_errors=True",
    "2, use_quote_delim=False",
)

LISTED_TABLES = {
    (TABLES[4], CALLS[7]): "the number of defaults is checked also without rows",
    (TABLES[6], CALLS[14]): "invalid rows are left out of the inference too",
    **{
        (TABLES[8], CALLS[i]): "a header of one column that another delimiter splits is an error"
        for i in (0, 11, 13, 14, 15)
    },
}


def make_csv(compare: Comparer) -> None:
    """Compare one epoch without a shuffle: names, inferred types, batches and labels."""
    with folder() as here:
        path = here / "table.csv"
        for data, call in product(TABLES, CALLS):
            path.write_bytes(data)
            text = f"K.experimental.make_csv_dataset(path, {call}, num_epochs=1, shuffle=False)"
            check(compare, text, data, listed=LISTED_TABLES.get((data, call), ""), path=str(path))
        paths = _written(here, [TABLES[0], TABLES[0], TABLES[1]])
        for more in ("", ", num_parallel_reads=2"):
            text = f"K.experimental.make_csv_dataset(paths, 3, num_epochs=2, shuffle=False{more})"
            check(compare, text, paths, paths=paths)
        check(
            compare,
            "K.experimental.make_csv_dataset(paths, 4, shuffle=False).take(5)",
            paths,
            paths=paths[:2],
        )
        path.write_bytes(gzip.compress(TABLES[0]))
        text = "K.experimental.make_csv_dataset(path, 2, num_epochs=1, shuffle=False, compression_type='GZIP')"
        check(compare, text, TABLES[0], path=str(path))


QUERIES = (
    ("select n, x, s from t order by n", "np.int64, np.float64, bytes"),
    ("select n, s from t where n > 100", "np.int64, bytes"),
    ("select n from t order by n desc", "np.int32"),
    ("select n, n from t", "np.int8, np.uint16"),
    ("select n, n, n from t", "np.bool_, np.int16, bytes"),
    ("select x from t", "np.float64"),
    ("select s from t", "bytes"),
    ("select n from t", "np.int64, np.int64"),
    ("select n from missing", "np.int64"),
    ("no sql at all", "np.int64"),
    ("select count(*), max(n), min(s) from t", "np.int64, np.int64, bytes"),
)


def sql(compare: Comparer) -> None:
    """Compare queries with and without rows, columns of all types, and invalid statements."""
    with folder() as here:
        path = here / "data.db"
        with sqlite3.connect(path) as database:
            database.execute("create table t (n integer, x real, s text)")
            rows = [(1, 2.5, "a"), (0, -1.25, ""), (100, 1e300, "é\nb"), (7, 3.0, "c" * 500)]
            database.executemany("insert into t values (?, ?, ?)", rows)
        database.close()
        for query, types in QUERIES:
            text = f"K.experimental.SqlDataset('sqlite', path, {query!r}, tuple(map(K.dtype, ({types},))))"
            check(compare, text, rows, path=str(path))


def tfrecords(compare: Comparer) -> None:
    """Compare several files and compressions, empty and missing files, sequential and parallel."""
    with folder() as here:
        for packed in PACK:
            paths = []
            for number, count in enumerate((3, 0, 5)):
                paths.append(str(here / f"{packed}{number}"))
                with ps.io.TFRecordWriter(paths[-1], packed) as writer:
                    for i in range(count):
                        writer.write(b"%d/%d" % (number, i) * (i * 700))
            for names, reads in product(
                (paths, paths[::-1], [paths[0], str(here / "missing")], paths[1:2]),
                ("", ", num_parallel_reads=2", ", buffer_size=100", ", num_parallel_reads=1"),
            ):
                check(compare, f"K.data.TFRecordDataset(paths, {packed!r}{reads})", names, paths=names)
        wrong = str(here / "wrong")
        Path(wrong).write_bytes(np.arange(100, dtype=np.uint8).tobytes())
        for packed in PACK:
            check(compare, f"K.data.TFRecordDataset(path, {packed!r})", "no TFRecords", path=wrong)


CHECKS = (
    Check("TextLineDataset", lines),
    Check("FixedLengthRecordDataset", fixed),
    Check("CsvDataset", csv),
    Check("make_csv_dataset", make_csv),
    Check("SqlDataset", sql),
    Check("TFRecordDataset", tfrecords),
)
