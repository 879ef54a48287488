"""Text is bytes: what a function does with it as if it were a str is said, at once and on its line."""

import collections
import os.path
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import TextWarning
from penstock.trace.kinds import reader

WORDS = {"a": 0}


@pytest.fixture(autouse=True)
def nothing_was_told(monkeypatch):
    monkeypatch.setattr(reader, "_TOLD", set())
    monkeypatch.setattr(reader, "_READ", collections.defaultdict(set))


def texts():
    return ps.Dataset.from_tensor_slices(["a", "b", "c"])


def generated():
    return ps.Dataset.from_generator(lambda: iter(["a", "b"]))


def decoded(s):
    return s.decode() == "a"


def run(ds):
    """What a pass warns of, in the order in which it does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = list(ds)
    return given, [one for one in caught if issubclass(one.category, TextWarning)]


SILENT = {
    "filter": lambda: texts().filter(lambda s: s == "a"),
    "map": lambda: texts().map(lambda s: s in ("a", "b")),
    "in parallel": lambda: texts().map(lambda s: WORDS.get(s, -1), num_parallel_calls=2),
    "behind a map that is not seen through": lambda: texts().map(lambda s: s[::-1].strip()).filter(lambda s: s == "a"),
    "of a generator": lambda: generated().filter(lambda s: s == "a"),
    "in a dict": lambda: texts().map(lambda s: {"name": s}).filter(lambda row: row["name"] == "a"),
    "of a tuple": lambda: texts().enumerate().filter(lambda i, s: s != "a"),
    "of batches": lambda: texts().batch(2).map(lambda s: s[0] == "a"),
    "take_while": lambda: texts().take_while(lambda s: s != "a"),
    "flat_map": lambda: texts().flat_map(lambda s: ps.Dataset.range(2 if s == "a" else 1)),
    "interleave of a tuple": lambda: (
        texts().enumerate().interleave(lambda i, s: ps.Dataset.range(2 if s == "a" else 1))
    ),
    "scan": lambda: texts().scan(0, lambda n, s: (n + (s == "a"), n)),
    "the state of a scan": lambda: ps.Dataset.range(2).scan("a", lambda state, x: (state, state == "a")),
    "group_by_window": lambda: texts().group_by_window(lambda s: 0 if s == "a" else 1, lambda k, w: w.batch(2), 2),
    "bucket": lambda: texts().bucket_by_sequence_length(lambda s: 1 if s == "a" else 3, [2], [1, 1]),
    "rejection_resample": lambda: texts().rejection_resample(lambda s: 1 if s == "a" else 0, [0.5, 0.5]),
    "a list": lambda: texts().map(lambda s: s == ["a", "b"]),
    "a longer list": lambda: texts().map(lambda s: s != ["a", "b", "c", "d"]),
    "an array": lambda: texts().map(lambda s: np.argmax(np.array(["a", "b", "c"]) == s)),
    "a part and an array": lambda: texts().map(lambda s: s.split(b"/")[-1] == np.array(["a", "b"])),
    "batches and an array": lambda: texts().batch(3).map(lambda s: s == np.array(["a", "b", "c"])),
    "isin": lambda: texts().filter(lambda s: np.isin(s, ["a", "b"])),
    "fused": lambda: texts().map(lambda s: (s, s == "a")).batch(2),
}


@pytest.mark.parametrize("case", SILENT)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_what_python_says_nothing_of_is_warned_of_once(case, executor):
    ds = SILENT[case]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(ds.iterator(executor=executor))
    (told,) = [one for one in caught if issubclass(one.category, TextWarning)]
    assert told.filename == __file__
    assert "Text is bytes" in str(told.message)
    assert run(ds)[1] == []
    assert run(SILENT[case]())[1] == []


AT_ONCE = {
    "reduce": lambda: texts().reduce(0, lambda n, s: n + (s == "a")),
    "map_fn": lambda: ps.map_fn(lambda s: s == "a", np.array([b"a", b"b"], object)),
}


@pytest.mark.parametrize("case", AT_ONCE)
def test_what_runs_at_the_call_says_it_too(case):
    with pytest.warns(TextWarning, match="Text is bytes") as told:
        AT_ONCE[case]()
    assert [one.filename for one in told] == [__file__]


QUIET = {
    "bytes": lambda: texts().filter(lambda s: s == b"a"),
    "decoded": lambda: texts().filter(decoded),
    "numbers": lambda: ps.Dataset.range(3).map(lambda x: str(x) == "1"),
    "both": lambda: texts().filter(lambda s: s in ("a", b"a")),
    "an array of bytes": lambda: texts().map(lambda s: s == np.array([b"a", b"b"])),
    "a list that begins with str": lambda: texts().map(lambda s: s == np.array(["a", *[b"b"]], object)),
    "a list with bytes behind": lambda: texts().map(lambda s: s == np.array(["a", *("x", "y"), s], object)),
    "a list that was written to": lambda: texts().map(lambda s: s == np.array(appended(["a"]), object)),
    "decoded beside an array": lambda: texts().map(lambda s: s.decode() == np.array(["a", "b"])),
    "no elements": lambda: texts().take(0).filter(lambda s: s == "a"),
}


@pytest.mark.parametrize("case", QUIET)
def test_what_is_right_is_not_warned_of(case):
    assert run(QUIET[case]())[1] == []


def appended(held):
    held.append(b"b")
    return held


HELD = [["a", "b"], ("a", "b"), {"a", "b"}, {"a": 0, "b": 1}, np.array(["a", "b"]), np.array([["b"], ["a"]], object)]
OPERATIONS = {
    "==": lambda held: lambda s: s == held,
    "!=": lambda held: lambda s: s != held,
    "turned": lambda held: lambda s: held == s,
    "in": lambda held: lambda s: s in held,
    "isin": lambda held: lambda s: np.isin(s, held),
}


@pytest.mark.parametrize("held", HELD, ids=["list", "tuple", "set", "dict", "array", "objects"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_whatever_holds_str_is_unequal_and_whatever_holds_bytes_is_quiet(held, operation):
    _, told = run(texts().map(OPERATIONS[operation](held)))
    assert "is never" in str(told[0].message)
    assert len(told) == 1
    encoded = np.char.encode(held.astype(str)) if isinstance(held, np.ndarray) else type(held)([(b"a", 0), (b"b", 1)])
    assert run(texts().map(OPERATIONS[operation](encoded)))[1] == []


def test_the_message_for_an_array_names_an_array():
    _, (told,) = run(texts().map(lambda s: s == np.array(["a", "b"])))
    assert str(told.message) == (
        "The function compares text with values that are str ('a'), which is never equal. Text is bytes, as in "
        "tf.data: write text == np.array([b'a', …])."
    )


def test_the_message_names_what_to_write():
    _, (told,) = run(texts().filter(lambda s: s == "a"))
    assert str(told.message) == (
        "The function compares text with 'a', which is never equal. Text is bytes, as in tf.data: write text == b'a', "
        "or text.decode() == 'a'."
    )


def test_as_an_error_it_ends_the_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TextWarning)
        with pytest.raises(TextWarning, match="never equal"):
            list(texts().filter(lambda s: s == "a"))


LOUD = {
    "added": (lambda s: s + "_x", TypeError),
    "added to": (lambda s: "x_" + s, TypeError),
    "a key": (lambda s: WORDS[s], KeyError),
    "split": (lambda s: s.split("/"), TypeError),
    "replaced": (lambda s: s.replace("a", "b"), TypeError),
    "startswith": (lambda s: s.startswith("a"), TypeError),
    "a path": (lambda s: Path(s), TypeError),
    "a pattern": (lambda s: re.match("..", s), TypeError),
    "joined": (lambda s: os.path.join("folder", s), TypeError),  # noqa: PTH118
    "joined to a str": (lambda s: ", ".join([s]), TypeError),
    "a method of str": (lambda s: s.format(1), AttributeError),
    "encoded": (lambda s: s.encode(), AttributeError),
    "an index": (lambda s: ["a", "b"].index(s), ValueError),
}


@pytest.mark.parametrize("case", LOUD)
def test_what_python_refuses_says_why(case):
    function, kind = LOUD[case]
    with pytest.raises(kind) as caught:
        list(texts().map(function))
    assert any("Text is bytes here" in note for note in caught.value.__notes__)


HINTS = {
    "key": (
        lambda: ps.Dataset.from_tensor_slices({"image": [1], "label": [2]}).map(lambda row: row["lable"]),
        "The element has the keys 'image', 'label'. Did you mean 'label'?",
    ),
    "key of a part": (
        lambda: ps.Dataset.from_tensor_slices(({"image": [1]}, [2])).map(lambda row, label: row["x"]),
        "The element has the keys 'image'.",
    ),
    "too few arguments": (
        lambda: ps.Dataset.from_tensor_slices(([1], [2])).map(lambda pair: pair),
        "The element is a tuple of 2, and a tuple is unpacked into the arguments: write lambda x, y: …, "
        "or lambda *element: … for all of them as one.",
    ),
    "too many arguments": (
        lambda: ps.Dataset.range(2).map(lambda x, y: x),
        "The element is one value (int64), and the function is given it as its only argument: write lambda x: …",
    ),
    "in a filter": (
        lambda: ps.Dataset.from_tensor_slices({"x": [1]}).filter(lambda x, y: True),
        "The element is one value (dict), and the function is given it as its only argument: write lambda x: …",
    ),
    "read only": (
        lambda: ps.Dataset.range(2).map(written),
        "Elements may be read by others too: copy what you change, as in x = x.copy().",
    ),
}


def written(x):
    array = np.zeros(3)
    array.flags.writeable = False
    array[0] = x
    return array


@pytest.mark.parametrize("case", HINTS)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_an_exception_of_a_function_says_what_is_behind_it(case, executor):
    make, wanted = HINTS[case]
    with pytest.raises(Exception) as caught:
        list(make().iterator(executor=executor))
    assert caught.value.__notes__[1:] == [f"penstock: {wanted}"]


def inner(a):
    return a


@pytest.mark.parametrize(
    "function",
    [lambda x: {}["x"], lambda x: inner(x, x), lambda x: 1 + None, lambda x: None.x, lambda x: int("x")],
)
def test_nothing_is_said_of_what_is_not_known(function):
    with pytest.raises(Exception) as caught:
        list(ps.Dataset.range(2).map(function))
    assert len(caught.value.__notes__) == 1
