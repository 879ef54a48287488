"""Reference and generated steps: sequences packed into rows, batches by tokens."""

from __future__ import annotations

from typing import Any

STEPS: list[Any] = []
