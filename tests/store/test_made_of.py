"""The description of an entry's content, and of the difference between two entries."""

import functools

import numpy as np
import pytest

import penstock as ps
from penstock.store.content_key.difference import differences
from penstock.store.content_key.made_of import MadeOf, made_of

RANGE = ps.Dataset.range
SIZE = 224
TABLE = np.zeros((2, 3), np.uint8)
API_TOKEN = "hunter2"


def inner(x):
    return x * SIZE


def decode(x, gain=2):
    return inner(x) + TABLE.sum() + gain + len(API_TOKEN)


def other(x):
    return x


def line_of(function):
    return f"test_made_of.py:{function.__code__.co_firstlineno}"


def made(dataset, **settings):
    return made_of(dataset._plan, **settings)


def test_parts_are_named_by_their_place_and_told_in_words():
    found = {part.path: part.text for part in made(RANGE(4).map(other).map(decode).batch(2), seed=7).parts}
    assert found["source#1"].startswith("range(0, 4, 1), test_made_of.py:")
    assert found["map#1 › function"] == f"function other, {line_of(other)}"
    assert found["map#2 › function"] == f"function decode, {line_of(decode)}"
    assert found["map#2 › function › gain"] == "default gain = 2"
    assert found["map#2 › function › inner"] == f"function inner, {line_of(inner)}"
    assert found["map#2 › function › inner › SIZE"] == "global SIZE = 224"
    assert found["map#2 › function › TABLE"] == "global TABLE = array (2, 3) uint8"
    assert found["batch#1 › batch_size"] == "batch_size = 2"
    assert found["seed"] == "seed = 7"
    assert found["Python"].startswith("Python 3.")


def test_no_secret_stands_in_the_text():
    parts = made(RANGE(4).map(decode)).parts
    assert "global API_TOKEN, not shown" in [part.text for part in parts]
    assert "hunter2" not in repr(parts)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x, "lambda, test_made_of.py:"),
        (functools.partial(decode, gain=3), "function decode, test_made_of.py:"),
        (np.sqrt, "function sqrt"),
        (ps.image.rgb_to_grayscale, "function rgb_to_grayscale"),
    ],
)
def test_functions_of_all_kinds_have_a_name(function, text):
    found = {part.path: part.text for part in made(RANGE(4).map(function)).parts}
    assert found["map#1 › function"].startswith(text)


def test_settings_come_in_later():
    assert made(RANGE(4)).under(seed=1).key == made(RANGE(4), seed=1).key != made(RANGE(4), seed=2).key


def test_parts_are_plain_text():
    parts = made(RANGE(4).map(decode)).parts
    assert all(type(text) is str for part in parts for text in part)
    assert len({part.path for part in parts}) == len(parts)


def test_a_function_that_calls_itself_ends():
    def factorial(x):
        return 1 if x == 0 else x * factorial(x - 1)

    assert sum(part.text.startswith("function factorial") for part in made(RANGE(4).map(factorial)).parts) == 2


def changed(one, two):
    return [text.replace("test_made_of.py", "train.py") for text in differences(two, one)]


def test_nothing_differs_from_itself():
    assert changed(made(RANGE(4).map(decode)), made(RANGE(4).map(decode))) == []


def test_a_parameter_and_a_setting_are_told_with_what_they_were():
    one, two = made(RANGE(4).batch(2), seed=1), made(RANGE(4).batch(3), seed=2)
    assert changed(one, two) == ["batch_size = 3 (batch#1), was 2", "seed = 2, was 1"]


def test_settings_that_come_and_go_are_told_apart():
    one, two = made(RANGE(4), seed=1), made(RANGE(4), deterministic=True)
    assert sorted(changed(one, two)) == ["deterministic = True is new", "seed = 1 is gone"]


def test_a_global_is_told_by_its_name(monkeypatch):
    one = made(RANGE(4).map(decode))
    monkeypatch.setitem(globals(), "SIZE", 256)
    assert changed(one, made(RANGE(4).map(decode))) == ["global SIZE = 256 (map#1), was 224"]


def test_a_function_that_was_edited_is_told_alone(monkeypatch):
    one = made(RANGE(4).map(decode))
    line = line_of(inner).replace("test_made_of", "train")
    monkeypatch.setattr(inner, "__code__", (lambda x: x + len([1])).__code__)
    two = made(RANGE(4).map(decode))
    (told,) = changed(one, two)
    assert told.startswith("function inner, train.py:")
    assert told.endswith(" (map#1) changed")
    assert line not in told


def test_steps_that_come_go_and_move_are_told():
    plain = RANGE(8).map(other).skip(2)
    (new,) = changed(made(plain), made(plain.batch(2)))
    assert new.startswith("batch(2), train.py:")
    assert new.endswith(" is new")
    (gone,) = changed(made(plain), made(RANGE(8).map(other)))
    assert gone.startswith("skip(2), train.py:")
    assert gone.endswith(" is gone")
    inserted = changed(made(RANGE(8).map(decode)), made(RANGE(8).map(other).map(decode)))
    assert [text.partition(",")[0] for text in inserted] == ["map(other)"]
    (moved,) = changed(made(plain), made(RANGE(8).skip(2).map(other)))
    assert moved.endswith(" moved")


def test_files_that_come_go_and_change_are_counted(tmp_path):
    def reading(**texts):
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return made(ps.TextLineDataset(sorted(map(str, tmp_path.iterdir()))))

    before = reading(a="one", b="two")
    told = changed(before, reading(a="other", c="three", d="four"))
    assert told == [
        f"2 files more: the first {tmp_path / 'c'}",
        f"1 file fewer: {tmp_path / 'b'}",
        f"1 file changed: {tmp_path / 'a'}",
    ]


def test_files_in_another_order_differ(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    (told,) = changed(made(ps.TextLineDataset(names)), made(ps.TextLineDataset(names[::-1])))
    assert told == f"2 files, the first {tmp_path / 'b'} (source#1), in another order"


def test_very_many_files_are_not_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.store.content_key.digest._MOST_LISTED", 1)
    for name in "ab":
        (tmp_path / name).write_text(name)
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    one = made(ps.TextLineDataset(names))
    assert one.sources == ()
    (tmp_path / "b").write_text("changed")
    (told,) = changed(one, made(ps.TextLineDataset(names)))
    assert told == f"2 files, the first {tmp_path / 'a'} (source#1), some of which changed"


def test_arrays_that_changed_are_told_by_their_shape():
    one, two = (made(ps.Dataset.from_tensor_slices(np.full((2, 3), value))) for value in (1, 2))
    assert changed(one, two) == ["columns = array (2, 3) int64 (source#1) changed"]


def test_python_comes_first():
    made_here = made(RANGE(4).map(other), seed=1)
    other_python = tuple(
        part._replace(text="Python 3.0", digest="0") if part.path == "Python" else part for part in made_here.parts
    )
    told = changed(MadeOf(other_python), made(RANGE(4).map(other), seed=2))
    assert told[0].startswith("Python 3.")
    assert told[0].endswith(", was Python 3.0")
    assert told[1] == "seed = 2, was 1"
