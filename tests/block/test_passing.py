"""`PassingBuilder` builds the same as `BlockBuilder`, for any elements that a function returns unchanged."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.block.block import Block, BlockBuilder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.passing import PassingBuilder
from penstock.block.structure import Structure, flatten
from penstock.physical.vectorise import equal_blocks

ROWS = 6


def block() -> Block:
    rng = np.random.default_rng(0)
    columns: dict[str, Column] = {
        "number": DenseColumn(np.arange(ROWS)),
        "flag": DenseColumn(np.array([True, True, False, True, False, True])),
        "other": DenseColumn(np.array([True, False, False, True, True, True])),
        "vector": DenseColumn(rng.normal(size=(ROWS, 8))),
        "matrix": DenseColumn(rng.normal(size=(ROWS, 2, 3))),
        "turned": DenseColumn(rng.normal(size=(ROWS, 3, 2)).transpose(0, 2, 1)),
        "text": BytesColumn.from_values([b"", b"a", b"bc", b"", b"d", b"e"]),
        "texts": BytesColumn.from_values([b"a", b"b"] * ROWS, (2,)),
        "several": ListColumn([np.arange(i + 1) for i in range(ROWS)]),
    }
    structure = flatten(dict.fromkeys(columns, 0))[1]
    return Block(structure, list(columns.values()), ROWS)


KEPT: list[np.ndarray] = []


def is_passed(column: Column, given: Column) -> bool:
    """Return True if it is the same column, or read-only memory of it."""
    if not (isinstance(column, DenseColumn) and isinstance(given, DenseColumn)) or column is given:
        return column is given
    first, second = column.array, given.array
    same = first.ctypes.data == second.ctypes.data and first.strides == second.strides and first.shape == second.shape
    return same and first.dtype == second.dtype and not first.flags.writeable


def _shaped(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object and value.flags.c_contiguous:
        value.shape = (value.size,)
    return value


def _kept(value: Any) -> Any:
    KEPT.append(value)
    return value


def _fails(value: Any) -> Any:
    return object()


CHANGES: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda value: value,
    "a copy": lambda value: value.copy() if isinstance(value, np.ndarray) else value,
    "a view": lambda value: value[::-1] if isinstance(value, np.ndarray) else value,
    "kept": _kept,
    "shaped in place": _shaped,
    "of no kind": _fails,
    "text": lambda value: "text",
}


def results(builder: BlockBuilder, elements: list[Any], seed: int, *, nested: bool) -> Any:
    pick = random.Random(seed)
    usual = {name: pick.choice([*CHANGES][:4]) for name in elements[0]}
    KEPT.clear()
    failed = []
    for row, element in enumerate(elements):
        if isinstance(builder, PassingBuilder):
            builder.row = row
        for kept in KEPT:
            if isinstance(kept, np.ndarray) and pick.random() < 0.5:
                _shaped(kept)
        how = {name: pick.choice([*CHANGES]) if pick.random() < 0.04 else usual[name] for name in element}
        made = {name: CHANGES[how[name]](value) for name, value in element.items()}
        if seed % 3 == 0:
            made["again"] = element["vector"]
        if seed % 5 == 0:
            made["flag"], made["other"] = made["other"], made["flag"]
        try:
            builder.add((made, row) if nested else made)
        except Exception as error:
            failed.append((row, str(error)))
    if not len(builder):
        return None, failed
    try:
        return builder.build(), failed
    except Exception as error:
        chosen = builder.chosen([0]).build()
        return chosen, [*failed, str(error)]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_it_makes_what_a_builder_makes(nested: bool, known: bool) -> None:
    passed = 0
    for seed in range(150):
        given = block()
        structure: Structure | None = None
        if known:
            first: Any = dict(given.elements()[0])
            first |= {"again": 0} if seed % 3 == 0 else {}
            structure = flatten((first, 0) if nested else first)[1]
        fast = PassingBuilder(structure, given)
        got, failures = results(fast, fast.elements, seed, nested=nested)
        wanted, as_written = results(BlockBuilder(structure), block().elements(), seed, nested=nested)
        assert failures == as_written, seed
        if wanted is None:
            assert got is None
            continue
        assert got.structure == wanted.structure
        assert got.size == wanted.size
        assert equal_blocks(got, wanted), seed
        own = [column for column in got.columns if any(is_passed(column, one) for one in given.columns)]
        pairs = itertools.combinations(own, 2)
        assert not any(is_passed(first, second) for first, second in pairs), "two results are one column"
        passed += len(own)
    assert passed > 100


def test_what_is_given_back_is_not_copied() -> None:
    given = block()
    builder = PassingBuilder(None, given)
    for row, element in enumerate(builder.elements):
        builder.row = row
        builder.add({**element, "number": 0})
    made = builder.build()
    same = [
        name for name, a, b in zip(made.structure.names, made.columns, given.columns, strict=True) if is_passed(a, b)
    ]
    assert same == ["flag", "other", "vector", "matrix", "text"]


def test_a_value_that_is_given_another_shape_later_was_what_it_was() -> None:
    given = block()
    builder = PassingBuilder(None, given)
    for row, element in enumerate(builder.elements):
        builder.row = row
        builder.add(element)
        for value in (element["vector"], element["matrix"]):
            value.shape = (value.size, 1)
    made = builder.build()
    for name, column, own in zip(made.structure.names, made.columns, given.columns, strict=True):
        assert is_passed(column, own) or name in ("turned", "texts", "several")
