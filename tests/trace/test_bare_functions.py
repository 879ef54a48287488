"""Functions of Python and numpy work like a lambda that calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.trace.purity import may_draw, why_impure

D = ps.Dataset
DATA = {
    "vectors": D.from_tensor_slices(np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)),
    "numbers": D.from_tensor_slices(np.arange(-30, 30, dtype=np.int32)),
    "ragged": D.from_generator(lambda: (np.arange(at % 7) for at in range(60))),
    "text": D.from_tensor_slices([b"t" * (at % 5) for at in range(60)]),
}


def outcomes(ds: Any) -> list[Any]:
    found: list[Any] = []
    iterator = iter(ds)
    while True:
        try:
            element = np.asarray(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error), str(error).splitlines()[0]))
            continue
        found.append((element.dtype, element.shape, element.tobytes()))


def per_element(ds: Any) -> Any:
    options = ps.Options()
    options.experimental_optimization.map_vectorization = False
    return ds.with_options(options)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("function", [len, int, float, abs, bool, str, sum, max, np.sum, np.mean, np.abs, np.sqrt])
def test_a_bare_function_gives_what_it_gives_per_element(function: Callable[..., Any], data: str) -> None:
    assert why_impure(function) is None
    assert not may_draw(function)
    for ds in (DATA[data].map(function), DATA[data].map(function).filter(bool)):
        assert outcomes(ds) == outcomes(per_element(ds))


def test_keys_and_lengths() -> None:
    ragged = DATA["ragged"]
    bucketed = ragged.bucket_by_sequence_length(len, [2, 4], [3, 3, 3])
    assert outcomes(bucketed) == outcomes(per_element(bucketed))
    assert outcomes(bucketed) == outcomes(ragged.bucket_by_sequence_length(lambda x: len(x), [2, 4], [3, 3, 3]))
    grouped = DATA["numbers"].group_by_window(abs, lambda key, w: w.batch(2), 2)
    assert outcomes(grouped) == outcomes(per_element(grouped))


def test_others_are_called_as_they_are() -> None:
    for function in (print, id, hash, input, np.random.permutation):
        assert why_impure(function) is not None
