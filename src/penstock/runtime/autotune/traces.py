"""Traces: what a tuner saw, as JSON, to be recorded in a run and replayed without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from penstock.runtime.autotune.figures import Flow, Knobs, Limits, Means, Sample

_FORMAT = 1


def to_json(samples: Sequence[Sample], means: Means) -> str:
    """The periods of a run and what it might use.

    >>> from penstock.runtime.autotune.figures import Flow, Knobs, Limits, Means, Sample
    >>> sample = Sample(0.0, 0.1, 0.1, (Flow("map", Knobs(2), Limits(1, 2)),))
    >>> from_json(to_json([sample], Means(2, 1 << 30))) == ([sample], Means(2, 1 << 30))
    True
    """
    lines = ",\n".join(json.dumps(asdict(sample), separators=(",", ":")) for sample in samples)
    return f'{{"format":{_FORMAT},"means":{json.dumps(asdict(means))},"samples":[\n{lines}\n]}}\n'


def from_json(text: str) -> tuple[list[Sample], Means]:
    """What `to_json` was given. Raises ValueError for text of another format."""
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        message = f"A trace has format {_FORMAT}, got {text[:40]!r}."
        raise ValueError(message)
    return [_sample(sample) for sample in found["samples"]], Means(**found["means"])


def _sample(found: dict[str, Any]) -> Sample:
    flows = tuple(_flow(flow) for flow in found["flows"])
    return Sample(found["start"], found["stop"], found["cpu"], flows, found.get("idle"))


def _flow(found: dict[str, Any]) -> Flow:
    limits = dict(found["limits"])
    limits["executors"] = tuple(limits["executors"])
    return Flow(**{**found, "knobs": Knobs(**found["knobs"]), "limits": Limits(**limits)})
