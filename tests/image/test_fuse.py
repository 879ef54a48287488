"""A fused chain equals its steps, bit for bit, and only chains that may be fused are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.spec import TensorSpec
from penstock.image.colour.adjust import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
)
from penstock.image.colour.levels import normalize
from penstock.image.fuse import chain, fuse, primitives
from penstock.image.geometry.flips import random_flip_left_right, random_flip_up_down
from penstock.keys import folds
from penstock.trace.graph import Graph, Keys
from penstock.trace.traced import trace

image = ps.image
ANY_IMAGE = TensorSpec((None, None, None), np.uint8)


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_there() -> None:
    chain._NATIVE.loaded()


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.integers(0, 256, (*size, 3), np.uint8) for size in [(20, 30), (33, 17), (64, 64)]]


def jpegs() -> BytesColumn:
    return BytesColumn.from_values([image.encode_jpeg(picture, quality=90) for picture in pictures()])


def keys(wanted: Keys) -> np.ndarray:
    return folds(folds(11, np.arange(3)), wanted.ordinal if wanted.seed is None else wanted.seed)


def graph_of(function: Callable[..., Any], column: Column, spec: Any = None) -> Graph:
    found = trace(function, Block.single(column).structure, [spec or column.spec()])
    assert found.graph is not None, found.reason
    return found.graph


def assert_same(found: Column, wanted: Column) -> None:
    for value, other in zip(found.values(), wanted.values(), strict=True):
        assert value.dtype == other.dtype
        np.testing.assert_array_equal(value, other)


def names(graph: Graph) -> list[str]:
    return [equation.primitive.name for equation in graph.equations]


# Without colours: decode_resize.


def flipped_after(x: bytes) -> Any:
    return image.flip_left_right(image.resize(image.decode_jpeg(x, channels=3), (16, 12))) / 255.0


def flipped_before(x: bytes) -> Any:
    return image.resize(image.flip_up_down(image.flip_left_right(image.decode_jpeg(x, channels=3))), (16, 12)) * 0.25


def flipped_twice(x: bytes) -> Any:
    once = image.flip_left_right(image.decode_jpeg(x, channels=3))
    return image.resize(image.flip_left_right(once), (10, 10))


def flipped_at_random(x: bytes) -> Any:
    return image.resize(random_flip_up_down(random_flip_left_right(image.decode_jpeg(x, channels=3))), (9, 9)) / 255.0


def multiplied_from_the_left(x: bytes) -> Any:
    return np.float32(0.1) * image.resize(image.decode_jpeg(x, channels=1), [8, 8])


def unscaled(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=3, dct_method="INTEGER_ACCURATE"), (10, 10))


def as_bytes(x: bytes) -> Any:
    return image.cast(image.resize(image.decode_jpeg(x, channels=3), (10, 10)), np.uint8)


def then_more(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=3), (10, 10)) / 127.5 - 1.0


def standardised(x: bytes) -> Any:
    resized = image.resize(image.decode_jpeg(x, channels=3), (11, 13)) / 255.0
    return image.flip_left_right((resized - np.float32([0.5, 0.4, 0.3])) / np.float32([0.2, 0.25, 0.3]))


def not_scaled_first(x: bytes) -> Any:
    return (image.resize(image.decode_jpeg(x, channels=1), (11, 13)) + 3.0) * 0.5 - 1.0


DECODED = [
    standardised,
    not_scaled_first,
    flipped_after,
    flipped_before,
    flipped_twice,
    flipped_at_random,
    multiplied_from_the_left,
    unscaled,
    as_bytes,
    then_more,
]


@pytest.mark.parametrize("function", DECODED)
def test_decoding_and_resizing_become_one(function: Callable[..., Any]) -> None:
    graph = graph_of(function, jpegs())
    short = fuse(graph)
    within = [name.removeprefix("image.") for name in names(graph)[1:] if name not in ("image.resize", "image.cast")]
    assert [name.partition("(")[0] for name in names(short)] == ["image.decode_resize"]
    assert all(name in names(short)[0] for name in within)
    assert_same(short.run([jpegs()], 3, keys=keys)[0], graph.run([jpegs()], 3, keys=keys)[0])


def channels_first(x: bytes) -> Any:
    return np.transpose(image.resize(image.decode_jpeg(x, channels=3), (16, 13)) / 255.0, (2, 0, 1))


def moved_first(x: bytes) -> Any:
    flipped = random_flip_left_right(image.decode_jpeg(x, channels=3))
    return np.moveaxis(image.resize(flipped, (9, 22)), -1, 0)


def grey_first(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=1), (16, 12)).transpose(2, 0, 1) / 255.0


def bytes_first(x: bytes) -> Any:
    return image.cast(image.resize(image.decode_jpeg(x, channels=3), (10, 11)), np.uint8).transpose(2, 0, 1)


def by_libjpeg(x: bytes) -> Any:
    decoded = image.decode_jpeg(x, channels=3, dct_method="INTEGER_ACCURATE")
    return image.resize(decoded, (10, 11)).transpose(2, 0, 1) * 0.5 + 1.0


def standardised_first(x: bytes) -> Any:
    return np.transpose(standardised(x), (2, 0, 1)) * 2.0


def coloured_first(x: bytes) -> Any:
    coloured = random_hue(random_contrast(image.decode_jpeg(x, channels=3), 0.5, 1.5), 0.2)
    turned = image.resize(coloured, (14, 11)).transpose(2, 0, 1)
    return (turned / 255.0 - np.float32([[[0.5]], [[0.4]], [[0.3]]])) / np.float32(0.25)


def coloured_bytes_first(x: bytes) -> Any:
    coloured = adjust_saturation(image.decode_jpeg(x, channels=3), 1.5)
    return image.cast(image.resize(coloured, (14, 11)), np.uint8).transpose(2, 0, 1)


FIRST = [
    standardised_first,
    channels_first,
    moved_first,
    grey_first,
    bytes_first,
    by_libjpeg,
    coloured_first,
    coloured_bytes_first,
]


@pytest.mark.parametrize("function", FIRST)
def test_channels_are_written_first_where_nobody_sees_how_they_lie(function: Callable[..., Any]) -> None:
    graph = graph_of(function, jpegs())
    assert "transpose" in names(fuse(graph))
    short = fuse(graph, copied=[0])
    assert len(names(short)) == 1
    made = short.run([jpegs()], 3, keys=keys)[0]
    assert all(value.flags.c_contiguous for value in made.values())
    assert_same(made, graph.run([jpegs()], 3, keys=keys)[0])
    both = graph_of(lambda x: (lambda turned: (turned, turned.sum()))(function(x)), jpegs())
    _, total = fuse(both, copied=[0, 1]).run([jpegs()], 3, keys=keys)
    assert_same(total, both.run([jpegs()], 3, keys=keys)[1])


# With colours: the chain.


def augmented(x: Any) -> Any:
    x = random_flip_left_right(x)
    x = random_brightness(x, 0.1)
    x = random_saturation(x, 0.75, 1.5)
    x = random_hue(x, 0.1)
    x = random_contrast(x, 0.75, 1.5)
    return image.resize(x, (14, 11)) / 255.0


def adjusted(x: Any) -> Any:
    x = adjust_contrast(image.flip_up_down(adjust_hue(x, -0.3)), 1.3)
    x = adjust_saturation(adjust_brightness(x, 0.2), 0.5)
    return image.flip_left_right(image.resize(x, (40, 50))) / np.float32(127.5) - 1.0


def two_contrasts(x: Any) -> Any:
    return image.resize(adjust_contrast(adjust_contrast(x, 1.7), 0.6), (5, 6))


def seeded(x: Any) -> Any:
    return image.resize(random_brightness(random_flip_up_down(x, seed=5), 0.3, seed=5), (7, 7))


def in_units(x: Any) -> Any:
    return image.resize(image.convert_image_dtype(adjust_brightness(x, 0.1), np.float32), (10, 10))


def divided_before(x: Any) -> Any:
    return image.resize(image.cast(adjust_hue(x, 0.1), np.float32) / 255.0, (10, 10))


def normalised(x: Any) -> Any:
    return normalize(image.resize(adjust_saturation(x, 1.5), (10, 10)) / 255.0, (0.5, 0.4, 0.3), (0.2, 0.3, 0.25))


def per_channel(x: Any) -> Any:
    x = image.resize(adjust_saturation(x, 2.5), (10, 10))
    return np.float32([1, 2, 3]) * (x - np.float32([[[1, 2, 3]]])) + 1


def to_bytes(x: Any) -> Any:
    return image.cast(image.resize(adjust_contrast(x, 0.5), (10, 10)), np.uint8)


def at_random_after(x: Any) -> Any:
    return random_flip_left_right(image.resize(random_hue(x, 0.2), (8, 8))) * 2.0


COLOURED = [
    augmented,
    adjusted,
    two_contrasts,
    seeded,
    in_units,
    divided_before,
    normalised,
    per_channel,
    to_bytes,
    at_random_after,
]


@pytest.mark.parametrize("function", COLOURED)
@pytest.mark.parametrize("kind", ["jpeg", "list", "dense"])
def test_a_chain_becomes_one(function: Callable[..., Any], kind: str) -> None:
    columns: dict[str, Column] = {
        "jpeg": jpegs(),
        "list": ListColumn(pictures()),
        "dense": DenseColumn(np.random.default_rng(1).integers(0, 256, (3, 24, 19, 3), np.uint8)),
    }
    column = columns[kind]

    def whole(x: Any) -> Any:
        return function(image.decode_jpeg(x, channels=3))

    graph = graph_of(whole if kind == "jpeg" else function, column)
    short = fuse(graph)
    assert len(short.equations) == 1
    assert names(short)[0].startswith("image.fused(")
    assert_same(short.run([column], 3, keys=keys)[0], graph.run([column], 3, keys=keys)[0])


def test_the_name_tells_the_steps() -> None:
    graph = fuse(graph_of(at_random_after, ListColumn(pictures())))
    assert graph.describe() == "image.fused(random_hue, resize, random_flip_left_right, multiply)"


def test_until_the_kernel_is_there_the_steps_run(monkeypatch: pytest.MonkeyPatch) -> None:
    column = ListColumn(pictures())
    graph = fuse(graph_of(augmented, column))
    fast = graph.run([column], 3, keys=keys)[0]
    monkeypatch.setattr(primitives, "ready", lambda: False)
    monkeypatch.setattr(primitives, "chain_into", None)
    assert_same(graph.run([column], 3, keys=keys)[0], fast)


@pytest.mark.parametrize("shape", [(6, 5, 1), (6, 5, 4)])
def test_images_without_three_channels_run_as_written(shape: tuple[int, ...]) -> None:
    column = ListColumn([np.full(shape, 9, np.uint8), np.full((4, *shape[1:]), 200, np.uint8)])

    def function(x: Any) -> Any:
        return image.resize(adjust_brightness(x, 0.1), (3, 3))

    graph = graph_of(function, column, ANY_IMAGE)
    short = fuse(graph)
    assert len(short.equations) == 1
    assert_same(short.run([column], 2)[0], graph.run([column], 2)[0])


def test_a_wrong_image_is_refused_by_the_step_that_refuses_it() -> None:
    column = ListColumn([np.zeros((6, 5, 1), np.uint8), np.zeros((6, 4, 1), np.uint8)])
    with pytest.raises(ps.errors.InvalidArgumentError, match="adjust_hue needs 3 channels"):
        fuse(graph_of(lambda x: image.resize(adjust_hue(x, 0.1), (3, 3)), column, ANY_IMAGE)).run([column], 2)


# What stays as it is.


def nearest(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=3), (10, 10), method="nearest")


def any_channels(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x), (10, 10))


def used_twice(x: bytes) -> Any:
    decoded = image.decode_jpeg(x, channels=3)
    return image.resize(decoded, (10, 10)), image.flip_left_right(decoded)


def coloured_and_used_twice(x: bytes) -> Any:
    bright = adjust_brightness(image.decode_jpeg(x, channels=3), 0.1)
    return image.resize(bright, (10, 10)), bright


def coloured_floats(x: bytes) -> Any:
    return image.resize(
        adjust_hue(image.convert_image_dtype(image.decode_jpeg(x, channels=3), np.float32), 0.2), (4, 4)
    )


def grey(x: bytes) -> Any:
    return image.resize(adjust_brightness(image.decode_jpeg(x, channels=1), 0.1), (4, 4))


APART = [nearest, any_channels, used_twice, coloured_and_used_twice, coloured_floats, grey]


@pytest.mark.parametrize("function", APART)
def test_other_chains_stay_as_they_are(function: Callable[..., Any]) -> None:
    graph = graph_of(function, jpegs())
    assert names(fuse(graph)) == names(graph)
    for found, wanted in zip(fuse(graph).run([jpegs()], 3), graph.run([jpegs()], 3), strict=True):
        assert_same(found, wanted)


def only_coloured(x: Any) -> Any:
    return random_contrast(adjust_hue(random_flip_left_right(adjust_brightness(x, 0.1)), 0.1), 0.5, 1.5)


@pytest.mark.parametrize("shape", [(20, 30, 3), (1, 1, 3), (1, 7, 3), (2, 9, 8, 3)])
def test_colours_without_a_resize_are_one(shape: tuple[int, ...]) -> None:
    dense = DenseColumn(np.random.default_rng(1).integers(0, 256, (3, *shape), np.uint8))
    graph = graph_of(only_coloured, dense)
    short = fuse(graph)
    assert [name.partition("(")[0] for name in names(short)] == ["image.fused"]
    assert_same(short.run([dense], 3, keys=keys)[0], graph.run([dense], 3, keys=keys)[0])


def test_colours_of_pictures_that_differ_in_size() -> None:
    graph = graph_of(lambda x: only_coloured(image.decode_jpeg(x, channels=3)), jpegs())
    short = fuse(graph)
    assert len(names(short)) == 2
    assert_same(short.run([jpegs()], 3, keys=keys)[0], graph.run([jpegs()], 3, keys=keys)[0])


def test_what_is_around_a_chain_stays() -> None:
    def function(x: np.ndarray, y: np.ndarray) -> Any:
        resized = image.resize(adjust_brightness(x, 0.1), (4, 4)) * 2.0
        return resized + y, y * 3

    first = DenseColumn(np.full((2, 5, 5, 3), 7, np.uint8))
    second = DenseColumn(np.float32([1, 2]))
    block = Block.from_elements(list(zip(first.values(), second.values(), strict=True)))
    found = trace(function, block.structure, [first.spec(), second.spec()])
    assert found.graph is not None, found.reason
    short = fuse(found.graph)
    assert names(short) == ["image.fused(adjust_brightness, resize, multiply)", "add", "multiply"]
    for ours, wanted in zip(short.run([first, second], 2), found.graph.run([first, second], 2), strict=True):
        assert_same(ours, wanted)


# Memory and errors.


@pytest.mark.parametrize("function", [flipped_after, lambda x: augmented(image.decode_jpeg(x, channels=3))])
def test_the_result_is_written_where_the_caller_says(function: Callable[..., Any]) -> None:
    graph = fuse(graph_of(function, jpegs()))
    shape = graph.run([jpegs()], 3, keys=keys)[0].spec().shape  # type: ignore[union-attr]
    batch = np.zeros((5, *shape), np.float32)
    (found,) = graph.run([jpegs()], 3, lambda leaf: lambda shape, dtype: batch[1:4], keys)
    assert isinstance(found, DenseColumn)
    assert np.shares_memory(found.array, batch)
    assert not batch[0].any()
    assert not batch[4].any()
    assert_same(DenseColumn(batch[1:4]), graph.run([jpegs()], 3, keys=keys)[0])


@pytest.mark.parametrize("function", [flipped_after, lambda x: adjusted(image.decode_jpeg(x, channels=3))])
def test_a_cut_jpeg_among_good_ones_is_named_by_its_row(function: Callable[..., Any]) -> None:
    good = jpegs().values()
    column = BytesColumn.from_values([good[0], good[1][:200], good[2]])
    with pytest.raises(ps.errors.DataLossError) as caught:
        fuse(graph_of(function, jpegs())).run([column], 3)
    assert caught.value.context.element == 1


def converted_before(x: Any) -> Any:
    return image.resize(image.convert_image_dtype(x, np.float32), (16, 24))


def divided_before(x: Any) -> Any:
    return image.resize(x.astype(np.float32) / 255, (16, 24)) - 0.5


def flipped_and_standardised_before(x: Any) -> Any:
    x = image.flip_left_right(x).astype(np.float32) / np.float32(255)
    return image.resize((x - np.float32([0.4, 0.5, 0.6])) / np.float32([0.2, 0.3, 0.25]), (16, 24))


@pytest.mark.parametrize("function", [converted_before, divided_before, flipped_and_standardised_before])
def test_decoded_images_are_changed_as_they_are_resized(function: Callable[..., Any]) -> None:
    column = ListColumn(pictures())
    graph = graph_of(function, column, ANY_IMAGE)
    fused = fuse(graph)
    assert len(fused.equations) == 1
    assert_same(fused.run([column], 3, None, keys)[0], graph.run([column], 3, None, keys)[0])
