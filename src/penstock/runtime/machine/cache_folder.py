"""cache_folder: where the user's system wants files that a program may lose."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder(name: str) -> Path | None:
    """`penstock/name` in the user's cache directory, which need not be there; None without a home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not given.is_absolute():  # the XDG specification: then it is as if it were not set
        try:
            given = Path.home() / _beside_home()
        except RuntimeError:
            return None
    return given / "penstock" / name


def _beside_home() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or "AppData/Local"  # an absolute path stands for itself
    return "Library/Caches" if sys.platform == "darwin" else ".cache"
