"""crop_and_resize beside what TensorFlow gave (_parity/make_crops.py), and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import crop_and_resize

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "crops.npz")
IMAGE = np.arange(36, dtype=np.uint8).reshape(1, 3, 4, 3)
WHOLE = [[0.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize("n", range(len(STORED["sizes"])))
def test_equal_to_tensorflow(n):
    image, boxes, indices = (STORED[f"{name}{n}"] for name in ("image", "boxes", "indices"))
    size, method = STORED["sizes"][n].tolist(), str(STORED["methods"][n])
    result = crop_and_resize(image, boxes, indices, size, method, float(STORED["outside"]))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, STORED[f"result{n}"], rtol=1e-5, atol=1e-5)


def test_the_whole_image_keeps_its_corners():
    result = crop_and_resize(IMAGE, WHOLE, [0], (7, 9))
    np.testing.assert_array_equal(result[0][np.ix_([0, -1], [0, -1])], IMAGE[0][np.ix_([0, -1], [0, -1])])
    np.testing.assert_array_equal(crop_and_resize(IMAGE, WHOLE, [0], (3, 4)), IMAGE)


def test_a_box_turned_round_mirrors():
    result = crop_and_resize(IMAGE, [[0, 1, 1, 0]], [0], (3, 4))
    np.testing.assert_array_equal(result[0], IMAGE[0, :, ::-1])


def test_no_boxes():
    assert crop_and_resize(IMAGE, np.zeros((0, 4)), np.zeros(0, np.int32), (5, 6)).shape == (0, 5, 6, 3)


def test_in_a_map():
    def part(image):
        return crop_and_resize(image[None], [[0.0, 0.5, 1.0, 1.0]], [0], (2, 2), "nearest")[0]

    found = list(ps.Dataset.from_tensor_slices(np.stack([IMAGE[0]] * 3)).map(part))
    assert len(found) == 3
    np.testing.assert_array_equal(found[2], part(IMAGE[0]))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"image": IMAGE[0]}, r"crop_and_resize needs shape .* got shape \(3, 4, 3\)"),
        ({"image": IMAGE[:, :0]}, "needs at least one pixel"),
        ({"boxes": [0, 0, 1, 1]}, r"boxes must be finite \(B, 4\)"),
        ({"boxes": [[0, 0, np.nan, 1]]}, "boxes must be finite"),
        ({"boxes": [[0, 0, 1]]}, "boxes must be finite"),
        ({"box_indices": [0, 0]}, "box_indices must be 1 integers"),
        ({"box_indices": [0.5]}, "box_indices must be 1 integers"),
        ({"box_indices": [1]}, "box_indices go from 1 to 1, but there are 1 images"),
        ({"box_indices": [-1]}, "box_indices go from -1"),
        ({"crop_size": (0, 4)}, "crop_size must be"),
        ({"crop_size": (2.5, 4)}, "crop_size must be"),
        ({"crop_size": 4}, "crop_size must be"),
        ({"method": "area"}, "method must be one of 'bilinear', 'nearest'"),
    ],
)
def test_what_is_refused(arguments, text):
    good = {"image": IMAGE, "boxes": WHOLE, "box_indices": [0], "crop_size": (2, 2)}
    with pytest.raises(InvalidArgumentError, match=text):
        crop_and_resize(**{**good, **arguments})


def test_no_image():
    with pytest.raises(InvalidTypeError, match="crop_and_resize needs an image of numbers"):
        crop_and_resize("cat", WHOLE, [0], (2, 2))
