"""resize: known values of half-pixel centres, shapes, and the texts of its errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import ResizeMethod, resize
from penstock.image.resizing.reference import bilinear_taps, resize_bilinear
from penstock.image.resizing.resize import METHODS, resize_shape


def row(*values, dtype=np.uint8):
    return np.array(values, dtype).reshape(1, -1, 1)


@pytest.mark.parametrize(
    ("given_row", "width", "expected"),
    [
        ((0, 100), 4, [0, 25, 75, 100]),  # centres at -0.25, 0.25, 0.75, 1.25
        ((0, 100, 200, 40), 2, [50, 120]),  # centres at 0.5 and 2.5
        ((10, 20, 60), 2, [12.5, 50]),  # centres at 0.25 and 1.75
        ((10, 20, 60), 1, [20]),
        ((7,), 3, [7, 7, 7]),
    ],
)
def test_bilinear_known_values(given_row, width, expected):
    across = resize(row(*given_row), (1, width))
    down = resize(row(*given_row).transpose(1, 0, 2), (width, 1))
    assert across.dtype == np.float32
    assert across.ravel().tolist() == expected
    assert down.ravel().tolist() == expected


@pytest.mark.parametrize(
    ("count", "width", "expected"),
    [
        (2, 4, [0, 0, 1, 1]),
        (5, 2, [1, 3]),  # floor(0.5 * 2.5), floor(1.5 * 2.5)
        (3, 5, [0, 0, 1, 2, 2]),  # floor(0.3), floor(0.9), floor(1.5), floor(2.1), floor(2.7)
        (4, 1, [2]),
    ],
)
def test_nearest_known_values(count, width, expected):
    result = resize(row(*range(count), dtype=np.int16), (1, width), method=ResizeMethod.NEAREST_NEIGHBOR)
    assert result.dtype == np.int16
    assert result.ravel().tolist() == expected


def test_both_axes_at_once():
    corners = np.array([[0, 40], [80, 120]], np.float32)[..., None]
    expected = [[0, 10, 30, 40], [20, 30, 50, 60], [60, 70, 90, 100], [80, 90, 110, 120]]
    assert resize(corners, (4, 4))[..., 0].tolist() == expected


@pytest.mark.parametrize(("height", "size"), [(3, (5, 4)), (40, (7, 9)), (9, (1, 20)), (1, (3, 1))])
def test_the_reference_is_the_formula_pixel_by_pixel(height, size):
    """Also where some rows of the picture lie between no two that are looked at (40 to 7)."""
    images = np.stack([photo(height, 11, seed=seed) for seed in (1, 2)])
    y, x = bilinear_taps(height, size[0]), bilinear_taps(11, size[1])

    def along(row, j):
        left, right = (row[at[j]].astype(np.float32) for at in (x.low, x.high))
        return left + (right - left) * x.weight[j]

    result = resize_bilinear(images, y, x)
    for n, i, j in np.ndindex(2, *size):
        top, bottom = (along(images[n, at[i]], j) for at in (y.low, y.high))
        pixel = top + (bottom - top) * y.weight[i]
        assert pixel.tobytes() == result[n, i, j].tobytes()


def test_antialias_known_values():
    """6 to 2: triangles of radius 3 around 1.5 and 4.5, weights (2 3 2 1) / 8 and (1 2 3 2) / 8."""
    result = resize(row(8, 0, 0, 0, 0, 16), (1, 2), antialias=True)
    np.testing.assert_allclose(result.ravel(), [2, 4], rtol=1e-6)


def test_antialias_changes_nothing_when_enlarging():
    image = photo(6, 5)
    np.testing.assert_allclose(resize(image, (12, 13), antialias=True), resize(image, (12, 13)), atol=1e-3)


def test_bilinear_is_float32_at_the_same_size_too():
    image = photo(6, 5)
    same = resize(image, (6, 5))
    assert same.dtype == np.float32
    np.testing.assert_array_equal(same, image)


@given(
    st.sampled_from([np.int8, np.uint16, np.int64, np.float16, np.float64, np.bool_]),
    st.sampled_from(METHODS),
    st.booleans(),
)
def test_any_number_type_and_batches(dtype, method, antialias):
    batch = np.stack([photo(7, 9, seed=s) for s in range(3)]).astype(dtype)
    result = resize(batch, (5, 4), method, antialias=antialias)
    assert result.shape == (3, 5, 4, 3)
    assert result.dtype == (dtype if method == "nearest" else np.float32)
    for image, small in zip(batch, result, strict=True):
        np.testing.assert_array_equal(small, resize(image, (5, 4), method, antialias=antialias))


def test_views_that_are_not_contiguous():
    image = photo(9, 8)
    turned = image.transpose(1, 0, 2)[::-1]
    np.testing.assert_array_equal(resize(turned, (4, 5)), resize(turned.copy(), (4, 5)))


def test_an_empty_batch_stays_empty():
    assert resize(np.zeros((0, 4, 4, 3), np.uint8), (2, 2)).shape == (0, 2, 2, 3)


@pytest.mark.parametrize(
    ("in_shape", "size", "expected"),
    [
        ((100, 200, 3), (50, 50), (25, 50, 3)),
        ((200, 100, 3), (50, 50), (50, 25, 3)),
        ((375, 500, 3), (224, 224), (168, 224, 3)),
        ((3, 5, 1), (1, 1), (1, 1, 1)),
        ((2, 10, 20, 3), (40, 40), (2, 20, 40, 3)),
    ],
)
def test_preserve_aspect_ratio(in_shape, size, expected):
    assert resize_shape(in_shape, size, preserve_aspect_ratio=True) == expected
    assert resize(np.zeros(in_shape, np.uint8), size, preserve_aspect_ratio=True).shape == expected


def test_shape_rule_with_unknown_dimensions():
    assert resize_shape((None, None, None, 3), (8, 9)) == (None, 8, 9, 3)
    assert resize_shape((None, 10, 3), (8, 9), preserve_aspect_ratio=True) == (None, None, 3)


@pytest.mark.parametrize(
    ("image", "size", "options", "kind", "text"),
    [
        (
            np.zeros((4, 4)),
            (2, 2),
            {},
            InvalidArgumentError,
            r"resize needs shape \(height, width, channels\).*\(4, 4\)",
        ),
        (np.zeros((4, 4)), (2, 2), {}, InvalidArgumentError, r"Add the channel axis: image\[\.\.\., None\]"),
        (np.zeros((4, 4, 3)), 2, {}, InvalidArgumentError, r"size must be \(height, width\).*got 2"),
        (np.zeros((4, 4, 3)), (2, 0), {}, InvalidArgumentError, r"at least 1; got \(2, 0\)"),
        (np.zeros((4, 4, 3)), (2.5, 2), {}, InvalidArgumentError, "two integers"),
        (
            np.zeros((4, 4, 3)),
            (2, 2),
            {"method": "cubic"},
            InvalidArgumentError,
            "'bilinear', 'nearest', 'bicubic', .*; got 'cubic'",
        ),
        (
            np.zeros((4, 4, 3)),
            (2, 2),
            {"method": np.array(["area", "bicubic"])},
            InvalidArgumentError,
            r"method must be one of 'bilinear', .*; got array\(\['area', 'bicubic'\]",
        ),
        (np.zeros((0, 4, 3)), (2, 2), {}, InvalidArgumentError, r"at least one pixel.*\(0, 4, 3\)"),
        (b"\xff\xd8", (2, 2), {}, InvalidTypeError, "Decode it first"),
    ],
)
def test_errors_teach(image, size, options, kind, text):
    with pytest.raises(kind, match=text) as caught:
        resize(image, size, **options)
    assert isinstance(caught.value, (ValueError, TypeError))
