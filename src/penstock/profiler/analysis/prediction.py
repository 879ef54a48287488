"""Prediction: the result of `Dataset.what_if`, and the rate of the second epoch if the first one fills a cache."""

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
_FAR_OFF = 0.7  # share of the model's rate below which a sentence warns


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """The predicted `elements_per_second`, the measured rate `before` the change, and their `ratio`.

    `bottleneck` is the new bottleneck in words, and `sentences` are the assumptions. `analysis` contains the measured
    figures.
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
    """Return the model's prediction for a change."""
    if not isinstance(analysis, Analysis):
        message = f"analysis must be that of an earlier prediction, got {analysis!r} ({type(analysis).__name__})."
        raise InvalidTypeError(message, hint="Write ds.what_if(..., analysis=earlier.analysis), or leave it out.")
    check(change, analysis)
    changed = applied(analysis, change)
    if not analysis.elements_per_second:
        message = f"Nothing can be predicted: {bottleneck(analysis).sentence}"
        hint = "Measure for longer: ds.explain(analyze=True, seconds=60), then ds.what_if(...)."
        if analysis.passes:
            hint = "ds.explain(analyze=True) shows how many elements each of its steps yielded."
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
        found.append(f"The cache after {step.name} serves from the second epoch on; {needs}.")
    for name, count in change.parallelism.items():
        if count == AUTOTUNE:
            step = analysis.step(name)
            lane = changed.lane(f"{name} inputs" if step.kind == "interleave" else changed.step(name).lane)
            found.append(f"AUTOTUNE is assumed to give {name} {lane.workers} workers.")
    for name, executor in change.executor.items():
        step = changed.step(name)
        if executor == "process" and step.shipping:
            found.append(
                f"Sending an element of {name} to a process and back is assumed to cost {seconds(step.shipping)}."
            )
            if step.process is not None:
                found.append(f"AUTOTUNE would not choose a process for it: {step.process}.")
    if fit < _FAR_OFF:
        found.append(
            f"The model's rate is {1 / fit:.1f} times the measured one: an effect outside the model (other programs, "
            "a lock in a function, memory) slows the pipeline, and is assumed to slow it equally after the change."
        )
    return found


@dataclass(frozen=True, slots=True)
class Later:
    """A cache, the ratio of the later rate to the current one, and the later bottleneck."""

    step: str
    ratio: float
    bottleneck: Bottleneck

    @property
    def sentence(self) -> str:
        """The prediction in words."""
        gained = f"was filled in the meantime: expect {gain(self.ratio)} from the second epoch on."
        return f"{self.step} {gained} Then: {self.bottleneck.sentence}"


def later(analysis: Analysis) -> Later | None:
    """Return the prediction for the time after the cache nearest to the consumer is full.

    The result is None without a cache, or if it served this iteration already.
    """
    if not analysis.elements_per_second:
        return None
    for step in reversed(analysis.steps):
        filled = any(analysis.step(name).elements for name in step.inputs)
        if step.kind == "cache" and "/" not in step.name and filled:
            fit = fitted(analysis)
            then = applied(analysis, Changes(cached_after=step.name))
            return Later(step.name, rate(then, fit) / rate(analysis, fit), bottleneck(then, fit))
    return None
