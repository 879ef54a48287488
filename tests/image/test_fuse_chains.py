"""A function of image operations in any order gives the same bits fused, and called for each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column
from penstock.block.numbers import Numbers
from penstock.image.colour.adjust import adjust_contrast, random_brightness, random_hue
from penstock.image.fuse import chain, fuse
from penstock.trace.drawing import Draws, drawing
from penstock.trace.graph import Graph
from penstock.trace.traced import trace

image = ps.image
Step = Callable[[Any], Any]
ROWS = 3
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_there() -> None:
    chain._NATIVE.loaded()


def _in_place(how: str, number: Any) -> Step:
    def step(x: Any) -> Any:
        if how == "divide":
            x /= number
        elif how == "subtract":
            x -= number
        else:
            x *= number
        return x

    return step


def _numbers(channels: int) -> st.SearchStrategy[Any]:
    single = st.sampled_from([255.0, 127.5, np.float32(255), np.float32(0.1), 3, 256, np.float64(0.3), 58.395])
    several = [MEAN, STD * np.float32(255), np.array([[[1.5, 2, 3]]]), np.array([1, 2, 3], np.uint8)]
    return st.one_of(single, st.sampled_from(several)) if channels == 3 else single


@st.composite
def _of_values(draw: Any, channels: int) -> Step:
    """What changes each value by itself."""
    kind = draw(st.sampled_from(["cast", "astype", "convert", "arithmetic", "arithmetic", "left", "normalize"]))
    number = draw(_numbers(channels))
    if kind == "cast":
        dtype = draw(st.sampled_from([np.float32, np.float64, np.float16, np.int32]))
        return lambda x: image.cast(x, dtype)
    if kind == "astype":
        dtype = draw(st.sampled_from([np.float32, np.float32, np.float64, np.int16]))
        return lambda x: x.astype(dtype)
    if kind == "convert":
        return lambda x: image.convert_image_dtype(x, np.float32)
    if kind == "normalize" and channels == 3:
        return lambda x: image.normalize(x, MEAN, STD)
    if kind == "left":
        return lambda x: number * x
    ufunc = draw(st.sampled_from([np.add, np.subtract, np.multiply, np.divide, np.floor_divide]))
    return lambda x: ufunc(x, number)


@st.composite
def _moves(draw: Any, channels: int) -> Step:
    """What only says which pixels are read."""
    height, width = draw(st.integers(5, 30)), draw(st.integers(5, 30))
    top, left = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    fraction = draw(st.sampled_from([0.5, 0.87, 1.0]))
    steps: list[Step] = [
        image.flip_left_right,
        image.flip_up_down,
        image.random_flip_left_right,
        image.random_flip_up_down,
        lambda x: image.random_crop(x, (height, width, channels)),
        lambda x: image.crop_to_bounding_box(x, top, left, height, width),
        lambda x: image.central_crop(x, fraction),
    ]
    return draw(st.sampled_from(steps))


@st.composite
def _resizes(draw: Any) -> Step:
    size = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    method = draw(st.sampled_from(["bilinear"] * 6 + ["nearest", "bicubic", "area"]))
    antialias = draw(st.sampled_from([False, False, False, True]))
    if draw(st.integers(0, 3)) == 0:
        return lambda x: image.random_resized_crop(x, size, method=method, antialias=antialias)
    return lambda x: image.resize(x, size, method, antialias=antialias)


@st.composite
def _after(draw: Any, channels: int) -> Step:
    number = draw(_numbers(channels))
    steps: list[Step] = [_in_place(how, number) for how in ("divide", "subtract", "multiply")]
    return draw(st.one_of(st.sampled_from(steps), _of_values(channels), _moves(channels)))


@st.composite
def functions(draw: Any) -> Step:
    """decode, then moves, changes of values and colours in any order, a resize, and more of them."""
    channels = draw(st.sampled_from([3, 3, 1]))
    decode = draw(st.sampled_from([image.decode_jpeg, image.decode_jpeg, image.decode_image]))
    colours: list[Step] = [
        lambda x: random_hue(x, 0.2),
        lambda x: random_brightness(x, 0.2),
        lambda x: adjust_contrast(x, 1.3),
    ]
    coloured = st.sampled_from(colours) if channels == 3 and draw(st.booleans()) else _moves(channels)
    steps = draw(st.lists(st.one_of(coloured, _moves(channels), _of_values(channels)), max_size=4))
    steps += [draw(_resizes())] if draw(st.integers(0, 3)) else []
    steps += draw(st.lists(_after(channels), max_size=4))

    def function(content: bytes) -> Any:
        x = decode(content, channels=channels)
        for step in steps:
            x = step(x)
        return x

    return function


def _files() -> list[bytes]:
    rng = np.random.default_rng(3)
    sizes = [(40, 50), (33, 61), (64, 35)]
    pictures = [rng.integers(0, 256, (*size, 3), np.uint8) for size in sizes]
    return [image.encode_jpeg(p, quality=90, progressive=i == 1) for i, p in enumerate(pictures)]


FILES = _files()


DRAWS = Draws(11, Numbers(0))


def _called(function: Step) -> list[Any] | str:
    """What it gives for each element, or the class of its error."""
    with drawing(DRAWS) as element, np.errstate(all="ignore"):
        found = []
        for row, content in enumerate(FILES):
            element.begin(row)
            try:
                found.append(np.asarray(function(content)))
            except Exception as error:
                return type(error).__name__
    return found


def _run(graph: Graph) -> list[Any] | str:
    try:
        with np.errstate(all="ignore"):
            column: Column = graph.run([BytesColumn.from_values(FILES)], ROWS, keys=DRAWS.of(ROWS))[0]
    except Exception as error:
        return type(error).__name__
    return list(column.values())


@given(functions())
def test_fused_and_called_one_by_one_agree(function: Step) -> None:
    column = BytesColumn.from_values(FILES)
    found = trace(function, Block.single(column).structure, [column.spec()])
    if found.graph is None:  # then it is called for each element
        return
    wanted = _called(function)
    for graph in (found.graph, fuse(found.graph), fuse(found.graph, copied=[0])):
        made = _run(graph)
        if isinstance(wanted, str) or isinstance(made, str):
            assert isinstance(wanted, str)
            assert isinstance(made, str)
            continue
        for one, other in zip(made, wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert one.tobytes() == other.tobytes(), graph.describe()
