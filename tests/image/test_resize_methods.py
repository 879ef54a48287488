"""Every method of resize: TensorFlow's stored results, known values, and that the kernels are the reference."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.image import ResizeMethod, resize
from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.resizing import reference
from penstock.image.resizing.resize import METHODS
from penstock.image.resizing.spans import area_spans, cubic_spans, filter_spans, resize_spans
from penstock.native.library import Kernels

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "resize.npz")
SIDES = st.integers(1, 40)
FILTERED = ["triangle", "keyscubic", "mitchellcubic", "gaussian", "lanczos3", "lanczos5"]
SUMMED = [name for name in METHODS if name != "nearest"]


@pytest.mark.parametrize("name", [name for name in STORED.files if name.startswith("resize/")])
def test_equals_tensorflow_to_the_last_bit(name):
    _, image, size, method, antialias, kept = name.split("/")
    height, width = map(int, size.split("x"))
    result = resize(STORED[f"in/{image}"], (height, width), method, kept == "1", antialias == "1")
    assert result.dtype == STORED[name].dtype
    if method.startswith("lanczos"):  # another sine: weights differ in their last bit
        np.testing.assert_allclose(result, STORED[name], rtol=0, atol=1e-6 * 255)
    else:
        np.testing.assert_array_equal(result, STORED[name])


def flat(image):
    """As the callers hand images to a kernel, which is compiled for read-only arrays."""
    pixels = image.reshape(-1).view()
    pixels.flags.writeable = False
    return pixels


spans_native = Kernels("penstock.image.resizing.spans_native").loaded()


@st.composite
def images(draw):
    shape = (draw(st.integers(1, 3)), draw(SIDES), draw(SIDES), draw(st.sampled_from([1, 2, 3, 4, 5])))
    values = np.random.default_rng(draw(st.integers(0, 1000))).uniform(-300, 300, shape).astype(np.float32)
    return values if draw(st.booleans()) else (np.abs(values) % 256).astype(np.uint8)


@given(images(), SIDES, SIDES, st.sampled_from([*FILTERED, "cubic"]), st.booleans())
def test_the_kernel_sums_as_the_reference(batch, height, width, name, antialias):
    sizes = (batch.shape[1], height), (batch.shape[2], width)
    y, x = (cubic_spans(*s) if name == "cubic" else filter_spans(*s, name, antialias) for s in sizes)
    dst = np.full((len(batch), height, width, batch.shape[3]), np.nan, np.float32)
    status = spans_native.resize_spans(flat(batch), *batch.shape[1:], *y, *x, dst.reshape(-1))
    assert status == 0
    np.testing.assert_array_equal(dst, reference.resize_spans(batch, y, x))


@given(images(), SIDES, SIDES)
def test_the_kernel_of_areas_sums_as_the_reference(batch, height, width):
    along = summed_along(batch, area_spans(batch.shape[2], width), 2)
    along = summed_along(along, area_spans(batch.shape[1], height), 1)
    rows, columns = np.float32(batch.shape[1]) / np.float32(height), np.float32(batch.shape[2]) / np.float32(width)
    expected = along * np.float32(1.0 / float(rows * columns))
    np.testing.assert_array_equal(resize_spans(batch, height, width, "area"), expected)


def summed_along(images, spans, axis):
    """Sum along an axis in the order of positions; positions beyond the input repeat its edge."""
    total = np.float32(0)
    for k in range(spans.weights.shape[1]):
        weight = np.expand_dims(spans.weights[:, k], tuple(range(1, images.ndim - axis)))
        at = np.minimum(spans.starts + k, images.shape[axis] - 1)
        total = total + weight * images.take(at, axis=axis).astype(np.float32)
    return total


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_rows_wider_than_a_tile(kind):
    image = photo(30, 700)[None].astype(kind)
    y, x = filter_spans(30, 11, "triangle", True), filter_spans(700, 123, "triangle", True)
    dst = np.empty((1, 11, 123, 3), np.float32)
    assert spans_native.resize_spans(flat(image), 30, 700, 3, *y, *x, dst.reshape(-1)) == 0
    np.testing.assert_array_equal(dst, reference.resize_spans(image, y, x))


@given(st.integers(1, 3000), st.integers(1, 300), st.sampled_from(FILTERED), st.booleans())
def test_spans_stay_inside_and_sum_to_one(n_in, n_out, name, antialias):
    for spans in (filter_spans(n_in, n_out, name, antialias), cubic_spans(n_in, n_out)):
        assert (spans.starts >= 0).all()
        assert (spans.starts + spans.weights.shape[1] <= n_in).all()
        np.testing.assert_allclose(spans.weights.sum(axis=1), 1, atol=1e-5)
        assert not spans.weights.flags.writeable


@given(st.integers(1, 3000), st.integers(1, 300))
def test_areas_cover_the_input(n_in, n_out):
    spans = area_spans(n_in, n_out)
    assert (spans.starts >= 0).all()
    assert (spans.starts + spans.weights.shape[1] <= n_in + 1).all()
    np.testing.assert_allclose(spans.weights.sum(axis=1), n_in / n_out, rtol=1e-4)


@pytest.mark.parametrize("method", SUMMED)
@pytest.mark.parametrize("antialias", [False, True])
@given(value=st.integers(0, 255), size=st.tuples(SIDES, SIDES), target=st.tuples(SIDES, SIDES))
def test_an_even_image_stays_as_it_is(method, antialias, value, size, target):
    result = resize(np.full((*size, 3), value, np.uint8), target, method, antialias=antialias)
    np.testing.assert_allclose(result, value, atol=2e-3)


def test_area_is_the_mean_of_the_pixels_covered():
    image = np.arange(24, dtype=np.uint8).reshape(4, 6, 1)
    expected = image.reshape(2, 2, 2, 3).mean(axis=(1, 3))
    np.testing.assert_array_equal(resize(image, (2, 2), "area")[..., 0], expected)


def test_cubic_goes_through_the_pixels_of_a_line():
    row = np.arange(12, dtype=np.float32).reshape(1, 12, 1)
    result = resize(row, (1, 24), "bicubic").ravel()
    np.testing.assert_allclose(result[4:-4], np.arange(4, 20) / 2 - 0.25, atol=1e-5)


def test_antialias_sees_every_pixel_and_plain_cubic_does_not():
    image = np.zeros((1, 40, 1), np.uint8)
    image[0, 2] = 255  # the plain filter reads 3 to 6 around the centre at 4.5
    assert resize(image, (1, 4), "bicubic", antialias=True).any()
    assert not resize(image, (1, 4), "bicubic").any()


@pytest.mark.parametrize("method", METHODS)
def test_layout_and_batch_change_no_bit(method):
    images = np.stack([photo(13, 9, seed=s) for s in range(3)])
    expected = [resize(image, (5, 20), method, antialias=True) for image in images]
    np.testing.assert_array_equal(resize(images, (5, 20), method, antialias=True), expected)
    frozen = images[:, :, ::-1]
    frozen.flags.writeable = False
    mirrored = resize(frozen, (5, 20), method, antialias=True)
    np.testing.assert_array_equal(mirrored, resize(frozen.copy(), (5, 20), method, antialias=True))


@pytest.mark.parametrize("method", SUMMED)
def test_a_batch_of_none_stays_empty(method):
    assert resize(np.zeros((0, 4, 4, 3), np.uint8), (2, 2), method).shape == (0, 2, 2, 3)


def test_names_of_methods():
    names = {value for name, value in vars(ResizeMethod).items() if name.isupper()}
    assert names == set(METHODS)


@pytest.mark.parametrize("which", ["y", "x"])
@pytest.mark.parametrize("start", [-1, 4])
def test_a_span_outside_the_source_is_refused_unwritten(start, which):
    spans = {axis: area_spans(5, 3) for axis in "yx"}
    wrong = spans[which].starts.copy()
    wrong[1] = start
    spans[which] = spans[which]._replace(starts=wrong)
    dst = np.full(3 * 3 * 3, 7, np.float32)
    args = (flat(np.zeros(75, np.uint8)), 5, 5, 3, *spans["y"], *spans["x"], dst)
    assert spans_native.resize_spans(*args) == BAD_ARGUMENT
    assert (dst == 7).all()


@pytest.mark.parametrize(("height", "width"), [(5, 6), (0, 5), (-1, 5), (1 << 40, 1 << 40)])
def test_sizes_that_do_not_fit_the_source_are_refused(height, width):
    spans = filter_spans(5, 4, "triangle", True)
    dst = np.full(4 * 4 * 3, 7, np.float32)
    args = (flat(np.zeros(75, np.uint8)), height, width, 3, *spans, *spans, dst)
    assert spans_native.resize_spans(*args) == BAD_ARGUMENT
    assert (dst == 7).all()
