"""Reference and generated steps: several data sets mixed into one."""

from __future__ import annotations

from typing import Any

STEPS: list[Any] = []
