"""Text is bytes: what Python refuses to do with it says why."""

import os.path
import re
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

WORDS = {"a": 0}


def texts():
    return ps.Dataset.from_tensor_slices(["a", "b", "c"])


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
