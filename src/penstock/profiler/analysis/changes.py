"""Changes: the arguments of `Dataset.what_if`, and checks of them against the measured steps."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import AUTOTUNE, check_int
from penstock.profiler.analysis.figures import Analysis


@dataclass(frozen=True, slots=True)
class Changes:
    """The arguments of `Dataset.what_if`; a default means no change."""

    cores: float | None = None
    cached_after: str | None = None
    faster: Mapping[str, float] = field(default_factory=dict)
    without: str | Sequence[str] = ()
    consumer_seconds: float | None = None
    executor: Mapping[str, str] = field(default_factory=dict)
    parallelism: Mapping[str, int] = field(default_factory=dict)
    prefetch: bool = False

    @property
    def left_out(self) -> tuple[str, ...]:
        return (self.without,) if isinstance(self.without, str) else tuple(self.without)


def upstream(analysis: Analysis, name: str) -> list[str]:
    """Return the names of a step and of all steps before it."""
    below: dict[str, list[str]] = {step.name: [*step.inputs] for step in analysis.steps}
    for step in analysis.steps:
        outer, slash, _ = step.name.rpartition("/")
        while slash:
            below.setdefault(outer, []).append(step.name)
            outer, slash, _ = outer.rpartition("/")
    found = [name]
    known = {name}
    for reached in found:
        new = [each for each in dict.fromkeys(below[reached]) if each not in known]
        known.update(new)
        found += new
    return found


def inner(analysis: Analysis, name: str) -> list[str]:
    """Return the names of the steps of the data sets that a step opens."""
    return [step.name for step in analysis.steps if step.name.startswith(f"{name}/")]


_EXECUTORS = ("thread", "process", "inline")
_PARALLEL = ("map", "batch", "interleave")
_MAPPINGS = {  # arguments by step, with an example
    "faster": "{'map#1': 2.0}",
    "executor": "{'map#1': 'process'}",
    "parallelism": "{'map#1': 8}",
}
_APART = "Predict them one at a time."


def check(change: Changes, analysis: Analysis) -> None:
    """Raise an error for unknown steps, settings that a step does not have, and changes that exclude others."""
    if isinstance(change.without, bytes) or not isinstance(change.without, Sequence):
        message = f"without must be a step's name, or several, got without={change.without!r}."
        raise InvalidTypeError(message, hint="Write without='map#1'.")
    named: dict[str, Iterable[str]] = {"without": change.left_out}
    if change.cached_after is not None:
        named = {"cached_after": (change.cached_after,), "without": change.left_out}
    for argument, example in _MAPPINGS.items():
        named[argument] = value = getattr(change, argument)
        if not isinstance(value, Mapping):
            message = f"{argument} must be a dict of step names, got {argument}={value!r} ({type(value).__name__})."
            raise InvalidTypeError(message, hint=f"Write {argument}={example}.")
    for argument, names in named.items():
        for name in names:
            _check_name(argument, name, analysis)
    if change.cores is not None:
        hint = "cores is the number of cores that the pipeline may use, such as 0.5 or 16."
        check_number("cores", change.cores, hint)
    for name, factor in change.faster.items():
        hint = "faster gives the new speed as a multiple of the measured one: 2.0 is half the time."
        check_number(f"faster[{name!r}]", factor, hint)
    if change.consumer_seconds is not None:
        hint = "consumer_seconds is the time of the loop per element (batch), such as 0.02."
        check_number("consumer_seconds", change.consumer_seconds, hint, zero=True)
    for name, count in change.parallelism.items():
        hint = "parallelism gives the number of parallel calls, or penstock.AUTOTUNE."
        check_int(f"parallelism[{name!r}]", count, least=1, also=(AUTOTUNE,), hint=hint)
        _check_kind("parallelism", name, analysis, _PARALLEL)
    for name, executor in change.executor.items():
        if executor not in _EXECUTORS:
            known = ", ".join(map(repr, _EXECUTORS))
            raise InvalidArgumentError(f"executor[{name!r}] must be one of {known}, got {executor!r}.")
        _check_kind("executor", name, analysis, ("map",))
    if not isinstance(change.prefetch, bool):
        got = f"prefetch={change.prefetch!r} ({type(change.prefetch).__name__})"
        hint = "Write prefetch=True for a prefetch(AUTOTUNE) at the end."
        raise InvalidTypeError(f"prefetch must be True or False, got {got}.", hint=hint)
    _check_together(change, analysis)


def _check_together(change: Changes, analysis: Analysis) -> None:
    kept = () if change.cached_after is None else upstream(analysis, change.cached_after)
    reasons = dict.fromkeys(change.left_out, "without= removes it")
    reasons |= dict.fromkeys(kept, f"cached_after={change.cached_after!r} leaves no work for it")
    named = [("without", name) for name in change.left_out if name in kept]
    named += [(argument, name) for argument in _MAPPINGS for name in getattr(change, argument)]
    for argument, name in named:
        if name in reasons:
            raise InvalidArgumentError(f"{argument} names {name}, and {reasons[name]}.", hint=_APART)
    for name, executor in change.executor.items():
        if executor == "inline" and name in change.parallelism:
            message = f"parallelism names {name}, but executor={{{name!r}: 'inline'}} means one call at a time."
            raise InvalidArgumentError(message, hint=_APART)


def _check_name(argument: str, name: Any, analysis: Analysis) -> None:
    names = [step.name for step in analysis.steps]
    if name in names:
        return
    near = difflib.get_close_matches(str(name), names, 1, cutoff=0.4)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    hint = f"{meant}The steps that ran, the source first: {', '.join(names)}."
    raise InvalidArgumentError(f"{argument} names a step of the data set, got {name!r}.", hint=hint)


def _check_kind(argument: str, name: str, analysis: Analysis, kinds: tuple[str, ...]) -> None:
    step = analysis.step(name)
    if step.kind not in kinds or "/" in name:
        wanted = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
        message = f"{argument} is a setting of {wanted}, got {name!r}: {step.label}."
        fit = [other.name for other in analysis.steps if other.kind in kinds and "/" not in other.name]
        raise InvalidArgumentError(message, hint=f"It can be given for {', '.join(fit)}." if fit else None)
    if step.kind == "interleave" and not inner(analysis, name):
        message = f"{argument} of {name}: it opened no input during the measurement."
        raise InvalidArgumentError(message, hint="Measure for longer: ds.explain(analyze=True, seconds=20).")


def check_number(argument: str, value: Any, hint: str, *, zero: bool = False) -> None:
    """Raise an error unless the value is a finite number above 0, or at least 0 with `zero`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        message = f"{argument} must be a number, got {argument}={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message, hint=hint)
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "at least 0" if zero else "above 0"
        wanted = least if math.isfinite(value) else f"finite and {least}"
        raise InvalidArgumentError(f"{argument} must be {wanted}, got {argument}={value!r}.", hint=hint)
