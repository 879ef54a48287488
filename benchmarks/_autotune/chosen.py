"""What the tuner has set in a running pass."""

from __future__ import annotations

from typing import Any


def chosen(iterator: Any) -> str:
    """A phrase for each segment, from the source on."""
    return "; ".join(_phrases(iterator._run.root))


def _phrases(stage: Any) -> list[str]:
    from penstock.runtime.segment import Segment

    phrases = [phrase for below in stage.inputs for phrase in _phrases(below)]
    if isinstance(stage, Segment):
        phrases.append(f"{stage.label}: {getattr(stage, '_parallelism', '?')}")
    return phrases
