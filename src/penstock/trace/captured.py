"""Captured: what a function reads from outside of itself, to see later whether it still is what it was."""

from __future__ import annotations

from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import numpy as np

MISSING = object()
SIZE = object()
CONTENT = object()


@dataclass(frozen=True, slots=True)
class Captured:
    """The places a function reads (globals, cells, dicts) with what stood there; a graph is good while it stays."""

    reads: tuple[tuple[Any, Any, Any], ...]

    def unchanged(self) -> bool:
        return all(_stands(place, name, value) for place, name, value in self.reads)


def _stands(place: Any, name: Any, value: Any) -> bool:
    if isinstance(place, FunctionType):
        return bool(getattr(place, name) is value)
    if isinstance(place, CellType):
        try:
            return place.cell_contents is value
        except ValueError:
            return False
    if name is CONTENT:
        return bool(content(place) == value)
    if name is SIZE:
        return bool(len(place) == value)
    return bool(place.get(name, MISSING) is value)


def content(array: np.ndarray) -> int:
    """A digest: what a function computed from a captured array is baked into its graph."""
    return hash((array.shape, array.dtype.str, array.tobytes()))
