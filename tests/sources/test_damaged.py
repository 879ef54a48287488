"""Damaged files of every format, from the storm's tables, and hostile files that random damage does not find."""

import gzip
import importlib
import json
import os
import sqlite3
import tarfile
import zipfile
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from tests.positions import positions, texts
from tests.storm.formats import formats
from tests.storm.worker import Worker

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError, PenstockError
from penstock.io import window
from penstock.runtime.memory.kept import Reserved
from penstock.sources import sql

COUNT = 3000 if os.environ.get("HYPOTHESIS_PROFILE") == "search" else 20  # mutants of each format


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """Start a process of bounded memory, which may die or hang without ending these tests."""
    found = Worker(tmp_path_factory.mktemp("damaged"))
    yield found
    found.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", formats())
def test_mutants_give_elements_and_documented_errors(name, worker):
    sound = worker.ask("tests.storm.damage:many", name, 0, COUNT, seconds=50.0 + COUNT)
    assert sound < COUNT or formats()[name].heals or formats()[name].any_bytes


# -- statements of a file about its content


def places(dataset):
    """Return the places of an iteration with its errors, which have to be documented and name the file."""
    found = positions(dataset)
    for item in found:
        assert isinstance(item, PenstockError) or not isinstance(item, Exception), repr(item)
    return found


def test_nothing_is_reserved_for_a_count_below_nothing():
    held = Reserved()
    for nbytes in (-486_538_525, -1, 1 << 40, -(1 << 62)):
        held.move(nbytes)
        assert held.reserve(1 << 10) >= max(nbytes, 0)
    assert held.reserved == 0


def test_one_bit_of_an_arrow_file_does_not_stop_the_pass_for_ever(tmp_path):
    """A flipped bit of a length inside a packed batch makes its size negative."""
    table = pa.table({"id": list(range(200)), "s": [str(i) for i in range(200)]})
    path = tmp_path / "a.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=64)
    sound = path.read_bytes()
    below = 0
    for at in range(1000, 1300):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 32]) + sound[at + 1 :])
        try:
            sizes = [batch.nbytes for batch in map(pa.ipc.open_file(path).get_batch, range(4))]
        except (pa.ArrowException, OSError):
            continue
        if min(sizes) < 0:
            below += 1
            assert DataLossError in {type(item) for item in places(ps.ArrowDataset(path))}
    assert below


def test_places_inside_an_arrow_file_that_go_backwards_are_damage(tmp_path):
    """Arrow itself checks only the first and the last of them."""
    path = tmp_path / "a.arrow"
    table = pa.table({"s": pa.array(["ab", "cd", "ef"]), "l": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8()))})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    sound = path.read_bytes()
    offsets = np.array([0, 2, 4, 6], np.int32).tobytes()
    assert sound.count(offsets) == 2
    for column in (0, 1):
        at = sound.find(offsets) if column == 0 else sound.rfind(offsets)
        path.write_bytes(sound[: at + 4] + np.int32(5).tobytes() + sound[at + 8 :])
        first, second, third = places(ps.ArrowDataset(path))
        assert isinstance(first, dict)
        assert isinstance(second, DataLossError)
        assert second.context.file == str(path)
        assert third["s"] == b"ef"


def test_a_number_in_a_dictionary_that_has_no_such_entry(tmp_path):
    path = tmp_path / "a.arrow"
    table = pa.table({"d": pa.array(["x", "y", "x", "y"]).dictionary_encode()})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    sound = path.read_bytes()
    numbers = np.array([0, 1, 0, 1], np.int32).tobytes()
    assert sound.count(numbers) == 1
    path.write_bytes(sound.replace(numbers, np.array([0, 1, 1 << 30, 1], np.int32).tobytes()))
    assert {type(item) for item in places(ps.ArrowDataset(path))} == {DataLossError}


DIGITS = "9" * 6000
LINES = {
    "an integer": DIGITS,
    "an integer below nothing": "-" + DIGITS,
    "integers in a list": f"[1, {DIGITS}]",
    "a list of lists": "[" * 80 + "]" * 80,
    "half of a pair": '"\\ud800"',
    "objects": '{"a":' * 3000 + "1" + "}" * 3000,
    "infinity": "1e999999",
}


@pytest.mark.parametrize("name", LINES)
def test_one_json_line_takes_one_place_whatever_it_holds(name, tmp_path):
    path = tmp_path / "a.jsonl"
    odd = '{"a": ' + LINES[name] + "}"
    lines = ['{"a": 1}', odd, '{"a": 2}', '{"a": 3}', odd, '{"a": 4}']
    path.write_text("\n".join(lines))
    for want in (1, 2, 100):
        found = positions(ps.JsonLinesDataset(path), want)
        assert [item if isinstance(item, Exception) else int(item["a"]) for item in found[::3]] == [1, 3]
        assert [int(found[i]["a"]) for i in (2, 5)] == [2, 4]
        for item in (found[1], found[4]):
            assert isinstance(item, PenstockError)
            assert item.context.file == str(path)


def test_a_number_of_too_many_digits_says_so(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"a": 1}) + '\n{"a": ' + DIGITS + "}\n")
    (_, error) = positions(ps.JsonLinesDataset(path))
    assert str(error).startswith("The line holds a number of more than 4300 digits.")
    assert error.context.offset == 9


READERS = {
    "csv": ("_CsvFile", "_parsed"),
    "json_lines": ("_JsonFile", "_parsed"),
    "sql": ("_SqlReader", "_converted"),
}


@pytest.mark.parametrize("module", READERS)
def test_what_nobody_foresaw_in_a_row_is_the_failure_of_that_row(module, tmp_path, monkeypatch):
    """For any exception of a parser in a stretch of rows: the row with the fault fails, and no other."""
    reader = importlib.import_module(f"penstock.sources.{module}")
    kind, method = READERS[module]
    parsed = getattr(getattr(reader, kind), method)

    def parse(self, rows, *places):
        found = parsed(self, rows, *places)
        block = found._block
        numbers = [] if block is None else [int(next(iter(_leaves(element)))) for element in block.elements()]
        if {5, 11} & set(numbers):
            raise KeyError("nobody foresaw")
        return found

    monkeypatch.setattr(getattr(reader, kind), method, parse)
    path = tmp_path / "rows"
    if module == "sql":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(20)])
        connection.commit()
        connection.close()
        dataset = ps.experimental.SqlDataset("sqlite", path, "SELECT a FROM t", (np.int64,))
    elif module == "csv":
        path.write_text("".join(f"{i}\n" for i in range(20)))
        dataset = ps.experimental.CsvDataset(path, [np.int64])
    else:
        path.write_text("".join(json.dumps({"a": i}) + "\n" for i in range(20)))
        dataset = ps.JsonLinesDataset(path)
    for want in (1, 3, 50):
        found = positions(dataset, want)
        assert [i for i, item in enumerate(found) if isinstance(item, DataLossError)] == [5, 11]
        good = [int(next(iter(_leaves(item)))) for item in found if not isinstance(item, Exception)]
        assert good == [i for i in range(20) if i not in (5, 11)]


def _leaves(element):
    return element.values() if isinstance(element, dict) else element


def test_a_number_without_end_is_no_integer_of_a_query(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE TABLE t (a REAL)")
    connection.executemany("INSERT INTO t VALUES (?)", [(1.0,), (float("inf"),), (2.0,), (float("-inf"),), (3.0,)])
    connection.commit()
    connection.close()
    found = positions(ps.experimental.SqlDataset("sqlite", tmp_path / "a.db", "SELECT a FROM t", (np.int64,)))
    assert texts(found) == [(1,), "InvalidTypeError", (2,), "InvalidTypeError", (3,)]


def test_rows_in_front_of_a_damage_of_a_database_all_come(tmp_path, monkeypatch):
    """For any request size."""
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, "x" * 50) for i in range(1000)])
    connection.commit()
    connection.close()
    content = bytearray((tmp_path / "a.db").read_bytes())
    content[-3 * 4096 : -2 * 4096] = bytes(4096)
    (tmp_path / "a.db").write_bytes(content)
    dataset = ps.experimental.SqlDataset("sqlite", tmp_path / "a.db", "SELECT a FROM t", (np.int64,))
    first, *others = [texts(positions(dataset, want)) for want in (1, 7, 500)]
    assert first[-1] == "DataLossError"
    assert len(first) > 100
    assert others == [first, first]
    monkeypatch.setattr(sql, "_MOST_ROWS", 3)
    assert texts(positions(dataset, 500)) == first


def header(descr, shape):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (header("|V0", (100_000_000_000,)), InvalidTypeError),
        (header("|S0", (3,)), InvalidTypeError),
        (header("<i8", (0, 1 << 70)), DataLossError),
        (header("<i8", (1 << 40, 1 << 40, 0)), DataLossError),
        (header("<i8", (1 << 62,)), DataLossError),
        (header([("a", "<i8"), ("a", "<i4")], (3,)), DataLossError),
        (header("<i8", (3,)).replace(b"(3,)", b"(" + b"9" * 5000 + b",)"), DataLossError),
    ],
)
def test_npy_headers_that_cannot_be(content, kind, tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    (error,) = places(ps.NumpyDataset(path))
    assert type(error) is kind
    assert error.context.file == str(path)


def test_a_zip_member_that_states_more_than_its_bytes_can_hold(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(1000))
    with zipfile.ZipFile(path) as archive:
        size = archive.infolist()[0].file_size
    content = path.read_bytes()
    at = content.rfind(size.to_bytes(4, "little"))
    path.write_bytes(content[:at] + (0xFFFFFFF0).to_bytes(4, "little") + content[at + 4 :])
    (error,) = places(ps.NumpyDataset(path))
    assert isinstance(error, DataLossError)
    assert "packed ones cannot hold" in str(error)


def test_a_zip_member_that_states_more_bytes_than_the_file_has(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(1000))
    content = bytearray(path.read_bytes())
    at = content.rfind(b"PK\x01\x02")
    content[at + 20 : at + 24] = (0x7FFFFFF0).to_bytes(4, "little")
    path.write_bytes(content)
    (error,) = places(ps.NumpyDataset(path))
    assert isinstance(error, DataLossError)
    assert "in a file of" in str(error)


@pytest.mark.parametrize("size", [b"-0000001000\0", b"+0000001000\0", b"0_000001000\0", b"00000x01000\0"])
def test_a_tar_size_has_digits_only(size, tmp_path):
    """A negative size would lead back to its own header."""
    member = tarfile.TarInfo("a.txt")
    head = bytearray(member.tobuf(tarfile.USTAR_FORMAT)[:512])
    head[124:136] = size
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    path = tmp_path / "a.tar"
    path.write_bytes(bytes(head) + bytes(2048))
    (error,) = list(islice(places(ps.WebDataset(path)), 5))
    assert isinstance(error, DataLossError)
    assert "size in a header" in str(error)


def test_a_size_of_thousands_of_digits_in_a_pax_header(tmp_path):
    path = tmp_path / "a.tar"
    member = tarfile.TarInfo("a.txt")
    member.pax_headers = {"size": "9" * 5000}
    path.write_bytes(member.tobuf(tarfile.PAX_FORMAT) + bytes(2048))
    (error,) = places(ps.WebDataset(path))
    assert isinstance(error, DataLossError)
    assert len(str(error)) < 1000


def test_a_parquet_footer_that_contradicts_itself(tmp_path, monkeypatch):
    from penstock.sources import parquet

    class Group:
        num_rows = 1 << 60

    class Meta:
        num_row_groups, num_rows = 1, 10

        def row_group(self, number):
            return Group()

    with pytest.raises(ValueError, match="states 10 rows in all"):
        parquet._sizes(Meta())


def test_a_row_group_that_ends_before_its_footer_says(tmp_path, monkeypatch):
    import pyarrow.parquet

    from penstock.sources import parquet

    pyarrow.parquet.write_table(pa.table({"a": list(range(10))}), tmp_path / "a.parquet", row_group_size=5)
    monkeypatch.setattr(parquet, "_sizes", lambda meta: [5, 8])
    found = texts(positions(ps.ParquetDataset(tmp_path / "a.parquet")))
    assert [item if isinstance(item, str) else int(item["a"]) for item in found] == [*range(10), *["DataLossError"] * 3]


# -- lines without an end


@pytest.mark.parametrize("buffer_size", [16, 1000, None])
@pytest.mark.parametrize("extra", [-1, 0, 1, 5000])
def test_a_line_that_is_too_long_is_one_failure_and_the_next_follows(buffer_size, extra, tmp_path, monkeypatch):
    for module in ("window", "csv_reader"):
        monkeypatch.setattr(f"penstock.io.{module}.LONGEST", 2000)
    line = b"x" * (2000 + extra)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n" + line + b"\nb\n" + line + b"\n"))
    for dataset in (
        ps.TextLineDataset(path, "GZIP", buffer_size),
        ps.experimental.CsvDataset(path, [bytes], "GZIP", buffer_size),
    ):
        found = [len(item) if isinstance(item, bytes) else item for item in map(_first, places(dataset))]
        if extra <= 0:
            assert found == [1, len(line), 1, len(line)]
            continue
        one, first, two, second = found
        assert (one, two) == (1, 1)
        for error, offset in ((first, 2), (second, 2 + len(line) + 3)):
            assert isinstance(error, DataLossError)
            assert (error.context.file, error.context.offset) == (str(path), offset)
        state = dataset.iterator()
        next(state)
        with pytest.raises(DataLossError):
            next(state)
        again = dataset.iterator()
        again.load_state_dict(state.state_dict())
        assert _first(next(again)) == b"b"


def _first(item):
    return item[0] if isinstance(item, tuple) else item


def test_damage_inside_a_line_that_is_too_long_comes_behind_it(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.io.window.LONGEST", 2000)
    content = np.random.default_rng(0).integers(65, 91, 300_000).astype(np.uint8).tobytes()
    packed = bytearray(gzip.compress(b"a\n" + content))
    packed[-2000] ^= 255
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    good, long, damage = places(ps.TextLineDataset(path, "GZIP", 1000))
    assert good == b"a"
    assert "has more than" in str(long)
    assert "GZIP data is damaged" in str(damage)


def test_too_little_memory_for_a_line_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"x" * 100_000))

    class Stream(window.InflatedStream):
        def read(self, size):
            if size > 5000:
                raise MemoryError
            return super().read(size)

    monkeypatch.setattr(window, "InflatedStream", Stream)
    good, error = positions(ps.TextLineDataset(path, "GZIP", 1000))
    assert good == b"a"
    assert isinstance(error, MemoryError)
    assert isinstance(error, PenstockError)
    assert (error.context.file, error.context.offset) == (str(path), 2)


def test_header_names_in_another_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe,b\n1,2\n".encode("latin1"))
    with pytest.raises(InvalidArgumentError, match="The header row is not valid utf") as caught:
        ps.experimental.make_csv_dataset(str(path), 1, num_epochs=1)
    assert caught.value.context.file == str(path)
