"""InputMaps: the maps of small inputs, which run on elements of several inputs at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.block import Block
from penstock.physical.inner_plans import Maps
from penstock.physical.stretch import Stretch

_MOST = 1 << 16


class InputMaps:
    """Runs the maps of inputs on joined elements.

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
    """Return the results of maps for the first elements: as many as have one form, or with `apart` one input."""
    groups = [at if apart else id(maps[at].maps) for at in which.tolist()]
    stop = next((row for row, group in enumerate(groups) if group != groups[0]), len(groups))
    inputs, of_inputs = np.unique(which[:stop], return_inverse=True)
    return Maps.run_of([maps[at] for at in inputs.tolist()], block.slice(0, stop), of_inputs, numbers[:stop])
