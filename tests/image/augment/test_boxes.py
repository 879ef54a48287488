"""draw_bounding_boxes: what TensorFlow gave for stored calls, to the last bit; and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import draw_bounding_boxes

STORED = np.load(Path(__file__).parents[2] / "data" / "tensorflow" / "boxes.npz")
CASES = sorted(name.removeprefix("images/") for name in STORED.files if name.startswith("images/"))


@pytest.mark.parametrize("case", CASES)
def test_equal_bits(case):
    images, boxes, colors, drawn = (STORED[f"{part}/{case}"] for part in ("images", "boxes", "colors", "drawn"))
    found = draw_bounding_boxes(images, boxes, colors)
    np.testing.assert_array_equal(found, drawn)
    assert found.dtype == drawn.dtype
    one_by_one = [draw_bounding_boxes(image, own, colors) for image, own in zip(images, boxes, strict=True)]
    np.testing.assert_array_equal(one_by_one, drawn)


def test_what_is_stored_has_drawn_something():
    changed = [(STORED[f"images/{case}"] != STORED[f"drawn/{case}"]).any() for case in CASES]
    assert sum(changed) >= len(CASES) - 1
    assert str(STORED["version"]).startswith("2.")


def test_integer_images_have_colours_of_their_range():
    found = draw_bounding_boxes(np.zeros((2, 2, 3), np.uint8), [[0, 0, 0, 0], [1, 1, 1, 1]])
    assert found[0, 0].tolist() == [255, 255, 0]
    assert found[1, 1].tolist() == [0, 0, 255]
    assert draw_bounding_boxes(np.zeros((2, 2, 1), np.uint8), [[0, 0, 0, 0]], [[7, 8]])[0, 0].tolist() == [7]


def test_the_image_stays_and_may_be_read_only_and_of_any_layout():
    image = np.zeros((6, 5, 3), np.float32).transpose(1, 0, 2)
    image.flags.writeable = False
    found = draw_bounding_boxes(image, [[0, 0, 1, 1]])
    assert not image.any()
    assert found[0].any()


def test_in_a_data_set_it_runs_per_element():
    ds = ps.Dataset.from_tensors(np.zeros((4, 4, 3), np.float32)).map(lambda x: draw_bounding_boxes(x, [[0, 0, 1, 1]]))
    assert next(iter(ds))[0, :, 0].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("shape", "boxes", "colors", "text"),
    [
        ((4, 4, 2), [[0, 0, 1, 1]], None, r"needs 1, 3 or 4 channels, got shape \(4, 4, 2\)"),
        ((4, 4, 3), [0, 0, 1, 1], None, r"boxes must have shape \(boxes, 4\) for an image of shape"),
        ((2, 4, 4, 3), [[[0, 0, 1, 1]]], None, r"boxes must have shape \(2, boxes, 4\) .* got \(1, 1, 4\)"),
        ((4, 4, 3), [[0, 0, 1]], None, "boxes must have shape"),
        ((4, 4, 3), [[0, 0, 1, np.nan]], None, "boxes must be finite numbers"),
        ((4, 4, 3), [[0, 0, 1, 1]], [[1, 1]], r"colors must have shape \(colors, 3 or more\)"),
        ((4, 4, 3), [[0, 0, 1, 1]], [[1, 1, 256]], "colors must fit uint8"),
        ((4, 4), [[0, 0, 1, 1]], None, "draw_bounding_boxes needs shape"),
    ],
)
def test_what_it_refuses(shape, boxes, colors, text):
    with pytest.raises(InvalidArgumentError, match=text):
        draw_bounding_boxes(np.zeros(shape, np.uint8), boxes, colors)


def test_names_are_no_images():
    with pytest.raises(InvalidTypeError, match="draw_bounding_boxes needs an image of numbers"):
        draw_bounding_boxes("a.png", [[0, 0, 1, 1]])
