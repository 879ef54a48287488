"""Settings of the demo; the command line sets each of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.catalog.builders.shapes.builder import DEFAULT_EXAMPLES
from penstock.errors import InvalidArgumentError


@dataclass(frozen=True)
class Settings:
    """The training data of the demo, and the length of the training.

    >>> Settings(epochs=0)
    Traceback (most recent call last):
    penstock.errors.InvalidArgumentError: epochs must be at least 1, got 0.
    """

    data_dir: str | None = None
    examples: int = DEFAULT_EXAMPLES
    epochs: int = 5
    batch_size: int = 32
    step_ms: float | None = None
    out: Path = Path("timeline.png")
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("examples", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.step_ms is not None and self.step_ms < 0:
            raise InvalidArgumentError(f"step_ms must not be negative, got {self.step_ms}.")
        if self.out.suffix not in (".png", ".svg"):
            message = f"out must end in .png or .svg, got {str(self.out)!r}."
            raise InvalidArgumentError(message, hint="Both files are written, side by side.")
