"""Reference and generated steps: windows, groups and buckets."""

from __future__ import annotations

from typing import Any

STEPS: list[Any] = []
