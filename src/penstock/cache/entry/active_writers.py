"""The entries that this process writes to at the moment: its passes must not wait for each other for ever."""

from __future__ import annotations

import atexit
import math
import os
import threading
from functools import cache
from time import monotonic
from typing import Protocol

from penstock.forked import in_child
from penstock.io import storage

_IDLE = 1.0  # seconds without a new element, after which a pass has been left standing
_EXIT_PATIENCE = 30.0  # seconds that interpreter exit waits for the disk


class Work(Protocol):
    """What a thread writes. `leaving`: it has been told to end; `over`: it has let go of the entry.

    `fed` is when it got its last element, on the clock of `time.monotonic`.
    """

    leaving: bool
    fed: float
    over: threading.Event

    def leave(self, *, complete: bool) -> None:
        """Commit and let go of the entry."""

    def forget(self) -> None:
        """In a forked child: there is no thread."""


_WORKS: dict[str, Work] = {}  # by folder


def _name(folder: str) -> str:
    return folder if storage.is_url(folder) else os.path.realpath(folder)


def begin(folder: str, work: Work) -> None:
    """An entry is written to from now on."""
    _prepare()
    _WORKS[_name(folder)] = work


def end(folder: str, work: Work) -> None:
    """It is not any more."""
    if _WORKS.get(_name(folder)) is work:
        del _WORKS[_name(folder)]


def is_writing(folder: str) -> bool:
    """Whether a pass of this process writes to an entry; returns when one that has ended has let go of it."""
    return _still(folder, idle=math.inf)


def goes_on_writing(folder: str) -> bool:
    """The same; a pass that has been left standing for a while is taken the entry from."""
    return _still(folder, idle=_IDLE)


def _still(folder: str, idle: float) -> bool:
    work = _WORKS.get(_name(folder))
    if work is None:
        return False
    if not work.leaving and monotonic() >= work.fed + idle:
        work.leave(complete=False)
    if work.leaving:
        work.over.wait()
    return not work.over.is_set()


@cache
def _prepare() -> None:
    atexit.register(_leave)
    in_child(_forget)


def _leave() -> None:
    """At interpreter exit: what passes have made is committed."""
    works = list(_WORKS.values())
    for work in works:
        if not work.leaving:
            work.leave(complete=False)
    for work in works:
        work.over.wait(_EXIT_PATIENCE)


def _forget() -> None:
    for work in _WORKS.values():
        work.forget()
    _WORKS.clear()
