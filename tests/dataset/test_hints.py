"""What is said beside Python's own words where a user's function takes an element for something else."""

import functools
import re

import numpy as np
import pytest

import penstock as ps

ARRAYS = ps.Dataset.from_tensor_slices(np.zeros((3, 2)))
PAIRS = ps.Dataset.from_tensor_slices((np.arange(3), np.zeros((3, 2))))
DICTS = ps.Dataset.from_tensor_slices({"image": np.zeros((3, 2)), "label": np.arange(3)})
WINDOWS = ps.Dataset.range(9).window(3)
SLIPS = {
    "times": (WINDOWS, lambda w: w * 2, "A window is a data set of its elements, and no array: .flat_map"),
    "divided": (WINDOWS, lambda w: 2 / w, "A window is a data set"),
    "compared": (WINDOWS, lambda w: w > 2, "A window is a data set"),
    "negative": (WINDOWS, lambda w: -w, "A window is a data set"),
    "numpy": (ARRAYS, lambda x: x.numpy(), r"Values are numpy's already: leave out \.numpy\(\)"),
    "of a scalar": (ps.Dataset.range(3), lambda x: x.numpy(), r"leave out \.numpy\(\)"),
    "as_list": (ARRAYS, lambda x: x.shape.as_list(), r"list\(x\.shape\)"),
    "permute": (ARRAYS, lambda x: x.permute(1, 0), r"x\.transpose"),
    "name": (ARRAYS, lambda x: x["image"], r"The element is an array of shape \(2,\), and no dict"),
    "of a number": (ps.Dataset.range(3), lambda x: x["image"], "The element is one int64, and no dict"),
    "of a tuple": (PAIRS, lambda *e: e["image"], r"a tuple of one int64, an array of shape \(2,\): its parts have no"),
    "attribute": (DICTS, lambda e: e.image, r"The value is a dict: write e\['image'\]"),
    "arguments": (PAIRS, lambda e: e, "a tuple is unpacked into the arguments"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_explained(slip):
    ds, function, said = SLIPS[slip]
    with pytest.raises((TypeError, AttributeError, IndexError)) as caught:
        list(ds.map(function))
    notes = "\n".join(caught.value.__notes__)
    assert re.search(said, notes), notes
    assert notes.count("penstock: ") == 2  # where it was, and the hint


@pytest.mark.parametrize("function", [lambda x: x.nothing, lambda x: "a" * x, lambda x: [1][5] + x])
def test_other_errors_are_left_as_they_are(function):
    with pytest.raises((TypeError, AttributeError, IndexError)) as caught:
        list(ARRAYS.map(function))
    assert len(caught.value.__notes__) == 1


def test_what_is_no_function_is_to_be_given_uncalled():
    with pytest.raises(ps.errors.InvalidTypeError, match="without calling it"):
        ps.Dataset.range(3).map(len("abc"))


def fails_at(number, batch):
    assert number not in batch
    return batch


@pytest.mark.parametrize(
    ("ds", "said"),
    [
        (ps.Dataset.range(100).batch(10), "element 5, a batch of elements 50 to 59"),
        (ps.Dataset.range(100).batch(10).prefetch(2).map(lambda b: b), "element 5, a batch of elements 50 to 59"),
        (ps.Dataset.range(57).batch(10), "element 5, a batch of elements 50 to 56"),
        (ps.Dataset.range(56).batch(5), "element 11, a batch of element 55"),
        (ps.Dataset.range(100).repeat().batch(10), "element 5, a batch of elements 50 to 59"),
        (
            ps.Dataset.range(100).filter(lambda x: x % 5 == 0).batch(4),
            "element 2, a batch of up to 4 elements, from number 8 on",
        ),
        (ps.Dataset.range(100).batch(10).shuffle(1), "element 5"),
        (ps.Dataset.range(100).batch(10).unbatch().map(lambda x: np.array([x])), "element 55"),
    ],
)
@pytest.mark.parametrize("workers", [None, 2])
def test_a_batch_says_which_elements_it_has(ds, said, workers):
    function = functools.partial(fails_at, 55)
    for made in (ds.map(function, num_parallel_calls=workers), ds.filter(lambda b: function(b) is not None)):
        with pytest.raises(AssertionError) as caught:
            list(made)
        assert caught.value.__notes__[0].endswith("; " + said)
