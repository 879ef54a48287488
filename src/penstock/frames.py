"""Clearing of penstock's frames in tracebacks, so that a failure keeps no stages, files or buffers alive.

A traceback refers to frames, a frame to its variables and to its caller. So a failure that waits in a buffer would keep
the frames of the consumer and its iterator, which owns the buffer: a cycle that is never freed. Therefore penstock's
frames in the traceback of a failure are cleared as soon as they have ended (`kept`, `tidied`), and again when the
failure is raised (`let_go`). Frames of the user's functions keep their variables, for a debugger.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TypeVar

R = TypeVar("R")

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class _Open(threading.local):
    """Penstock's frames of this thread that failures refer to and that were running at the last check."""

    def __init__(self) -> None:
        self.depth = 0  # running calls of `tidied`
        self.frames: list[FrameType] = []  # the outermost first


_open = _Open()


def tidied(work: Callable[..., R], *given: object) -> R:
    """Call `work`, and afterwards clear the ended frames of failures that it caught."""
    _open.depth += 1
    try:
        return work(*given)
    finally:
        _open.depth -= 1
        if _open.frames:
            _clear_ended()


def kept(error: BaseException) -> None:
    """Clear the ended frames of a failure that was caught, and note the running ones. Only inside `tidied`."""
    trace = error.__traceback__
    if trace is None or not _open.depth:
        return
    _clear_ended()
    known = {id(frame) for frame in _open.frames}
    here = _running_here()
    running: list[FrameType] = []
    frame: FrameType | None = trace.tb_frame
    while frame is not None and id(frame) not in known and not frame.f_code.co_flags & _GENERATORS:
        if id(frame) in here and _is_ours(frame):  # other frames have ended, or another thread clears them
            running.append(frame)
        frame = frame.f_back  # None for a generator that waits
    _open.frames += reversed(running)
    for chained in _chain(error):
        trace = chained.__traceback__
        while trace is not None:
            if trace.tb_frame not in running:
                _clear(trace.tb_frame)
            trace = trace.tb_next


def _running_here() -> set[int]:
    """Return the ids of the running frames of this thread."""
    found = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.add(id(frame))
        frame = frame.f_back
    return found


def let_go(error: BaseException) -> None:
    """Clear penstock's frames in the traceback of an error. Frames of the user's functions stay as they are.

    Some of their variables refer to the error. Without clearing, everything in its traceback would wait for the garbage
    collector after the error is dropped, such as the consumer's iterator and its open files.
    """
    seen: set[int] = set()
    for found in _chain(error):
        at = found.__traceback__
        while at is not None:
            frame: FrameType | None = at.tb_frame
            while frame is not None and id(frame) not in seen:
                seen.add(id(frame))
                _clear(frame)
                frame = frame.f_back  # its caller, which has returned
            at = at.tb_next


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error, its causes and its contexts."""
    found = [error]
    for one in found:
        found += [
            other for other in (one.__cause__, one.__context__) if other and all(other is not known for known in found)
        ]
    return found


def _clear_ended() -> None:
    """Clear the noted frames from the innermost outwards, up to the first one that still runs."""
    frames = _open.frames
    while frames:
        try:
            frames[-1].clear()
        except RuntimeError:
            return
        frames.pop()


def _clear(frame: FrameType) -> None:
    if _is_ours(frame) and not frame.f_code.co_flags & _GENERATORS:  # else it would end the generator
        with suppress(RuntimeError):  # the frame runs
            frame.clear()


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("penstock.")
