"""A chain of moves equals its steps, bit for bit, and only chains that gain by it become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image.fuse import fuse, moving
from penstock.image.fuse.inputs import one_by_one as plainly
from penstock.image.geometry import moves
from penstock.image.geometry.moves import Cover, CropWindow, moves_into
from penstock.image.geometry.transform_reference import ProjectiveTransform, transform
from penstock.image.kernels import ADD, MULTIPLY
from penstock.keys import folds
from penstock.trace.graph import Graph, Keys
from penstock.trace.traced import trace

image = ps.image
ROWS, SIZE = 5, (9, 8)
PLANE = np.ones((9, 8, 3), np.float32)
MEAN, STD = np.array([120, 110.5, 90], np.float32), np.array([60, 0.1, -3], np.float32)


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_there() -> None:
    moves._NATIVE.loaded()


def pictures(dtype: Any = np.uint8, channels: int = 3, size: tuple[int, int] = SIZE) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (ROWS, *size, channels)).astype(dtype)


def keys(wanted: Keys) -> np.ndarray:
    return folds(folds(11, np.arange(ROWS)), wanted.ordinal if wanted.seed is None else wanted.seed)


def graph_of(function: Callable[..., Any], column: Column, spec: Any = None) -> Graph:
    found = trace(function, Block.single(column).structure, [spec or column.spec()])
    assert found.graph is not None, found.reason
    return found.graph


def names(graph: Graph) -> list[str]:
    return [equation.primitive.name for equation in graph.equations]


def assert_fused_is_the_same(function: Callable[..., Any], data: np.ndarray, *wanted: str) -> None:
    column = DenseColumn(data)
    graph = graph_of(function, column)
    short = fuse(graph)
    assert names(short) == list(wanted)
    (found,), (plain,) = (each.run([column], len(data), keys=keys) for each in (short, graph))
    assert isinstance(found, DenseColumn)
    assert isinstance(plain, DenseColumn)
    assert found.array.dtype == plain.array.dtype
    assert found.array.shape == plain.array.shape
    assert found.array.tobytes() == np.ascontiguousarray(plain.array).tobytes()


def cifar(x: Any) -> Any:
    x = image.pad(x, ((4, 4), (4, 4), (0, 0)), "REFLECT")
    x = image.random_flip_left_right(x)
    x = image.random_crop(x, (9, 8, 3))
    x = image.random_rotate(x, 0.1, "bilinear", "reflect")
    x = image.random_cutout(x, 4)
    return image.normalize(x, MEAN, STD)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_usual_augmentation_is_one_pass(dtype: Any) -> None:
    words = "pad, random_flip_left_right, random_crop, random_rotate, random_cutout, normalize"
    assert_fused_is_the_same(cifar, pictures(dtype), f"image.moved({words})")


FUSED: dict[str, Callable[..., Any]] = {
    "moved(pad, pad)": lambda x: image.pad(
        image.pad(x, [[1, 0], [0, 9], [0, 0]]), [[9, 3], [2, 4], [0, 0]], "SYMMETRIC"
    ),
    "moved(resize_with_crop_or_pad, random_flip_up_down)": lambda x: image.random_flip_up_down(
        image.resize_with_crop_or_pad(x, 6, 13)
    ),
    "moved(resize_with_crop_or_pad, cutout)": lambda x: image.cutout(
        image.resize_with_crop_or_pad(x, 12, 5), (3, 9), (1, 7), constant_values=7
    ),
    "moved(crop_to_bounding_box, flip_up_down, random_crop, rotate)": lambda x: image.rotate(
        image.random_crop(image.flip_up_down(image.crop_to_bounding_box(x, 1, 2, 7, 6)), (4, 5, 3), seed=4), [0.3]
    ),
    "moved(rotate, random_cutout, cutout)": lambda x: image.cutout(
        image.random_cutout(image.rotate(x, -2.0, "bilinear", "wrap"), 3, 9), 5, (8, 0), 2
    ),
    "moved(random_rotate, convert_image_dtype, random_cutout)": lambda x: image.random_cutout(
        image.convert_image_dtype(image.random_rotate(x, 3.0, fill_value=5), np.float32), 4, 0.5
    ),
    "moved(random_cutout, cast, divide, subtract, cutout, multiply, add)": lambda x: (
        np.float32(3)
        * image.cutout(image.cast(image.random_cutout(x, 4, 8), np.float32) / 127.5 - MEAN, 2, (3, 3), 1.5)
        + np.float32(0.25)
    ),
    "moved(random_rotate, random_erasing, normalize, random_erasing)": lambda x: image.random_erasing(
        image.normalize(
            image.random_erasing(image.random_rotate(x, 3.0, fill_value=(5, 6, 7)), 0.8, value=(1, 2, 3)), MEAN, STD
        ),
        value=0.5,
    ),
    "moved(random_flip_left_right, multiply)": lambda x: image.random_flip_left_right(x) * np.float32(0.1),
}


@pytest.mark.parametrize("wanted", FUSED)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_chains_that_become_one(wanted: str, dtype: Any) -> None:
    assert_fused_is_the_same(FUSED[wanted], pictures(dtype), f"image.{wanted}")


APART: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "views cost nothing": (
        lambda x: image.random_crop(image.flip_up_down(image.flip_left_right(x)), (4, 4, 3)),
        ["image.flip_left_right", "image.flip_up_down", "image.random_crop"],
    ),
    "arithmetic moves nothing": (lambda x: image.normalize(x, MEAN, STD) + np.float32(1), ["image.normalize", "add"]),
    "noise, which is drawn for each value": (
        lambda x: image.random_cutout(image.random_erasing(image.random_flip_up_down(x), value="random"), 3),
        ["image.random_flip_up_down", "image.random_erasing", "image.random_cutout"],
    ),
    "a second rotation": (
        lambda x: image.cutout(image.rotate(image.random_rotate(x, 1.0), 0.5), 3, (2, 2)),
        ["image.random_rotate", "image.moved(rotate, cutout)"],
    ),
    "a window behind a rotation": (
        lambda x: image.random_crop(
            image.random_flip_left_right(image.rotate(image.pad(x, ((1, 1),) * 2 + ((0, 0),)), 0.2)), (5, 5, 3)
        ),
        ["image.moved(pad, rotate)", "image.moved(random_flip_left_right, random_crop)"],
    ),
    "float64": (
        lambda x: image.random_cutout(image.random_flip_left_right(x), 3) * MEAN.astype(np.float64),
        ["image.moved(random_flip_left_right, random_cutout)", "multiply"],
    ),
    "numbers for each pixel": (
        lambda x: image.random_flip_left_right(image.random_flip_up_down(x)) + PLANE,
        ["image.moved(random_flip_up_down, random_flip_left_right)", "add"],
    ),
}


@pytest.mark.parametrize("why", APART)
def test_what_stays_apart(why: str) -> None:
    function, wanted = APART[why]
    assert_fused_is_the_same(function, pictures(), *wanted)


def test_a_result_with_two_readers_ends_the_chain() -> None:
    def function(x: Any) -> Any:
        x = image.random_flip_left_right(image.random_flip_up_down(x))
        return image.random_cutout(image.random_crop(x, (4, 4, 3)), 2), x

    found = names(fuse(graph_of(function, DenseColumn(pictures()))))
    assert found == [
        "image.moved(random_flip_up_down, random_flip_left_right)",
        "image.moved(random_crop, random_cutout)",
    ]


def test_a_chain_with_a_resize_keeps_its_flips() -> None:
    def function(x: Any) -> Any:
        x = image.random_flip_left_right(image.adjust_brightness(x, 0.1))
        return image.random_cutout(image.pad(image.resize(x, (6, 6)), ((1, 1), (1, 1), (0, 0))), 3)

    found = names(fuse(graph_of(function, DenseColumn(pictures()))))
    assert found == [
        "image.fused(adjust_brightness, random_flip_left_right, resize)",
        "image.moved(pad, random_cutout)",
    ]


def padding(pairs: Any, mode: str, value: int) -> Callable[..., Any]:
    return lambda x: image.pad(x, (*pairs, (0, 0)), mode, value)


def sizing(height: int, width: int) -> Callable[..., Any]:
    return lambda x: image.resize_with_crop_or_pad(x, height, width)


def finishing(size: int, value: int, channels: int) -> list[Callable[..., Any]]:
    return [
        lambda x: image.random_cutout(x, size, value),
        lambda x: image.cutout(x, (size, 3), (value % 5, size), value),
        lambda x: image.random_erasing(x, 0.7, value=[value, 7, 8, 9][:channels], seed=size),
        lambda x: image.normalize(x, value, value + 0.5),
        lambda x: image.convert_image_dtype(x, np.float32) * np.float32(value),
    ]


@st.composite
def chains(draw: st.DrawFn) -> tuple[Callable[..., Any], int]:
    """Windows, perhaps a rotation, then covers and arithmetic, on an image of SIZE and so many channels."""
    steps: list[Callable[..., Any]] = []
    for _ in range(draw(st.integers(0, 3))):
        mode = draw(st.sampled_from(["CONSTANT", "REFLECT", "SYMMETRIC"]))
        pairs = draw(st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 2))
        windows = [
            padding(pairs, mode, draw(st.sampled_from([0, 0, 0, 9]))),
            image.random_flip_left_right,
            image.random_flip_up_down,
            image.flip_left_right,
            sizing(4 + pairs[0][0] * 3, 4 + pairs[1][1] * 4),
        ]
        steps.append(draw(st.sampled_from(windows)))
    channels = draw(st.sampled_from([1, 2, 3, 4]))
    if draw(st.booleans()):
        steps.append(lambda x: image.random_crop(x, (4, 4, channels)))
    if draw(st.booleans()):
        angle, interpolation = draw(st.floats(-4, 4)), draw(st.sampled_from(["nearest", "bilinear"]))
        fill_mode = draw(st.sampled_from(["constant", "reflect", "wrap", "nearest"]))
        fill = draw(st.sampled_from([3, np.arange(channels)]))
        steps.append(lambda x: image.rotate(x, angle, interpolation, fill_mode, fill))
    for _ in range(draw(st.integers(0, 3))):
        steps.append(draw(st.sampled_from(finishing(draw(st.integers(0, 6)), draw(st.integers(0, 255)), channels))))
    every = tuple(steps)

    def chain(x: Any) -> Any:
        for step in every:
            x = step(x)
        return x

    return chain, channels


@given(chains(), st.sampled_from([np.uint8, np.float32]))
def test_any_chain_equals_its_steps(drawn: tuple[Callable[..., Any], int], dtype: Any) -> None:
    chain, channels = drawn
    column = DenseColumn(pictures(dtype, channels))
    graph = graph_of(chain, column)
    (found,), (plain,) = (each.run([column], ROWS, keys=keys) for each in (fuse(graph), graph))
    for one, other in zip(found.values(), plain.values(), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which steps run one by one, as they do."""
    found: list[str] = []

    def one_by_one(steps: Any, operands: Any, rows: int) -> Any:
        found.extend(step.primitive.name for step in steps)
        return plainly(steps, operands, rows)

    monkeypatch.setattr(moving, "one_by_one", one_by_one)
    return found


LEFT: dict[str, tuple[Callable[..., Any], Any]] = {
    "two constants": (
        lambda x: image.pad(image.pad(x, ((1, 1),) * 2 + ((0, 0),)), ((1, 1),) * 2 + ((0, 0),), constant_values=2),
        pictures(),
    ),
    "another channel": (lambda x: image.random_cutout(image.pad(x, ((1, 1),) * 3), 3), pictures()),
    "fewer channels": (lambda x: image.random_cutout(image.random_crop(x, (4, 4, 2)), 3), pictures()),
    "images that differ in size": (cifar, [np.ones((9, 8, 3), np.uint8), np.ones((12, 8, 3), np.uint8)]),
}


@pytest.mark.parametrize("why", LEFT)
def test_what_the_kernel_does_not_take_runs_step_by_step(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, data = LEFT[why]
    column = DenseColumn(data) if isinstance(data, np.ndarray) else ListColumn(data)
    graph = graph_of(function, column, TensorSpec((None, None, 3), np.uint8))
    plain = graph.run([column], len(data), keys=lambda wanted: keys(wanted)[: len(data)])[0]
    steps = spied(monkeypatch)
    found = fuse(graph).run([column], len(data), keys=lambda wanted: keys(wanted)[: len(data)])[0]
    assert steps == names(graph)
    for one, other in zip(found.values(), plain.values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_steps_run_as_they_are_until_the_kernel_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "ready", lambda: False)
    steps = spied(monkeypatch)
    fuse(graph_of(cifar, DenseColumn(pictures()))).run([DenseColumn(pictures())], ROWS, keys=keys)
    assert len(steps) == 6


BAD: dict[str, tuple[Callable[..., Any], str]] = {
    "mirror": (
        lambda x: image.random_cutout(image.pad(x, ((9, 0), (0, 0), (0, 0)), "REFLECT"), 2),
        "REFLECT gives at most 8",
    ),
    "crop": (lambda x: image.random_cutout(image.random_crop(x, (10, 4, 3)), 2), "does not fit into an array of shape"),
    "box": (
        lambda x: image.random_cutout(image.pad(image.crop_to_bounding_box(x, 5, 0, 5, 2), ((0, 0),) * 3), 2),
        "crop_to_bounding_box",
    ),
    "box from": (
        lambda x: image.random_cutout(image.pad(image.crop_to_bounding_box(x, -1, 0, 5, 2), ((0, 0),) * 3), 2),
        "offset_height",
    ),
    "cutout": (lambda x: image.cutout(image.random_flip_left_right(x), 2, (0.5, 0)), "offset must be 2 integers"),
    "std": (lambda x: image.normalize(image.random_flip_left_right(x), 1.0, (1.0, 0.0, 1.0)), "std must not be 0"),
    "channels": (
        lambda x: image.normalize(image.random_flip_left_right(x), (1.0, 2.0), 1.0),
        "number for each of 3 channels",
    ),
    "angle": (lambda x: image.random_cutout(image.rotate(x, np.inf), 2), "must be finite"),
    "choice": (lambda x: image.random_cutout(image.rotate(x, 1.0, fill_mode="mirror"), 2), "fill_mode"),
}


@pytest.mark.parametrize("why", BAD)
def test_errors_are_those_of_the_operation(why: str) -> None:
    function, said = BAD[why]
    with pytest.raises(InvalidArgumentError, match=said) as plain:
        function(pictures()[0])
    with pytest.raises(InvalidArgumentError, match=said) as found:
        list(ps.Dataset.from_tensor_slices(pictures()).map(function))
    assert found.value.message == plain.value.message


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("random_rotate", lambda x: image.random_rotate(image.pad(x, [[1, 1]] * 2 + [[0, 0]]), 0.5, "no such")),
        ("rotate", lambda x: image.rotate(image.pad(x, [[1, 1]] * 2 + [[0, 0]]), 0.5, "no such")),
        ("random_cutout", lambda x: image.random_cutout(image.pad(x, [[1, 1]] * 2 + [[0, 0]]), -1)),
        ("cutout", lambda x: image.cutout(image.pad(x, [[1, 1]] * 2 + [[0, 0]]), 2, (0, 0), 256)),
        ("random_erasing", lambda x: image.random_erasing(image.pad(x, [[1, 1]] * 2 + [[0, 0]]), value=256)),
    ],
)
def test_what_a_chain_refuses_is_told_of_the_function_that_was_called(name: str, function: Any) -> None:
    graph = fuse(graph_of(function, DenseColumn(pictures())))
    assert names(graph) == [f"image.moved(pad, {name})"]
    with pytest.raises(InvalidArgumentError, match=f"^{name}: "):
        graph.run([DenseColumn(pictures())], ROWS, keys=keys)


def test_a_data_set_runs_it_by_block_into_the_batch_and_draws_as_by_element() -> None:
    files = [image.encode_png(picture) for picture in pictures()]

    def prepare(x: bytes) -> Any:
        return cifar(image.decode_png(x, channels=3))

    def opaque(x: bytes) -> Any:
        print(end="")
        return prepare(x)

    by_block = ps.Dataset.from_tensor_slices(files).map(prepare).batch(2)
    by_element = ps.Dataset.from_tensor_slices(files).map(opaque).batch(2)
    for found, wanted in zip(by_block.iterator(epoch=2), by_element.iterator(epoch=2), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert "image.decode_png → image.moved(pad, " in str(by_block.explain())


def test_results_are_written_where_the_batch_lies() -> None:
    places = []

    def allocate(_: int) -> Any:
        def place(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
            places.append(np.empty((ROWS, *shape), dtype))
            return places[0]

        return place

    column = DenseColumn(pictures())
    found = fuse(graph_of(cifar, column)).run([column], ROWS, allocate, keys)[0]
    assert isinstance(found, DenseColumn)
    assert found.array is places[0]


def test_the_kernel_does_what_its_parts_do() -> None:
    data = pictures(np.uint8, 2)
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(-1, 9, (ROWS, 7)), rng.integers(-1, 8, (ROWS, 6))
    shown = np.where(
        (rows >= 0)[:, :, None, None] & (columns >= 0)[:, None, :, None],
        data[np.arange(ROWS)[:, None, None], rows[:, :, None], columns[:, None, :]],
        np.uint8(77),
    )
    numbers = rng.uniform(-1, 1, (ROWS, 8)).astype(np.float32) * np.array([1, 1, 3, 1, 1, 3, 0.1, 0.1], np.float32)
    wanted = transform(shown, ProjectiveTransform(numbers, 1, True, np.uint8(0)), (7, 6)).astype(np.float32)
    factors, terms = np.array([0.1, 3], np.float32), np.array([5, 7], np.float32)
    wanted = wanted * factors + terms
    boxes = rng.integers(-3, 8, (ROWS, 4))
    boxes[:, 2:] = abs(boxes[:, 2:])
    for picture, (top, left, height, width) in zip(wanted, boxes, strict=True):
        picture[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = terms
    out = np.empty((ROWS, 7, 6, 2), np.float32)
    arithmetic = [(MULTIPLY, factors), (ADD, terms)]
    turn = ProjectiveTransform(numbers, 1, True, 0)
    moves_into(data, out, CropWindow(rows, columns, 77), turn, arithmetic, [Cover(boxes, terms)])
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("row", [-2, 9, 2**40])
def test_the_kernel_refuses_rows_that_are_not_there(row: int) -> None:
    out = np.empty((ROWS, 1, 1, 3), np.uint8)
    with pytest.raises(InvalidArgumentError, match="refused images"):
        moves_into(pictures(), out, CropWindow(np.full((ROWS, 1), row), np.zeros((ROWS, 1), np.int64)))


def test_the_kernel_refuses_memory_of_another_size() -> None:
    places = np.zeros((ROWS, 2), np.int64)
    with pytest.raises(InvalidArgumentError, match="refused images"):
        moves_into(pictures(), np.empty((ROWS, 2, 3, 3), np.uint8), CropWindow(places, places))
