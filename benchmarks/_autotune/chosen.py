"""What the tuner has set in a running pass."""

from __future__ import annotations

from typing import Any


def chosen(iterator: Any) -> str:
    """A phrase for each segment, with the tuner's reason."""
    lanes = iterator._run.driver.lanes
    return "; ".join(f"{lane.label}: {lane.knobs.executor} {lane.reason or lane.knobs.parallelism}" for lane in lanes)
