"""Text as spreadsheet programs and Windows write it: read correctly, or refused with a remedy."""

import codecs
import gzip
import json

import pytest
from tests.sources.passes import everything

import penstock as ps
from penstock import errors
from penstock.formats.convert import convert
from penstock.testing import assert_resumes_exactly

TABLE = "name,kg\nRex,31.5\nTom,4\n"
JSON = '{"name": "Rex", "kg": 31.5}\n{"name": "Tom", "kg": 4}\n'
ROWS = [(b"Rex", 31.5), (b"Tom", 4.0)]


@pytest.fixture(params=[None, "GZIP"])
def written(tmp_path, request):
    """Write a file, plain (mapped) or compressed (streamed). Return its path and compression."""

    def write(content, name="a.csv"):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if request.param else content)
        return path, request.param

    return write


def csv(path, compression, **options):
    return ps.experimental.CsvDataset(path, [bytes, 0.0], compression, header=True, **options)


def batches(path, compression, **options):
    return ps.experimental.make_csv_dataset(
        path, 2, num_epochs=1, shuffle=False, compression_type=compression, **options
    )


def read(dataset):
    return [(name, float(kg)) for name, kg in dataset]


FINE = {
    "utf8_mark": codecs.BOM_UTF8 + TABLE.encode(),
    "utf8_mark_and_quotes": codecs.BOM_UTF8 + b'"name","kg"\n"Rex",31.5\n"Tom",4\n',
    "crlf": TABLE.replace("\n", "\r\n"),
    "ctrl_z": TABLE.replace("\n", "\r\n") + "\x1a",
    "ctrl_z_after_no_line_end": TABLE[:-1] + "\x1a",
    "sep": "sep=,\r\n" + TABLE,
    "utf8_mark_and_quoted_sep": codecs.BOM_UTF8 + b'"sep=,"\n' + TABLE.encode(),
}


@pytest.mark.parametrize("name", FINE)
def test_tables_are_read(written, name):
    path, compression = written(FINE[name])
    assert read(csv(path, compression)) == ROWS
    (batch,) = batches(path, compression)
    assert list(batch) == ["name", "kg"]
    assert batch["kg"].tolist() == [31.5, 4.0]
    assert_resumes_exactly(csv(path, compression))


def test_tables_with_carriage_returns_and_quoted_line_ends_are_read(written):
    assert read(csv(*written(TABLE.replace("\n", "\r")))) == ROWS
    assert read(csv(*written('name,kg\r\n"Rex\r\nthe dog",31.5\r\nTom,4\r\n')))[0] == (b"Rex\r\nthe dog", 31.5)


def test_text_in_other_encodings_stays_as_it_is(written):
    table = TABLE.replace("Rex", "René").encode("cp1252")
    assert read(csv(*written(table)))[0] == ("René".encode("cp1252"), 31.5)
    assert list(ps.TextLineDataset(*written(table)))[1] == b"Ren\xe9,31.5"


def test_lines_are_read(written):
    lines = TABLE.encode().split()
    for name in ("utf8_mark", "crlf", "ctrl_z", "ctrl_z_after_no_line_end"):
        path, compression = written(FINE[name])
        assert list(ps.TextLineDataset(path, compression)) == lines
        assert_resumes_exactly(ps.TextLineDataset(path, compression))


def test_small_files_of_lines_are_read_together(tmp_path):
    for number, name in enumerate(("utf8_mark", "crlf", "ctrl_z")):
        content = FINE[name]
        (tmp_path / f"{number}.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    files = ps.Dataset.list_files(tmp_path / "*.txt", shuffle=False)
    assert list(files.flat_map(ps.TextLineDataset)) == TABLE.encode().split() * 3


@pytest.mark.parametrize("change", [codecs.BOM_UTF8.__add__, lambda text: text.replace(b"\n", b"\r\n") + b"\x1a"])
def test_json_lines_are_read(written, change):
    rows = list(ps.JsonLinesDataset(*written(change(JSON.encode()))))
    assert [(row["name"], float(row["kg"])) for row in rows] == ROWS


READERS = {
    "lines": ps.TextLineDataset,
    "csv": csv,
    "batches": batches,
    "json": ps.JsonLinesDataset,
}


def refused(reader, path, compression, kind=errors.InvalidArgumentError):
    with pytest.raises(kind) as caught:
        list(reader(path, compression))
    assert caught.value.context.file == str(path)
    return str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_utf16_is_refused(written, reader):
    text = JSON if reader == "json" else TABLE
    for content in (text.encode("utf-16"), codecs.BOM_UTF16_BE + text.encode("utf-16-be"), text.encode("utf-16-le")):
        assert "iconv -f UTF-16 -t UTF-8" in refused(READERS[reader], *written(content))


@pytest.mark.parametrize("reader", READERS)
def test_nul_bytes_at_the_end_are_an_error_after_the_rows_before_them(written, reader):
    path, compression = written((JSON if reader == "json" else TABLE) + "\0\0\0")
    assert "tr -d" in refused(READERS[reader], path, compression, errors.DataLossError)
    if reader != "batches":
        *rows, error = everything(READERS[reader](path, compression))
        assert len(rows) == (3 if reader == "lines" else 2)
        assert isinstance(error, errors.DataLossError)


def test_nul_bytes_at_the_end_of_a_short_file(written):
    first, error = everything(ps.TextLineDataset(*written(b"a\n\0\0")))
    assert first == b"a"
    assert isinstance(error, errors.DataLossError)


def test_lines_of_carriage_returns_alone_are_one_line_and_said(written, caplog):
    """tf.data does the same; in JSON it is an error."""
    text = TABLE.replace("\n", "\r")
    assert list(READERS["lines"](*written(text))) == [text.encode()]
    assert r"tr '\r' '\n'" in caplog.text
    assert refused(READERS["json"], *written(JSON.replace("\n", "\r")), errors.DataLossError)


@pytest.mark.parametrize("reader", ["csv", "batches"])
def test_other_delimiters_are_named(written, reader):
    for mark in (";", "\t"):
        said = f"field_delim={mark!r}"
        path, compression = written(TABLE.replace(",", mark))
        assert said in refused(READERS[reader], path, compression)
        assert list(READERS[reader](path, compression, field_delim=mark))
        path, compression = written(f"sep={mark}\n" + TABLE.replace(",", mark))
        assert said in refused(READERS[reader], path, compression)
        assert list(READERS[reader](path, compression, field_delim=mark))


@pytest.mark.parametrize("reader", ["csv", "batches"])
def test_decimal_commas_are_named(written, reader):
    path, compression = written("name;kg\nRex;31,5\nTom;4\n")

    def semicolons(path, compression):
        return READERS[reader](path, compression, field_delim=";")

    assert "x.replace(b',', b'.')" in refused(semicolons, path, compression)
    (batch,) = batches(path, compression, field_delim=";", column_defaults=[b"", b""])
    assert batch["kg"].tolist() == [b"31,5", b"4"]


def test_fields_that_only_look_like_numbers_with_commas_are_text(written):
    (batch,) = batches(*written('name,where\nRex,"12,5"\nTom,here\n'))
    assert batch["where"].tolist() == [b"12,5", b"here"]
    (batch,) = batches(*written('name,ids\nRex,"1,2,3"\nTom,"4,5,6"\n'))
    assert batch["ids"].tolist() == [b"1,2,3", b"4,5,6"]


def test_errors_name_the_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"name,kg\r\n" + b"Rex,1\r\n" * 5_000 + b"Tom,x\r\n" + b"Rex,1\r\n" * 10 + b"Tom\r\n")
    failures = [found for found in everything(csv(path, None)) if isinstance(found, Exception)]
    assert [error.context.line for error in failures] == [5_002, 5_013]
    assert f"in file {path} at byte 35009, line 5002" in str(failures[0])
    json_path = tmp_path / "a.jsonl"
    json_path.write_text(JSON + "x\n")
    assert everything(ps.JsonLinesDataset(json_path))[-1].context.line == 3


def test_json_in_cp1252_says_how_to_convert_it(written):
    message = refused(ps.JsonLinesDataset, *written(JSON.replace("Rex", "René").encode("cp1252")), errors.DataLossError)
    assert "iconv -f CP1252 -t UTF-8" in message


@pytest.mark.parametrize("name", ["utf8_mark", "utf8_mark_and_quotes", "crlf", "sep"])
def test_tables_are_converted(tmp_path, name):
    content = FINE[name]
    (tmp_path / "a.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    convert(tmp_path / "a.csv", tmp_path / "b.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert rows == [{"name": "Rex", "kg": 31.5}, {"name": "Tom", "kg": 4}]
    ds = ps.catalog.load("csv_folder", data_dir=tmp_path, split="a")
    assert [row["kg"] for row in ds] == [31.5, 4]


@pytest.mark.parametrize(
    "content", [TABLE.encode("utf-16"), TABLE.replace(",", ";").encode(), b"sep=;\n" + TABLE.encode()]
)
def test_other_tables_are_not_converted(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(errors.InvalidArgumentError, match=r"UTF-16|field_delim"):
        convert(tmp_path / "a.csv", tmp_path / "b.jsonl")
    with pytest.raises(errors.InvalidArgumentError, match=r"UTF-16|field_delim"):
        ps.catalog.load("csv_folder", data_dir=tmp_path, split="a")
