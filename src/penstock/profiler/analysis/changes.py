"""Changes: what `Dataset.what_if` is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Changes:
    """As the arguments of `Dataset.what_if`; what is left out stays as it is."""

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
