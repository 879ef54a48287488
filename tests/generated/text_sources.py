"""Reference and generated sources: files of lines, of records of one length, of CSV and JSON, and SQLite databases."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.generated import made
from tests.reference import source_elements, value_of

import penstock as ps
from penstock.sources.csv import CsvSource
from penstock.sources.fixed import FixedLengthRowsSource, FixedLengthSource
from penstock.sources.json_lines import JsonLinesSource
from penstock.sources.sql import SqlSource
from penstock.sources.text import TextLineSource

STEPS: list[Any] = []


@source_elements.register
def _(source: TextLineSource) -> Iterator[bytes]:
    for name in source.files:
        *ended, last = Path(name).read_bytes().split(b"\n")
        yield from (line.removesuffix(b"\r") for line in ended)
        if last:
            yield last


@source_elements.register(FixedLengthSource)
@source_elements.register(FixedLengthRowsSource)
def _(source: Any) -> Iterator[bytes]:
    layout = source.layout
    for name in source.files:
        content = Path(name).read_bytes()
        body = content[layout.header_bytes : len(content) - layout.footer_bytes]
        for at in range(0, len(body), layout.record_bytes):
            yield body[at : at + layout.record_bytes]


@source_elements.register
def _(source: CsvSource) -> Iterator[Any]:
    """By Python's own reader, for well-formed files."""
    columns = source.format.columns
    for name in source.files:
        with Path(name).open(newline="") as file:
            rows = csv.reader(file, delimiter=chr(source.format.delimiter))
            if source.header:
                next(rows)
            for row in rows:
                values = []
                for place, column in zip(source.format.places, columns, strict=True):
                    field = row[place].encode()
                    if field in (b"", source.format.na_value):
                        values.append(column.default)
                    else:
                        values.append(field if column.dtype is bytes else np.dtype(column.dtype).type(field))
                yield source.structure.build(values)


@source_elements.register
def _(source: JsonLinesSource) -> Iterator[Any]:
    for name in source.files:
        for line in Path(name).read_text().splitlines():
            found = json.loads(line)
            for (key,), default in source.defaults.items():
                if found.get(key) is None:
                    found[key] = default
            yield value_of({key: float(found[key]) if key == "b" else found[key] for key in ("a", "b")})


@source_elements.register
def _(source: SqlSource) -> Iterator[Any]:
    connection = sqlite3.connect(source.database)
    try:
        for row in connection.execute(source.query):
            yield tuple(np.dtype(dtype).type(value) for dtype, value in zip(source.types, row, strict=True))
    finally:
        connection.close()


def _file(kind: str) -> Callable[[Callable[[int], bytes]], Callable[[int], Path]]:
    def cached(content: Callable[[int], bytes]) -> Callable[[int], Path]:
        @cache
        def path(count: int) -> Path:
            return made(f"{count}.{kind}", lambda path: path.write_bytes(content(count)))

        return path

    return cached


@_file("txt")
def _lines(count: int) -> bytes:
    ends = [b"\n", b"\r\n"]
    text = b"".join(b"x" * (i % 4) + b"\r" * (i % 5 == 0) + b"y" + ends[i % 2] for i in range(count))
    return text.removesuffix(b"\n") if count % 3 else text


@_file("bin")
def _fixed(count: int) -> bytes:
    return b"head" + b"".join(b"%02d" % i for i in range(count)) + b"end"


@_file("csv")
def _rows(count: int) -> bytes:
    rows = [f'{i},"say ""{i}"",\nplease",{"" if i % 3 == 0 else i / 4}' for i in range(count)]
    return "\n".join(["a,b,c", *rows, ""]).encode()


@_file("jsonl")
def _objects(count: int) -> bytes:
    values = [{"a": i, "b": i / 4} if i % 3 else {"b": i, "a": i} if i % 2 else {"a": i} for i in range(count)]
    return "".join(json.dumps(value) + "\n" for value in values).encode()


@cache
def _database(count: int) -> Path:
    def write(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE numbers (a INTEGER, b REAL)")
        connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(i, i / 4) for i in range(count)])
        connection.commit()
        connection.close()

    return made(f"{count}.db", write)


def _csv(count: int) -> ps.Dataset:
    defaults = [np.int64, np.float32(-1)]
    return ps.experimental.CsvDataset(_rows(count), defaults, header=True, select_cols=[0, 2])


def _csv_texts(count: int) -> ps.Dataset:
    return ps.experimental.CsvDataset(_rows(count), [bytes], header=True, select_cols=[1])


def _sql(count: int) -> ps.Dataset:
    query = "SELECT a, b FROM numbers ORDER BY a"
    return ps.experimental.SqlDataset("sqlite", _database(count), query, (np.int64, np.float32))


SOURCES: list[tuple[str, Callable[[int], ps.Dataset], str]] = [
    ("lines", lambda n: ps.TextLineDataset(_lines(n)), "bytes"),
    ("lines of files", lambda n: ps.TextLineDataset([_lines(n), _lines(n // 2)], num_parallel_reads=2), "bytes"),
    ("fixed", lambda n: ps.FixedLengthRecordDataset([_fixed(n), _fixed(0), _fixed(n // 2)], 2, 4, 3), "bytes"),
    ("fixed in turn", lambda n: ps.FixedLengthRecordDataset([_fixed(n)] * 2, 2, 4, 3, num_parallel_reads=1), "bytes"),
    ("csv", _csv, "pair"),
    ("csv texts", _csv_texts, "other"),
    ("json", lambda n: ps.JsonLinesDataset(_objects(n), defaults={"b": 0.5}), "dict"),
    ("sql", _sql, "pair"),
]
