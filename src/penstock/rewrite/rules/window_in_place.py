"""Windows without data sets:  FlatMap(f)·Window(n)·x   →   WindowedFlatMap(f)·Window(n)·x

The results are equal because f only names steps of a window and reads none of its elements. Its plan is the same for
all windows. The rule calls f once, with a placeholder for a window. The returned plan defines the place of each element
of a window. It may have `batch`, `take`, `skip`, `shard` and `zip`, and pure maps after them. The elements of many
windows are then copied at once. A data set per window would cost a hundred times as much as copying the elements of the
window.
"""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import FlatMap
from penstock.plan.windows import windowed
from penstock.rewrite.rule import rule


@rule(FlatMap, "Copies many windows at once if a flat_map batches them.", for_lint=False)
def window_in_place(node: FlatMap) -> Node | None:
    """FlatMap(f)·Window·x copies the elements of many windows at once if f reads none of them."""
    return windowed(node) if type(node) is FlatMap else None
