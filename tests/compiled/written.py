"""Modules in place of those of kernels, with a cache of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def writer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`written(name=source, ...)` makes modules that can be imported here and compiled by children; their folder."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "cache"))

    def written(**sources: str) -> Path:
        for name, source in sources.items():
            (folder / f"{name}.py").write_text(source)
        return folder

    return written
