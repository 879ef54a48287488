"""Reference and generated steps: random access, global shuffles, provenance."""

from __future__ import annotations

from typing import Any

STEPS: list[Any] = []
