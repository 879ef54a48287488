"""transform, rotate, translate and shear: the kernel gives the reference's bits, and errors say what is wrong."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.geometry import moves as transform_kernel
from penstock.image.geometry import transform_reference as reference
from penstock.image.geometry import window as window_kernel
from penstock.image.geometry.moves import _NATIVE, ready
from penstock.image.geometry.projective import FILL_MODES, INTERPOLATIONS, transform_batch
from penstock.image.kernels import BAD_ARGUMENT

SIDES = st.integers(1, 20)
NUMBERS = st.floats(-3, 3, width=32) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e9, -1e20, 3e38])
HOW = {"interpolation": st.sampled_from(INTERPOLATIONS), "fill_mode": st.sampled_from(FILL_MODES)}


@st.composite
def batches(draw):
    shape = (draw(st.integers(1, 3)), draw(SIDES), draw(SIDES), draw(st.sampled_from([1, 2, 3, 4, 5])))
    values = np.random.default_rng(draw(st.integers(0, 99))).uniform(0, 256, shape)
    images = values.astype(draw(st.sampled_from([np.uint8, np.float32])))
    if draw(st.booleans()):
        images = np.repeat(images, 2, axis=1)[:, ::2]  # not contiguous
    images.flags.writeable = draw(st.booleans())
    return images


@st.composite
def numbers(draw, count):
    rows = draw(st.sampled_from([1, count]))
    found = np.array([[draw(NUMBERS) for _ in range(6)] for _ in range(rows)], np.float32)
    tilt = [[draw(st.sampled_from([0.0, 0.0, 0.1, -0.5, -1.0])) for _ in range(2)] for _ in range(rows)]
    return np.concatenate([found, np.array(tilt, np.float32)], axis=1)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    assert ready()


@given(st.data(), SIDES, SIDES)
def test_native_equals_reference(data, height, width):
    images = data.draw(batches())
    transforms = data.draw(numbers(len(images)))
    fill = images.dtype.type(data.draw(st.sampled_from([0, 1, 128, 255])))
    if data.draw(st.booleans()):
        fill = fill - np.arange(images.shape[-1]).astype(images.dtype)  # one for each channel
    mode, bilinear = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    how = reference.ProjectiveTransform(transforms, mode, bilinear, fill)
    found = transform_batch(images, how, (height, width))
    expected = reference.transform(images, how, (height, width))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))


@given(images=batches(), angle=st.floats(-10, 10), **HOW)
def test_a_batch_is_its_images_one_by_one(images, angle, interpolation, fill_mode):
    angles = angle + np.arange(len(images))
    found = ps.image.rotate(images, angles, interpolation, fill_mode, 7.0)
    one_by_one = [ps.image.rotate(*pair, interpolation, fill_mode, 7.0) for pair in zip(images, angles, strict=True)]
    np.testing.assert_array_equal(found, one_by_one)
    same = ps.image.rotate(images, angle, interpolation, fill_mode, 7.0)
    np.testing.assert_array_equal(same[-1], ps.image.rotate(images[-1], angle, interpolation, fill_mode, 7.0))


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int32, np.int64, np.float16, np.float64, np.float32, np.uint8]
)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_nothing_to_do_leaves_the_image(dtype, interpolation):
    image = np.arange(5 * 7 * 3).reshape(5, 7, 3).astype(dtype)
    for result in (
        ps.image.rotate(image, 0.0, interpolation),
        ps.image.translate(image, (0, 0), interpolation),
        ps.image.shear_x(image, 0, interpolation),
        ps.image.shear_y(image, 0, interpolation),
        ps.image.transform(image, [1, 0, 0, 0, 1, 0, 0, 0], interpolation),
    ):
        np.testing.assert_array_equal(result, image)
        assert result.dtype == dtype


@pytest.mark.parametrize("fill_mode", ["constant", "reflect", "nearest"])  # "wrap" goes round below 0 by a last bit
def test_right_angles_are_rot90(fill_mode):
    image = np.arange(6 * 6 * 3, dtype=np.uint8).reshape(6, 6, 3)
    for k in range(4):
        np.testing.assert_array_equal(
            ps.image.rotate(image, k * np.pi / 2, fill_mode=fill_mode), ps.image.rot90(image, k)
        )


@pytest.mark.parametrize("fill_mode", FILL_MODES)
@pytest.mark.parametrize(("right", "down"), [(2, 0), (-1, 3), (0, -2)])
def test_whole_ways_move_pixels(fill_mode, right, down):
    image = np.arange(1, 31, dtype=np.uint8).reshape(5, 6, 1)
    mode = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "wrap": "wrap"}[fill_mode]
    padded = np.pad(image, [(4, 4), (4, 4), (0, 0)], mode)
    found = ps.image.translate(image, (right, down), fill_mode=fill_mode)
    if fill_mode != "wrap":
        np.testing.assert_array_equal(found, padded[4 - down : 9 - down, 4 - right : 10 - right])
    for interpolation in INTERPOLATIONS:
        np.testing.assert_array_equal(ps.image.translate(image, (right, down), interpolation, fill_mode), found)


def test_shears_move_rows_and_columns():
    image = np.arange(1, 10, dtype=np.float32).reshape(3, 3, 1)
    assert ps.image.shear_x(image, 1)[:, :, 0].tolist() == [[1, 2, 3], [5, 6, 0], [9, 0, 0]]
    assert ps.image.shear_y(image, -1, fill_value=9)[:, :, 0].tolist() == [[1, 9, 9], [4, 2, 9], [7, 5, 3]]
    assert ps.image.shear_x(np.stack([image, image]), [0, 1])[:, 1, :, 0].tolist() == [[4, 5, 6], [5, 6, 0]]


IMAGE = np.zeros((4, 5, 3), np.uint8)
BATCH = np.zeros((2, 4, 5, 3), np.uint8)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ps.image.rotate(IMAGE[0], 1.0), r"rotate needs shape .* got shape \(5, 3\)"),
        (lambda: ps.image.rotate(IMAGE, [1.0, 2.0]), r"rotate: angles must be a number for images of shape"),
        (lambda: ps.image.rotate(BATCH, [1.0] * 3), r"angles must be a number, or an array of shape \(2,\)"),
        (lambda: ps.image.rotate(IMAGE, "x"), r"angles must be a number .* got 'x'"),
        (lambda: ps.image.rotate(IMAGE, np.nan), r"rotate: the numbers of a transform must be finite"),
        (lambda: ps.image.rotate(IMAGE, np.inf), r"must be finite"),
        (lambda: ps.image.rotate(IMAGE, 1.0, "bicubic"), r"rotate: interpolation must be one of 'nearest', 'bilinear'"),
        (lambda: ps.image.rotate(IMAGE, 1.0, fill_mode="edge"), r"rotate: fill_mode must be one of 'constant'"),
        (lambda: ps.image.rotate(IMAGE, 1.0, fill_value=300), r"fill_value must be a number that fits uint8, got 300"),
        (lambda: ps.image.rotate(IMAGE, 1.0, fill_value=(1, 2)), r"rotate: fill_value .* the 3 channels, got \(1, 2\)"),
        (lambda: ps.image.shear_y(IMAGE, 1.0, fill_value=(1, 2, 256)), r"shear_y: fill_value .* fits uint8, got 256"),
        (lambda: ps.image.translate(IMAGE, (1, 0), fill_value=[[1], 2]), r"translate: fill_value must be a number, or"),
        (lambda: ps.image.rotate(IMAGE, 1.0, fill_value=np.nan), r"must be a number that fits uint8, got nan"),
        (lambda: ps.image.rotate(IMAGE[:0], 1.0), r"rotate: sides must have 1 to 2\*\*24 - 1 pixels, got shape"),
        (lambda: ps.image.rotate(BATCH, [[1.0], 2.0]), r"angles must be a number, or an array of shape \(2,\)"),
        (lambda: ps.image.transform(BATCH, [[1.0], 2.0]), r"8 numbers or an array of shape \(2, 8\)"),
        (lambda: ps.image.translate(IMAGE, 3), r"translations must be 2 numbers for images"),
        (lambda: ps.image.shear_x(IMAGE, [1, 2]), r"shear_x: level must be a number"),
        (lambda: ps.image.transform(IMAGE, [1, 2]), r"transform: transforms must be 8 numbers for images of shape"),
        (lambda: ps.image.transform(BATCH, np.ones((3, 8))), r"8 numbers or an array of shape \(2, 8\)"),
        (lambda: ps.image.transform(IMAGE, [1e39, 0, 0, 0, 1, 0, 0, 0]), r"must be finite in float32"),
        (lambda: ps.image.transform(IMAGE, np.ones(8), output_shape=(3, 0)), r"output_shape must be 2 integers of"),
        (lambda: ps.image.transform(IMAGE, np.ones(8), output_shape=(1 << 24, 1)), r"to be 16777216 x 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call, said):
    with pytest.raises(InvalidArgumentError, match=said):
        call()


SLANTED = (1, 0, 2, 0, 1, 1, 0, 0.1)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
def test_a_fill_for_each_channel_is_that_of_each_channel_by_itself(dtype, interpolation):
    batch, fill = BATCH.astype(dtype), (7, 0, 200)
    moved = {
        "rotate": lambda x, value: ps.image.rotate(x, 0.5, interpolation, fill_value=value),
        "translate": lambda x, value: ps.image.translate(x, (1.5, -2), interpolation, fill_value=value),
        "shear_x": lambda x, value: ps.image.shear_x(x, 0.7, interpolation, fill_value=value),
        "shear_y": lambda x, value: ps.image.shear_y(x, -0.7, interpolation, fill_value=value),
        "transform": lambda x, value: ps.image.transform(
            x, (1, 0, 2, 0, 1, 1, 0, 0.1), interpolation, fill_value=value
        ),
        "random_rotate": lambda x, value: ps.image.random_rotate(x, 2, interpolation, fill_value=value, seed=3),
    }
    for name, move in moved.items():
        apart = [move(batch[..., c : c + 1], fill[c]) for c in range(3)]
        np.testing.assert_array_equal(move(batch, fill), np.concatenate(apart, axis=-1), err_msg=name)
        np.testing.assert_array_equal(move(batch, [9] * 3), move(batch, 9), err_msg=name)
        assert move(batch, fill).dtype == dtype


def test_names_may_be_in_capitals_as_in_tensorflow():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    np.testing.assert_array_equal(
        ps.image.rotate(image, 1.0, "BILINEAR", "REFLECT"), ps.image.rotate(image, 1.0, "bilinear", "reflect")
    )


def test_what_is_no_image_of_numbers_is_refused():
    with pytest.raises(InvalidTypeError, match="rotate takes integers and floats, got bool"):
        ps.image.rotate(IMAGE > 0, 1.0)
    with pytest.raises(InvalidTypeError, match="transform needs an image of numbers"):
        ps.image.transform("photo.jpg", np.ones(8))


def test_an_empty_batch_stays_empty():
    assert ps.image.rotate(BATCH[:0], 1.0).shape == (0, 4, 5, 3)
    assert ps.image.transform(BATCH[..., :0], np.ones(8), output_shape=(2, 3)).shape == (2, 2, 3, 0)


def test_without_the_kernel_the_reference_serves(monkeypatch):
    images = np.random.default_rng(4).integers(0, 256, (2, 9, 8, 3), dtype=np.uint8)
    found = ps.image.rotate(images, 0.4, "bilinear"), ps.image.random_flip_up_down(images, seed=2)
    for module in (transform_kernel, window_kernel):
        monkeypatch.setattr(module, "_NATIVE", SimpleNamespace(loaded=lambda: None))
    np.testing.assert_array_equal(ps.image.rotate(images, 0.4, "bilinear"), found[0])
    np.testing.assert_array_equal(ps.image.random_flip_up_down(images, seed=2), found[1])


def moved(native, src, sizes, numbers, fill, out_height, out_width, out):
    """A transform alone, by the kernel of moves; its status."""
    count, channels = sizes[0], sizes[3]
    nowhere, none = np.empty((0, 0), np.int64), np.empty((0, max(channels, 1)), np.float32)
    turn = numbers, 0, True, fill.astype(np.float32), out_height, out_width
    boxes = np.empty((max(count, 0), 0, 4), np.int64)
    return native.moves(src, *sizes, nowhere, nowhere, 0.0, *turn, nowhere.reshape(-1), none, boxes, none, out)


def test_the_kernel_refuses_what_does_not_fit():
    native = _NATIVE.loaded()
    src, dst, fill = np.zeros(12, np.uint8), np.zeros(12, np.uint8), np.zeros(3, np.uint8)
    numbers, sizes = np.ones((1, 8), np.float32), (1, 2, 2, 3)
    good = {"src": src, "sizes": sizes, "numbers": numbers, "fill": fill, "out_height": 2, "out_width": 2, "out": dst}
    assert moved(native, **good) == 0
    for name, wrong in [
        ("sizes", (2, 2, 2, 3)), ("sizes", (1, 3, 2, 3)), ("sizes", (1, 2, 1 << 62, 3)), ("numbers", numbers[:0]),
        ("numbers", np.ones((1, 7), np.float32)), ("fill", fill[:2]), ("out_height", -1), ("out_width", 1 << 24),
        ("out", dst[:-1]),
    ]:  # fmt: skip
        assert moved(native, **good | {name: wrong}) == BAD_ARGUMENT, name


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from([3, 4]), st.booleans())
def test_nothing_is_written_beside_the_result(height, width, channels, floats):
    """Vectors are four values wide: their surplus must stay inside."""
    kind = np.float32 if floats else np.uint8
    src = np.full((1, 13, 13, channels), 9, kind)
    around = np.full(height * width * channels + 16, 7, kind)
    numbers, fill = np.array([[1, 0, 0.5, 0, 1, 0.5, 0, 0]], np.float32), np.zeros(channels, kind)
    out = around[8:-8]
    assert moved(_NATIVE.loaded(), src.ravel(), (1, 13, 13, channels), numbers, fill, height, width, out) == 0
    assert (around[:8] == 7).all()
    assert (around[-8:] == 7).all()
    assert (out == 9).all() == (height < 13 and width < 13)
