"""Part: one thing that elements depend on."""

from __future__ import annotations

from typing import NamedTuple

BELOW = " › "
PYTHON = "Python"  # the part that says whose bytecode it is


class Part(NamedTuple):
    """Where it stands in the plan (`map#2 › function › SIZE`), what it is (`global SIZE = 224`), and its digest."""

    path: str
    text: str
    digest: str

    @property
    def step(self) -> str:
        """The step that it belongs to, or the setting that it is."""
        return self.path.partition(BELOW)[0]
