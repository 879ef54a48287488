"""Windows without data sets:  FlatMap(f)·Window(n)·x   →   WindowedFlatMap(f)·Window(n)·x

Equal because f names steps of a window, and reads none of its elements: it plans the same for all windows. Called once,
with a placeholder for a window, it returns a plan that says which elements of a window come where: `batch`, `take`,
`skip`, `shard` and `zip`, and pure maps behind them. The elements of many windows are copied there at once. A data set
for each window, its steps and their states cost a hundred times what copying its elements costs.
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
