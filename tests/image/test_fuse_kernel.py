"""The chain's kernel gives the bits of the references, one after the other, on any image."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.image.colour import means, pixels
from penstock.image.fuse import chain
from penstock.image.fuse.chain import Images, PerImage, Recipe, chain_into, images_of
from penstock.image.kernels import (
    ADD,
    BAD_ARGUMENT,
    BRIGHTNESS,
    CONTRAST,
    DIVIDE,
    HUE,
    LEFT_RIGHT,
    MULTIPLY,
    SATURATION,
    SUBTRACT,
    UP_DOWN,
)
from penstock.image.resizing import reference
from penstock.image.resizing.reference import bilinear_taps

SINGLE = {
    BRIGHTNESS: pixels.brightness,
    SATURATION: pixels.saturation,
    HUE: pixels.hue,
    CONTRAST: means.contrast,
}
ARITHMETIC = {MULTIPLY: np.multiply, DIVIDE: np.divide, ADD: np.add, SUBTRACT: np.subtract}


def flipped(image: np.ndarray, how: int) -> np.ndarray:
    image = image[:, ::-1] if how & LEFT_RIGHT else image
    return image[::-1] if how & UP_DOWN else image


def one_by_one(image: np.ndarray, recipe: Recipe, per_image: PerImage) -> np.ndarray:
    """One image by the references."""
    steps = [0, *per_image.flips[0].tolist(), int(per_image.before[0])]
    for k, (code, argument) in enumerate(zip(recipe.colours, per_image.args[0].tolist(), strict=True)):
        image = flipped(image, steps[k] ^ steps[k + 1])
        image = SINGLE[code](np.ascontiguousarray(image)[None], argument)[0]
    image = flipped(image, steps[-2] ^ steps[-1])
    if recipe.levels is not None:
        image = recipe.levels[np.arange(3), image]
    taps = [bilinear_taps(n_in, n_out) for n_in, n_out in zip(image.shape[:2], recipe.size, strict=True)]
    result = flipped(reference.resize_bilinear(np.ascontiguousarray(image)[None], *taps)[0], int(per_image.after[0]))
    for code, numbers in recipe.last:
        result = ARITHMETIC[code](result, np.float32(numbers))
    return result


sizes = st.one_of(st.tuples(st.integers(1, 40), st.integers(1, 40)), st.sampled_from([(1, 1), (3, 700), (70, 9)]))
flips = st.integers(0, LEFT_RIGHT | UP_DOWN)
numbers = st.tuples(*[st.sampled_from([0.25, 1.0, 3.0, 127.5, 255.0])] * 3)


@st.composite
def images(draw: Any) -> np.ndarray:
    """Noise, few levels (many ties and extremes), or one colour."""
    height, width = draw(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    levels = draw(st.sampled_from([range(256), (0, 1, 254, 255), (0, 255), (100, 101, 102), range(0, 256, 51)]))
    image: np.ndarray = rng.choice(np.array(levels, np.uint8), (height, width, 3))
    return image[:1, :1].repeat(height, 0).repeat(width, 1) if draw(st.booleans()) and height % 7 == 0 else image


@st.composite
def operations(draw: Any) -> tuple[int, float, int]:
    """A colour operation, its argument, and the flips in front of it."""
    code = draw(st.sampled_from([BRIGHTNESS, SATURATION, HUE, CONTRAST]))
    special: list[float] = {BRIGHTNESS: [0, 0.1, -1, 1], HUE: [0, 0.5, -0.5, 1, -1, 1 / 3]}.get(code, [0, 1, 0.5, 2, 9])
    low, high = {BRIGHTNESS: (-0.5, 0.5), HUE: (-1, 1)}.get(code, (0, 3))
    argument = draw(st.one_of(st.sampled_from(special), st.floats(low, high, width=32)))
    return code, argument, draw(flips)


def per_image_of(steps: list[tuple[int, float, int]], before: int, after: int) -> PerImage:
    so_far = np.bitwise_xor.accumulate([0, *(flip for _, _, flip in steps)])
    return PerImage(
        np.array([[argument for _, argument, _ in steps]], np.float32).reshape(1, -1),
        so_far[None, 1:],
        np.array([so_far[-1] ^ before]),
        np.array([after]),
    )


@given(
    images(),
    st.lists(operations(), max_size=5),
    sizes,
    flips,
    flips,
    st.sampled_from([None, (MULTIPLY, np.float32(1 / 255)), (DIVIDE, 255), (SUBTRACT, [[1], [2], [-3]])]),
    st.lists(st.tuples(st.sampled_from(sorted(ARITHMETIC)), numbers), max_size=2),
)
def test_it_gives_the_bits_of_the_single_operations(
    image: np.ndarray,
    steps: list[tuple[int, float, int]],
    size: tuple[int, int],
    before: int,
    after: int,
    scaling: tuple[int, Any] | None,
    last: list[Any],
) -> None:
    every = np.tile(np.arange(256, dtype=np.float32), (3, 1))
    levels = None if scaling is None else ARITHMETIC[scaling[0]](every, np.float32(scaling[1]))
    recipe = Recipe(size, tuple(code for code, _, _ in steps), levels, tuple(last))
    per_image = per_image_of(steps, before, after)
    out = np.full((1, *size, 3), np.nan, np.float32)
    chain_into(images_of(image[None]), out, recipe, per_image)
    np.testing.assert_array_equal(out[0], one_by_one(image, recipe, per_image))


def test_zeros_keep_their_sign() -> None:
    for zero in (0.0, -0.0, 0.0):
        out = np.ones((1, 2, 2, 3), np.float32)
        recipe = Recipe((2, 2), last=((MULTIPLY, (zero, zero, zero)),))
        chain_into(images_of(np.full((1, 4, 4, 3), 9, np.uint8)), out, recipe, per_image_of([], 0, 0))
        assert (np.signbit(out) == np.signbit(zero)).all()


@given(images(), st.lists(operations(), max_size=3), sizes)
def test_bytes_are_truncated(image: np.ndarray, steps: list[tuple[int, float, int]], size: tuple[int, int]) -> None:
    recipe, per_image = Recipe(size, tuple(code for code, _, _ in steps)), per_image_of(steps, 0, 0)
    out = np.zeros((1, *size, 3), np.uint8)
    chain_into(images_of(image[None]), out, recipe, per_image)
    np.testing.assert_array_equal(out[0], one_by_one(image, recipe, per_image).astype(np.uint8))


def test_every_image_of_a_block_has_its_own_size_and_arguments() -> None:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (*size, 3), np.uint8) for size in [(5, 9), (30, 2), (1, 1), (64, 50)]]
    ends = np.cumsum([picture.size for picture in pictures])
    packed = Images(
        np.concatenate([picture.reshape(-1) for picture in pictures]),
        np.array([0, *ends[:-1]]),
        np.array([len(picture) for picture in pictures]),
        np.array([picture.shape[1] for picture in pictures]),
    )
    recipe = Recipe((8, 6), (HUE, CONTRAST, SATURATION))
    args = rng.uniform(0, 1, (4, 3)).astype(np.float32)
    turned = np.array([0, 1, 2, 3])
    per_image = PerImage(args, turned[:, None].repeat(3, 1), turned, turned[::-1].copy())
    out = np.empty((4, 8, 6, 3), np.float32)
    chain_into(packed, out, recipe, per_image)
    for row, picture in enumerate(pictures):
        np.testing.assert_array_equal(out[row], one_by_one(picture, recipe, per_image.part(row, row + 1)))


@pytest.mark.parametrize("flip", range(4))
def test_a_mean_that_decides_a_level_is_added_up_as_the_reference_does(flip: int) -> None:
    """Many sizes and factors: among them some where the last bits of the mean matter, and the order of addition."""
    rng = np.random.default_rng(flip)
    from penstock.image.fuse.chain_colours_native import settled

    unsettled = 0
    for number in range(150):
        image = rng.integers(0, 256, (int(rng.integers(1, 50)), int(rng.integers(1, 50)), 3), np.uint8)
        factor = np.float32(rng.uniform(0.2, 2))
        recipe, per_image = Recipe(image.shape[:2], (CONTRAST,)), per_image_of([(CONTRAST, factor, flip)], flip, 0)
        out = np.empty((1, *image.shape), np.float32)
        chain_into(images_of(image[None]), out, recipe, per_image)
        np.testing.assert_array_equal(out[0], one_by_one(image, recipe, per_image), err_msg=str(number))
        mean = image[..., 0].mean() / 255
        unsettled += not settled(factor, np.float32(mean), np.float32(mean * 2e-6))
    assert 0 < unsettled < 100


def test_saturation_computed_the_short_way_is_right_for_every_colour() -> None:
    levels = np.arange(256, dtype=np.uint8)
    for red in (0, 1, 100, 254, 255):
        image = np.stack(np.broadcast_arrays(np.uint8(red), levels[:, None], levels), -1)
        for factor in (0.4, 1.0001, 1.3, 2.7, 60.0):
            recipe, per_image = Recipe((256, 256), (SATURATION,)), per_image_of([(SATURATION, factor, 0)], 0, 0)
            out = np.empty((1, 256, 256, 3), np.float32)
            chain_into(images_of(image[None]), out, recipe, per_image)
            np.testing.assert_array_equal(out[0], pixels.saturation(image, np.float32(factor)))


@pytest.mark.parametrize("shape", [(1, 4, 4, 3), (2, 5, 4, 3)])
def test_shapes_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    images_ = images_of(np.zeros((2, 6, 6, 3), np.uint8))
    per_image = PerImage(np.zeros((2, 0), np.float32), *(np.zeros((2, 0), np.int64), *np.zeros((2, 2), np.int64)))
    with pytest.raises(ps.errors.InvalidArgumentError, match="fused chain refused"):
        chain_into(images_, np.zeros(shape, np.float32), Recipe((4, 4)), per_image)


def test_nothing_is_read_or_written_outside() -> None:
    native = chain._NATIVE.loaded()
    one, none = np.ones(1, np.int64), np.zeros(0, np.int64)
    pixels_ = np.zeros(12, np.uint8)
    planes, halves = np.zeros(16, np.uint8), np.zeros(3, np.float32)
    read = planes.view()
    good: dict[str, Any] = {
        "src": pixels_, "starts": one - 1, "heights": one * 2, "widths": one * 2, "codes": none,
        "args": np.zeros((1, 0), np.float32), "flips": np.zeros((1, 0), np.int64), "before": one, "after": one,
        "table": np.zeros(0, np.float32), "last_codes": none, "last_values": np.zeros((0, 3), np.float32),
        "out_height": 1, "out_width": 1, "separate": False, "planes": planes, "read": read, "halves": halves,
        "floats_out": np.zeros(3, np.float32), "bytes_out": np.zeros(0, np.uint8),
    }  # fmt: skip
    assert native.chain(*good.values()) == 0
    big = 1 << 62
    for name, bad in [
        ("starts", one), ("starts", -one), ("starts", one * big), ("heights", one * 3), ("heights", one * 0),
        ("widths", one * big), ("heights", one * -2), ("widths", one * 4), ("out_height", 2), ("out_width", big),
        ("out_height", 0), ("planes", planes[:15]), ("read", read[:15]), ("halves", halves[:1]), ("before", none),
        ("after", none), ("codes", one), ("floats_out", np.zeros(4, np.float32)), ("bytes_out", np.zeros(3, np.uint8)),
        ("last_codes", one), ("table", np.zeros(256, np.float32)),
        ("args", np.zeros((2, 0), np.float32)), ("flips", np.zeros((1, 1), np.int64)),
    ]:  # fmt: skip
        assert native.chain(*(good | {name: bad}).values()) == BAD_ARGUMENT, name


def test_rows_of_few_columns_and_of_all_agree() -> None:
    """When few columns are read, only those are coloured: the results must not tell."""
    image = np.random.default_rng(0).integers(0, 256, (40, 300, 3), np.uint8)
    recipes = [Recipe((20, width), (SATURATION, CONTRAST)) for width in (40, 89, 91, 150, 299)]
    assert any(a.size != b.size for a, b in pairwise(recipes))
    for recipe in recipes:
        per_image = per_image_of([(SATURATION, 1.4, 0), (CONTRAST, 0.7, 3)], 1, 2)
        out = np.empty((1, *recipe.size, 3), np.float32)
        chain_into(images_of(image[None]), out, recipe, per_image)
        np.testing.assert_array_equal(out[0], one_by_one(image, recipe, per_image))
