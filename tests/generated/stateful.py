"""Reference and generated steps: steps that carry a state from element to element."""

from __future__ import annotations

from typing import Any

STEPS: list[Any] = []
