"""Objects of JSON Lines files."""

import gzip
import json
import math
import random
import struct
from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden
from tests.sources.passes import assert_equal, drained, everything, kinds

import penstock as ps
from penstock import errors
from penstock.block.column import column_of
from penstock.block.leaf import as_leaf
from penstock.sources import json_lines
from penstock.sources.json_kinds import JsonLeaf
from penstock.testing import assert_resumes_exactly, assert_same_elements


@pytest.fixture
def read(tmp_path):
    def found(content, **options):
        path = tmp_path / "a.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return everything(ps.JsonLinesDataset(path, **options))

    return found


def test_values_become_leaves(read):
    line = {
        "text": "ä", "int": -3, "float": 0.5, "bool": True, "list": [1, 2], "floats": [1, 2.5], "texts": ["a", "bc"],
        "matrix": [[1, 2], [3, 4]], "inner": {"x": 1, "more": {"y": "z"}}, "empty": [], "nothing": {},
    }  # fmt: skip
    texts = np.empty(2, object)
    texts[:] = [b"a", b"bc"]
    wanted = {
        "text": "ä".encode(),
        "int": np.int64(-3),
        "float": np.float32(0.5),
        "bool": np.True_,
        "list": np.int64([1, 2]),
        "floats": np.float32([1, 2.5]),
        "texts": texts,
        "matrix": np.int64([[1, 2], [3, 4]]),
        "inner": {"x": np.int64(1), "more": {"y": b"z"}},
        "empty": np.float32([]),
    }
    assert_same_elements(read(json.dumps(line) + "\n" + json.dumps(line)), [wanted, wanted])


def test_keys_keep_the_order_of_the_first_line(read):
    first, second = read('{"b": 1, "a": 2}\n{"a": 3, "b": 4}\n')
    assert list(first) == list(second) == ["b", "a"]
    assert second == {"b": 4, "a": 3}


def test_empty_lines_and_a_byte_order_mark_count_for_nothing(read):
    assert read(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": 2}  \n\n') == [{"a": 1}, {"a": 2}]
    assert read("") == []
    assert read("\n\n") == []


def test_lists_of_differing_length(read):
    found = read('{"a": [1, 2]}\n{"a": []}\n{"a": [3]}\n')
    assert_same_elements(found, [{"a": np.int64(a)} for a in ([1, 2], [], [3])])
    found = read('{"a": [], "b": ["x"]}\n{"a": [1], "b": []}\n')
    assert found[1]["a"].dtype == np.float32
    assert found[1]["b"].dtype == object
    found = read('{"a": []}\n{"a": ["x"]}\n', defaults={"a": np.array([], object)})
    assert [row["a"].tolist() for row in found] == [[], [b"x"]]


def test_an_integer_may_stand_for_a_float_and_not_the_other_way(read):
    found = read('{"a": 0.5}\n{"a": 2}\n{"a": 16777217}\n')
    assert_same_elements(found, [{"a": np.float32(a)} for a in (0.5, 2, 16777217)])
    assert kinds(read('{"a": 2}\n{"a": 0.5}\n{"a": 3}\n')) == [{"a": 2}, ("InvalidTypeError", 9), {"a": 3}]


def test_defaults_stand_in_and_say_the_dtype(read):
    defaults = {"a": np.int8(-1), "b": 0.0, "in": {"c": "none", "d": [1.5, 2.5]}}
    content = '{"x": 1, "a": 5}\n{"x": 2, "b": null, "in": {"c": "y"}}\n{"in": null, "x": 3, "b": 7, "a": null}\n'
    found = read(content, defaults=defaults)
    pair = np.float32([1.5, 2.5])
    wanted = [
        {"x": np.int64(1), "a": np.int8(5), "b": np.float32(0), "in": {"c": b"none", "d": pair}},
        {"x": np.int64(2), "a": np.int8(-1), "b": np.float32(0), "in": {"c": b"y", "d": pair}},
        {"x": np.int64(3), "a": np.int8(-1), "b": np.float32(7), "in": {"c": b"none", "d": pair}},
    ]
    assert_same_elements(found, wanted)
    assert defaults["a"] == -1


def test_an_object_where_the_default_is_none(read):
    found = read('{"a": {"b": 1}}\n{"a": 2}\n{"a": {"b": {}}}\n', defaults={"a": 0})
    assert kinds(found) == [("InvalidTypeError", 0), {"a": 2}, ("InvalidTypeError", 25)]
    assert "Key 'a' is an object" in str(found[0])


def test_a_default_of_float64_gives_all_digits(read):
    found = read('{"a": 0.1}\n{"a": [0.1]}\n{"a": 9007199254740993}\n', defaults={"a": np.float64(0)})
    assert kinds(found) == [{"a": 0.1}, ("InvalidTypeError", 11), {"a": float(9007199254740993)}]


def test_a_default_cannot_be_written_through(read):
    default = np.zeros(2)
    first, second = read('{"a": null, "b": 1}\n{"a": [1, 2, 3], "b": 1}\n', defaults={"a": default})
    default[0] = 9
    assert first["a"].tolist() == [0, 0]
    assert second["a"].dtype == np.float64


BAD = {
    "no_json": '{"a" 1}',
    "cut_short": '{"a": ',
    "two_objects": '{"a": 1} {"a": 2}',
    "two_objects_comma": '{"a": 1}, {"a": 2}',
    "a_list": "[1, 2]",
    "a_number": "3",
    "null_key": '{"a": null, "b": "x"}',
    "absent": '{"a": 1}',
    "other_keys": '{"a": 1, "c": "x", "d": 1}',
    "another_kind": '{"a": "text", "b": "x"}',
    "an_object": '{"a": {"c": 1}, "b": "x"}',
    "a_float": '{"a": 0.5, "b": "x"}',
    "a_list_value": '{"a": [1], "b": "x"}',
    "too_large": '{"a": 9223372036854775808, "b": "x"}',
    "surrogate": '{"a": 1, "b": "\\ud800"}',
    "too_deep": '{"a": ' * 100_000,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_one_failure_between_its_neighbours(read, name):
    good = '{"a": 1, "b": "x"}\n'
    found = read(good + good + BAD[name] + "\n" + good)
    assert len(found) == 4
    assert [found[i] for i in (0, 1, 3)] == [{"a": 1, "b": b"x"}] * 3
    assert found[2].context.offset == 2 * len(good)
    assert_golden(f"json_{name}", f"{type(found[2]).__name__}: {found[2]}")


def test_the_first_lines_may_be_bad(read):
    assert kinds(read('{"a": null}\nx\n{"a": [[1], 2]}\n{"a": 1}\n{"a": 2}\n')) == [
        *[("InvalidTypeError", 0), ("DataLossError", 12), ("InvalidArgumentError", 14), {"a": 1}, {"a": 2}]
    ]
    (failed,) = read("[\n")[:1]
    assert "Is it one JSON text over several lines?" in failed.hint
    assert kinds(read("{}\n")) == [("InvalidTypeError", 0)]
    assert kinds(read(b'{"a": "\xff"}\n')) == [("DataLossError", 0)]


def test_kinds_hold_from_file_to_file_and_over_a_checkpoint(tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "missing", "c")]
    for path, lines in zip(paths, ('{"a": 0.5}\n{"a": 1}\n', "", None, '{"a": 2}\n{"a": "x"}\n{"a": 3}'), strict=True):
        if lines is not None:
            path.write_text(lines)
    found = everything(ps.JsonLinesDataset(paths))
    assert kinds(found) == [{"a": 0.5}, {"a": 1}, ("NotFoundError", None), {"a": 2}, ("InvalidTypeError", 9), {"a": 3}]
    assert {item["a"].dtype for item in found if isinstance(item, dict)} == {np.dtype(np.float32)}


def test_compressed_in_turn_and_batched(tmp_path):
    for name in "ab":
        lines = "".join(json.dumps({"x": f"{name}{i}", "v": [i, i + 0.5]}) + "\n" for i in range(5))
        (tmp_path / name).write_bytes(gzip.compress(lines.encode()))
    ds = ps.JsonLinesDataset([tmp_path / "a", tmp_path / "b"], "GZIP", num_parallel_reads=2).batch(4)
    first, *_ = ds
    assert first["x"].tolist() == [b"a0", b"b0", b"a1", b"b1"]
    assert first["v"].shape == (4, 2)
    assert ds.element_spec["v"].dtype == np.float32
    assert_resumes_exactly(ds)


def test_damaged_compression_takes_the_rest_of_the_file(tmp_path):
    content = gzip.compress(b'{"a": 1}\n' * 3)
    (tmp_path / "a").write_bytes(content[:-9])
    (tmp_path / "b").write_bytes(content)
    found = kinds(everything(ps.JsonLinesDataset([tmp_path / "a", tmp_path / "b"], "GZIP")))
    assert found[-4:] == [("DataLossError", None), *[{"a": 1}] * 3]


values = (
    st.integers(-(2**65), 2**65)
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.text(max_size=3)
    | st.none()
    | st.lists(st.integers(-3, 3) | st.floats(-2, 2), max_size=3)
    | st.lists(st.integers(-3, 3), max_size=3)
)


@given(st.lists(values, min_size=1, max_size=8), values.filter(lambda value: value is not None))
def test_a_column_at_once_is_the_values_one_by_one(found, first):
    try:
        leaf = JsonLeaf.of(("a",), first)
        wanted = [leaf.value(value) for value in found]
    except (ValueError, TypeError):
        return
    column = leaf.column(found)
    if column is not None:
        assert_same_elements(column.values(), column_of(wanted).values())


@given(st.lists(values, min_size=1, max_size=8), values.filter(lambda value: value is not None))
def test_a_column_at_once_admits_no_more_than_one_by_one(found, first):
    try:
        leaf = JsonLeaf.of(("a",), first)
    except (ValueError, TypeError):
        return
    if leaf.column(found) is not None:
        for value in found:
            leaf.value(value)


@given(st.dictionaries(st.text(max_size=3), st.integers(-5, 5) | st.text(max_size=4) | st.booleans(), min_size=1))
def test_what_json_writes_is_read(tmp_path_factory, row):
    path = tmp_path_factory.mktemp("json") / "a"
    path.write_text(json.dumps(row) + "\n" + json.dumps(row, ensure_ascii=False), encoding="utf-8", newline="")
    wanted = {key: as_leaf(value) for key, value in row.items()}
    assert_same_elements(list(ps.JsonLinesDataset(path)), [wanted, wanted])


ODD = [
    *("1E5", "-0", "01", "1.", "-", "+1", "0x1", "NaN", "Inf", "-Infinity", "1e400", "1e-400", "true", "null", "{}"),
    *("9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "1" * 5000, "[null]"),
    *(r'"\ud800"', r'"\udc00"', r'"\ud83d\ude00"', r'"\u0000"', '"\x01"', '"\x7f"', r'"\x"', r'"\/"', "'a'", "0.1"),
    *(
        '1, "a": 2',
        "1} {",
        '1} {"a": 2',
        "1 // b",
        "[[1]]",
        '{"b": 1}',
        '{"b": null}',
        '{"b": 1, "b": 2}',
        "2014-01-01",
    ),
]
FIRST = ["1", "0.5", "true", '"x"', "[1]", "[0.5, 1]", '["x"]', "[true]", '{"b": 1}', '{"b": {"c": "x"}}', "[[1]]"]
DEFAULTS = [
    *(None, np.int8(3), np.uint8(1), np.float64(0.1), np.float16(0.5), np.True_, b"d", b"\xff", np.arange(2), {"b": 0}),
    *(np.complex64(1j), np.datetime64(1, "s"), np.int64([]), np.array([b"d"], object)),
]
a_value = st.sampled_from(ODD + FIRST) | values.map(json.dumps) | st.text(max_size=5)
a_line = (
    st.builds('{{"a": {}}}'.format, a_value)
    | st.builds(' {{ "a":{} }}\t\r'.format, a_value)
    | st.sampled_from(["", " ", "{}", "{", "}", "[]", '{"a": 1', '}{"a": 1}', '{"A": 1}', '{"": 1}'])
).map(lambda line: line.encode("utf-8", "surrogatepass"))


def mutated(line, at, new):
    return line[:at] + new + line[at + 1 :]


cut = st.builds(mutated, a_line, st.integers(0, 12), st.binary(max_size=2))


@contextmanager
def plainly():
    """Read each line with `json`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "_NATIVE", SimpleNamespace(loaded=lambda: None))
        yield


def assert_same_both_ways(path, defaults=None, wants=(2, 5, 1000)):
    source = ps.JsonLinesDataset(path, defaults=defaults)._plan.source
    with plainly():
        wanted, _ = drained(source.open(), 1)
    json_lines._NATIVE.loaded()
    for want in wants:
        assert_equal(drained(source.open(), want)[0], wanted)
    return wanted


@given(st.sampled_from(FIRST), st.lists(a_line | cut, max_size=12), st.integers(0, 20), st.sampled_from(DEFAULTS))
def test_the_kernel_reads_a_key_as_json_does(tmp_path_factory, first, lines, good, default):
    ordinary = [b'{"a": %b}' % first.encode()] * (good + 1)
    path = tmp_path_factory.getbasetemp() / "key.jsonl"
    path.write_bytes(b"\n".join([*ordinary, *lines, *ordinary]))
    assert_same_both_ways(path, None if default is None else {"a": default})


INNER = {"t": "a\n\u00e4\U0001f600", "more": {"b": True, "l": [1, 2]}}
NEST = {"i": -7, "größe": 0.5, "in": INNER, "s": ["x", ""], "i2": 3}
NEST_DEFAULTS = [None, {"i": 4, "in": {"t": b"-\xff", "more": {"l": np.arange(2)}}, "s": np.array([b"d"], object)}]


@st.composite
def a_nest(draw):
    """Return a line with NEST, or with differences that are allowed and that are not."""

    def written(value):
        if not isinstance(value, dict):
            odd = draw(st.integers(0, 9)) == 0
            text = draw(st.sampled_from(ODD)) if odd else json.dumps(value, ensure_ascii=draw(st.booleans()))
            return "null" if draw(st.integers(0, 19)) == 0 else text
        pairs = list(value.items())
        if draw(st.integers(0, 3)) == 0:
            pairs = draw(st.permutations(pairs))
        if draw(st.integers(0, 5)) == 0:
            pairs = pairs[: draw(st.integers(0, len(pairs)))]
        if draw(st.integers(0, 9)) == 0:
            pairs.append(draw(st.sampled_from([("i", 3), ("in", {}), ("more", {}), ("x", 1), ("größe", None)])))
        space = draw(st.sampled_from(["", " ", " ", "\t \r"]))
        inside = f",{space}".join(
            f"{json.dumps(key, ensure_ascii=draw(st.booleans()))}{space}:{space}{written(item)}" for key, item in pairs
        )
        return f"{{{space}{inside}{space}}}"

    return written(NEST).encode("utf-8", "surrogatepass")


nearly_right = a_nest()


@given(
    st.lists(nearly_right | st.builds(mutated, nearly_right, st.integers(0, 120), st.binary(max_size=2)), max_size=8),
    st.sampled_from(NEST_DEFAULTS),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_the_kernel_reads_objects_as_json_does(tmp_path_factory, lines, defaults, end, mark):
    ordinary = [json.dumps(NEST).encode()] * 3
    path = tmp_path_factory.getbasetemp() / "objects.jsonl"
    path.write_bytes(mark + end.join([*ordinary, *lines, ordinary[0], *lines[:1]]))
    assert_same_both_ways(path, defaults)


EDGES = """
9007199254740993.0 9007199254740992.5 2.2250738585072011e-308 2.2250738585072014e-308 1e23 8.5e22 1e-27 1e+22
5e-324 4.9e-324 2.4703282292062327e-324 1.7976931348623157e308 1.7976931348623159e308 1e-400 1E400 1e0000000001
-0 -0.0 0e0 0.0000000000000000000000000 NaN Infinity -Infinity 9007199254740992 9007199254740993
-9007199254740993 123456789012345678901234567890e-10 0.1000000000000000055511151231257827021181583404541015625
"""


def numbers_of_all_sizes():
    """Yield texts of numbers: those with the most difficult rounding, and many random ones."""
    draw = random.Random(0)
    yield from EDGES.split()
    yield from (f"{1 << power}.0" for power in range(0, 120, 3))
    for _ in range(1500):
        bits = draw.getrandbits(64)
        (value,) = struct.unpack("<d", struct.pack("<Q", bits))
        if math.isfinite(value):
            yield repr(value)
            yield f"{value:.{draw.randrange(25)}e}"
        small = draw.uniform(-1000, 1000)
        yield f"{small:.{draw.randrange(25)}f}"
        yield f"{draw.getrandbits(draw.randrange(1, 80))}e{draw.randrange(-40, 40)}"
        exact = Fraction(abs(small)) + Fraction(math.ulp(small)) / 2  # half way to the next number
        digits = draw.choice((0, 0, 1, -1)) + int(exact * 10**60)
        yield f"{digits // 10**60}.{digits % 10**60:060d}"
        whole = draw.getrandbits(53) | 1 << 53  # half way between two float64s above 2**53, where it is odd
        yield f"{whole}.0"


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int8, np.uint64])
def test_the_kernel_rounds_numbers_as_json_does(tmp_path, kind):
    texts = list(numbers_of_all_sizes()) if kind == np.float64 else list(numbers_of_all_sizes())[::7]
    texts += [str(sign * (1 << power) + more) for power in (7, 8, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)]
    path = tmp_path / "a"
    path.write_text("".join(f'{{"a": {text}}}\n' for text in ["1", *texts]))
    with np.errstate(over="ignore"):
        wanted = assert_same_both_ways(path, {"a": kind(0)}, wants=(5000,))
    if kind == np.float64:  # Python gets the same from the text
        for text, row in zip(texts, wanted[1:], strict=True):
            assert isinstance(row, Exception) or repr(float(row["a"])) == repr(float(json.loads(text))), text


ORDINARY = {
    "flat": ({"i": 1, "f": 0.5, "s": "ä\n", "b": True}, None),
    "nested": ({"x": {"y": 1, "z": {"t": "a"}}, "n": 2}, None),
    "lists": ({"i": [1, 2], "f": [0.5, 1], "s": ["a", "bc"], "b": [True], "none": []}, None),
    "dtypes": ({"a": 1, "b": 200, "c": 0.1, "d": 3}, {"a": np.int8(0), "b": np.uint8(0), "c": 0.5, "d": np.float64(0)}),
    "absent": ({"x": 1}, {"s": "none", "i": 4, "b": True, "in": {"f": 1.5}}),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_lines_are_read_at_once(tmp_path, monkeypatch, name):
    row, given_defaults = ORDINARY[name]
    path = tmp_path / "a"
    path.write_text("\n".join([json.dumps(row)] * 500), encoding="utf-8")
    source = ps.JsonLinesDataset(path, defaults=given_defaults)._plan.source
    with plainly():
        wanted, _ = drained(source.open(), 100)
    json_lines._NATIVE.loaded()
    reader = source.open()
    first = reader.read(1)
    monkeypatch.setattr(json_lines._JsonFile, "_one_by_one", None)  # must not be called from here on
    assert_equal(first.elements() + drained(reader, 100)[0], wanted)


def test_only_lines_that_the_kernel_does_not_know_are_read_one_by_one(tmp_path, monkeypatch):
    lines = ['{"a": 1}'] * 2000
    lines[1500] = '{"a": "x"}'
    path = tmp_path / "a"
    path.write_text("\n".join(lines))
    slowly = []
    one_by_one = json_lines._JsonFile._one_by_one
    monkeypatch.setattr(json_lines._JsonFile, "_one_by_one", lambda *a: slowly.append(len(a[1])) or one_by_one(*a))
    json_lines._NATIVE.loaded()
    found, _ = drained(ps.JsonLinesDataset(path)._plan.source.open(), 500)
    assert len(found) == 2000
    assert kinds(found)[1500] == ("InvalidTypeError", 1500 * 9)
    assert slowly == [1, 1]


CHAT = [
    {
        "id": 1,
        "messages": [{"role": "user", "content": "hi"}, {"role": "bot", "content": "yo"}],
        "words": [["a", "b"], []],
    },
    {"id": 2, "messages": [], "words": []},
    {"id": 3, "messages": [{"content": "é", "role": "user"}], "words": [["c"]]},
]
PARTS = [
    {
        "turns": [{"by": "u", "parts": [{"kind": "t", "ids": [1, 2]}]}, {"by": "b", "parts": []}],
        "deep": [[[1], []], []],
    },
    {"turns": [{"by": "u", "parts": []}], "deep": []},
    {"turns": [], "deep": [[[2, 3]]]},
    {"turns": [{"by": "b", "parts": [{"kind": "t", "ids": []}, {"kind": "i", "ids": [3]}]}], "deep": [[]]},
]


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("rows", [CHAT, PARTS, PARTS * 2])
def test_nested_rows_are_those_of_parquet(read, tmp_path, rows):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert_same_elements(read(lines(rows)), list(ps.ParquetDataset(tmp_path / "a.parquet")))


def test_nested_rows_resume(tmp_path):
    (tmp_path / "a.jsonl").write_text(lines(CHAT * 3))
    (tmp_path / "b.jsonl").write_text(lines(CHAT[1:]))
    assert_resumes_exactly(ps.JsonLinesDataset([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]))


def test_defaults_in_lists_of_objects(read):
    rows = [{"m": []}, {"m": [{"a": "x"}, {"a": None, "n": 2}]}, {"m": None}, {}, {"m": [{"n": 3}]}]
    found = read(lines(rows), defaults={"m": {"a": "-", "n": np.int32(-1)}})
    assert [row["m"]["a"].tolist() for row in found] == [[], [b"x", b"-"], [], [], [b"-"]]
    assert [row["m"]["n"].tolist() for row in found] == [[], [-1, 2], [], [], [3]]
    assert {row["m"]["n"].dtype for row in found} == {np.dtype(np.int32)}


def test_a_default_says_that_lists_are_unequal(read):
    rows = [{"x": [[1, 2], [3, 4]]}, {"x": [[1], [2, 3]]}, {"x": None}]
    first, second, third = read(lines(rows))
    assert first["x"].shape == (2, 2)
    assert isinstance(second, errors.InvalidArgumentError)
    assert "ps.RaggedTensor([], [0])" in second.hint
    assert isinstance(third, errors.InvalidTypeError)
    default = ps.RaggedTensor(np.empty(0, np.int32), [0])
    found = read(lines(rows), defaults={"x": default})
    assert [row["x"].to_list() for row in found] == [[[1, 2], [3, 4]], [[1], [2, 3]], []]
    assert found[1]["x"].dtype == np.int32


@pytest.mark.parametrize(
    "row",
    [
        *[
            {"m": 3},
            {"m": [3]},
            {"m": [None]},
            {"m": [{"a": "x", "t": ["y"]}, 3]},
            {"m": [{"a": "x"}]},
            {"m": {"a": "x"}},
        ],
        *[{"m": [{"a": ["x"], "t": ["y"]}]}, {"m": [{"a": "x", "t": "yz"}]}, {"m": [{"a": "x", "t": None}]}],
        *[{"m": [{"a": "x", "t": [None]}]}, {"m": [{"a": 1, "t": []}]}, {"m": [{"a": "x", "t": [["y"]]}]}],
    ],
)
def test_nested_rows_of_another_kind_are_refused(read, row):
    good = {"m": [{"a": "x", "t": ["y"]}]}
    before, error, after = read(lines([good, row, good]))
    assert_same_elements([before], [after])
    assert isinstance(error, errors.InvalidTypeError)
    assert "'m" in error.message
    assert error.context.line == 2
