"""Each: the examples of a split made from a list of items, one from each: in parallel, and to be gone on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Key = str | bytes | int


@dataclass(frozen=True)
class Skipped:
    """In place of an example: an input that cannot be used, and why. It is counted and listed in the metadata."""

    name: str
    reason: str


Made = tuple[Key, Mapping[str, Any]] | Skipped | None


@dataclass(frozen=True)
class Each:
    """The examples that `function(item)` makes of `items`: a pair of key and example, a `Skipped`, or None.

    Items are made in parallel, by threads or processes, whichever is faster; an interrupted preparation goes on with
    those that were not made. `function` depends on the item alone.

    >>> squares = Each(range(3), lambda x: (x, {"square": x * x}))
    >>> [squares.function(item) for item in squares.items]
    [(0, {'square': 0}), (1, {'square': 1}), (2, {'square': 4})]
    """

    items: Sequence[Any]
    function: Callable[[Any], Made]

    def __len__(self) -> int:
        return len(self.items)
