"""Displays of data: images with their labels as one PNG, other elements as a table."""

from penstock.viz.grid import Grid, grid
from penstock.viz.rows import Rows, table
from penstock.viz.show import show

__all__ = ["Grid", "Rows", "grid", "show", "table"]


def __dir__() -> list[str]:
    return sorted(__all__)
