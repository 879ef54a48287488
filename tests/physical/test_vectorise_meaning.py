"""Running by Block never changes what a function means: the same elements, errors and traces as element by element."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.physical import nasty_functions
from tests.physical.nasty_functions import NASTY
from tests.physical.nasty_values import MASK

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.physical.vectorise import Vectoriser

DATA = {
    f"{dtype}{list(shape)}": (np.arange(9 * int(np.prod(shape))) * 7 % 120).reshape(9, *shape).astype(dtype)
    for dtype, shape in [
        ("uint8", ()), ("int64", ()), ("float32", ()), ("float64", (1,)), ("uint8", (3,)),
        ("float32", (3, 2)), ("bool", (2,)), ("float16", (2, 1, 3)),
    ]
}  # fmt: skip
DATA["zeros"] = np.zeros(9)


def switched(ds: Any, by_block: bool) -> Any:
    options = ps.Options(seed=7)
    options.experimental_optimization.map_vectorization.enabled = by_block
    return ds.with_options(options)


def elements(ds: Any) -> list[Any]:
    """What a pass gives, with the error that ends it."""
    found: list[Any] = []
    try:
        found.extend(described(element) for element in ds.iterator(epoch=0))
    except Exception as error:
        found.append((type(error), re.sub(r"0x[0-9a-f]+", "", str(error))))
    return found


def described(element: Any) -> Any:
    if isinstance(element, tuple):
        return tuple(map(described, element))
    if isinstance(element, dict):
        return {key: described(value) for key, value in element.items()}
    array = np.asarray(element)
    return type(element), array.dtype, array.shape, repr(array.tolist())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", [None, 1, 2, 7])
@pytest.mark.parametrize("data", DATA)
def test_every_function_means_the_same(data: str, batch: int | None) -> None:
    ds = ps.Dataset.from_tensor_slices(DATA[data])
    if batch is not None:
        ds = ds.batch(batch)
    differing = []
    for name, make in NASTY.items():
        outcomes = []
        for by_block in (True, False):
            function, left = make()
            outcomes.append((elements(switched(ds.map(function), by_block)), repr(left)))
        if outcomes[0] != outcomes[1]:
            differing.append((name, *outcomes))
    assert differing == []


def test_they_are_many() -> None:
    assert len(NASTY) >= 60


def written(first: Any, second: Any) -> tuple[Any, Any]:
    first += 1000
    return first, second


@pytest.mark.parametrize(
    "twice",
    [
        lambda x: (x, x),
        lambda x: (x, ps.image.flip_left_right(x)),
        lambda x: (x, ps.image.convert_image_dtype(x, np.float32)),
        lambda x: (ps.image.flip_up_down(x), ps.image.flip_left_right(x)),
        lambda x: (x, ps.image.random_flip_left_right(x)),
    ],
)
@pytest.mark.parametrize("sizes", ["one", "several"])
@pytest.mark.parametrize("between", ["nothing", "prefetch", "batch"])
def test_who_writes_into_one_part_of_a_result_changes_no_other(twice: Any, sizes: str, between: str) -> None:
    def pictures() -> Any:
        for n in range(6):
            yield np.full((4, 5 if sizes == "one" else 5 + n % 2, 1), n, np.float32)

    def pass_of(by_block: bool) -> list[Any]:
        ds = ps.Dataset.from_generator(pictures, output_signature=ps.TensorSpec((4, None, 1), np.float32))
        ds = ds.map(lambda x: x * 2).map(twice)
        if between == "prefetch":
            ds = ds.prefetch(2)
        if between == "batch":
            ds = ds.batch(1)
        return [[part.tolist() for part in written(*element)] for element in switched(ds, by_block)]

    assert pass_of(by_block=True) == pass_of(by_block=False)


def test_rows_of_a_batch_are_mapped_to_parts_that_share_nothing() -> None:
    def twice(row: Any) -> Any:
        double = row * 2
        return double, double

    first, second = ps.map_fn(twice, np.zeros((3, 2)))
    first += 1
    assert second.tolist() == np.zeros((3, 2)).tolist()
    ds = ps.Dataset.from_tensor_slices(np.zeros((4, 3, 2))).map(lambda batch: ps.map_fn(twice, batch))
    for first, second in ds:
        first += 1
        assert second.max() == 0


@pytest.mark.filterwarnings("ignore")
def test_what_runs_by_block_is_told_from_what_must_not() -> None:
    """The comparison above would be easy if nothing ran by Block."""
    by_block = [name for name, make in NASTY.items() if runs_by_block(make()[0])]
    assert {"overflow", "where", "the_rank", "an_enum", "an_ordered_dict", "casts"} <= set(by_block)
    changing = {name for name, make in NASTY.items() if make.__module__ == nasty_functions.__name__}
    assert not changing & set(by_block)


def runs_by_block(function: Callable[..., Any]) -> bool:
    with np.errstate(all="ignore"):
        return Vectoriser(function).run(Block.single(DenseColumn(np.arange(3))), None) is not None


def test_the_random_flip_of_a_constant_is_drawn_for_each_element() -> None:
    ds = switched(ps.Dataset.range(64).map(lambda x: x * 0.0 + ps.image.random_flip_left_right(MASK)), by_block=True)
    assert len({str(element.tolist()) for element in ds}) == 2
