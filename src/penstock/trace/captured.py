"""Captured: what a function reads from outside of itself, to see later whether it still is what it was."""

from __future__ import annotations

from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import numpy as np

MISSING = object()
SIZE = object()
CONTENT = object()
OWN = object()  # of an object: its class, and the dict of its attributes


@dataclass(frozen=True, slots=True)
class Captured:
    """The places a function reads (globals, cells, dicts, lists, attributes) with what stood there.

    A graph is good while it stays.
    """

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
    if name is OWN:
        return type(place) is value[0] and vars(place) is value[1]
    if name is SIZE:
        return bool(len(place) == value)
    if isinstance(place, list):
        return name < len(place) and place[name] is value
    return bool(place.get(name, MISSING) is value)


def content(array: np.ndarray) -> int:
    """A digest: what a function computed from a captured array is baked into its graph."""
    return hash((array.shape, array.dtype.str, array.tobytes()))
