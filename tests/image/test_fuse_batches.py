"""Chains on batches of images (N, H, W, C) are one pass, too: equal to their steps, with the draws that a batch has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.image.fuse import chain, fuse
from penstock.image.geometry import moves
from penstock.keys import folds
from penstock.trace.graph import Graph, Keys
from penstock.trace.traced import trace

image = ps.image
ROWS, BATCH = 4, 3
ANGLES, OFFSETS = np.array([0.1, 0.2, 0.3]), np.array([[1, 2], [3, 4], [5, 6]])


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_there() -> None:
    chain._NATIVE.loaded()
    moves._NATIVE.loaded()


def keys(wanted: Keys) -> np.ndarray:
    return folds(folds(11, np.arange(ROWS)), wanted.ordinal if wanted.seed is None else wanted.seed)


def graph_of(function: Callable[..., Any], column: Column) -> Graph:
    found = trace(function, Block.single(column).structure, [column.spec()])
    assert found.graph is not None, found.reason
    return found.graph


def usual(x: Any) -> Any:
    x = image.random_hue(image.random_flip_left_right(x), 0.1)
    x = image.random_saturation(image.random_contrast(x, 0.8, 1.2), 0.8, 1.2)
    return image.resize(image.random_brightness(x, 0.1), (9, 11)) / 255.0


def cifar(x: Any) -> Any:
    x = image.random_flip_left_right(image.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0)), "REFLECT"))
    return image.normalize(image.random_crop(x, (BATCH, 9, 8, 3)), (120, 110, 90), (60, 0.1, 3))


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "usual": (usual, "image.fused"),
    "cast": (
        lambda x: image.cast(
            image.random_flip_up_down(image.resize(image.adjust_hue(image.flip_left_right(x), 0.1), (9, 11))), np.uint8
        ),
        "image.fused",
    ),
    "normalised": (
        lambda x: image.normalize(
            image.resize(image.convert_image_dtype(image.random_contrast(x, 0.3, 1.3), np.float32), (9, 11)), 0.1, 0.2
        ),
        "image.fused",
    ),
    "cifar": (cifar, "image.moved"),
    "turned": (
        lambda x: image.convert_image_dtype(image.random_rotate(image.random_flip_up_down(x), 0.4), np.float32) - 0.5,
        "image.moved",
    ),
    "covered": (
        lambda x: image.random_cutout(image.random_erasing(image.flip_up_down(x), value=[1, 2, 3]), 4),
        "image.moved",
    ),
    "boxes": (
        lambda x: image.resize_with_crop_or_pad(
            image.crop_to_bounding_box(image.random_flip_left_right(x), 1, 2, 8, 5), 20, 4
        ),
        "image.moved",
    ),
    "fewer": (lambda x: image.random_flip_up_down(image.random_crop(x, (BATCH - 1, 9, 8, 3))), "image.moved"),
    "padded with images": (
        lambda x: image.pad(image.random_flip_up_down(x), ((1, 0), (1, 2), (0, 0), (0, 0))),
        "image.moved",
    ),
    "angles": (lambda x: image.rotate(image.random_flip_up_down(x), ANGLES), "image.moved"),
    "offsets": (lambda x: image.cutout(image.random_flip_up_down(x), 4, OFFSETS), "image.moved"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("as_list", [False, True])
def test_a_chain_on_batches_is_its_steps(name: str, as_list: bool) -> None:
    function, wanted = FUNCTIONS[name]
    data = np.random.default_rng(3).integers(0, 256, (ROWS, BATCH, 10, 9, 3)).astype(np.uint8)
    graph = graph_of(function, DenseColumn(data))
    short = fuse(graph)
    (only,) = [equation.primitive.name for equation in short.equations]
    assert only.startswith(wanted)
    column: Column = ListColumn(list(data)) if as_list else DenseColumn(data)
    (found,), (plain,) = (each.run([column], ROWS, keys=keys) for each in (short, graph))
    for value, other in zip(found.values(), plain.values(), strict=True):
        assert (value.dtype, value.shape) == (other.dtype, other.shape)
        assert value.tobytes() == other.tobytes()


def test_a_colour_is_drawn_once_for_a_batch_and_a_flip_for_each_image() -> None:
    """As tf.image has it."""
    data = np.broadcast_to((np.arange(8, dtype=np.uint8) * 20)[:, None], (ROWS, 16, 4, 8, 3)).copy()
    ds = ps.Dataset.from_tensor_slices(data)
    for batch in ds.map(lambda x: image.resize(image.random_brightness(x, 0.5), (4, 4)) / 255.0):
        assert all((one == batch[0]).all() for one in batch)
    flipped = [
        (batch[i, 0, 0, 0] > batch[i, 0, -1, 0]).item()
        for batch in ds.map(lambda x: image.resize(image.adjust_hue(image.random_flip_left_right(x), 0.1), (4, 4)))
        for i in range(16)
    ]
    assert set(flipped) == {True, False}
