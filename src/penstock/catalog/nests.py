"""Nests of splits, of addresses and of paths: dicts and lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def each_of(nest: Any, function: Callable[[Any], Any]) -> Any:
    """Return the nest with `function(leaf)` in the place of each leaf. Tuples become lists.

    >>> each_of({"one": "a", "two": ["b", "c"]}, str.upper)
    {'one': 'A', 'two': ['B', 'C']}
    """
    if isinstance(nest, Mapping):
        return {key: each_of(inner, function) for key, inner in nest.items()}
    return [each_of(inner, function) for inner in nest] if isinstance(nest, list | tuple) else function(nest)
