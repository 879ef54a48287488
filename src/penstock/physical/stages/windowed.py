"""WindowedFlatMap: computes the elements of many windows at once, if the function's plan is equal for each window."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.window import WindowColumn
from penstock.physical.stretch import Stretch, failed
from penstock.physical.transform import Transforms, run_all
from penstock.plan.windows import Placed, WindowedFlatMap, plan_alike, windowed

_NBYTES = 1 << 20  # bytes of the elements that are copied at once
_LOOKED_AT = 64  # windows after which the function is called again: data that it reads may have changed


class WindowedStage(StretchStage):
    """Copies the elements of windows to the positions in the function's plan, and runs the plan's maps.

    Its states are those of a flat_map that opens each window. After the first different window, `plain` takes over: if
    its structure or size differs from the plan, if its elements differ in shape, or if the function returns another
    plan.
    """

    cuts = True
    moving = ("_number",)

    def __init__(self, outer: Stage, node: WindowedFlatMap, transforms: Transforms, plain: Callable[[], Stage]) -> None:
        super().__init__(node.label, (outer,), node.where)
        self._outer = self._reader = Cursor(outer)
        self._node = node
        self._transforms = transforms
        self._build_plain = plain
        self._plain: Stage | None = None
        self._number = 0  # number of the next window
        self._placed: dict[int, Placed | None] = {}  # by the size of a window
        self._each = 1  # elements per window of the current stretch
        self._since = 0  # windows since the function was called
        self._error: Exception | None = None  # replaces the next window

    def next(self, want: int) -> Block | None:
        if self._plain is None and self._stretch is None and not self._fits(want):
            self._go_on_with_plain(self.state())
        return super().next(want) if self._plain is None else self._plain.next(want)

    def _fits(self, want: int) -> bool:
        """Read the next windows. Return False if they differ from the plan."""
        ask = 1 if self._outer.stage.seen else -(-want // max(self._each, 1))
        try:
            if not self._outer.fill(ask):
                return True
        except Exception as error:
            self._error = failed(error)
            return True
        windows = self._outer.peek()
        columns = [column for column in windows.columns if isinstance(column, WindowColumn)]
        sizes = {column.rows.shape[1] for column in columns}
        if windows.structure != self._node.structure or len(columns) < len(windows.columns) or len(sizes) > 1:
            return False
        known = all(_is_simple(column.whole) for column in columns) and self._plans_the_same()
        return known and self._of_size(sizes.pop()) is not None

    def _of_size(self, size: int) -> Placed | None:
        if size not in self._placed:
            self._placed[size] = self._node.placed(size)
        return self._placed[size]

    def _plans_the_same(self) -> bool:
        if self._since < _LOOKED_AT:
            return True
        self._since = 0
        found = windowed(self._node.as_written)
        return found is not None and plan_alike(found.inner, self._node.inner)

    def _go_on_with_plain(self, state: State) -> None:
        self._outer.close()
        self._plain = self._build_plain()
        self._plain.restore(state)
        self._plain.start()
        self.inputs = (self._plain,)
        self.look_again()

    def make(self, want: int) -> Stretch | None:
        error, self._error = self._error, None
        if error is not None:
            self._number += 1
            raise error
        if not self._outer.available():
            return None
        windows = [column for column in self._outer.peek().columns if isinstance(column, WindowColumn)]
        placed = self._of_size(windows[0].rows.shape[1])
        assert placed is not None  # checked by `_fits`
        self._each = each = placed.count
        nbytes = sum(_nbytes(windows[component].whole) * places.size for component, places in placed.leaves)
        count = max(min(len(windows[0]), -(-want // max(each, 1)), _NBYTES // max(nbytes, 1)), 1)
        self._outer.pass_by(count)
        self._number += count
        self._since += count
        if not each:
            return Stretch(None)
        leaves = [_gathered(windows[component], places, count) for component, places in placed.leaves]
        columns = [column for leaf in leaves for column in leaf.columns]
        block = Block(placed.structure, columns, count * each, leaves[0].origin)
        return run_all(self._transforms, block, Numbers(np.tile(np.arange(each), count)))

    def state(self) -> State:
        """Return the state of a flat_map that opens each window and has yielded `given` elements of the current one."""
        if self._plain is not None:
            return self._plain.state()
        (((below, offset), number), at) = super().state()
        windows, given = (0, at) if self._stretch is None else divmod(at, self._each)
        before, number = [below, offset + windows], number + windows
        if not given:
            return [before, number, 0, 0, []]
        return [[below, offset + windows + 1], number + 1, 0, given, [[0, before, number, [None, given]]]]

    def restore(self, state: State) -> None:
        outer, number, _, _, slots, *_ = state
        if not slots:
            super().restore([[outer, number], 0])
            return
        (_, before, number, (below, given)), *others = slots
        if others or below is not None:  # the state of an opened window
            self._go_on_with_plain(state)
        else:
            super().restore([[before, number], given])

    def close(self) -> None:
        self._outer.close()
        super().close()


def _is_simple(block: Block) -> bool:
    """Return True for elements that are numbers, arrays of one shape, or byte strings."""
    column = block.columns[0]
    if type(column) is DenseColumn:
        return column.array.dtype.isnative and column.array.dtype.kind in "biufcmM"
    return type(column) is BytesColumn


def _nbytes(block: Block) -> int:
    return block.nbytes // max(block.size, 1) + 8


def _gathered(windows: WindowColumn, places: np.ndarray, count: int) -> Block:
    """Return the elements at these places of each of the first windows."""
    found = windows.whole.take(windows.rows[:count].take(places.reshape(-1), axis=1).reshape(-1))
    for size in reversed(places.shape[1:]):
        found = stack_block(found, size)
    return found
