"""An analysis as plain values, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from penstock.plan.node import short_location
from penstock.profiler.analysis.advice import advice
from penstock.profiler.analysis.bottleneck import bottleneck
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.figures import Analysis, Step
from penstock.profiler.analysis.model import bounds, cpu_share, fitted
from penstock.profiler.analysis.prediction import later


def analysis_values(analysis: Analysis) -> dict[str, Any]:
    """Return numbers, strings, lists and dicts; times in seconds, unless the key states another unit."""
    found = bottleneck(analysis)
    fit = fitted(analysis)
    then = later(analysis)
    limits = [] if not analysis.elements_per_second else bounds(analysis, fit)
    return {
        "seconds": analysis.seconds,
        "elements": analysis.elements,
        "elements_per_second": analysis.elements_per_second,
        "failed": analysis.failures,
        "first_failure": analysis.first_failure,
        "passes": analysis.passes,
        "cpus": analysis.cpus,
        "cpu_used": analysis.cpu_used,
        "consumer_seconds": analysis.consumer_seconds,
        "consumer_waited": analysis.consumer_waited,
        "handing_us": analysis.handing * 1e6,
        "slowed_by_others": analysis.slowed,
        "model_fit": fit,
        "steps": [_step(analysis, step) for step in reversed(analysis.steps)],
        "lanes": list(map(asdict, analysis.lanes)),
        "bounds": [
            {"kind": bound.kind, "lane": bound.lane, "elements_per_second": bound.per_second}
            for bound in limits
            if bound.per_second < float("inf")
        ],
        "bottleneck": asdict(found),
        "second_epoch": None if then is None else asdict(then) | {"ratio": _finite(then.ratio)},
        "advice": [
            {"sentence": each.sentence, "ratio": each.ratio, "what_if": _arguments(each.change)}
            for each in advice(analysis)
            if each.ratio < float("inf")
        ],
    }


def _finite(ratio: float) -> float | None:
    return ratio if ratio < float("inf") else None


def _step(analysis: Analysis, step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "label": step.label,
        "where": short_location(step.where) or None,
        "inputs": list(step.inputs),
        "lane": step.lane,
        "executor": analysis.lane(step.lane).executor,
        "parallelism": analysis.lane(step.lane).workers if step.parallel else 1,
        "elements": int(step.elements),
        "elements_per_second": step.per_second,
        "elements_per_element": step.ratio,
        "failed": int(step.failures),
        "cpu_us": step.work * 1e6,
        "wall_us": step.wall * 1e6,
        "waiting_us": step.waiting * 1e6,
        "lock_us": step.held * 1e6,
        "cpu_share": cpu_share(analysis, step),
        "bytes": step.nbytes,
    }


def _arguments(change: Changes) -> dict[str, Any]:
    """Return the arguments of `what_if`, without empty ones."""
    return {name: value for name, value in asdict(change).items() if value not in (None, {}, (), False)}
