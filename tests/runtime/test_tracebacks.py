"""Tracebacks of errors that leave an iterator: the user's lines, one after the other."""

import pdb
import subprocess
import sys
import traceback

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.runtime.tracebacks import folded


def inner(x):
    return 1 // int(x)


def function(x):
    return inner(x)


def generated():
    yield from ()
    inner(0)


RANGE = ps.Dataset.range
CASES = {
    "map": (lambda: RANGE(3).map(function), ["function", "inner"]),
    "parallel": (lambda: RANGE(3).map(function, 2).batch(2), ["function", "inner"]),
    "filter": (lambda: RANGE(3).filter(function).prefetch(1), ["function", "inner"]),
    "shuffled": (lambda: RANGE(3).map(function).shuffle(2), ["function", "inner"]),
    "generator": (lambda: ps.Dataset.from_generator(generated), ["generated", "inner"]),
}


def names_of(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_the_users_lines_stand_one_behind_the_other(case, executor):
    make, wanted = CASES[case]
    with pytest.raises(ZeroDivisionError) as caught:
        next(make().iterator(executor=executor))
    assert names_of(caught.value)[1:] == wanted
    assert caught.value.__context__ is None


def test_of_a_worker_process_there_are_the_users_lines_in_a_note():
    with pytest.raises(ZeroDivisionError) as caught:
        next(RANGE(3).map(function, 2).iterator(executor="process"))
    assert names_of(caught.value)[1:] == []
    (told,) = [note for note in caught.value.__notes__ if note.startswith("in a worker process")]
    assert [name for name in ("function", "inner", "transform.py") if name in told] == ["function", "inner"]


def test_an_error_of_penstock_in_a_function_ends_with_the_users_line():
    with pytest.raises(ValueError, match="JPEG") as caught:
        next(iter(RANGE(1).map(lambda x: ps.image.decode_jpeg(b"no picture"))))
    assert names_of(caught.value)[1:] == ["<lambda>"]


def test_of_an_error_of_penstock_about_data_no_frame_is_kept():
    with pytest.raises(ValueError, match=r"stack|shape") as caught:
        next(iter(ps.Dataset.from_generator(lambda: iter([[1], [1, 2]])).batch(2)))
    assert names_of(caught.value)[1:] == []


def test_what_may_be_a_mistake_of_penstock_is_whole(monkeypatch):
    def breaks(*_):
        raise AttributeError("a mistake")

    monkeypatch.setattr("penstock.physical.stages.batch._stacked", breaks)
    with pytest.raises(errors.InternalError) as caught:
        next(iter(RANGE(3).map(lambda x: np.ones(int(x))).batch(2)))
    assert "breaks" in "".join(traceback.format_exception(caught.value))


FUNCTIONS = {
    "a wrong shape": "lambda x: np.zeros(int(x) + 1)",
    "None": "lambda x: None if x > 3 else x",
    "two dtypes": "lambda x: np.float32(x) if x > 2 else np.int64(x)",
    "a wrong number of arguments": "lambda x, y: x",
    "an error of penstock": "lambda x: ps.image.decode_jpeg(b'no picture')",
}
ENDS = {
    "a loop": "for batch in ds: pass",
    "threads": "list(ds.iterator(executor='thread'))",
    "processes": "list(ds.iterator(executor='process'))",
    "a method": "ds.reduce(0, lambda state, x: state)",
    "an index": "[ds[i] for i in range(3)]",
}
PROGRAM = """
import sys, traceback
import numpy as np
import penstock as ps

for function in FUNCTIONS:
    ds = ps.Dataset.range(10).map(eval(function), num_parallel_calls=2).batch(4)
    for end in ENDS:
        try:
            exec(end)
        except Exception as error:
            error.__traceback__ = error.__traceback__.tb_next  # that of `exec`
            print("".join(traceback.format_exception(error)), end="\\0", file=sys.stderr)
ps.Dataset.range(10).batch("10")
"""


def test_what_is_printed_of_an_error_has_at_most_twelve_lines():
    lists = f"FUNCTIONS, ENDS = {list(FUNCTIONS.values())}, {list(ENDS.values())}"
    done = subprocess.run([sys.executable, "-c", lists + PROGRAM], capture_output=True, text=True)
    told = done.stderr.split("\0")
    assert len(told) == len(FUNCTIONS) * len(ENDS) + 1
    assert [text for text in told if len(text.splitlines()) > 12] == []
    assert [text for text in told if ps.__path__[0] in text] == []


def test_errors_that_are_each_others_context_are_folded():
    first, second = errors.InvalidArgumentError("first"), ValueError("second")
    first.__cause__, second.__context__ = second, first
    assert folded(first) is None


def test_all_frames_are_kept_on_request(monkeypatch):
    monkeypatch.setenv("PENSTOCK_FULL_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError) as caught:
        next(iter(RANGE(3).map(function)))
    names = names_of(caught.value)
    assert "_refill" in names
    assert names[-2:] == ["function", "inner"]


def test_the_pass_goes_on_behind_an_error_and_a_debugger_finds_the_line():
    elements = iter(RANGE(-1, 2).map(function))
    assert next(elements) == -1
    with pytest.raises(ZeroDivisionError) as caught:
        next(elements)
    assert next(elements) == 1
    stack, at = pdb.Pdb(nosigint=True, readrc=False).get_stack(None, caught.value.__traceback__)
    assert stack[at][0].f_code.co_name == "inner"
    assert stack[at][0].f_locals == {"x": 0}
