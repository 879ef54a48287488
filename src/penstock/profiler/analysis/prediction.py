"""Prediction: what `Dataset.what_if` answers; and what the second epoch gives, where the first one fills a cache."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from penstock.errors import FailedPreconditionError, InvalidTypeError
from penstock.plan.node import AUTOTUNE
from penstock.profiler.analysis.advice import gain
from penstock.profiler.analysis.applied import applied
from penstock.profiler.analysis.bottleneck import Bottleneck, bottleneck
from penstock.profiler.analysis.changes import Changes, check
from penstock.profiler.analysis.figures import Analysis, number, seconds, size
from penstock.profiler.analysis.model import fitted, rate

_WIDTH = 100
_FAR_OFF = 0.7  # of the model's rate: less than that was reached


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """`elements_per_second` that are expected, `before` the change as measured, and their `ratio`.

    `bottleneck` says what limits then, `sentences` what was taken for granted. `analysis` holds the figures measured.
    """

    elements_per_second: float
    before: float
    ratio: float
    bottleneck: str
    sentences: tuple[str, ...]
    analysis: Analysis

    def __str__(self) -> str:
        times = f"{self.ratio:.2f} times the {number(self.before)} measured"
        lines = [f"{number(self.elements_per_second)} elements a second, {times}"]
        for sentence in (self.bottleneck, *self.sentences):
            lines += textwrap.wrap(sentence, _WIDTH, initial_indent="  ", subsequent_indent="  ")
        return "\n".join(lines)

    __repr__ = __str__


def predicted(analysis: Analysis, change: Changes) -> Prediction:
    """What the model expects of a change."""
    if not isinstance(analysis, Analysis):
        message = f"analysis must be that of an earlier prediction, got {analysis!r} ({type(analysis).__name__})."
        raise InvalidTypeError(message, hint="Write ds.what_if(..., analysis=earlier.analysis), or leave it out.")
    check(change, analysis)
    changed = applied(analysis, change)
    if not analysis.elements_per_second:
        message = f"Nothing can be predicted: {bottleneck(analysis).sentence}"
        hint = "Measure for longer: ds.explain(analyze=True, seconds=60), then ds.what_if(...)."
        if analysis.passes:
            hint = "ds.explain(analyze=True) shows what each of its steps gave."
        raise FailedPreconditionError(message, hint=hint)
    fit = fitted(analysis)
    before, after = rate(analysis, fit), rate(changed, fit)
    ratio = after / before
    return Prediction(
        analysis.elements_per_second * ratio,
        analysis.elements_per_second,
        ratio,
        bottleneck(changed, fit).sentence,
        tuple(_assumed(analysis, changed, change, fit)),
        analysis,
    )


def _assumed(analysis: Analysis, changed: Analysis, change: Changes, fit: float) -> list[str]:
    found = []
    if change.cached_after is not None:
        step = analysis.step(change.cached_after)
        if analysis.epoch_elements is None:
            needs = f"its elements take {size(step.nbytes)} each"
        else:
            total = step.nbytes * step.ratio * analysis.epoch_elements
            needs = f"it takes {size(total)}"
            if total > analysis.memory:
                needs += f", and this process may use {size(analysis.memory)}"
        found.append(f"The cache behind {step.name} serves from the second epoch on; {needs}.")
    for name, count in change.parallelism.items():
        if count == AUTOTUNE:
            step = analysis.step(name)
            lane = changed.lane(f"{name} inputs" if step.kind == "interleave" else changed.step(name).lane)
            found.append(f"AUTOTUNE is taken to give {name} {lane.workers} workers.")
    for name, executor in change.executor.items():
        step = changed.step(name)
        if executor == "process" and step.shipping:
            found.append(
                f"Sending an element of {name} to a process and back is taken to cost {seconds(step.shipping)}."
            )
            if step.process is not None:
                found.append(f"AUTOTUNE would not send it there by itself: {step.process}.")
    if fit < _FAR_OFF:
        found.append(
            f"The model gives {1 / fit:.1f} times what was measured: something it does not see (other programs, a lock "
            "in a function, memory) slows the pipeline, and is taken to slow it as much after the change."
        )
    return found


@dataclass(frozen=True, slots=True)
class Later:
    """The cache, what the rate will be as a multiple of what it is, and what limits then."""

    step: str
    ratio: float
    bottleneck: Bottleneck

    @property
    def sentence(self) -> str:
        """What a person is told."""
        gained = f"was filled meanwhile: expect {gain(self.ratio)} from the second epoch on."
        return f"{self.step} {gained} Then: {self.bottleneck.sentence}"


def later(analysis: Analysis) -> Later | None:
    """The pass after the cache nearest to the consumer is full; None without one, or if it served this pass."""
    if not analysis.elements_per_second:
        return None
    for step in reversed(analysis.steps):
        filled = any(analysis.step(name).elements for name in step.inputs)
        if step.kind == "cache" and "/" not in step.name and filled:
            fit = fitted(analysis)
            then = applied(analysis, Changes(cached_after=step.name))
            return Later(step.name, rate(then, fit) / rate(analysis, fit), bottleneck(then, fit))
    return None
