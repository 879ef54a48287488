"""Rows of SQLite queries."""

import sqlite3

import numpy as np
import pytest
from tests.golden.golden import assert_golden
from tests.sources.passes import everything

import penstock as ps
from penstock import errors
from penstock.testing import assert_resumes_exactly, assert_same_elements

ROWS = [(1, 1.5, "x", b"\x00"), (300, 2.0, "12ab", b"b"), (-5, 0.25, "ä", b"")]


@pytest.fixture
def query(tmp_path):
    path = tmp_path / "a b?.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    connection.commit()
    connection.close()

    def made(columns, types, rest="ORDER BY rowid"):
        return ps.experimental.SqlDataset("sqlite", path, f"SELECT {columns} FROM t {rest}", types)

    return made


def test_rows_are_tuples_of_the_asked_types(query):
    ds = query("i, r, s, b", (np.int16, np.float32, bytes, bytes))
    wanted = [(np.int16(i), np.float32(r), s.encode(), b) for i, r, s, b in ROWS]
    assert_same_elements(everything(ds), wanted)
    assert ds.element_spec == tuple(ps.TensorSpec((), dtype) for dtype in (np.int16, np.float32, bytes, bytes))
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    assert_resumes_exactly(ds.batch(2))
    assert everything(query("i, r", (np.int64, np.float64), "WHERE i > 1000")) == []


def test_numbers_take_another_type_that_holds_them(query):
    ds = query("i, i, i, r, 3.0, 0, 2.5", (np.float64, bytes, bool, bool, np.int8, bool, np.float16))
    assert_same_elements(
        everything(ds)[:1],
        [(np.float64(1), b"1", np.True_, np.True_, np.int8(3), np.False_, np.float16(2.5))],
    )


BAD = {
    "null": ("nullif(i, 300)", np.int64),
    "null_text": ("nullif(s, '12ab')", bytes),
    "does_not_fit": ("i", np.int8),
    "no_integer": ("r + 0.25 * (i = 300)", np.int64),
    "text_for_number": ("iif(i = 300, s, i)", np.int64),
    "text_for_float": ("iif(i = 300, s, r)", np.float64),
    "real_for_text": ("iif(i = 300, r, s)", bytes),
}


@pytest.mark.parametrize("name", BAD)
def test_a_value_that_cannot_be_converted_is_one_failure(query, name):
    column, dtype = BAD[name]
    where = "WHERE i IN (300, -5)" if name == "no_integer" else ""
    found = everything(query(f"i, {column}", (np.int32, dtype), f"{where} ORDER BY rowid"))
    failed = [item for item in found if isinstance(item, Exception)]
    if name != "no_integer":
        assert [item[0] for item in found if isinstance(item, tuple)] == [1, -5]
    assert_golden(f"sql_{name}", f"{type(failed[0]).__name__}: {failed[0]}")


def test_a_query_that_cannot_run_is_the_end(query, tmp_path):
    ends = {
        "columns": query("i, r", (np.int64,)),
        "refused": query("nothing", (np.int64,)),
        "not_sql": ps.experimental.SqlDataset("sqlite", tmp_path / "a b?.db", "what?", (np.int64,)),
        "missing": ps.experimental.SqlDataset("sqlite", tmp_path / "none.db", "SELECT 1", (np.int64,)),
        "no_database": ps.experimental.SqlDataset("sqlite", tmp_path / "a.txt", "SELECT a FROM t", (np.int64,)),
    }
    (tmp_path / "a.txt").write_text("not a database, and long enough to see that" * 10)
    for name, ds in ends.items():
        (failed,) = everything(ds)
        assert_golden(f"sql_{name}", f"{type(failed).__name__}: {failed}")
    assert not (tmp_path / "none.db").exists()


def test_it_is_opened_for_reading_only(query):
    database = query("i", (int,))._plan.source.database
    (failed,) = everything(ps.experimental.SqlDataset("sqlite", database, "DELETE FROM t", (int,)))
    assert isinstance(failed, errors.InvalidArgumentError)
    assert len(list(query("i", (int,)))) == 3


def test_a_uri_and_a_nest(query, tmp_path):
    uri = f"{(tmp_path / 'a b?.db').as_uri()}?mode=ro"
    types = {"number": np.int64, "pair": (np.float32, bytes)}
    ds = ps.experimental.SqlDataset("sqlite", uri, "SELECT i, r, s FROM t ORDER BY rowid", types)
    assert next(iter(ds)) == {"number": 1, "pair": (1.5, b"x")}


ARGUMENTS = {
    "driver": lambda: ps.experimental.SqlDataset("mysql", "a.db", "SELECT 1", (np.int64,)),
    "query": lambda: ps.experimental.SqlDataset("sqlite", "a.db", None, (np.int64,)),
    "no_types": lambda: ps.experimental.SqlDataset("sqlite", "a.db", "SELECT 1", ()),
    "complex": lambda: ps.experimental.SqlDataset("sqlite", "a.db", "SELECT 1", (np.complex64,)),
    "path": lambda: ps.experimental.SqlDataset("sqlite", 3, "SELECT 1", (np.int64,)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_sql_{name}", f"{type(caught.value).__name__}: {caught.value}")
