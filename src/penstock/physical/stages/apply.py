"""Apply: transforms run by whoever pulls, one Block after the other.

StatefulMap: a function that hands a state from element to element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from types import NoneType
from typing import Any

from penstock.block.block import Block, Builder
from penstock.block.numbers import Numbers
from penstock.block.same_kind import SameKind
from penstock.block.scan_state import ScanState
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidTypeError, as_failure
from penstock.physical.chained import Chained, ChainedStage, Place, Portioned, ratios_of
from penstock.physical.stage import CountingStage, Stage, State
from penstock.physical.stretch import Stretch
from penstock.physical.transform import RunAll, Transform, agreed, checked, run_all
from penstock.trace.kinds.reader import warn_of_text_in

_SECONDS = 0.01  # of work that nobody may ask for
_MOST = 1 << 16
_FASTER = 8


class Stint:
    """How many elements functions are called for at a time, ahead of who asks: for some milliseconds at most.

    >>> stint = Stint()
    >>> stint.took(1, 1e-6)
    >>> stint.most
    8
    >>> stint.took(8, 0.4)
    >>> stint.most
    1
    """

    __slots__ = ("most",)

    def __init__(self) -> None:
        self.most = 1

    def took(self, count: int, seconds: float) -> None:
        """Take in how long the functions took for so many elements."""
        fitting = int(_SECONDS * count / seconds) if seconds else _MOST
        self.most = max(1, min(fitting, self.most * _FASTER, _MOST))


class Apply(ChainedStage):
    """Maps and filters in the pulling thread; in stints where they are called ahead, element by element."""

    def __init__(
        self,
        upstream: Stage,
        transforms: Sequence[Transform],
        run: RunAll = run_all,
        epoch: int = 0,
        stint: Stint | None = None,
    ) -> None:
        last = transforms[-1]
        super().__init__(" · ".join(t.label for t in transforms), (upstream,), last.where)
        self._upstream = upstream
        self.transforms = transforms
        for transform in transforms:
            transform.apart = False
        self._run = run
        self._epoch = epoch
        self.ratios = self._ratios = ratios_of(transforms)
        self._stint = stint
        self._count: int | None = 0  # None behind a filter that another run had in the same stage

    def make(self, want: int) -> Stretch | None:
        first = self._count
        stint = self._stint
        try:
            block = self._upstream.next(want if stint is None else min(want, stint.most))
        except Exception:
            self._passed(1)
            raise
        if block is None:
            return None
        self._passed(block.size)
        if stint is not None and _holds_objects(
            block.structure
        ):  # a class of the user's may do anything, under any name
            self.acts, self._stint = True, None
            self.look_again()
        started = perf_counter()
        made = self._run(self.transforms, block, Numbers(first, self._epoch), None)
        agreed(self.transforms, made.kinds)  # which worker processes leave to this one
        if stint is not None:
            stint.took(block.size, perf_counter() - started)
        return made

    def _passed(self, count: int) -> None:
        if self._count is not None:
            self._count += count

    def can_skip(self) -> bool:
        return self._upstream.can_skip() and all(transform.one_to_one for transform in self.transforms)

    def pass_over(self, count: int) -> int:
        passed = self._upstream.skip(count)
        self._passed(passed)
        return passed

    def place(self) -> State:
        return [self._upstream.state(), self._count]

    def go_to(self, place: State) -> None:
        below, self._count = place
        self._upstream.restore(below)

    def made_by(self) -> Sequence[Transform]:
        return self.transforms

    def chained(self, place: State, skip: int) -> State:
        below, count = place
        return Chained(below, 0, count, self._ratios, skip, self.transforms)

    def go_on(self, place: Place) -> int:
        self.go_to([place.below, None if place.count is None else place.count - place.first])
        return place.first + place.skip

    def part(self, count: int) -> None:
        self._upstream = Apply(self._upstream, self.transforms[:count], self._run, self._epoch)
        self.inputs = (self._upstream,)
        self.transforms = self.transforms[count:]
        self._ratios = self._ratios[count:]

    def portion(self) -> None:
        self._upstream = Portioned.over(self._upstream)
        self.inputs = (self._upstream,)


def _holds_objects(structure: Structure) -> bool:
    """Whether elements hold objects of classes: named tuples, dataclasses and the like."""
    plain = structure.kind in (None, tuple, dict, NoneType)
    return not plain or any(map(_holds_objects, structure.children))


class StatefulMap(CountingStage):
    """`function(state, element)` returns the next state and an element.

    Where it raises, or returns no such pair, or a state of another kind, the state stays what it was. Where only the
    element is wrong, the state goes on: the call itself has succeeded.
    """

    def __init__(
        self,
        upstream: Stage,
        function: Callable[[Any, Any], Any],
        carried: ScanState,
        label: str,
        where: str | None,
        *,
        any_rank: bool = False,
    ) -> None:
        super().__init__(upstream, label, where)
        self._function = function
        self._carried = carried
        self._same_kind = SameKind("The output of scan_func", any_rank=any_rank)
        self._looked = False  # whether the function was looked at with its first element

    def make(self, want: int) -> Stretch | None:
        first = self._count
        block = self.pull(want)
        return None if block is None else self._run(block, first)

    def _run(self, block: Block, first: int) -> Stretch:
        function, carried = self._function, self._carried
        builder = Builder(self._same_kind.structure)
        failures: list[tuple[int, Exception]] = []
        for row, element in enumerate(block.elements()):
            try:
                if not self._looked:
                    self._looked = True
                    warn_of_text_in(function, carried.nest(), element)
                pair = function(carried.nest(), element)
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise _no_pair(pair)
                held = [pair[1], pair[0]]
                del pair  # so that nobody but `held` keeps the function's arrays
                carried.replace(held)
                builder.add(held.pop())
            except Exception as raised:
                failures.append((row, as_failure(raised, self._context(block, row, first))))
        made = checked(self._same_kind, builder, block, failures, partial(self._context, block, first=first))
        return Stretch(made.block, tuple(made.failures))

    def _context(self, block: Block, row: int, first: int) -> Context:
        return Context(self.label, self.where, first + row, *block.origin_at(row))

    def place(self) -> State:
        return [*super().place(), self._carried.to_json()]

    def go_to(self, place: State) -> None:
        *below, leaves = place
        self._carried.load_json(leaves)
        super().go_to(below)


def _no_pair(found: Any) -> InvalidTypeError:
    came = f"{len(found)} values" if isinstance(found, (tuple, list)) else type(found).__name__
    message = f"scan_func returns the next state and an element of the output, got {came}."
    return InvalidTypeError(message, hint="Return (state, output).")
