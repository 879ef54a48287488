"""warm_start: workers begin before the first element is asked for."""

from __future__ import annotations

from penstock.physical.stage import Stage
from penstock.physical.stages.combine import Sequence
from penstock.runtime.segment import Segment


def warm_start(stage: Stage) -> None:
    """Start every segment below and including `stage`, those nearest to the source first.

    To be called once, before the first `next`, and after `restore`.
    """
    for upstream in _inputs(stage):
        warm_start(upstream)
    if isinstance(stage, Segment):
        stage.start()


def _inputs(stage: Stage) -> tuple[Stage, ...]:
    if not isinstance(stage, Sequence):
        return stage.inputs
    more = stage._count < 0 or stage._index < stage._count
    return (stage._current(),) if more else ()
