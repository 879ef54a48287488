"""collecting: whether the calling thread is inside a garbage collection."""

from __future__ import annotations

import gc
from threading import get_ident

_INSIDE: set[int] = set()


def collecting() -> bool:
    """Whether this was called by a collection: what the thread was at then, and which locks it holds, nobody knows.

    So whoever is called by one must not wait for other threads, who may want these locks.

    >>> collecting()
    False
    """
    return get_ident() in _INSIDE


def _note(phase: str, info: object) -> None:
    if phase == "start":
        _INSIDE.add(get_ident())
    else:
        _INSIDE.discard(get_ident())


gc.callbacks.append(_note)
