"""What the parsers give and what they refuse, with the texts of their errors."""

import subprocess
import sys

import numpy as np
import pytest

from penstock import io
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError

Ragged = io.RaggedFeature
FIRST = {"v": [3, 1, 4, 1, 5, 9], "s1": [0, 2, 3, 3, 6], "s2": [0, 2, 3, 4], "n": [2, 1, 0, 3], "w": ["a", "b"]}
SECOND = {"v": [2, 7, 1, 8, 2, 8, 1], "s1": [0, 3, 4, 5, 7], "s2": [0, 1, 1, 4], "n": [3, 1, 1, 2], "w": ["c"]}
BATCH = [io.encode_example(FIRST), io.encode_example(SECOND)]


def refused(features, record=BATCH[0]):
    """The error that both ways of parsing raise."""
    texts = set()
    for parse in [
        lambda: io.parse_single_example(record, features),
        lambda: io.parse_example([record], features),
    ]:
        with pytest.raises((InvalidArgumentError, DataLossError)) as caught:
            parse()
        texts.add((type(caught.value), caught.value.message))
    assert len(texts) == 1
    return caught.value


def test_missing():
    error = refused({"q": io.FixedLenFeature((), np.int64)})
    assert error.message == "Feature 'q' is required but could not be found."
    assert "default_value" in error.hint


def test_wrong_type():
    assert refused({"v": io.VarLenFeature(bytes)}).message == (
        "Feature 'v': data types don't match. Expected type: bytes, actual type: int64."
    )


def test_wrong_number():
    assert refused({"v": io.FixedLenFeature((2, 2), np.int64)}).message == (
        "Feature 'v' has 6 values, and 4 were expected by its shape."
    )
    by_four = {"v": io.FixedLenSequenceFeature(4, np.int64, allow_missing=True)}
    assert "not a multiple of the 4" in refused(by_four).message


def test_an_empty_list_is_not_missing():
    record = io.encode_example({"v": np.empty(0, np.int64)})
    assert "has 0 values" in refused({"v": io.FixedLenFeature((), np.int64, 5)}, record).message


def test_no_kind_is_missing():
    record = io.encode_example({"v": []})
    assert io.parse_single_example(record, {"v": io.FixedLenFeature((), np.int64, 5)}) == {"v": 5}
    assert "could not be found" in refused({"v": io.FixedLenFeature((), np.int64)}, record).message


def test_of_two_the_last_counts():
    record = io.encode_example({"v": 1}) + io.encode_example({"v": 2})
    assert io.parse_single_example(record, {"v": io.FixedLenFeature((), np.int64)}) == {"v": 2}
    assert io.parse_example([record], {"v": io.FixedLenFeature((), np.int64)})["v"].tolist() == [2]


def test_what_is_no_example():
    error = refused({"v": io.VarLenFeature(np.int64)}, b"\x0a\xff")
    assert isinstance(error, DataLossError)
    assert "not a serialized tf.train.Example" in error.message


def test_the_error_of_a_batch_names_the_element():
    with pytest.raises(InvalidArgumentError) as caught:
        io.parse_example([*BATCH, io.encode_example({})], {"w": io.FixedLenFeature((1,), bytes, [""])})
    assert caught.value.context.element == 0
    with pytest.raises(InvalidArgumentError) as caught:
        io.parse_example(
            [*BATCH, io.encode_example({})], {"v": io.FixedLenSequenceFeature((), np.int64), "n": Ragged(bytes)}
        )
    assert caught.value.context.element is None  # refused before any record was looked at
    with pytest.raises(InvalidArgumentError) as caught:
        io.parse_example(BATCH, {"v": io.FixedLenFeature((6,), np.int64)})
    assert caught.value.context.element == 1


def test_results_of_one():
    found = io.parse_single_example(
        io.encode_example({"i": 7, "f": 0.5, "b": b"x", "box": [1, 2, 3, 4], "names": ["a", "b"]}),
        {
            "i": io.FixedLenFeature((), np.int64),
            "f": io.FixedLenFeature((), np.float32),
            "b": io.FixedLenFeature((), bytes),
            "box": io.FixedLenFeature((2, 2), np.int64),
            "names": io.FixedLenFeature((2,), bytes),
        },
    )
    assert [type(found[name]) for name in "ifb"] == [np.int64, np.float32, bytes]
    assert found["box"].tolist() == [[1, 2], [3, 4]]
    assert found["names"].dtype == object
    assert found["names"].tolist() == [b"a", b"b"]


def test_results_belong_to_the_user():
    features = {
        "f": io.FixedLenFeature((2,), np.float32),
        "d": io.FixedLenFeature((2,), np.int64, [1, 2]),
        "r": Ragged(np.float32, "f2"),
    }
    record = io.encode_example({"f": [0.5, 1.5], "f2": [1.0]})
    for _ in range(2):
        found = io.parse_single_example(record, features)
        assert found["d"].tolist() == [1, 2]
        for value in found.values():
            value += 1


def test_results_of_a_batch():
    found = io.parse_example(
        BATCH,
        {
            "w": io.FixedLenSequenceFeature((), bytes, allow_missing=True, default_value=b"-"),
            "v": io.VarLenFeature(np.int64),
            "q": io.FixedLenFeature((2,), bytes, [b"x", b"yz"]),
        },
    )
    assert found["w"].tolist() == [[b"a", b"b"], [b"c", b"-"]]
    assert isinstance(found["v"], SparseTensor)
    assert found["v"].to_list() == [[3, 1, 4, 1, 5, 9, 0], [2, 7, 1, 8, 2, 8, 1]]
    assert found["q"].tolist() == [[b"x", b"yz"]] * 2


@pytest.mark.parametrize(
    ("feature", "single", "batch"),
    [
        (Ragged(np.int64, "v"), FIRST["v"], [FIRST["v"], SECOND["v"]]),
        (
            Ragged(np.int64, "v", [Ragged.RowSplits("s1")]),
            [[3, 1], [4], [], [1, 5, 9]],
            [[[3, 1], [4], [], [1, 5, 9]], [[2, 7, 1], [8], [2], [8, 1]]],
        ),
        (
            Ragged(np.int64, "v", [Ragged.RowSplits("s2"), Ragged.RowSplits("s1")]),
            [[[3, 1], [4]], [[]], [[1, 5, 9]]],
            [[[[3, 1], [4]], [[]], [[1, 5, 9]]], [[[2, 7, 1]], [], [[8], [2], [8, 1]]]],
        ),
        (
            Ragged(np.int64, "v", [Ragged.RowLengths("n")]),
            [[3, 1], [4], [], [1, 5, 9]],
            [[[3, 1], [4], [], [1, 5, 9]], [[2, 7, 1], [8], [2], [8, 1]]],
        ),
        (
            Ragged(np.int64, "v", [Ragged.UniformRowLength(2), Ragged.RowLengths("n")]),
            [[[3, 1], [4]], [[], [1, 5, 9]]],
            [[[[3, 1], [4]], [[], [1, 5, 9]]], [[[2, 7, 1], [8]], [[2], [8, 1]]]],
        ),
        (Ragged(np.int64, "s2", [Ragged.UniformRowLength(2)]), [[0, 2], [3, 4]], [[[0, 2], [3, 4]], [[0, 1], [1, 4]]]),
        (Ragged(np.int64, "none", [Ragged.RowLengths("none either")]), [], [[], []]),
    ],
)
def test_partitions(feature, single, batch):
    found = io.parse_single_example(BATCH[0], {"r": feature})["r"]
    assert (found.to_list() if isinstance(found, RaggedTensor) else found.tolist()) == single
    found = io.parse_example(BATCH, {"r": feature})["r"]
    assert found.to_list() == batch
    assert found.row_splits.dtype == np.int32
    assert len(io.parse_example([], {"r": feature})["r"]) == 0


@pytest.mark.parametrize(
    ("partition", "values"),
    [
        (Ragged.RowStarts("p"), [0, 2, 3, 3]),
        (Ragged.RowLimits("p"), [2, 3, 3, 6]),
        (Ragged.ValueRowIds("p"), [0, 0, 1, 3, 3, 3]),
    ],
)
def test_other_ways_to_give_rows(partition, values):
    record = io.encode_example({"v": FIRST["v"], "p": values})
    found = io.parse_single_example(record, {"r": Ragged(np.int64, "v", [partition])})["r"]
    assert found.to_list() == [[3, 1], [4], [], [1, 5, 9]]


@pytest.mark.parametrize(
    "partition", [Ragged.RowSplits, Ragged.RowLengths, Ragged.RowStarts, Ragged.RowLimits, Ragged.ValueRowIds]
)
@pytest.mark.parametrize("values", [[0, 9], [4, 1], [-1, 2], [1, 5], [0, 2**32 + 3], [0, 2**62, 2**62]])
def test_partitions_that_do_not_fit(partition, values):
    record = io.encode_example({"v": [1, 2, 3], "p": values})
    assert "does not divide its 3 values" in refused({"r": Ragged(np.int64, "v", [partition("p")])}, record).message


def test_uniform_rows_that_do_not_fit():
    error = refused({"r": Ragged(np.int64, "v", [Ragged.UniformRowLength(4)])})
    assert error.message == "Feature 'r': 6 values cannot be divided into rows of 4."


def test_an_empty_batch():
    found = io.parse_example(
        [],
        {"a": io.FixedLenFeature((2,), np.float32), "b": io.FixedLenFeature((), bytes), "c": io.VarLenFeature(bytes)},
    )
    assert found["a"].shape == (0, 2)
    assert found["b"].shape == (0,)
    assert found["c"].shape == (0, 0)


def test_what_is_no_batch():
    features = {"v": io.VarLenFeature(np.int64)}
    for wrong in [BATCH[0], np.array([BATCH], object), [1]]:
        with pytest.raises(InvalidTypeError):
            io.parse_example(wrong, features)
    with pytest.raises(InvalidTypeError, match="is bytes, got list"):
        io.parse_single_example(BATCH, features)
    with pytest.raises(InvalidArgumentError, match="needs allow_missing=True"):
        io.parse_example(BATCH, {"v": io.FixedLenSequenceFeature((), np.int64)})


SEQUENCE = io.encode_sequence_example({"id": 7}, {"fr": [[1, 2], [3, 4], [5, 6]], "w": [["a", "b"], [], ["c"]]})


def lists_of(features, record=SEQUENCE):
    return io.parse_single_sequence_example(record, None, features)[1]


def test_sequences():
    context, lists = io.parse_single_sequence_example(
        SEQUENCE,
        {"id": io.FixedLenFeature((), np.int64)},
        {"fr": io.FixedLenSequenceFeature((2,), np.int64), "w": io.VarLenFeature(bytes)},
    )
    assert context == {"id": 7}
    assert lists["fr"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert lists["w"].to_list() == [[b"a", b"b"], [b"", b""], [b"c", b""]]
    assert lists_of({"w": Ragged(bytes)})["w"].to_list() == [[b"a", b"b"], [], [b"c"]]
    uniform = Ragged(np.int64, "fr", [Ragged.UniformRowLength(1)])
    assert lists_of({"r": uniform})["r"].to_list() == [[[1], [2]], [[3], [4]], [[5], [6]]]


def test_sequences_that_are_missing():
    found = lists_of(
        {"x": io.FixedLenSequenceFeature((2,), np.float32, allow_missing=True), "y": io.VarLenFeature(bytes)}
    )
    assert found["x"].shape == (0, 2)
    assert found["x"].dtype == np.float32
    assert found["y"].shape == (0, 0)
    with pytest.raises(InvalidArgumentError, match="Feature list 'x' is required but could not be found"):
        lists_of({"x": io.FixedLenSequenceFeature((), np.int64)})


@pytest.mark.parametrize("allow_missing", [False, True])
def test_steps_that_do_not_fit(allow_missing):
    with pytest.raises(InvalidArgumentError, match=r"Step 0 of feature list 'w'.*has 2 values"):
        lists_of({"w": io.FixedLenSequenceFeature((), bytes, allow_missing=allow_missing)})
    with pytest.raises(InvalidArgumentError, match=r"Step 0 of feature list 'fr'.*data types don't match"):
        lists_of({"fr": io.VarLenFeature(bytes)})
    with pytest.raises(InvalidArgumentError, match="cannot be described by FixedLenFeature"):
        lists_of({"fr": io.FixedLenFeature((2,), np.int64)})
    with pytest.raises(InvalidArgumentError, match="nothing would be parsed"):
        io.parse_single_sequence_example(SEQUENCE)
    with pytest.raises(DataLossError, match=r"not a serialized tf\.train\.SequenceExample"):
        lists_of({"w": io.VarLenFeature(bytes)}, SEQUENCE[:-1])


def test_parsing_one_needs_no_compiler():
    program = (
        "import sys, numpy as np\nfrom penstock import io\n"
        "io.parse_single_example(io.encode_example({'a': 1}), {'a': io.FixedLenFeature((), np.int64)})\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
