"""Maps of small inner data sets, which run on joined elements of several inputs of an interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.block.structure import Structure, components, flatten
from penstock.physical.stretch import Stretch
from penstock.physical.transform import FunctionTransform, run_all

_MOST = 1 << 16


class Maps(NamedTuple):
    """The maps of a small inner data set: those of its form, and the functions that differ from them."""

    maps: Sequence[FunctionTransform] = ()
    own: Sequence[Callable[..., Any] | None] = ()


NO_MAPS = Maps()


def _called(
    functions: Sequence[Callable[..., Any]], inputs: Iterator[int], order: dict[int, Structure], *element: Any
) -> Any:
    """Call the function of the next input. `order` receives the nest of the first result of each input."""
    at = next(inputs)
    result = functions[at](*element)
    if at not in order:
        order[at] = flatten(components(result))[1]
    return result


class InputMaps:
    """Runs the maps of small inputs on joined elements.

    If a map fails, each input runs separately, because a result may differ in kind from those of other inputs. The same
    applies if the order of dict keys differs between inputs.
    """

    def __init__(self) -> None:
        self.most = _MOST  # elements that the maps receive at a time
        self._apart = False  # True if maps run for each input separately

    def run(self, block: Block, which: np.ndarray, numbers: np.ndarray, maps: Sequence[Maps]) -> Block | Exception:
        """Return the results for elements up to the first failure, or that failure.

        Element i of `block` is number `numbers[i]` of input `which[i]`.
        """
        found, alike = _first_run(block, which, numbers, maps, apart=self._apart)
        if not self._apart and (found.failures or not alike):
            self._apart = not alike
            found, _ = _first_run(block, which, numbers, maps, apart=True)
        self.most = 1 if found.failures else min(2 * self.most, _MOST)
        return next(iter(found.pieces()))


def _first_run(
    block: Block, which: np.ndarray, numbers: np.ndarray, maps: Sequence[Maps], *, apart: bool
) -> tuple[Stretch, bool]:
    """Return the results of maps for the first elements: as many as have one form, or with `apart` one input.

    The second value is False if functions of different inputs return dicts with different orders of keys.
    """
    groups = [at if apart else id(maps[at].maps) for at in which.tolist()]
    stop = next((row for row, group in enumerate(groups) if group != groups[0]), len(groups))
    inputs, of_inputs = np.unique(which[:stop], return_inverse=True)
    own = [maps[at].own for at in inputs.tolist()]
    transforms: list[FunctionTransform] = []
    orders: list[dict[int, Structure]] = []
    for index, transform in enumerate(maps[inputs[0]].maps):
        functions = [each[index] or transform.function for each in own]
        if all(function is transform.function for function in functions):
            transforms.append(transform.again())
        else:
            orders.append({})
            transforms.append(transform.plain(partial(_called, functions, iter(of_inputs.tolist()), orders[-1])))
    found = run_all(transforms, block.slice(0, stop), Numbers(numbers[:stop]))
    return found, all(len(set(order.values())) < 2 for order in orders)
