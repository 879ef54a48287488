"""What may be approximate is close, by a bound that the documentation tells, and always the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.spec import TensorSpec
from penstock.image.colour.adjust import (
    adjust_contrast,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
)
from penstock.image.fuse import chain, fuse
from penstock.image.fuse import primitives as approximate
from penstock.image.geometry.flips import random_flip_left_right
from penstock.image.kernels import ADD, BRIGHTNESS, CONTRAST, DIVIDE, HUE, MULTIPLY, SATURATION, SUBTRACT
from penstock.keys import folds
from penstock.trace.graph import Graph, Keys
from penstock.trace.traced import trace

image = ps.image


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_there() -> None:
    chain._NATIVE.get()
    chain._RECOLOURED_NATIVE.get()


def graphs(function: Callable[..., Any], column: Column, spec: Any = None) -> tuple[Graph, Graph]:
    """The exact one and the approximate one."""
    found = trace(function, Block.single(column).structure, [spec or column.spec()]).graph
    assert found is not None
    return found, fuse(found, approximate=True)


def keys(wanted: Keys) -> np.ndarray:
    return folds(folds(3, np.arange(100)), wanted.ordinal)


def results(graph: Graph, column: Column) -> list[np.ndarray]:
    return graph.run([column], len(column), keys=lambda wanted: keys(wanted)[: len(column)])[0].values()


def photograph(seed: int, height: int = 300, width: int = 400) -> np.ndarray:
    """Light that falls off, stripes of some texture, discs with hard edges, and a sensor's grain."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width].astype(np.float32) / width
    scene = np.zeros((height, width, 3), np.float32)
    for channel in range(3):
        for _ in range(5):
            wave, turn = rng.uniform(1, 50), rng.uniform(0, np.pi)
            scene[..., channel] += rng.uniform(5, 30) * np.sin(wave * (x * np.cos(turn) + y * np.sin(turn)))
    for _ in range(20):
        inside = (x - rng.uniform(0, 1)) ** 2 + (y - rng.uniform(0, 0.8)) ** 2 < rng.uniform(0.02, 0.15) ** 2
        scene[inside] += rng.uniform(-70, 70, 3).astype(np.float32)
    return np.clip(scene + 128 + rng.normal(0, 6, (height, width, 1)), 0, 255).astype(np.uint8)


def jpeg(picture: np.ndarray, *, progressive: bool = False) -> bytes:
    flags = [cv2.IMWRITE_JPEG_QUALITY, 90, cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)]
    written: bytes = cv2.imencode(".jpg", picture[..., ::-1], flags)[1].tobytes()
    return written


def augmented(x: Any) -> Any:
    x = random_brightness(random_flip_left_right(x), 0.1)
    x = random_contrast(random_hue(random_saturation(x, 0.75, 1.5), 0.1), 0.75, 1.5)
    return image.resize(x, (160, 160)) / 255.0


def brighter(x: Any) -> Any:
    return image.resize(random_brightness(x, 0.1), (160, 160)) / 255.0


def test_colours_behind_the_resize_stay_within_the_documented_bound() -> None:
    """Levels of 255: on average below 1, 99 % within 5, 99.9 % within 20, none here beyond 64."""
    column = ListColumn([photograph(seed) for seed in range(12)])
    exact, close = graphs(augmented, column)
    assert close.describe().startswith("image.approximately(random_flip_left_right, random_brightness,")
    pairs = zip(results(close, column), results(exact, column), strict=True)
    differences = np.concatenate([np.abs(a - b).reshape(-1) for a, b in pairs]) * 255
    assert differences.mean() < 1
    assert np.quantile(differences, 0.99) < 5
    assert np.quantile(differences, 0.999) < 20
    assert differences.max() < 64
    assert differences.max() > 1  # otherwise this would not be the approximate way


def test_it_does_not_make_images_lighter_or_darker() -> None:
    column = ListColumn([photograph(seed) for seed in range(20)])
    exact, close = graphs(brighter, column)
    pairs = zip(results(close, column), results(exact, column), strict=True)
    assert abs(np.mean([(a - b).mean() for a, b in pairs])) * 255 < 0.1


def test_jpegs_are_coloured_approximately_too() -> None:
    def function(x: bytes) -> Any:
        return augmented(image.decode_jpeg(x, channels=3))

    column = BytesColumn.from_values([jpeg(photograph(seed)) for seed in range(3)])
    pictures = ListColumn([image.decode_jpeg(value, channels=3) for value in column.values()])
    found = results(graphs(function, column)[1], column)
    for one, other in zip(found, results(graphs(augmented, pictures)[1], pictures), strict=True):
        difference = np.abs(one - other) * 255
        assert difference.mean() < 1
        assert np.quantile(difference, 0.999) < 10


def small(x: bytes) -> Any:
    return image.resize(image.flip_left_right(image.decode_jpeg(x, channels=3)), (50, 60)) / 255.0


def test_a_progressive_jpeg_is_decoded_no_larger_than_needed() -> None:
    pictures = [photograph(0, 420, 500), photograph(1, 60, 100), photograph(2, 420, 500)]
    column = BytesColumn.from_values([jpeg(each, progressive=number < 2) for number, each in enumerate(pictures)])
    exact, close = graphs(small, column)
    assert close.describe() == "image.decode_scaled_resize"
    smaller = image.flip_left_right(image.decode_jpeg(column.values()[0], channels=3, ratio=8))
    found, wanted = results(close, column), results(exact, column)
    np.testing.assert_array_equal(found[0], image.resize(smaller, (50, 60)) / np.float32(255))
    np.testing.assert_array_equal(found[1], wanted[1])  # too small to be decoded smaller
    for one, other in zip(found, wanted, strict=True):
        assert (np.abs(one - other) * 255).mean() < 10


def test_a_sequential_jpeg_is_decoded_no_larger_than_needed() -> None:
    """By the kernel, close to what libjpeg makes of it at the same ratio."""
    for seed, (height, width) in enumerate([(416, 496), (208, 256), (112, 128)]):
        picture = photograph(seed, height, width)
        column = BytesColumn.from_values([jpeg(picture)])
        (found,) = results(graphs(small, column)[1], column)
        ratio = approximate.enough((height, width), (50, 60))
        smaller = image.flip_left_right(image.decode_jpeg(column.values()[0], channels=3, ratio=ratio))
        difference = np.abs(found * 255 - image.resize(smaller, (50, 60)))
        assert difference.mean() < 4, ratio


def test_a_grey_result_is_decoded_whole() -> None:
    def grey(x: bytes) -> Any:
        return image.resize(image.decode_jpeg(x, channels=1), (50, 60)) / 255.0

    column = BytesColumn.from_values([jpeg(photograph(seed, 210, 250)) for seed in range(2)])
    exact, close = graphs(grey, column)
    for one, other in zip(results(close, column), results(exact, column), strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_ways_to_decode_are_exact() -> None:
    def accurate(x: bytes) -> Any:
        return image.resize(image.decode_jpeg(x, channels=3, dct_method="INTEGER_ACCURATE"), (50, 60)) / 255.0

    column = BytesColumn.from_values([jpeg(photograph(0, 210, 250))])
    exact, close = graphs(accurate, column)
    np.testing.assert_array_equal(results(close, column)[0], results(exact, column)[0])


def test_a_cut_progressive_jpeg_is_named_by_its_row() -> None:
    good = jpeg(photograph(0), progressive=True)
    column = BytesColumn.from_values([good, good[: len(good) // 2], good])
    with pytest.raises(ps.errors.DataLossError) as caught:
        results(graphs(small, column)[1], column)
    assert caught.value.context.element == 1


@pytest.mark.parametrize("progressive", [False, True])
def test_files_tell_whether_they_are_progressive(progressive: bool) -> None:
    assert approximate.is_sequential(memoryview(jpeg(photograph(0), progressive=progressive))) != progressive
    for nothing in (b"", b"\xff\xd8", b"\xff\xd8\xff\xe0", bytes(100), b"\xff\xd8\xff\xff\xff\xff"):
        assert not approximate.is_sequential(memoryview(nothing))


def in_units(x: Any) -> Any:
    return image.resize(image.convert_image_dtype(adjust_contrast(x, 1.2), np.float32), (9, 9))


def test_results_may_be_bytes_and_scaled_before() -> None:
    column = DenseColumn(np.stack([photograph(seed, 60, 80) for seed in range(2)]))
    bytes_ = graphs(lambda x: image.cast(image.resize(adjust_contrast(x, 1.2), (30, 30)), np.uint8), column)
    floats = graphs(in_units, column)
    for exact, close in (bytes_, floats):
        assert len(close.equations) == 1
        for one, other in zip(results(close, column), results(exact, column), strict=True):
            assert one.dtype == other.dtype
            top = 1 if one.dtype == np.float32 else 255
            assert np.abs(one.astype(np.float32) - other).mean() < 0.01 * top


def test_images_without_three_channels_run_as_written() -> None:
    column = ListColumn([np.full((6, 5, 1), 9, np.uint8), np.full((4, 5, 1), 200, np.uint8)])
    exact, close = graphs(brighter, column, TensorSpec((None, None, None), np.uint8))
    for one, other in zip(results(close, column), results(exact, column), strict=True):
        np.testing.assert_array_equal(one, other)


codes = st.lists(st.sampled_from([BRIGHTNESS, SATURATION, HUE, CONTRAST]), max_size=5)
last = st.lists(
    st.tuples(st.sampled_from([MULTIPLY, DIVIDE, ADD, SUBTRACT]), st.tuples(*[st.floats(0.5, 300, width=32)] * 3)),
    max_size=2,
)


@given(codes, last, st.integers(1, 3), st.integers(1, 40), st.integers(1, 40), st.integers(0, 999), st.booleans())
def test_the_kernel_gives_the_bits_of_the_reference(
    codes: list[int],
    last: Any,
    count: int,
    height: int,
    width: int,
    seed: int,
    whole: bool,
) -> None:
    rng = np.random.default_rng(seed)
    images = rng.uniform(0, 255, (count, height, width, 3)).astype(np.float32)
    images = np.round(images / 51) * 51 if whole else images
    args = rng.uniform(-1, 1, (count, len(codes))).astype(np.float32) * 2
    args[:, [code in (BRIGHTNESS, HUE) for code in codes]] /= 2
    wanted = [chain.recolour(each, codes, own, last) for each, own in zip(images, args, strict=True)]
    chain.recolour_in_place(images, codes, args, last)
    np.testing.assert_array_equal(images, wanted)


def test_without_the_kernel_the_reference_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).uniform(0, 255, (2, 9, 8, 3)).astype(np.float32)
    args = np.float32([[0.1, 1.2], [0.2, 0.7]])
    fast, plain = images.copy(), images.copy()
    chain.recolour_in_place(fast, [HUE, CONTRAST], args, [(DIVIDE, (255.0, 255.0, 255.0))])
    monkeypatch.setattr(chain._RECOLOURED_NATIVE, "ready", lambda: None)
    chain.recolour_in_place(plain, [HUE, CONTRAST], args, [(DIVIDE, (255.0, 255.0, 255.0))])
    np.testing.assert_array_equal(fast, plain)
    assert (fast != images).any()


def test_the_kernel_refuses_sizes_that_do_not_fit() -> None:
    native = chain._RECOLOURED_NATIVE.get()
    none, no_numbers = np.zeros(0, np.int64), np.zeros((0, 3), np.float32)
    good: list[Any] = [np.zeros(12, np.float32), 6, none, np.zeros((2, 0), np.float32), none, no_numbers]
    assert native.recolour(*good) == 0
    bad: list[tuple[int, Any]] = [
        (1, 0), (1, -3), (1, 4), (1, 9), (2, np.zeros(1, np.int64)), (3, np.zeros((1, 0), np.float32)),
        (4, np.zeros(1, np.int64)), (5, np.zeros((0, 2), np.float32)),
    ]  # fmt: skip
    for place, value in bad:
        assert native.recolour(*good[:place], value, *good[place + 1 :]) == native.BAD_ARGUMENT


def test_a_data_set_is_exact_unless_it_is_asked_not_to_be() -> None:
    pictures = [photograph(seed, 120, 150) for seed in range(6)]
    exact = ps.Dataset.from_generator(lambda: iter(pictures), output_signature=ps.TensorSpec((None, None, 3), np.uint8))
    exact = exact.map(brighter)
    options = ps.Options()
    assert not options.experimental_optimization.approximate_image
    options.experimental_optimization.approximate_image = True
    found, wanted = (list(ds.iterator(epoch=0)) for ds in (exact.with_options(options), exact))
    again = list(exact.with_options(options).iterator(epoch=0))
    for one, same, other in zip(found, again, wanted, strict=True):
        np.testing.assert_array_equal(one, same)
        assert 0 < np.abs(one - other).mean() * 255 < 1


def test_a_picture_that_fails_changes_nothing_for_those_beside_it():
    """The Block with it runs element by element, and approximately all the same."""
    files = [image.encode_jpeg(photograph(seed, 90, 120)) for seed in range(9)]
    broken = [*files[:4], files[4][:200], *files[5:]]

    def changed(contents):
        return image.resize(image.random_hue(image.decode_jpeg(contents), 0.1), (32, 32))

    def made(contents, *, approximately):
        options = ps.Options(experimental_optimization={"approximate_image": approximately})
        ds = ps.Dataset.from_list(contents).map(changed).ignore_errors().with_options(options)
        return [np.asarray(element) for element in ds.iterator(epoch=0)]

    whole, beside = made(files, approximately=True), made(broken, approximately=True)
    assert np.array_equal(np.delete(whole, 4, axis=0), beside)
    assert not np.array_equal(whole, made(files, approximately=False))
