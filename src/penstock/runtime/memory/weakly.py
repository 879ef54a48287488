"""Weakly: objects that are known as long as others hold them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Weakly(Generic[T]):
    """Objects without a hold on them, in the order in which they came; `gone` is called when one of them dies.

    Thread-safe without a lock: objects die in garbage collections, which may begin inside any critical section.
    """

    def __init__(self, gone: Callable[[], None] = lambda: None) -> None:
        self._gone = gone
        self._known: dict[int, weakref.ref[T]] = {}

    def add(self, item: T) -> None:
        key, known, gone, over = id(item), self._known, self._gone, sys.is_finalizing

        def forget(ref: weakref.ref[T]) -> None:
            if known.get(key) is ref:
                known.pop(key, None)
                if not over():  # what would be called has lost its modules by then
                    gone()

        known[key] = weakref.ref(item, forget)

    def remove(self, item: T) -> None:
        ref = self._known.get(id(item))
        if ref is not None and ref() is item:
            self._known.pop(id(item), None)
            self._gone()

    def listed(self) -> list[T]:
        """The objects that are alive."""
        refs = list(self._known.values())  # in one step: a collection inside dict.copy() may change what is copied
        return [item for ref in refs if (item := ref()) is not None]
