"""psnr beside what TensorFlow gave (_parity/make_crops.py), and what it refuses; is_jpeg."""

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import encode_jpeg, encode_png, is_jpeg, psnr

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "crops.npz")
IMAGE = np.full((4, 5, 3), 100, np.uint8)


@pytest.mark.parametrize("n", range(len(STORED["psnr"])))
def test_equal_to_tensorflow(n):
    image = STORED[f"image{n}"]
    largest, *expected = STORED["psnr"][n].tolist()
    result = psnr(image, np.roll(image, 1, 2), largest)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert psnr(image[0], np.roll(image[0], 1, 1), largest) == result[0]


def test_equal_images_are_infinitely_near():
    assert psnr(IMAGE, IMAGE, 255) == np.inf


@pytest.mark.parametrize(
    ("other", "max_val", "text"),
    [
        (IMAGE[:3], 255, r"one shape .* got \(4, 5, 3\) and \(3, 5, 3\)"),
        (IMAGE, 0, "max_val must be a number above 0; got 0"),
        (IMAGE, np.nan, "max_val must be a number above 0"),
        (IMAGE, "255", "max_val must be a number above 0"),
        (IMAGE[0], 255, r"got shape \(5, 3\)"),
    ],
)
def test_what_is_refused(other, max_val, text):
    with pytest.raises(InvalidArgumentError, match=text):
        psnr(IMAGE, other, max_val)


def test_jpegs_are_told_by_their_first_bytes():
    files = [encode_jpeg(IMAGE), encode_png(IMAGE), b"\xff\xd8\xff", b"\xff\xd8", b""]
    assert [bool(is_jpeg(file)) for file in files] == [True, False, True, False, False]
    assert isinstance(is_jpeg(files[0]), np.bool_)
    assert list(ps.Dataset.from_tensor_slices(files).filter(ps.io.is_jpeg)) == [files[0], files[2]]
    with pytest.raises(InvalidTypeError, match="is_jpeg needs the bytes"):
        is_jpeg("cat.jpg")
