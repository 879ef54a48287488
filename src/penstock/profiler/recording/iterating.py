"""ProfiledIterator: an Iterator whose pass is recorded. It notes how long the loop waits, a Block at a time."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.options import Options
from penstock.physical.stage import State
from penstock.plan.node import Node
from penstock.runtime.run import Iterator, Settings

if TYPE_CHECKING:
    from penstock.profiler.recording.observing import Observing
    from penstock.profiler.recording.pipeline import Pipeline


class ProfiledIterator(Iterator):
    """Costs nothing for each element, and some microseconds for each Block."""

    def __init__(
        self,
        plan: Node,
        options: Options,
        epoch: int,
        settings: Settings,
        continued: Callable[[int], None],
        recording: Observing,
    ) -> None:
        self._recording = recording
        self._pass: _Pass | None = None
        super().__init__(plan, options, epoch, settings, continued)

    def _start(self, epoch: int, state: State, skip: int) -> None:
        if self._pass is not None:
            self._pass.leave()
        found = self._recording.pipeline(self._variant.plan, self._options)
        self._pass = None
        if found is not None:
            found.began(self._variant.plan, self._written)
            self._pass = _Pass(found)
            weakref.finalize(self, self._pass.leave).atexit = False
            self._settings = replace(self._settings, meter=found.tracer)
        super()._start(epoch, state, skip)

    def _refill(self) -> Any:
        now = self._pass
        if now is None or now.left or not self._recording.goes_on:
            return super()._refill()
        clock = time.perf_counter
        asked, worked = clock(), time.thread_time()
        steps = 0
        now.inside = True
        now.pipeline.asking = asked
        try:
            element = super()._refill()
            steps = self._size - self._passed
            return element
        except StopIteration:
            raise
        except Exception as error:
            now.pipeline.failed(error)
            raise
        finally:
            got = clock()
            first, now.inside = now.began is None, False
            now.began, now.last = asked if first else now.began, got
            now.pipeline.refilled(asked, got, time.thread_time() - worked, steps, first=first)
            self._recording.stepped(now.pipeline, asked, got, steps)
            if now.over:
                now.leave()

    def _next_block(self) -> Any:
        block = super()._next_block()
        if block is None and self._pass is not None:
            self._pass.whole = True
        return block

    def close(self) -> None:
        super().close()
        if self._pass is not None:
            self._pass.leave()


class _Pass:
    """One pass of a pipeline. It is over at its end, when it is closed, or when nobody holds its iterator any more."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.began: float | None = None
        self.last = time.perf_counter()
        self.whole = self.inside = self.over = self.left = False

    def leave(self) -> None:
        self.over = True
        if not self.left and not self.inside:
            self.left = True
            self.pipeline.ended(self.last if self.began is None else self.began, self.last, whole=self.whole)
