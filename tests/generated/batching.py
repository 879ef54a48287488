"""Reference and generated steps: padded, ragged and sparse batches, rebatch."""

from __future__ import annotations

from typing import Any

STEPS: list[Any] = []
