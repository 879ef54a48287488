"""sample_distorted_bounding_box: parts keep to their ranges, show enough, and are spread as documented."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.image import sample_distorted_bounding_box, stateless_sample_distorted_bounding_box

BOXES = [[[0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.5, 0.125]]]


def part(size, boxes, seed, **how):
    """(top, left, height, width)."""
    begin, extent, _ = stateless_sample_distorted_bounding_box((*size, 3), boxes, seed, **how)
    assert begin[2] == 0
    assert extent[2] == -1
    return [*begin[:2].tolist(), *extent[:2].tolist()]


@given(
    st.integers(0, 2**62),
    st.integers(1, 90),
    st.integers(1, 90),
    st.sampled_from([(0.75, 1.33), (0.2, 0.5), (2.0, 5.0)]),
    st.sampled_from([(0.05, 1.0), (0.1, 0.3), (0.6, 0.9)]),
)
def test_the_part_is_inside_and_keeps_to_its_ranges(seed, height, width, forms, areas):
    top, left, down, across = part(
        (height, width), BOXES, seed, min_object_covered=0.01, aspect_ratio_range=forms, area_range=areas
    )
    assert 0 <= top < top + down <= height
    assert 0 <= left < left + across <= width
    if (down, across) != (height, width):
        assert areas[0] * height * width <= down * across <= areas[1] * height * width
        assert forms[0] * down - 0.5 <= across <= forms[1] * down + 0.5


def covered(found, boxes, size):
    """The largest share of an object that the part shows, counted pixel by pixel."""
    shown = np.zeros(size, bool)
    top, left, down, across = found
    shown[top : top + down, left : left + across] = True
    shares = [0.0]
    for box in boxes:
        rows = slice(int(box[0] * size[0]), int(box[2] * size[0]))
        columns = slice(int(box[1] * size[1]), int(box[3] * size[1]))
        if shown[rows, columns].size:
            shares.append(shown[rows, columns].mean())
    return max(shares)


@given(st.integers(0, 2**62), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.integers(1, 60), st.integers(1, 60))
def test_one_object_shows_enough_or_all_is_taken(seed, least, height, width):
    found = part((height, width), BOXES, seed, min_object_covered=least)
    assert found == [0, 0, height, width] or covered(found, BOXES[0], (height, width)) >= least


def test_forms_and_places_are_as_documented():
    how = {"min_object_covered": 0, "aspect_ratio_range": (0.5, 2.0), "area_range": (0.1, 0.2)}
    found = np.array([part((400, 400), [[0, 0, 1, 1]], (n, 1), **how) for n in range(2000)])
    tops, lefts, heights, widths = found.T
    forms = widths / heights
    assert abs(forms.mean() - 1.25) < 0.04
    assert abs(forms.std() - 1.5 / 12**0.5) < 0.03
    for place, extent in ((tops, heights), (lefts, widths)):
        assert abs((place / (400 - extent)).mean() - 0.5) < 0.02
    heights_of_squares = heights[abs(forms - 1) < 0.1]
    assert abs(heights_of_squares.mean() - (0.1**0.5 + 0.2**0.5) / 2 * 400) < 4
    assert ((found[:, :2] + found[:, 2:]).max(axis=0) == 400).all()


def test_the_three_results_agree():
    size = np.array([75, 100, 3], np.int32)
    begin, extent, box = stateless_sample_distorted_bounding_box(size, BOXES, 4)
    assert (begin.dtype, extent.dtype, box.dtype) == (np.int32, np.int32, np.float32)
    ends = begin[:2] + extent[:2]
    expected = np.array([*begin[:2], *ends], np.float32) / np.array([75, 100, 75, 100], np.float32)
    np.testing.assert_array_equal(box, expected.reshape(1, 1, 4))
    again = stateless_sample_distorted_bounding_box((75, 100, 3), np.array(BOXES[0], np.float64), 4)
    np.testing.assert_array_equal(again[0], begin)
    assert again[0].dtype == np.int64


def test_without_boxes_the_image_may_be_the_object():
    none = np.zeros((1, 0, 4), np.float32)
    *_, down, across = part((50, 60), none, 3, use_image_if_no_bounding_boxes=True, min_object_covered=0.5)
    assert down * across >= 0.5 * 50 * 60
    for forbidden in (None, False):
        with pytest.raises(InvalidArgumentError, match=r"there are no bounding_boxes, their shape is \(1, 0, 4\)"):
            part((50, 60), none, 3, use_image_if_no_bounding_boxes=forbidden)


def test_what_cannot_be_is_the_whole_image():
    assert part((50, 60), [[0.5, 0.5, 0.5, 0.5]], 1) == [0, 0, 50, 60], "an object without a pixel"
    assert part((50, 60), BOXES, 1, area_range=(1, 1), aspect_ratio_range=(3, 4)) == [0, 0, 50, 60]
    assert part((1, 1), BOXES, 1) == [0, 0, 1, 1]
    assert part((50, 60), BOXES, 1, min_object_covered=1.5) == [0, 0, 50, 60]


def test_seeds_choose():
    found = {tuple(part((75, 100), BOXES, (1, seed))) for seed in range(20)}
    assert len(found) > 15
    for seed in (0, 5):
        first, again = (sample_distorted_bounding_box((75, 100, 3), BOXES, seed) for _ in range(2))
        np.testing.assert_array_equal(first[2], again[2])
        np.testing.assert_array_equal(first[2], stateless_sample_distorted_bounding_box((75, 100, 3), BOXES, seed)[2])


def test_in_a_data_set_each_element_draws_its_own_on_any_number_of_workers():
    def drawn(number):
        return np.concatenate(sample_distorted_bounding_box((60, 80, 3), BOXES)[:2])

    runs = [
        [value.tobytes() for value in ps.Dataset.range(12).map(drawn, num_parallel_calls=calls)] for calls in (None, 2)
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 12


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"image_size": (4, 4)}, "image_size must be 3 integers of at least 1, height, width and channels; got"),
        ({"image_size": (4, 0, 3)}, "image_size must be 3 integers"),
        ({"bounding_boxes": [0, 0, 1, 1]}, r"bounding_boxes must have shape \(1, boxes, 4\) or .*, got \(4,\)"),
        ({"bounding_boxes": [[0, 0, 10, 12]]}, "shares of height and width from 0 to 1, got .*\n.*Divide pixels"),
        ({"bounding_boxes": [[0, 0, np.nan, 1]]}, "shares of height and width"),
        ({"min_object_covered": -0.1}, "min_object_covered must be at least 0, got -0.1"),
        ({"aspect_ratio_range": (0, 1)}, "aspect_ratio_range must be .* above 0; got"),
        ({"aspect_ratio_range": (2, 1)}, "aspect_ratio_range must be .* the smaller first"),
        ({"area_range": (0.5, 1.5)}, "area_range must be .* from 0 to 1"),
        ({"area_range": (0, 1)}, "area_range must be .* above 0"),
        ({"max_attempts": 0}, "max_attempts must be an integer of at least 1, got 0"),
    ],
)
@pytest.mark.parametrize(
    "function", [sample_distorted_bounding_box, stateless_sample_distorted_bounding_box], ids=["keyed", "stateless"]
)
def test_what_it_refuses(function, how, text):
    with pytest.raises(InvalidArgumentError, match=rf"^{function.__name__}: .*{text}"):
        function(**{"image_size": (40, 60, 3), "bounding_boxes": BOXES, "seed": 1, **how})
