"""The data set `shapes`."""

from penstock.catalog.builders.shapes.builder import Shapes

__all__ = ["Shapes"]
