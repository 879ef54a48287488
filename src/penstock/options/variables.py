"""The one reader of environment variables."""

from __future__ import annotations

import os


def environment(name: str) -> str | None:
    """The value of `PENSTOCK_<name>`, or None; no other place reads the environment."""
    return os.environ.get(f"PENSTOCK_{name}") or None
