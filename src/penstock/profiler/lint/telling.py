"""Telling: warnings on the lines of steps, each once in a process."""

from __future__ import annotations

import warnings

_TOLD: set[tuple[str, str | None]] = set()  # what the process has been warned of


def tell(what: str, hint: str, category: type[Warning], where: str | None) -> None:
    """A warning on the user's line; `what` is told once for each line, whatever the hint."""
    if (what, where) in _TOLD:
        return
    _TOLD.add((what, where))
    message = f"{what} {hint}"
    file, _, line = (where or "").rpartition(":")
    if file and line.isdigit():
        warnings.warn_explicit(message, category, file, int(line))
    else:
        warnings.warn(message, category, stacklevel=3)
