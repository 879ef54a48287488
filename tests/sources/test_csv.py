"""Rows of CSV files: like TensorFlow, with the plain parser and the compiled one."""

import csv as python_csv
import gzip
import io
import math

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.sources.passes import everything, kinds

import penstock as ps
from penstock import errors
from penstock.io.csv_columns import arrow_columns, plain_columns, plain_float
from penstock.io.csv_columns import rows_of as rows_of_chunk
from penstock.io.csv_format import CsvColumn, CsvFormat
from penstock.io.csv_reader import FINE, NO_QUOTE, CsvChunk, CsvReader, plain_row, sound_rows
from penstock.sources import csv
from penstock.testing import assert_resumes_exactly

CsvDataset = ps.experimental.CsvDataset
INT, FLOAT, TEXT = np.int32, np.float32, bytes
QUOTE = ord('"')


@pytest.fixture(params=["plain", "arrow"])
def rows_of(request, tmp_path, monkeypatch):
    """Return the elements of a file with this content, and (class, offset) of failures."""
    monkeypatch.setattr(csv, "LEAST", 1 if request.param == "arrow" else 1 << 40)

    def read(content, record_defaults, **options):
        path = tmp_path / "a.csv"
        path.write_bytes(content)
        return kinds(everything(CsvDataset(path, record_defaults, **options)))

    return read


def wrong(*offsets):
    return [("InvalidArgumentError", offset) for offset in offsets]


# TensorFlow 2.21's result for the same file
OF_TENSORFLOW = {
    "plain": (b"1,2.5,abc\n2,,d\n", [INT, FLOAT(0.5), b""], {}, [(1, 2.5, b"abc"), (2, 0.5, b"d")]),
    "line ends": (
        b"1,a\r\n2,b\r3,c\n\n",
        [INT(7), b"z"],
        {},
        [(1, b"a"), (2, b"b"), (3, b"c"), *wrong(13)],
    ),
    "no line end": (b"1\n2", [INT], {}, [(1,), (2,)]),
    "quotes": (
        b'"a,b","c""d"\n"line\nbreak",""\nx,"y"',
        [b"D", b"E"],
        {},
        [(b"a,b", b'c"d'), (b"line\nbreak", b"E"), (b"x", b"y")],
    ),
    "only quotes": (b'"""",""""""\n"a""",b\n', [b"", b""], {}, [(b'"', b'""'), (b'a"', b"b")]),
    "integers": (
        b"1\n x\n 3 \n+4\n-5\n1_0\n0x1\n2147483648\n\n5.0\n",
        [INT(9)],
        {},
        [(1,), *wrong(2), (3,), (4,), (-5,), *wrong(15, 19, 23), (9,), *wrong(35)],
    ),
    "floats": (
        b"1\n 2.5 \n+3e2\n.5\n5.\n.\ne5\n1e\ninf\n-INF\n1e39\n1e-50\n0.1\n1_0\n",
        [FLOAT(9)],
        {},
        [
            *[(1,), (2.5,), (300,), (0.5,), (5,), *wrong(19, 21, 24)],
            *[(math.inf,), (-math.inf,), (math.inf,), (0,), (FLOAT(0.1),), *wrong(51)],
        ],
    ),
    "doubles": (
        b"1e400\n1e-400\n0.1\n123456789012345678\n",
        [np.float64(9)],
        {},
        [(math.inf,), (0,), (0.1,), (1.2345678901234568e17,)],
    ),
    "required": (b"1\n\n3\n", [INT], {}, [(1,), *wrong(2), (3,)]),
    "required text": (b'a\n""\nb\n', [TEXT], {}, [(b"a",), *wrong(2), (b"b",)]),
    "fields": (b"1,2\n1\n1,2,3\n3,4\n", [INT, INT], {}, [(1, 2), *wrong(4, 6), (3, 4)]),
    "a quote inside": (b'a"b,c\nd,e\n', [b"", b""], {}, [*wrong(0), (b"d", b"e")]),
    "unclosed": (b'a,b\n"c,d\ne,f\n', [b"", b""], {}, [(b"a", b"b"), *wrong(4)]),
    "no quotes": (b'"a,b"\nc"d,e\n', [b"", b""], {"use_quote_delim": False}, [(b'"a', b'b"'), (b'c"d', b"e")]),
    "na": (
        b"NA,1\n2,NA\nNAN,3\n",
        [b"none", INT(-1)],
        {"na_value": "NA"},
        [(b"none", 1), (b"2", -1), (b"NAN", 3)],
    ),
    "select": (b"1,2,3\n4,5\n6,7,8,9\n", [INT], {"select_cols": [2]}, [(3,), *wrong(6), (8,)]),
    "exclude": (b"1,2,3\n4,5\n6,7,8,9\n", [INT, INT], {"exclude_cols": [1]}, [(1, 3), *wrong(6, 10)]),
    "header": (b'"a\nb",c\n1,2\n', [INT, INT], {"header": True}, [(1, 2)]),
    "delimiter": (b"1\t2\n", [INT, INT], {"field_delim": "\t"}, [(1, 2)]),
    "empty fields": (b"1,\n,2\n,\n", [INT(8), INT(9)], {}, [(1, 9), (8, 2), (8, 9)]),
    "empty": (b"", [INT], {}, []),
    "empty but for a header": (b"a\n", [INT], {"header": True}, []),
}


@pytest.mark.parametrize("case", OF_TENSORFLOW)
def test_rows_are_read_as_tensorflow_reads_them(rows_of, case):
    content, defaults, options, wanted = OF_TENSORFLOW[case]
    found = rows_of(content, defaults, **options)
    assert found == wanted
    kinds_wanted = [default if isinstance(default, type) else type(default) for default in defaults]
    assert all(isinstance(row[0], str) or list(map(type, row)) == kinds_wanted for row in found)


def test_nan_is_read(rows_of):
    assert np.isnan([row[0] for row in rows_of(b"nan\nNaN\n-nan\n", [FLOAT])]).all()


def test_a_row_with_text_behind_a_quote_ends_with_its_line(rows_of):
    """tf.data reads on to the next quote before a delimiter, over whole rows."""
    assert rows_of(b'"a"b,c\n"x","y"\nd,e\n', [b"", b""]) == [*wrong(0), (b"x", b"y"), (b"d", b"e")]


def test_compressed_files_and_small_pieces(tmp_path):
    content = "".join(f'{i},"a ""b""\r\n{i}",{i / 8}\r\n' for i in range(50)).encode()
    wanted = [(i, f'a "b"\r\n{i}'.encode(), i / 8) for i in range(50)]
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(content))
    for size in (1, 17, 100, None):
        ds = CsvDataset(path, [np.int64, TEXT, np.float64], "GZIP", buffer_size=size)
        assert list(ds) == wanted
    assert everything(ds) == wanted


def test_a_value_of_its_own_for_each_dtype(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",,,,,,\n")
    defaults = [0, 0.5, "text", np.int32(1), np.float64(2), [np.float32(3)], np.array([], object)]
    ds = CsvDataset(path, defaults[:-1], exclude_cols=[6])
    specs = [spec.dtype for spec in ds.element_spec]
    assert specs == [np.int64, np.float32, bytes, np.int32, np.float64, np.float32]
    assert list(ds) == [(0, 0.5, b"text", 1, 2, 3)]
    (failed,) = everything(CsvDataset(path, defaults))
    assert "Column 6 is required" in failed.message


def test_errors_say_what_was_in_the_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2,NA\n1\nx,1,1\n1,1,1\n,99999999999,2\n")
    found = everything(CsvDataset(path, [INT, np.int32(0), FLOAT], na_value="NA"))
    assert [getattr(item, "message", item) for item in found] == [
        "Column 2 is required, and this row has b'NA' in it.",
        "A row has 3 fields, one for each column; this one has 1.",
        "Column 0 is int32, and this row has b'x' in it.",
        (1, 1, 1),
        "Column 0 is required, and this row has nothing in it.",
    ]
    assert all(item.context.file == str(path) for item in found if isinstance(item, Exception))


def test_a_column_with_many_failures_costs_one_parse(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i if i % 2 else 'x'}\n" for i in range(3000)))
    source = CsvDataset(path, [np.int64])._plan.source
    reader, calls, found = source.open(), 0, []
    while calls < 5000:
        calls += 1
        try:
            block = reader.read(1000)
        except errors.InvalidArgumentError:
            continue
        if block is None:
            break
        found += block.elements()
    assert [int(x) for (x,) in found] == list(range(1, 3000, 2))


def test_files_one_after_the_other(tmp_path):
    for name, text in (("a", "n\n1\n2\n"), ("b", ""), ("d", "n\n3\n")):
        (tmp_path / name).write_text(text)
    found = everything(CsvDataset([tmp_path / name for name in "abcd"], [INT], header=True))
    assert kinds(found) == [(1,), (2,), ("InvalidArgumentError", None), ("NotFoundError", None), (3,)]
    assert "The file is empty" in found[2].message
    good = ps.Dataset.from_tensor_slices([str(tmp_path / name) for name in "ad"])
    assert_resumes_exactly(CsvDataset(good, [INT], header=True).batch(2))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("csv") / "a.csv.gz"


# -- Arrow compared with the plain parser, the plain parser with Python's

fields = st.text(st.sampled_from('ab1",\r\n.-e é'), max_size=6)
pieces = st.sampled_from([b"a", b"bc", b'"', b'""', b",", b"\n", b"\r", b"\r\n", b",,", b'"a,b"', b'"a,\nb"'])


@given(st.lists(st.lists(fields, min_size=1, max_size=4), max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
def test_well_formed_text_is_read_as_by_python(rows, end):
    text = io.StringIO()
    python_csv.writer(text, lineterminator=end, quoting=python_csv.QUOTE_ALL).writerows(rows)
    content = text.getvalue().encode()
    assert cut(content) == [([field.encode() for field in row], FINE) for row in rows]


def cut(content, final=True, quote=QUOTE):
    """Return the fields of all rows, and the fault of each."""
    at, found = 0, []
    while at < len(content) and (row := plain_row(memoryview(content), at, ord(","), quote, final=final)) is not None:
        found.append((row.fields, row.status))
        assert row.stop > at
        at = row.stop
    return found


@given(st.lists(pieces, max_size=14))
def test_rows_do_not_depend_on_where_the_buffer_ends(parts):
    content = b"".join(parts)
    whole = cut(content)
    for stop in range(len(content)):
        found = cut(content[:stop], final=False)
        assert found == whole[: len(found)]


@given(st.lists(pieces, max_size=14), st.booleans(), st.sampled_from([QUOTE, NO_QUOTE]))
def test_sound_rows_end_where_the_scanner_says_and_nothing_is_wrong_with_them(parts, final, quote):
    content = b"".join(parts)
    found = sound_rows(np.frombuffer(content, np.uint8), ord(","), quote, final=final).tolist()
    wanted = [0]
    while wanted[-1] < len(content):
        row = plain_row(memoryview(content), wanted[-1], ord(","), quote, final=final)
        if row is None or row.status != FINE:
            break
        wanted.append(row.stop)
    assert found == (wanted if len(wanted) > 1 else [])


numbers = (
    st.integers(-(2**70), 2**70).map(str)
    | st.integers(-300, 300).map(str)
    | st.integers(0, 2**64).map("+{}".format)
    | st.floats(allow_nan=False).map(repr)
    | st.floats(width=32, allow_nan=False).map(lambda x: repr(float(np.float32(x))))
    | st.decimals(-1000, 1000, places=8).map(str)
    | st.tuples(st.integers(0, 10**25), st.integers(-400, 400)).map(lambda t: f"{t[0]}e{t[1]}")
    | st.text(st.sampled_from("0123456789+-.eE xinfa_()X"), max_size=8)
    | st.sampled_from(["nan", "-NaN", "nan(1)", "0x1f", "inf", "+Infinity", "NA", "1e999", "4.9e-324", "-0.0"])
).map(lambda text: text.encode())
padded = st.tuples(st.sampled_from([b"", b" ", b"\t\v", b'"', b"\xef\xbb\xbf"]), numbers).map(
    lambda parts: parts[0] + parts[1] + (b'"' if parts[0] == b'"' else b"")
)
texts = st.sampled_from([b"", b"a", b'""', b'"a""b"', b'"x,\ny"', b'"NA"', b"NA", b" ", "é".encode()])
dtypes = st.sampled_from([np.int32, np.int64, np.float32, np.float64])
layouts = st.sampled_from(
    [{}, {"na_value": b"NA"}, {"select": (1, 2)}, {"select": (0, 2), "na_value": b"NA"}, {"exclude": (1,)}]
)


@given(st.lists(st.tuples(padded, texts, padded, st.integers(1, 40)), min_size=1, max_size=12), dtypes, layouts)
@settings(max_examples=300)
def test_where_arrow_reads_rows_it_reads_what_the_plain_parser_does(rows, dtype, layout):
    """Check all of these lines, and the first one alone; most have three fields each."""
    lines = [b",".join([first, text, last, text][: 3 if cut > 4 else cut]) for first, text, last, cut in rows]
    number, required = CsvColumn(np.dtype(dtype), np.dtype(dtype).type(7)), CsvColumn(np.dtype(dtype))
    columns = [number, CsvColumn(bytes, b"none"), required]
    places = layout.get("select") or tuple(i for i in range(3) if i not in layout.get("exclude", ()))
    layout = CsvFormat(tuple(columns[i] for i in places), **layout)
    read = 0
    for several in (lines, lines[:1]):
        content = np.frombuffer(b"".join(line + b"\n" for line in several), np.uint8)
        offsets = sound_rows(content, ord(","), QUOTE, final=True)
        if not len(offsets):
            continue
        chunk = CsvChunk(content, 0, offsets)
        wanted = plain_columns(chunk, layout)
        for odd in (False, True):
            found = arrow_columns(chunk, layout, odd_numbers=odd)
            if found is not None:
                read += 1
                assert_same_columns(found, wanted)
    event(f"read by Arrow: {bool(read)}")


def assert_same_columns(found, wanted):
    assert found.rows.tolist() == wanted.rows.tolist()
    assert sorted(found.unread) == wanted.unread
    for i, (mine, plain) in enumerate(zip(found.columns, wanted.columns, strict=True)):
        assert mine.spec() == plain.spec()
        assert found.wrong[i].tolist() == wanted.wrong[i].tolist()
        good = np.flatnonzero(~wanted.wrong[i])
        np.testing.assert_array_equal(np.array(mine.take(good).values()), np.array(plain.take(good).values()))


@pytest.mark.parametrize("select", [None, (0, 1)])
def test_rows_that_arrow_cannot_read_do_not_send_their_neighbours_to_the_plain_parser(select):
    """Rows with unusual, wrong or missing numbers, or too many fields: Arrow still reads the rest of their chunk."""
    lines = [f"{i},{i / 7!r}" for i in range(100)]
    for number, line in (
        (3, "+3,+.5"),
        (9, "0x1f,nan(1)"),
        (10, "x,"),
        (20, "9223372036854775807,1e400"),
        (30, "1,2,3"),
    ):
        lines[number] = line
    lines[40:50] = [f"+{2**63 - 45 + i} ,\v1e5" for i in range(40, 50)]
    layout = CsvFormat((CsvColumn(np.dtype(np.int64)), CsvColumn(np.dtype(np.float64))), select=select)
    content = np.frombuffer("\n".join(lines).encode(), np.uint8)
    chunk = CsvChunk(content, 0, sound_rows(content, ord(","), QUOTE, final=True))
    found = arrow_columns(chunk, layout)
    assert_same_columns(found, plain_columns(chunk, layout))
    assert found.odd_numbers
    assert [np.flatnonzero(bad).tolist() for bad in found.wrong] == [
        [9, 10, *(range(45, 50) if select else range(44, 49))],
        [9, 10],
    ]


@given(st.lists(pieces, max_size=14), st.sampled_from([1, 40]), st.sampled_from([1, 17, None]))
def test_the_reader_gives_the_rows_of_the_scanner_wrong_ones_next_to_each_other_too(scratch, parts, times, size):
    content = b"".join(parts) * times
    layout = CsvFormat((CsvColumn(bytes, b""), CsvColumn(bytes, b"")))
    scratch.write_bytes(gzip.compress(content, 0))
    reader = CsvReader(scratch, ord(","), QUOTE, compression_type="GZIP", buffer_size=size)
    found = []
    while (chunk := reader.read()) is not None:
        found += [(row.fields, row.status) for row in rows_of_chunk(chunk, layout)]
        by_arrow = arrow_columns(chunk, layout)
        if by_arrow is not None:
            assert_same_columns(by_arrow, plain_columns(chunk, layout))
    reader.close()
    assert found == cut(content)


def test_arrow_reads_what_files_usually_hold():
    content = np.frombuffer(b'1,"a,b",0.25\n-7,,1e-3\n,"c""d",3.141592653589793\n', np.uint8)
    layout = CsvFormat((CsvColumn(np.dtype(np.int64), 9), CsvColumn(bytes, b"x"), CsvColumn(np.dtype(np.float32))))
    chunk = CsvChunk(content, 0, sound_rows(content, ord(","), QUOTE, final=True))
    found = arrow_columns(chunk, layout)
    assert [column.values() for column in found.columns] == [
        [1, -7, 9],
        [b"a,b", b"x", b'c"d'],
        [0.25, np.float32(0.001), np.float32(3.1415927)],
    ]
    assert found.unread == []


def test_a_file_of_several_pieces_with_some_bad_rows_in_them(tmp_path):
    lines = [f'{i},"text {i}{"." * 100}",{i / 7!r}' for i in range(5000)]
    for number, bad in ((500, "1,2"), (2000, "x,a,1"), (2001, 'a"b,c,1'), (4999, "0x10,a,1")):
        lines[number] = bad
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found = everything(CsvDataset(tmp_path / "a.csv", [np.int64, bytes, np.float64]))
    failed = [i for i, item in enumerate(found) if isinstance(item, Exception)]
    assert failed == [500, 2000, 2001, 4999]
    assert all(found[i] == (i, f"text {i}{'.' * 100}".encode(), i / 7) for i in range(0, 4999, 7) if i not in failed)
    begins = np.cumsum([0, *(len(line) + 1 for line in lines)])
    assert [found[i].context.offset for i in failed] == begins[failed].tolist()


@pytest.mark.parametrize("limit", [np.iinfo(np.int64).min, np.iinfo(np.int64).max])
def test_the_limits_of_int64(rows_of, limit):
    limit = int(limit)
    beyond = limit + (1 if limit > 0 else -1)
    assert rows_of(f"{limit}\n{beyond}\n{limit}0\n".encode(), [np.int64])[0] == (limit,)
    assert len(rows_of(f"{limit}\n{beyond}\n{limit}0\n".encode(), [np.int64])) == 3


def test_a_float32_is_rounded_once():
    """These numbers are so close to the middle of two float32 that the nearest float64 is the middle itself."""
    middle = (2.0**24 + 1) * 2.0**10  # between two float32; the even one is below
    below, above = 2.0**34, (2.0**24 + 2) * 2.0**10
    text = f"{int(middle)}"
    assert plain_float(text.encode(), single=True) == below
    assert plain_float(f"{text}.{'0' * 30}1".encode(), single=True) == above
    middle = (2.0**24 + 3) * 2.0**10  # the even one is above
    text = f"{int(middle)}"
    assert plain_float(text.encode(), single=True) == (2.0**24 + 4) * 2.0**10
    assert plain_float(f"{int(middle) - 1}.{'9' * 30}".encode(), single=True) == (2.0**24 + 2) * 2.0**10
    assert plain_float(b"1.401298464324817e-45", single=True) == 2.0**-149
    assert plain_float(b"7.006492321624085354618e-46", single=True) == 0.0  # just below half of the least
    assert plain_float(b"7.006492321624085354619e-46", single=True) == 2.0**-149  # just above
    most = 2**128 - 2**103  # the middle between the largest float32 and the number after it
    assert plain_float(f"{most}".encode(), single=True) == math.inf
    assert plain_float(f"{most - 1}".encode(), single=True) == float(np.finfo(np.float32).max)


def test_rows_that_are_no_text_print_nothing(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(csv, "LEAST", 1)
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,a\n2,\xff\xfe,c\n3,\xe9\n4,d\n")
    found = kinds(everything(CsvDataset(path, [INT, TEXT])))
    assert found == [(1, b"a"), *wrong(4), (3, b"\xe9"), (4, b"d")]
    assert capfd.readouterr().err == ""


def test_the_error_of_a_row_names_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1\nx\n3\n4\ny\n")
    found = everything(CsvDataset(path, [INT]))
    assert [item.context.line for item in found if isinstance(item, Exception)] == [2, 5]
