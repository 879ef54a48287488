"""Windows over files of tokens: compared with slices, by iteration and by number, resumed, and over damaged files."""

import json
import logging
import struct
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.numbers import everything_by_number, everything_uncounted
from tests.sources.passes import everything

import penstock as ps
from penstock import errors
from penstock.sources.tokens import segments
from penstock.testing import assert_resumes_exactly, assert_same_elements

CODES = {"uint8": 1, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}


def write_megatron(path, sequences, bounds, dtype="uint16"):
    """Write a file like Megatron's IndexedDatasetBuilder: the index at `path`, and the tokens in the same folder."""
    lengths = np.array([len(each) for each in sequences], np.int32)
    tokens = np.concatenate([np.zeros(0), *sequences]).astype(dtype)
    pointers = (np.cumsum(lengths, dtype=np.int64) - lengths) * tokens.itemsize
    head = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, CODES[dtype], len(lengths), len(bounds))
    path.write_bytes(head + lengths.tobytes() + pointers.tobytes() + np.array(bounds, np.int64).tobytes())
    tokens.tofile(path.with_suffix(".bin"))
    return tokens


def windows(tokens, length, step, *, shift, bounds=None):
    """Return the same windows, by slices."""
    ends = [0, len(tokens)] if bounds is None else bounds
    found = []
    for begin, end in pairwise(ends):
        for at in range(begin, end - length - shift + 1, step):
            pair = tokens[at : at + length], tokens[at + 1 : at + 1 + length]
            found.append(pair if shift else pair[0])
    return found


@pytest.mark.parametrize("kind", ["bin", "npy", "idx"])
@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize(("length", "step"), [(4, None), (4, 1), (3, 5), (1, 1), (26, None)])
def test_windows_of_each_kind_of_file(kind, shift, length, step, tmp_path):
    tokens = [np.arange(n, dtype=np.uint16) + 100 * i for i, n in enumerate((25, 0, 3, 12))]
    for i, part in enumerate(tokens):
        path = tmp_path / f"{i}.{kind}"
        if kind == "idx":
            write_megatron(path, [part[:2], part[2:]], [0, 1, 2])
        else:
            np.save(path, part) if kind == "npy" else part.tofile(path)
    files = [tmp_path / f"{i}.{kind}" for i in range(4)]
    ds = ps.TokenDataset(files, np.uint16, length, step, shift=shift)
    wanted = [x for part in tokens for x in windows(part, length, step or length, shift=shift)]
    assert_same_elements(everything_by_number(ds), wanted)
    assert len(ds) == len(wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_tokens_keep_their_dtype(dtype, tmp_path):
    tokens = np.arange(12).astype(dtype)
    tokens.tofile(tmp_path / "a.bin")
    np.save(tmp_path / "a.npy", tokens.astype(np.dtype(dtype).newbyteorder(">")))
    write_megatron(tmp_path / "b.idx", [tokens], [0, 1], dtype)
    sets = [
        ps.TokenDataset(tmp_path / "a.bin", dtype, 5),
        *(ps.TokenDataset(tmp_path / n, None, 5) for n in ("a.npy", "b.idx")),
    ]
    turned = np.dtype(dtype).newbyteorder(">")
    tokens.astype(turned).tofile(tmp_path / "turned.bin")
    for ds in (
        *sets,
        ps.TokenDataset(tmp_path / "turned.bin", turned, 5),
        ps.TokenDataset(tmp_path / "a.npy", turned, 5),
    ):
        assert ds.element_spec == ps.TensorSpec((5,), dtype)
        assert_same_elements(list(ds), [tokens[:5], tokens[5:10]])


def test_a_header_is_skipped(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"odd" + np.arange(8, dtype=np.uint16).tobytes())
    ds = ps.TokenDataset(tmp_path / "a.bin", np.uint16, 4, shift=True, step=3, offset=3)
    assert_same_elements(everything_by_number(ds), windows(np.arange(8, dtype=np.uint16), 4, 3, shift=True))


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.integers(1, 7),
    st.integers(1, 5),
    st.booleans(),
)
def test_documents(tmp_path_factory, sizes, ends, length, step, shift):
    path = tmp_path_factory.mktemp("documents") / "a.idx"
    sequences = [np.full(size, i) for i, size in enumerate(sizes)]
    bounds = [0, *(i for i in range(1, len(sizes)) if ends[i]), len(sizes)]
    tokens = write_megatron(path, sequences, bounds, "int32")
    starts = np.concatenate([[0], np.cumsum(sizes)])[bounds].tolist()
    stopped = ps.TokenDataset(path, None, length, step, shift=shift, documents="stop")
    assert_same_elements(everything_by_number(stopped), windows(tokens, length, step, shift=shift, bounds=starts))
    marked = ps.TokenDataset(path, None, length, step, shift=shift, documents="segment_ids")
    found = everything_by_number(marked)
    wanted = windows(np.arange(len(tokens)), length, step, shift=shift)
    assert len(found) == len(wanted)
    for element, places in zip(found, wanted, strict=True):
        row, at = (element[0], places[0]) if shift else (element, places)
        document = np.searchsorted(np.unique(starts), at, side="right")
        assert row["tokens"].tolist() == tokens[at].tolist()
        assert row["segment_ids"].tolist() == (np.unique(document, return_inverse=True)[1] + 1).tolist()
        assert row["positions"].tolist() == [int(i - np.flatnonzero(document == d)[0]) for i, d in enumerate(document)]
        assert row["positions"].dtype == row["segment_ids"].dtype == np.int32


def test_segments_of_no_windows_and_of_windows_in_one_document():
    assert [part.tolist() for part in segments(np.array([0, 9]), np.array([0, 4]), 3)] == [
        [[1, 1, 1], [1, 1, 1]],
        [[0, 1, 2], [0, 1, 2]],
    ]


@pytest.mark.parametrize(("length", "level"), [(49, logging.INFO), (40, logging.WARNING)])
def test_tokens_that_fill_no_window_are_counted(length, level, tmp_path, caplog):
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "a.bin")
    caplog.set_level(logging.INFO, "penstock.sources")
    ds = ps.TokenDataset(tmp_path / "a.bin", np.uint16, length)
    assert len(list(ds)) == len(list(ds.shuffle(ps.ALL))) == 2
    (record,) = caplog.records
    assert (record.levelno, record.args[1]) == (level, str(100 - 2 * length))


def test_windows_are_resumed_at_every_element(tmp_path):
    np.arange(60, dtype=np.uint16).tofile(tmp_path / "a.bin")
    ds = ps.TokenDataset([tmp_path / "a.bin"] * 2, np.uint16, 8, 5, shift=True)
    assert_resumes_exactly(ds)
    assert_resumes_exactly(ds.shuffle(ps.ALL, seed=1).batch(3))


_RESUME = """
import json, sys
import numpy as np, penstock as ps
path, packed, states = sys.argv[1:]
ds = ps.TokenDataset(path, np.uint16, 8, 1).shuffle(ps.ALL, seed=3)
ds = ds.map(lambda x: x[: x[0] % 7 + 1]).pack(8) if packed == "packed" else ds.batch(4)
rests = []
for state in json.loads(states):
    with ds.iterator() as elements:
        elements.load_state_dict(state)
        rests.append([str(element) for element in elements])
print(json.dumps(rests))
"""


@pytest.mark.parametrize("packed", ["batches", "packed"])
def test_windows_are_resumed_at_every_element_in_another_process(packed, tmp_path):
    path = tmp_path / "a.bin"
    np.arange(30, dtype=np.uint16).tofile(path)
    ds = ps.TokenDataset(path, np.uint16, 8, 1).shuffle(ps.ALL, seed=3)
    ds = ds.map(lambda x: x[: x[0] % 7 + 1]).pack(8) if packed == "packed" else ds.batch(4)
    states, found = [], []
    with ds.iterator() as elements:
        states.append(elements.state_dict())
        for element in elements:
            found.append(str(element))
            states.append(elements.state_dict())
    texts = json.dumps(states)
    other = subprocess.run(
        [sys.executable, "-c", _RESUME, path, packed, texts], capture_output=True, text=True, check=True
    )
    assert json.loads(other.stdout) == [found[count:] for count in range(len(states))]
    assert len(texts) < 2000 * len(states)


# -- damage


def cut(path, count):
    path.write_bytes(path.read_bytes()[:count])


@pytest.mark.parametrize("count", [0, 9, 33, 40, 65])
def test_an_index_that_is_cut_short(count, tmp_path):
    write_megatron(tmp_path / "a.idx", [np.arange(4), np.arange(3)], [0, 2])
    cut(tmp_path / "a.idx", count)
    (error,) = everything_uncounted(ps.TokenDataset(tmp_path / "a.idx", np.uint16, 2))
    assert isinstance(error, errors.DataLossError)
    assert error.context.file == str(tmp_path / "a.idx")
    assert error.context.offset is not None


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        (0, b"X", "does not begin as a Megatron index"),
        (9, b"\2", "version 1"),
        (17, b"\7", "none of integers"),
        (18, b"\3", "has"),
        (34, b"\5", "Sequence 1 of the index"),
        (50, b"\1", "Sequence 1 of the index"),
        (58, b"\1", "bounds of documents"),
        (66, b"\1", "bounds of documents"),
    ],
)
def test_an_index_with_a_changed_byte(at, value, says, tmp_path):
    path = tmp_path / "a.idx"
    write_megatron(path, [np.arange(4), np.arange(3)], [0, 2])
    content = bytearray(path.read_bytes())
    content[at : at + 1] = value
    path.write_bytes(content)
    (error,) = everything(ps.TokenDataset(path, np.uint16, 2))
    assert isinstance(error, errors.DataLossError)
    assert says in str(error)
    assert error.context.offset is not None


@pytest.mark.parametrize("change", [-1, 2])
def test_an_index_that_does_not_fit_its_tokens(change, tmp_path):
    tokens = write_megatron(tmp_path / "a.idx", [np.arange(4), np.arange(3)], [0, 2])
    data = tmp_path / "a.bin"
    data.write_bytes((tokens.tobytes() + b"\0\0")[: tokens.nbytes + change])
    (error,) = everything_uncounted(ps.TokenDataset(tmp_path / "a.idx", np.uint16, 2))
    assert isinstance(error, errors.DataLossError)
    assert (error.context.file, error.context.offset) == (str(data), 14 + min(change, 0))
    data.unlink()
    (error,) = everything(ps.TokenDataset(tmp_path / "a.idx", np.uint16, 2))
    assert isinstance(error, errors.NotFoundError)


def test_a_raw_file_that_ends_within_a_token(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(11))
    np.arange(6, dtype=np.uint16).tofile(tmp_path / "b.bin")
    files = [tmp_path / "a.bin", tmp_path / "b.bin"]
    error, window = everything_uncounted(ps.TokenDataset(files, np.uint16, 6))
    assert (error.context.file, error.context.offset) == (str(files[0]), 10)
    assert window.tolist() == [0, 1, 2, 3, 4, 5]
    (error,) = everything(ps.TokenDataset(files[0], np.uint16, 6, offset=20))
    assert isinstance(error, errors.DataLossError)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.zeros((4, 4), np.uint16), errors.InvalidTypeError),
        (np.zeros(4, np.float32), errors.InvalidTypeError),
        (np.zeros(4, np.int64), errors.InvalidTypeError),
        (np.zeros(4, [("a", "<u2"), ("b", "<u2")]), errors.InvalidTypeError),
    ],
)
def test_an_array_that_holds_no_tokens_of_the_dtype(array, kind, tmp_path):
    np.save(tmp_path / "a.npy", array)
    (error,) = everything_uncounted(ps.TokenDataset(tmp_path / "a.npy", np.uint16, 2))
    assert isinstance(error, kind)
    assert error.context.file == str(tmp_path / "a.npy")


def test_an_array_that_is_cut_short(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(8, dtype=np.uint16))
    cut(tmp_path / "a.npy", 140)
    (error,) = everything_uncounted(ps.TokenDataset(tmp_path / "a.npy", np.uint16, 2))
    assert isinstance(error, errors.DataLossError)
    assert error.context.offset == 128


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("a.bin", {"dtype": None}, "does not say which dtype"),
        ("a.bin", {"documents": "stop"}, "bounds of documents"),
        ("a.npy", {"offset": 4}, "Leave offset out"),
    ],
)
def test_what_a_file_has_not_is_said(name, arguments, says, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(8, dtype=np.uint16))
    np.arange(8, dtype=np.uint16).tofile(tmp_path / "a.bin")
    (error,) = everything(ps.TokenDataset(tmp_path / name, **{"dtype": np.uint16, "length": 2, **arguments}))
    assert isinstance(error, errors.InvalidArgumentError)
    assert says in str(error)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"dtype": np.float32}, errors.InvalidTypeError),
        ({"dtype": "tokens"}, errors.InvalidTypeError),
        ({"length": 0}, errors.InvalidArgumentError),
        ({"step": 0}, errors.InvalidArgumentError),
        ({"offset": -1}, errors.InvalidArgumentError),
        ({"documents": "split"}, errors.InvalidArgumentError),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments, kind):
    with pytest.raises(kind):
        ps.TokenDataset("a.bin", **{"dtype": np.uint16, "length": 4, **arguments})
