"""A fused chain equals its steps, bit for bit, and only chains that may be fused are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn
from penstock.image.fuse import fuse
from penstock.trace.graph import Graph
from penstock.trace.traced import trace

image = ps.image


def photos() -> list[bytes]:
    rng = np.random.default_rng(3)
    sizes = [(20, 30), (33, 17), (64, 64)]
    return [image.encode_jpeg(rng.integers(0, 256, (*size, 3), np.uint8), quality=90) for size in sizes]


def flipped_after(x: bytes) -> Any:
    return image.flip_left_right(image.resize(image.decode_jpeg(x, channels=3), (16, 12))) / 255.0


def flipped_before(x: bytes) -> Any:
    return image.resize(image.flip_up_down(image.flip_left_right(image.decode_jpeg(x, channels=3))), (16, 12)) * 0.25


def multiplied_from_the_left(x: bytes) -> Any:
    return np.float32(0.1) * image.resize(image.decode_jpeg(x, channels=1), [8, 8])


def unscaled(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=3, dct_method="INTEGER_ACCURATE"), (10, 10))


def then_more(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=3), (10, 10)) / 127.5 - 1.0


FUSED = [flipped_after, flipped_before, multiplied_from_the_left, unscaled, then_more]


def nearest(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x, channels=3), (10, 10), method="nearest")


def any_channels(x: bytes) -> Any:
    return image.resize(image.decode_jpeg(x), (10, 10))


def used_twice(x: bytes) -> Any:
    decoded = image.decode_jpeg(x, channels=3)
    return image.resize(decoded, (10, 10)), image.flip_left_right(decoded)


def flipped_twice(x: bytes) -> Any:
    once = image.flip_left_right(image.decode_jpeg(x, channels=3))
    return image.resize(image.flip_left_right(once), (10, 10))


APART = [nearest, any_channels, used_twice, flipped_twice]


def graph_of(function: Callable[..., Any]) -> Graph:
    column = BytesColumn.from_values(photos())
    graph = trace(function, Block.single(column).structure, [column.spec()]).graph
    assert graph is not None
    return graph


def rows(graph: Graph) -> list[list[np.ndarray]]:
    column = BytesColumn.from_values(photos())
    return [found.values() for found in graph.run([column], len(column))]


@pytest.mark.parametrize("function", FUSED)
def test_a_fused_chain_gives_the_bits_of_its_steps(function: Callable[..., Any]) -> None:
    graph = fuse(graph_of(function))
    assert graph.equations[0].primitive.name == "image.decode_resize"
    assert not any(e.primitive.name in ("image.resize", "image.decode_jpeg") for e in graph.equations)
    for values, contents in zip(rows(graph)[0], photos(), strict=True):
        expected = function(contents)
        assert values.dtype == expected.dtype
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("function", APART)
def test_other_chains_stay_as_they_are(function: Callable[..., Any]) -> None:
    graph = graph_of(function)
    assert [e.primitive.name for e in fuse(graph).equations] == [e.primitive.name for e in graph.equations]
    for k, found in enumerate(rows(fuse(graph))):
        for values, contents in zip(found, photos(), strict=True):
            expected = function(contents)
            np.testing.assert_array_equal(values, expected[k] if isinstance(expected, tuple) else expected)


def test_the_result_is_written_where_the_caller_says() -> None:
    graph = fuse(graph_of(flipped_after))
    column = BytesColumn.from_values(photos())
    batch = np.zeros((5, 16, 12, 3), np.float32)
    (found,) = graph.run([column], 3, lambda leaf: lambda shape, dtype: batch[1:4])
    assert isinstance(found, DenseColumn)
    assert np.shares_memory(found.array, batch)
    assert not batch[0].any()
    assert not batch[4].any()
    np.testing.assert_array_equal(batch[2], flipped_after(photos()[1]))


def test_a_cut_jpeg_among_good_ones_is_named_by_its_row() -> None:
    graph = fuse(graph_of(flipped_after))
    good = photos()
    column = BytesColumn.from_values([good[0], good[1][:200], good[2]])
    with pytest.raises(ps.errors.DataLossError) as caught:
        graph.run([column], 3)
    assert caught.value.context.element == 1
