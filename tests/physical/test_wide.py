"""Functions of wide dicts, called with the items that they use alone, do what they do as they are written."""

from __future__ import annotations

import os
import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.physical.test_parted import described, told
from tests.physical.wide_functions import ENDS, LINES, made, rows

import penstock as ps

MANY = int(os.environ.get("PENSTOCK_MANY_PHRASINGS", "0"))  # `make fuzz`: all of them


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.trace.parts._MADE_UP", 0)


def outcome(lines: tuple[str, ...], end: str, how: str, *, by_block: bool, capsys: Any) -> Any:
    """All that can be seen of two passes: elements, errors, what was printed and what the function left."""
    function, names = made(lines, end)
    options = ps.Options(seed=7)
    options.experimental_optimization.map_vectorization.enabled = by_block
    source = rows()
    ds = source.filter(function) if how == "filter" else source.map(function)
    ds = (ds.batch(4) if how == "batch" else ds).with_options(options)
    found: list[Any] = []
    for epoch in range(2):
        try:
            found.extend(_in_order(element) for element in ds.iterator(epoch=epoch))
        except Exception as error:
            found.append(told(error))
    return found, _in_order([names["LOG"], names["NAMES"], names["TABLE"], names["TOTAL"]]), capsys.readouterr()


def _in_order(element: Any) -> Any:
    if isinstance(element, dict):
        return dict, [(key, _in_order(value)) for key, value in element.items()]
    if isinstance(element, (tuple, list)):
        return type(element), [_in_order(item) for item in element]
    writeable = isinstance(element, np.ndarray) and element.flags.writeable
    return described(element), writeable


def differing(chosen: Any, capsys: Any) -> list[Any]:
    found = []
    for lines, end, how in chosen:
        with np.errstate(all="ignore"):
            fast = outcome(lines, end, how, by_block=True, capsys=capsys)
            plain = outcome(lines, end, how, by_block=False, capsys=capsys)
        if fast != plain:
            found.append((lines, end, how, fast, plain))
    return found


HOW = "map", "batch", "filter"


def _chosen() -> list[Any]:
    """Each line, with some other and some end; or as many pairs of lines as are asked for."""
    ends, lines, pick = list(ENDS), list(LINES), random.Random(3)
    found = [((line,), ends[i % len(ends)], HOW[i % 3]) for i, line in enumerate(lines)]
    found += [((line, lines[(7 * i + 3) % len(lines)]), ends[(i + 5) % 9], HOW[i % 2]) for i, line in enumerate(lines)]
    if MANY:
        every = list(product(lines, lines, ends, HOW))
        found += [((one, two), end, how) for one, two, end, how in pick.sample(every, MANY * 1000)]
    return found


CHOSEN = _chosen()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_lines_that_cannot_be_traced_change_nothing(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert differing(CHOSEN[part::8], capsys) == []


COLUMNS = {"a": np.arange(9), "x": np.zeros(9), "y": np.zeros(9), "v": np.ones((9, 2))}
KEPT: list[Any] = []


class Swallows:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> bool:
        return True


def itself(value: Any) -> Any:
    try:
        return value
    finally:
        pass


def stored_where_an_error_is_swallowed(r: Any) -> Any:
    with Swallows():
        if r["a"] == 5:
            raise ValueError
        r["x"] = np.float64(7)
    return itself(r)


def bound_unless_an_error_is_swallowed(r: Any) -> Any:
    with Swallows():
        y = {0: 7, 2: 8, 4: 9, 6: 1, 8: 2}[int(r["a"])]
    v = r["v"] * 2
    z = y if r["a"] % 2 == 0 else -1
    return {**r, "v": v, "x": np.float64(z)}


def nested_dicts_with_arrays(r: Any) -> Any:
    meta = r["meta"]
    if int(r["a"]) > 3:
        meta["x"] = meta["x"] + 1
    return itself(r["v"]) * 2, r["a"]


def matched_by_its_own_name(r: Any) -> Any:
    match {"x": int(r["a"]) * 10, "y": 1}:
        case r:
            pass
    r["x"] = r["x"] + 1
    return r


def imported_by_its_own_name(r: Any) -> Any:
    if int(r["a"]) > 100:
        import math as r
    r["x"] = r["x"] + 1
    return r


def variable_of_a_comprehension(r: Any) -> Any:
    [0 for r["x"] in (1, int(r["a"]) + 100)]
    return r


def compared_with_what_was_kept(r: Any) -> Any:
    KEPT.append(r["v"])
    return {**r, "same": KEPT[-1] is r["v"], "z": itself(r["v"]) * 2}


@pytest.mark.parametrize(
    "function",
    [
        stored_where_an_error_is_swallowed,
        bound_unless_an_error_is_swallowed,
        nested_dicts_with_arrays,
        matched_by_its_own_name,
        imported_by_its_own_name,
        variable_of_a_comprehension,
        compared_with_what_was_kept,
    ],
)
def test_what_looks_like_an_item_and_is_more(function: Any) -> None:
    source = ps.Dataset.from_tensor_slices({**COLUMNS, "meta": {"x": np.arange(9), "y": np.ones((9, 2))}}).repeat(20)
    options = ps.Options()
    options.experimental_optimization.map_vectorization.enabled = False
    fast = [_in_order(element) for element in source.map(function)]
    assert fast == [_in_order(element) for element in source.map(function).with_options(options)]


def differences(r: Any) -> Any:
    difference = r["v"] - KEPT[-1]
    KEPT.append(r["v"])
    return {**r, "d": difference}


def differences_of_the_unknown(r: Any) -> Any:
    exec("pass")
    return differences(r)


@pytest.mark.parametrize("function", [differences, differences_of_the_unknown])
def test_an_array_that_the_function_kept_is_not_the_consumers(function: Any) -> None:
    KEPT[:] = [np.zeros(4)]
    made = ({"v": np.full(4, float(i)), "a": i, "b": i, "c": i} for i in range(12))
    found = []
    for element in ps.Dataset.from_generator(lambda: made).map(function):
        found.append(element["d"][0])
        element["v"] *= 0
    assert found == [0, *[1] * 11]
