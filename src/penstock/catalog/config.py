"""BuilderConfig: one of several variants of a data set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BuilderConfig:
    """A variant of a data set by its name; derive from it for what else tells variants apart.

    >>> BuilderConfig(name="small", description="A tenth of it.").name
    'small'
    """

    name: str
    description: str = ""
