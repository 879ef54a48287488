"""Proposal: knobs that promise something."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.runtime.autotune.figures import Knobs


@dataclass(frozen=True, slots=True)
class Proposal:
    """New knobs for some segments."""

    knobs: dict[str, Knobs]
    seconds: float = 0.0  # that no knob was turned before
    needs_processes: bool = False  # which are not up yet
    sure: bool = False  # enough to wait for it
