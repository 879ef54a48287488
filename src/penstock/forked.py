"""Locks and state that begin again in a forked child.

A forked child contains only the thread that forks. A lock that another thread held would stay locked there for ever,
and a change that the other thread had begun would never be completed. So locks that a child can reach are created here:
those of the process and of data sets. A run belongs to the parent, so its locks are ordinary ones.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any

Call = Callable[[], None]

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()
_CALLS: list[Call] = []
_METHODS: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()  # by object


def new_lock() -> threading.Lock:
    """Return a `threading.Lock` that is free in a forked child.

    >>> with new_lock() as taken:
    ...     taken
    True
    """
    made = threading.Lock()
    _LOCKS.add(made)
    return made


def new_rlock() -> threading.RLock:
    """Return a `threading.RLock` that is free in a forked child."""
    made = threading.RLock()
    _LOCKS.add(made)
    return made


def in_child(call: Call) -> Call:
    """Call `call` in every forked child, after the locks are free. A method is called while its object exists."""
    if isinstance(call, MethodType):
        _METHODS[call.__self__] = call.__func__
    else:
        _CALLS.append(call)
    return call


def when_gone(owner: object, call: Callable[..., Any], *given: Any) -> weakref.finalize[..., Any]:
    """Call `call(*given)` when `owner` is freed or this process ends. In a forked child nothing happens.

    Files and processes belong to the parent, and its child may end first.

    >>> class Kept: ...
    >>> kept = Kept()
    >>> _ = when_gone(kept, print, "gone")
    >>> del kept
    gone
    """
    return weakref.finalize(owner, _if_in, os.getpid(), call, given)


def _if_in(process: int, call: Callable[..., Any], given: tuple[Any, ...]) -> None:
    if os.getpid() == process:
        call(*given)


def _reset() -> None:
    for lock in _LOCKS:
        lock._at_fork_reinit()  # as the standard library does for its own locks
    for call in _CALLS:
        call()
    for owner, method in list(_METHODS.items()):
        method(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
