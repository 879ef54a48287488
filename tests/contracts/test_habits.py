"""Names and arguments from TensorFlow, PyTorch and pandas: an error says what to write, and what it says is there."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidTypeError, UnknownNameError
from penstock.habits.tables import ARGUMENTS, IMAGE, IO, METHODS, NAMES, REQUIRED

TABLES = {
    "penstock": (ps, NAMES),
    "penstock.io": (ps.io, IO),
    "penstock.image": (ps.image, IMAGE),
    "Dataset": (ps.Dataset, METHODS),
}
ROWS = [(owner, name) for owner, (_, table) in TABLES.items() for name in table]


@pytest.mark.parametrize(("owner", "name"), ROWS)
def test_a_name_from_elsewhere_says_what_to_write(owner, name):
    place, table = TABLES[owner]
    with pytest.raises(AttributeError) as caught:
        getattr(place, name)
    assert str(caught.value) == f"{owner} has no {name!r}.\n  {table[name]}"


@pytest.mark.parametrize("name", METHODS)
def test_so_do_data_sets(name):
    with pytest.raises(UnknownNameError, match=re.escape(METHODS[name])):
        getattr(ps.Dataset.range(3), name)


TEXTS = [*(text for _, table in TABLES.values() for text in table.values()), *ARGUMENTS.values(), *REQUIRED.values()]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_said_is_there(text):
    for path in re.findall(r"\bps((?:\.\w+)+)", text):
        found = ps
        for name in path.strip(".").split("."):
            found = getattr(found, name)
    for name in re.findall(r"\b(?:ds|first)\.(\w+)", text):
        assert hasattr(ps.Dataset, name), name
    for name in re.findall(r"\bnp((?:\.\w+)+)", text):
        found = np
        for part in name.strip(".").split("."):
            found = getattr(found, part)


def test_what_is_near_is_named():
    with pytest.raises(AttributeError, match="Did you mean Dataset"):
        ps.Datset  # noqa: B018
    with pytest.raises(AttributeError, match="Did you mean batch"):
        ps.Dataset.range(3).btch  # noqa: B018


def test_what_nobody_knows_is_still_missing():
    for place in (ps, ps.io, ps.image, ps.Dataset, ps.Dataset.range(1)):
        assert not hasattr(place, "xyzzy")
        assert not hasattr(place, "__dlpack__")
        assert getattr(place, "cast_away_xyzzy", None) is None


def test_names_listed_are_public():
    for place in (ps, ps.io, ps.image, ps.experimental):
        names = [name for name in dir(place) if not name.startswith("_")]
        assert set(names) == set(place.__all__)
        assert all(hasattr(place, name) for name in names)


def test_the_catalog_is_there_without_another_import():
    code = """
import sys
import penstock as ps
assert "penstock.catalog" not in sys.modules, "imported at once"
assert "shapes" in ps.catalog.list_builders()
assert ps.profiler.__name__ == "penstock.profiler"
from penstock import catalog
assert catalog is ps.catalog
"""
    subprocess.run([sys.executable, "-c", code], check=True)


RANGE = ps.Dataset.range(4)
CALLS = {
    "num_workers": (lambda: RANGE.map(len, num_workers=4), "Write num_parallel_calls=ps.AUTOTUNE, or a number."),
    "drop_last": (lambda: RANGE.batch(2, drop_last=True), "Write drop_remainder=True."),
    "collate_fn": (lambda: RANGE.batch(2, collate_fn=len), "Write .batch(n).map(function), or padded_batch"),
    "func": (lambda: RANGE.map(func=len), "Write the function as the first argument."),
    "a slip": (lambda: RANGE.map(len, num_parallel_call=4), "Did you mean num_parallel_calls?"),
    "static": (lambda: ps.Dataset.from_tensor_slices([1], dtype=int), "Write .map(lambda x: x.astype(dtype)) after."),
    "shuffle()": (lambda: RANGE.shuffle(), "Write shuffle(1000), the number of elements to pick from"),
    "prefetch()": (lambda: RANGE.prefetch(), "Write prefetch(ps.AUTOTUNE)"),
}


@pytest.mark.parametrize("case", CALLS)
def test_an_argument_from_elsewhere_says_what_to_write(case):
    call, wanted = CALLS[case]
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, InvalidTypeError)
    assert wanted in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_type_error_from_inside_a_call_stays_as_it_is():
    def broken(dataset):
        raise TypeError("got an unexpected keyword argument 'num_workers'")

    with pytest.raises(TypeError) as caught:
        RANGE.apply(broken)
    assert not isinstance(caught.value, InvalidTypeError)


def test_arguments_of_the_table_are_no_arguments_of_the_method():
    """Where a method has such an argument nothing is said; the table is for those that do not."""
    methods = [
        (name, method) for name, method in inspect.getmembers(ps.Dataset, callable) if not name.endswith("to_torch")
    ]
    parameters = {name for _, method in methods for name in _parameters(method)}
    assert not parameters & {"num_workers", "drop_last", "collate_fn", "pin_memory", "prefetch_factor"}


def _parameters(method):
    try:
        return inspect.signature(method).parameters
    except ValueError:
        return ()


def test_methods_keep_their_signature_and_documentation():
    assert list(inspect.signature(ps.Dataset.map).parameters)[:3] == ["self", "map_func", "num_parallel_calls"]
    assert ps.Dataset.map.__doc__.startswith("Apply a function to every element.")
    assert ps.Dataset.map.__qualname__ == "Transform.map"


def test_a_generator_object_is_refused_with_the_function_to_pass():
    def count():
        yield 1

    with pytest.raises(InvalidTypeError, match=r"pass the function itself: from_generator\(count\)"):
        ps.Dataset.from_generator(count())
    with pytest.raises(InvalidTypeError, match=r"from_generator\(lambda: values\)"):
        ps.Dataset.from_generator([1, 2])
