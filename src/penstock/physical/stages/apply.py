"""`ApplyStage` runs transforms in the consumer's thread, one Block after another.

`StatefulMapStage` calls a function with a state that is passed from element to element.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import perf_counter, process_time
from types import NoneType
from typing import Any

from penstock.block.block import Block, BlockBuilder
from penstock.block.numbers import Numbers
from penstock.block.same_kind import SameKind
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidTypeError, as_failure
from penstock.frames import tidied
from penstock.physical.chained import Chained, ChainedStage, Portioned, ResumePlace, Stint, ratios_of
from penstock.physical.singly import Singly
from penstock.physical.stage import CountingStage, Stage, State
from penstock.physical.stretch import Stretch
from penstock.physical.transform import FunctionTransform, RunAll, Transforms, agreed, checked, run_all
from penstock.plan.stateful import StatefulMap

# A tokeniser gets so many times more elements per request, because the threads of its library take time to wake up.
_TEXTS = 4


class ApplyStage(ChainedStage):
    """Maps and filters in the consumer's thread. Functions called ahead run for limited times, others per element."""

    def __init__(
        self,
        upstream: Stage,
        transforms: Transforms,
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
        self._singly = Singly.of(transforms) if run is run_all else None
        self._count: int | None = 0  # None after a filter that was part of the same stage in another run

    @property
    def at_end(self) -> bool:
        return self._stretch is None and self._upstream.at_end

    def make(self, want: int) -> Stretch | None:
        self._catch_up()
        first = self._count
        stint = self._stint
        try:
            tokenises = any(isinstance(each, FunctionTransform) and each.tokenises for each in self.transforms)
            if stint is not None:
                want = _TEXTS * stint.most if tokenises else min(want, stint.most)
            block = self._upstream.next(want)
        except Exception:
            self._passed(1)
            raise
        if block is None:
            return None
        self._passed(block.size)
        if stint is not None and _holds_objects(block.structure):  # an object of a user's class may have side effects
            self.acts, self._stint = True, None
            self.look_again()
        started, before = perf_counter(), process_time()
        made = self._run(self.transforms, block, Numbers(first, self._epoch), None)
        agreed(self.transforms, made.kinds)  # the kinds that worker processes leave undecided
        if stint is not None:
            took = perf_counter() - started
            stint.took(
                block.size, min(took, process_time() - before) if tokenises else took
            )  # threads may have to wait for a core
        return made

    def singly(self, raised: list[BaseException]) -> Iterator[Any] | None:
        if self._singly is None or self._stretch is not None or self._stretch_skip or self.watched or not self.seen:
            return None
        if self.alone:  # before the first call
            self.portion()
            first = tidied(self._ahead, raised)
            if first is None:
                return iter(()) if raised else None
            if not self._singly.suits(first, Numbers(self._count, self._epoch)):
                self._singly = None
                return None
            self.alone = self._upstream.alone = False
        return self._one_by_one(self._singly, raised)

    def _one_by_one(self, singly: Singly, raised: list[BaseException]) -> Iterator[Any]:
        try:
            while self.seen and not raised and (block := tidied(self._ahead, raised)) is not None:
                yield from singly.elements(block, Numbers(self._count, self._epoch), raised)
        except Exception as error:  # an error of the engine, not of a function: it ends the run
            raised.append(error)

    def _ahead(self, raised: list[BaseException]) -> Block | None:
        """Return the input's available elements; None at the end, or after a failure, which goes into `raised`."""
        self._catch_up()
        upstream = self._upstream
        assert isinstance(upstream, Portioned)
        try:
            return upstream.peek() if upstream.fill(1) else None
        except BaseException as error:
            self._passed(isinstance(error, Exception))
            raised.append(error)
            return None

    def _catch_up(self) -> None:
        """Drop the elements that were computed one by one from the input."""
        if self._singly is not None and self._singly.done:
            assert isinstance(self._upstream, Portioned)
            self._upstream.pass_by(self._singly.done)
            self._passed(self._singly.done)
            self._singly.done = 0

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
        self._catch_up()
        return [self._upstream.state(), self._count]

    def go_to(self, place: State) -> None:
        below, self._count = place
        self._upstream.restore(below)

    def made_by(self) -> Transforms:
        return self.transforms

    def chained(self, place: State, skip: int) -> State:
        below, count = place
        return Chained(below, 0, count, self._ratios, skip, self.transforms)

    def go_on(self, place: ResumePlace) -> int:
        if isinstance(self._upstream, Portioned):  # no function is called for dropped elements
            self.go_to([Chained(place.below, 0, 0, (), place.first), place.count])
            return place.skip
        self.go_to([place.below, None if place.count is None else place.count - place.first])
        return place.first + place.skip

    def part(self, count: int) -> None:
        self._upstream = ApplyStage(self._upstream, self.transforms[:count], self._run, self._epoch)
        self.inputs = (self._upstream,)
        self.transforms = self.transforms[count:]
        self._ratios = self._ratios[count:]
        self._singly = Singly.of(self.transforms) if self._run is run_all else None

    def portion(self) -> None:
        self._upstream = Portioned.over(self._upstream)
        self.inputs = (self._upstream,)


def _holds_objects(structure: Structure) -> bool:
    """Return True if elements contain objects: named tuples, dataclasses and the like."""
    plain = structure.kind in (None, tuple, dict, NoneType)
    return not plain or any(map(_holds_objects, structure.children))


class StatefulMapStage(CountingStage):
    """Calls `function(state, element)`, which returns the next state and an element.

    If it raises, returns no such pair, or returns a state of another kind, the state stays unchanged. If only the
    element is invalid, the new state is used, because the call itself succeeded.
    """

    def __init__(self, upstream: Stage, node: StatefulMap) -> None:
        super().__init__(upstream, node)
        self._function = node.function
        self._carried = node.initial_state.carried()
        self._same_kind = SameKind("The output of scan_func", any_rank=node.any_rank)

    def make(self, want: int) -> Stretch | None:
        first = self._count
        block = self.pull(want)
        return None if block is None else self._run(block, first)

    def _run(self, block: Block, first: int) -> Stretch:
        function, carried = self._function, self._carried
        builder = BlockBuilder(self._same_kind.structure)
        failures: list[tuple[int, Exception]] = []
        for row, element in enumerate(block.elements()):
            try:
                pair = function(carried.nest(), element)
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise _no_pair(pair)
                held = [pair[1], pair[0]]
                del pair  # only `held` may refer to the function's arrays
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
