"""Maker: computes any range of a part's elements, from the base and the middle steps."""

from __future__ import annotations

import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from penstock.block.block import Block
from penstock.delivery.part import PlanPart
from penstock.delivery.results import packed
from penstock.errors import said
from penstock.physical.access import stretch_of
from penstock.physical.lower import Lowering, lower, register, transform_of
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.apply import ApplyStage
from penstock.physical.stretch import Fatal, Stretch, failed
from penstock.physical.transform import BlockTransform
from penstock.plan.counted import Seen, Unbatch
from penstock.plan.node import UnaryNode
from penstock.plan.ops import Filter, Map
from penstock.rewrite.driver import optimise_inner
from penstock.runtime.executors import InlineExecutor
from penstock.runtime.processes.link import EMPTY, Pickled
from penstock.runtime.processes.worker import packed_end

Answer = tuple[tuple[Any, ...], Pickled]  # the head of a message, and its content
KEPT_BYTES = 1 << 28  # bytes of results of shared jobs that are stored for other consumers
MOST_MAKERS = 8  # iterations whose base is open in a worker
_LOG = logging.getLogger("penstock.delivery")
_MANY = 1 << 20  # elements; more than a range has
_FEW_BYTES = 1 << 20  # results of up to so many bytes are merged before they are sent
_STRIDE = 1024  # elements of the base that are skipped at once


class RangeResults(NamedTuple):
    """The results of a range: stretches of elements and failures.

    `nbytes` is their size before they were finished, and `elements` the number of base elements in the range.
    """

    parts: list[Stretch]
    elements: int
    ended: bool
    seconds: float
    nbytes: int


class GivenStage(Stage):
    """A stage that yields elements and failures that already exist."""

    def __init__(self, label: str, where: str | None, found: Stretch) -> None:
        super().__init__(label, (), where)
        self._pieces = list(found.pieces())[::-1]

    def next(self, want: int) -> Block | None:
        if not self._pieces:
            return None
        piece = self._pieces.pop()
        if isinstance(piece, Exception):
            raise piece
        return piece

    def state(self) -> State:
        return 0

    def restore(self, state: State) -> None:
        """Do nothing, because this stage has no state to restore."""


class _Holder(Seen):
    """A placeholder below a middle step, for the stage that yields its elements."""

    stages: list[Stage] = field(default_factory=list, compare=False, repr=False)

    name: ClassVar[str] = "given"


@register(_Holder)
def _held(node: _Holder, lowering: Lowering) -> Stage:
    return node.stages[-1]


class _Functions:
    """A chain of maps and filters."""

    def __init__(self, steps: Sequence[Map | Filter], lowering: Lowering) -> None:
        self._transforms: list[BlockTransform] = [transform_of(step, lowering.options) for step in steps]
        self._run = lowering.executor.run_all(self._transforms)

    def over(self, upstream: Stage, below: State, first: int | None, lowering: Lowering) -> tuple[Stage, State]:
        stage = ApplyStage(upstream, self._transforms, self._run, lowering.epoch)
        steps: list[list[Any]] = []
        number = first
        for transform in self._transforms:
            steps.append([number, 0])
            number = number if transform.one_to_one else None
        return stage, {"below": below, "skip": 0, "steps": steps}

    def number(self, first: int | None) -> int | None:
        return first if all(transform.one_to_one for transform in self._transforms) else None


class _Batch:
    """A batch of any kind."""

    def __init__(self, step: Any) -> None:
        self._holder = _Holder(element=step.input.element, count=step.input.count, where=None)
        # Workers of its own would exceed the number of threads of this process.
        one = {"num_parallel_calls": None} if hasattr(step, "num_parallel_calls") else {}
        self._step = replace(step, input=self._holder, **one)

    def over(self, upstream: Stage, below: State, first: int | None, lowering: Lowering) -> tuple[Stage, State]:
        self._holder.stages[:] = [upstream]
        try:
            return lower(self._step, lowering), {"below": below, "skip": 0, "steps": [[first, 0]]}
        finally:
            self._holder.stages.clear()

    def number(self, first: int | None) -> int | None:
        size: int = self._step.batch_size
        return None if first is None else first // size


class _Unbatch:
    """An unbatch step."""

    def __init__(self, step: Unbatch) -> None:
        self._step = step

    def over(self, upstream: Stage, below: State, first: int | None, lowering: Lowering) -> tuple[Stage, State]:
        from penstock.physical.stages.batch import UnbatchStage

        return UnbatchStage(upstream, self._step), [below, 0]

    def number(self, first: int | None) -> int | None:
        return None


_Step = _Functions | _Batch | _Unbatch


class Maker:
    """One iteration over a part, with its ranges in any order.

    A range before the last one restarts the iteration over the base. Functions keep their traced forms from range to
    range.
    """

    def __init__(self, part: PlanPart, epoch: int) -> None:
        self._part = part
        self._lowering = Lowering(
            part.options,
            InlineExecutor(part.options),
            epoch,
            optimise=optimise_inner,
            dataset=part.dataset,
            provenance=part.provenance,
        )
        self._steps = _steps(part.middle, self._lowering)
        self._base: Cursor | None = None
        self._at = 0
        self._skips = False  # unknown until the base is open
        self._end: int | None = None

    def make(self, start: int, stop: int) -> RangeResults:
        """Compute the elements from `start` to `stop` of the base through the middle steps."""
        begun = time.perf_counter()
        self._go_to(start)
        base = self._base
        assert base is not None
        found = base.take(stop - start) if self._at == start else None
        elements = 0 if found is None else found.size
        self._at += elements
        ended = elements < stop - start
        if ended:
            self._end = self._at
        parts = [] if found is None else self._through(found, start)
        nbytes = sum(part.block.nbytes for part in parts if part.block is not None)
        # excludes the time to finish the range, which is a smaller share in longer ranges
        seconds = time.perf_counter() - begun
        if self._part.finish is not None and parts:
            parts = [self._part.finish(start, parts)]
        return RangeResults(parts, elements, ended, seconds, nbytes)

    @property
    def end(self) -> int | None:
        """Return the number of elements of the base, if its end was reached."""
        return self._end

    def close(self) -> None:
        """Close the files of the base."""
        if self._base is not None:
            self._base.close()
            self._base = None

    def _go_to(self, start: int) -> None:
        # A base that cannot skip is read from its start: opened in the middle, it may have other block boundaries.
        if self._base is not None and (start < self._at or (self._skips and start > self._at)):
            self.close()
        if self._base is None:
            self._base, self._at = Cursor(lower(self._part.base, self._lowering)), 0
            self._skips = self._base.stage.can_skip()
            if self._skips:
                self._at = self._base.skip(start) if start else 0
                if start and self._at < start:
                    self._end = self._at
        while self._at < start and (self._end is None or self._at < self._end):
            self._at += self._passed(start - self._at)

    def _passed(self, count: int) -> int:
        """Skip up to `count` elements. Return the number of skipped elements."""
        assert self._base is not None
        try:
            if not self._base.fill(min(count, _STRIDE)):
                self._end = self._at
                return 0
        except Exception as error:
            failed(error)
            return 1
        return self._base.take_available(count).size

    def _through(self, found: Stretch, start: int) -> list[Stretch]:
        stage: Stage = GivenStage(self._part.base.label, self._part.base.where, found)
        state: State = 0
        number: int | None = start
        for step in self._steps:
            stage, state = step.over(stage, state, number, self._lowering)
            number = step.number(number)
        stage.restore(state)
        pieces: list[Block | Exception] = []
        while True:
            try:
                piece = stage.next(_MANY)
            except Exception as error:
                pieces.append(failed(error))
                continue
            if piece is None:
                break
            pieces.append(piece)
        return _together(pieces)


class Makers:
    """The makers of a worker, by job. Only the most recently used ones have an open base.

    Results of shared jobs are stored for other consumers, up to `most_bytes`.
    """

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._makers: OrderedDict[str, Maker] = OrderedDict()
        self._kept: OrderedDict[tuple[str, int, int], Answer] = OrderedDict()
        self._most_bytes = most_bytes
        self.kept_bytes = 0

    def answer(
        self, job: str, start: int, stop: int, part: Callable[[], PlanPart | str], epoch: int, *, keep: bool
    ) -> Answer:
        """Compute a range, and return the answer to the consumer. `part` returns a string if there is no part."""
        key = job, start, stop
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        try:
            found = part()
            if isinstance(found, str):
                return ("unready", job, start, found), EMPTY
            made = self.of(job, found, epoch).make(start, stop)
            content = packed(made.parts)
        except (Exception, Fatal) as raised:  # element errors are already in the results
            error = raised.error if isinstance(raised, Fatal) else raised
            text = "".join(traceback.format_exception(error)).rstrip()
            self.close(job)
            return ("mistaken", job, start, f"{type(error).__name__}: {said(error)}", text), EMPTY
        except BaseException as raised:  # a function asks for the end of the program
            self.close(job)
            return ("ended", job, start), packed_end(raised)
        answer = ("made", job, start, stop, made.elements, made.ended, made.seconds, made.nbytes), content
        if keep:
            self._kept[key] = answer
            self.kept_bytes += content.nbytes
            while self.kept_bytes > self._most_bytes:
                self.kept_bytes -= self._kept.popitem(last=False)[1][1].nbytes
        return answer

    def drop(self, job: str) -> None:
        """Forget a job and its results."""
        self.close(job)
        for key in [key for key in self._kept if key[0] == job]:
            self.kept_bytes -= self._kept.pop(key)[1].nbytes

    def of(self, job: str, part: PlanPart, epoch: int) -> Maker:
        """Return the maker of a job. It is created on first use."""
        if job not in self._makers:
            self._makers[job] = Maker(part, epoch)
        self._makers.move_to_end(job)
        while len(self._makers) > MOST_MAKERS:
            self.close(next(iter(self._makers)))
        return self._makers[job]

    def close(self, job: str) -> None:
        """Close the maker of a job that has ended or failed. A later request creates a new maker."""
        maker = self._makers.pop(job, None)
        if maker is None:
            return
        try:
            maker.close()
        except Exception:  # closing a user's generator may raise; the worker continues
            _LOG.warning("what was read for %s could not be closed", job, exc_info=True)


def _steps(middle: Sequence[UnaryNode], lowering: Lowering) -> list[_Step]:
    found: list[_Step] = []
    for are_functions, neighbours in groupby(middle, lambda step: isinstance(step, (Map, Filter))):
        steps: list[Any] = list(neighbours)
        if are_functions:
            found.append(_Functions(steps, lowering))
        else:
            found += [_Unbatch(step) if isinstance(step, Unbatch) else _Batch(step) for step in steps]
    return found


def _together(pieces: list[Block | Exception]) -> list[Stretch]:
    """Return small pieces merged into one stretch. Large pieces are returned without a copy."""
    if not pieces:
        return []
    nbytes = sum(piece.nbytes for piece in pieces if isinstance(piece, Block))
    if nbytes <= _FEW_BYTES:
        return [stretch_of(pieces)]
    return [Stretch(piece) if isinstance(piece, Block) else Stretch(None, ((0, piece),)) for piece in pieces]
