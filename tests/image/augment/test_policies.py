"""rand_augment and trivial_augment: what is drawn, and that each operation does what its table says."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.image.photos import photo

from penstock import image as im
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.augment import operations
from penstock.image.augment.operations import OPERATIONS, RAND, TRIVIAL_WIDE
from penstock.image.augment.policies import apply_operations, some_operation, some_operations
from penstock.keys import fold

HEIGHT, WIDTH = 23, 31
IMAGE = photo(HEIGHT, WIDTH)
BINS = 31
SIGNED = ["shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "color", "contrast", "sharpness"]


def ranges(wide):
    """Amounts of all magnitudes as the table has them."""
    steps = np.arange(BINS) / (BINS - 1)
    blend, shear, turn, bits = (0.99, 0.99, 135, 2) if wide else (0.9, 0.3, 30, 4)
    across, down = (32, 32) if wide else (150 / 331 * WIDTH, 150 / 331 * HEIGHT)
    return {
        "shear_x": shear * steps,
        "shear_y": shear * steps,
        "translate_x": across * steps,
        "translate_y": down * steps,
        "rotate": turn * steps,
        **dict.fromkeys(["brightness", "color", "contrast", "sharpness"], blend * steps),
        "posterize": np.round(8 - (8 - bits) * steps),
        "solarize": 255 * (1 - steps),
        **dict.fromkeys(["identity", "autocontrast", "equalize"], 0 * steps),
    }


def composed(name, amount):
    """The same from public functions, and from the definition where there is none."""
    pixels = IMAGE.astype(np.float64)
    grey = np.floor(pixels @ [0.2989, 0.587, 0.114])[..., None]
    match name:
        case "identity":
            return IMAGE
        case "shear_x":  # a pixel's centre is half a pixel below its edge
            return im.transform(IMAGE, [1, amount, amount / 2, 0, 1, 0, 0, 0], fill_value=7)
        case "shear_y":
            return im.transform(IMAGE, [1, 0, 0, amount, 1, amount / 2, 0, 0], fill_value=7)
        case "translate_x":
            return im.translate(IMAGE, [math.trunc(amount), 0], fill_value=7)
        case "translate_y":
            return im.translate(IMAGE, [0, math.trunc(amount)], fill_value=7)
        case "rotate":
            return im.rotate(IMAGE, np.radians(amount), fill_value=7)
        case "brightness":
            return pixels * (1 + amount)
        case "color":
            return grey + (1 + amount) * (pixels - grey)
        case "contrast":
            return grey.mean() + (1 + amount) * (pixels - grey.mean())
        case "sharpness":
            return im.adjust_sharpness(IMAGE, 1 + amount)
        case "posterize":
            return im.posterize(IMAGE, int(amount))
        case "solarize":
            return im.solarize(IMAGE, amount)
    return getattr(im, name)(IMAGE)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_each_operation_at_each_magnitude(name, wide):
    amounts = (TRIVIAL_WIDE if wide else RAND)[name]
    assert OPERATIONS[name].signed == (name in SIGNED)
    for level, wanted in enumerate(ranges(wide)[name]):
        amount = amounts(level / (BINS - 1), HEIGHT, WIDTH)
        assert amount == pytest.approx(wanted)
        for signed in [amount, -amount] if name in SIGNED else [amount]:
            found = apply_operations(IMAGE, [(name, signed)], "nearest", 7)
            expected = np.clip(composed(name, signed), 0, 255)
            assert found.dtype == np.uint8
            assert found.shape == IMAGE.shape
            if expected.dtype == np.uint8:
                np.testing.assert_array_equal(found, expected)
            else:  # float32 there, cut off: a whole number may come out just below
                assert np.abs(expected - found - 0.5).max() <= 0.5 + 1e-3


def chi_square(counts, expected):
    return sum((counts.get(name, 0) - expected) ** 2 / expected for name in OPERATIONS)


@pytest.mark.parametrize("sample", [some_operation, some_operations])
def test_every_operation_is_as_likely_with_either_sign(sample):
    rand = {"num_ops": 3, "magnitude": 9} if sample is some_operations else {}
    how = {"num_magnitude_bins": BINS, "interpolation": "nearest", "fill_value": None}
    drawn = sample(np.arange(9000, dtype=np.uint64), IMAGE.shape, **rand, **how)["steps"]
    steps = [step for own in drawn for step in own]
    counts = Counter(name for name, _ in steps)
    assert chi_square(counts, len(steps) / 14) < 34.5  # 13 degrees of freedom, p = 0.001
    for name in SIGNED:
        amounts = np.array([amount for own, amount in steps if own == name and amount])
        assert abs((amounts < 0).mean() - 0.5) < 3.3 * 0.5 / len(amounts) ** 0.5
    if sample is some_operation:
        levels = Counter(round(abs(amount) / 135 * 30) for name, amount in steps if name == "rotate")
        expected = sum(levels.values()) / BINS
        assert sum((levels.get(level, 0) - expected) ** 2 / expected for level in range(BINS)) < 59.7  # 30, p = 0.001
    else:
        pairs = Counter((own[0][0], own[1][0]) for own in drawn)
        assert len(pairs) == 14**2
        assert {abs(amount) for name, amount in steps if name == "rotate"} == {9.0}


@pytest.mark.parametrize("augment", [im.rand_augment, im.trivial_augment])
def test_seeds_choose_and_each_image_of_a_batch_draws_its_own(augment):
    np.testing.assert_array_equal(augment(IMAGE, seed=4), augment(IMAGE, seed=4))
    assert len({augment(IMAGE, seed=seed).tobytes() for seed in range(20)}) > 10
    batch = np.stack([IMAGE] * 20)
    batch.flags.writeable = False
    found = augment(batch, seed=4)
    assert found.dtype == np.uint8
    assert found.shape == batch.shape
    assert len({one.tobytes() for one in found}) > 10
    np.testing.assert_array_equal(batch, np.stack([IMAGE] * 20))


def test_what_comes_in_from_outside_may_differ_by_channel():
    black, colours = np.zeros((8, 8, 3), np.uint8), {(0, 0, 0)}
    for seed in range(60):
        found = im.trivial_augment(black, fill_value=(1, 2, 3), seed=seed)
        colours |= {tuple(pixel) for pixel in found.reshape(-1, 3).tolist()}
    assert (1, 2, 3) in colours
    assert colours <= {(0, 0, 0), (1, 2, 3), (255, 255, 255)}  # solarize inverts black
    for augment in (im.rand_augment, im.trivial_augment):
        np.testing.assert_array_equal(augment(IMAGE, fill_value=[9] * 3, seed=2), augment(IMAGE, fill_value=9, seed=2))
        with pytest.raises(InvalidArgumentError, match=f"{augment.__name__}: fill_value must be .* the 3 channels"):
            augment(IMAGE, fill_value=(1, 2))


def test_operations_come_one_behind_the_other():
    how = {"num_ops": 3, "magnitude": 20, "num_magnitude_bins": BINS, "interpolation": "bilinear", "fill_value": 9}
    steps = some_operations(fold(5), IMAGE.shape, **how)["steps"]
    expected = IMAGE
    for step in steps:
        expected = apply_operations(expected, [step], "bilinear", 9)
    found = im.rand_augment(IMAGE, num_ops=3, magnitude=20, interpolation="bilinear", fill_value=9, seed=5)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(im.rand_augment(IMAGE, num_ops=0), IMAGE)


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 7, 1), (2, 2, 3), (9, 8, 1)])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_small_and_grey_images(name, shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    found = apply_operations(image, [(name, RAND[name](0.5, *shape[:2]))], "bilinear", 0)
    assert found.shape == shape
    assert found.dtype == np.uint8


def test_a_factor_of_one_changes_nothing_and_greys_stay_grey():
    grey = np.repeat(IMAGE[..., :1], 3, axis=-1)
    for blend in (operations.brightness, operations.contrast, operations.color):
        np.testing.assert_array_equal(blend(IMAGE, 1.0), IMAGE)
    levels = operations.grey(grey)
    assert np.abs(levels.astype(int) - grey[..., 0]).max() <= 1
    found = operations.color(grey, 0.3)
    np.testing.assert_array_equal(found, found[..., :1].repeat(3, axis=-1))


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"num_ops": -1}, "num_ops must be an integer of at least 0"),
        ({"magnitude": 31}, "rand_augment: magnitude must be below num_magnitude_bins=31, got 31"),
        ({"magnitude": 1.5}, "magnitude must be an integer"),
        ({"num_magnitude_bins": 1}, "num_magnitude_bins must be an integer of at least 2"),
        ({"interpolation": "cubic"}, "interpolation must be one of 'nearest', 'bilinear'"),
        ({"fill_value": 256}, "fill_value must be a number that fits uint8"),
    ],
)
def test_what_they_refuse(how, text):
    with pytest.raises(InvalidArgumentError, match=text):
        im.rand_augment(IMAGE, **how)


@pytest.mark.parametrize("augment", [im.rand_augment, im.trivial_augment])
def test_only_uint8_of_1_or_3_channels(augment):
    with pytest.raises(InvalidTypeError, match=f"{augment.__name__} needs uint8 images, got float32"):
        augment(IMAGE.astype(np.float32))
    with pytest.raises(InvalidArgumentError, match=r"needs 1 or 3 channels and .* got shape \(2, 2, 4\)"):
        augment(np.zeros((2, 2, 4), np.uint8))
    with pytest.raises(InvalidArgumentError, match=r"at least one pixel, got shape \(0, 2, 3\)"):
        augment(np.zeros((0, 2, 3), np.uint8))
