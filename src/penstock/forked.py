"""Forked: what a child that this process forks begins anew.

Only the thread that forks is in the child. A lock that another one held would stay taken there for ever, and what that
one was changing stays half changed. So locks that a child may come to, those of the process and of what data sets hold,
are made here. Those of a run need not: it is the parent's.
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
_METHODS: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()  # one of an object


def new_lock() -> threading.Lock:
    """As `threading.Lock()`; in a forked child nobody holds it.

    >>> with new_lock() as taken:
    ...     taken
    True
    """
    made = threading.Lock()
    _LOCKS.add(made)
    return made


def new_rlock() -> threading.RLock:
    """As `threading.RLock()`; in a forked child nobody holds it."""
    made = threading.RLock()
    _LOCKS.add(made)
    return made


def in_child(call: Call) -> Call:
    """Call it in every forked child, where nobody holds a lock; a method as long as its object lives."""
    if isinstance(call, MethodType):
        _METHODS[call.__self__] = call.__func__
    else:
        _CALLS.append(call)
    return call


def when_gone(owner: object, call: Callable[..., Any], *given: Any) -> weakref.finalize[..., Any]:
    """`call(*given)` when nobody holds `owner` any more, or this process ends; a forked child's copy does nothing.

    What is on the disk, or runs beside this process, is the parent's: its child may end first.

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


def _begin_anew() -> None:
    for lock in _LOCKS:
        lock._at_fork_reinit()  # what the standard library does with its own
    for call in _CALLS:
        call()
    for owner, method in list(_METHODS.items()):
        method(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
