"""Tracebacks of errors that leave an iterator: the user's lines, one behind the other."""

import pdb
import traceback

import pytest

import penstock as ps


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
    assert names_of(caught.value)[1:] == ["__next__", *wanted]
    assert caught.value.__context__ is None


def test_of_a_worker_process_there_are_the_users_lines_in_a_note():
    with pytest.raises(ZeroDivisionError) as caught:
        next(RANGE(3).map(function, 2).iterator(executor="process"))
    assert names_of(caught.value)[1:] == ["__next__"]
    (told,) = [note for note in caught.value.__notes__ if note.startswith("in a worker process")]
    assert [name for name in ("function", "inner", "transform.py") if name in told] == ["function", "inner"]


def test_what_fails_inside_penstock_keeps_its_frames():
    with pytest.raises(ValueError, match="JPEG") as caught:
        next(iter(RANGE(1).map(lambda x: ps.image.decode_jpeg(b"no picture"))))
    names = names_of(caught.value)
    assert names[1:3] == ["__next__", "<lambda>"]
    assert "decode_jpeg" in names[3:]


def test_what_no_line_of_the_users_had_a_part_in_is_whole():
    with pytest.raises(ValueError, match=r"stack|shape") as caught:
        next(iter(ps.Dataset.from_generator(lambda: iter([[1], [1, 2]])).batch(2)))
    assert len(names_of(caught.value)) > 3


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
