"""The settings that the tuner has chosen in a running iteration."""

from __future__ import annotations

from typing import Any


def chosen(iterator: Any) -> str:
    """Return a phrase for each segment, with the tuner's reason."""
    lanes = iterator._run.driver.lanes
    return "; ".join(f"{lane.label}: {lane.knobs.executor} {lane.reason or lane.knobs.parallelism}" for lane in lanes)
