"""What a placement is decided from, and the decision: plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spot:
    """A cache could stand behind the step `name`.

    `seconds` of CPU time went into its elements and all steps below them in one pass, and these elements have `nbytes`;
    None where that was not seen. `why_not` says what speaks against a cache there, whatever it would save.
    """

    name: str
    label: str
    where: str | None = None
    seconds: float = 0.0
    nbytes: float | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a cache may take in memory and on disk; None where it may not stand there at all."""

    memory: int | None = None
    disk: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A cache of a `kind` ("memory" or "disk") behind a step, and what it saves in every epoch; or none, and why."""

    spot: Spot | None
    kind: str = ""
    saved: float = 0.0
    reason: str = ""

    @property
    def place(self) -> str | None:
        """What it goes by in states of iterators."""
        return None if self.spot is None else f"{self.kind}:{self.spot.name}"
