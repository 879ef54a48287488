"""The function `show` shows images as a grid, other elements as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.viz.grid import Grid, drawn
from penstock.viz.parts import label_names_of, take_apart
from penstock.viz.rows import Rows, table


def show(data: Any, n: int = 9, **settings: Any) -> Grid | Rows:
    """Show the first elements: images as a grid with their labels, other elements as a table.

    Args:
        data: A data set, or any iterable of elements.
        n: Largest number of elements. Default: 9.
        **settings: Keyword arguments of `grid`.

    Returns:
        A `Grid` if the elements have images, otherwise `Rows`.

    Example:
        >>> show([{"name": b"Rex", "age": 7}])
        name  age
        Rex     7
    """
    image, label = settings.pop("image", None), settings.pop("label", None)
    names = settings.pop("label_names", None)
    names = label_names_of(data) if names is None else names
    read: list[Any] = []
    examples = take_apart(_kept(data, read), n, image=image, label=label, label_names=names)
    if image is None and not settings.get("path") and not any(example.image is not None for example in examples):
        return table(read, n)
    return drawn(examples, **settings)


def _kept(data: Any, read: list[Any]) -> Iterator[Any]:
    """Yield the elements, and append each to `read`, so that each is computed only once."""
    for element in data:
        read.append(element)
        yield element
