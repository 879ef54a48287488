"""What a failure's traceback holds on to: frames of ours, with the stages, files and buffers in their variables.

A frame that has ended keeps its variables for as long as a traceback leads to it, and leads on to those that called it.
Among them are lists with other failures. So a failure that waits in a buffer would hold one that was raised where the
elements are taken, with it the frames of the consumer, and in these its iterator, which owns the buffer: nobody could
collect it. What a failure came through is therefore cleared as soon as it has ended (`kept`, `tidied`), and once more
when it is raised (`let_go`). Variables of the user's functions stay, for a debugger.
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
    """Frames of ours in this thread that failures lead to, and that were still running when last looked at."""

    def __init__(self) -> None:
        self.depth = 0  # calls of `tidied` that are at work
        self.frames: list[FrameType] = []  # the outermost first


_open = _Open()


def tidied(work: Callable[..., R], *given: object) -> R:
    """Call what makes elements; what the failures that it kept came through is cleared behind it."""
    _open.depth += 1
    try:
        return work(*given)
    finally:
        _open.depth -= 1
        if _open.frames:
            _clear_ended()


def kept(error: BaseException) -> None:
    """Say that a failure was caught, and may wait for its turn. Nothing to do outside of `tidied`."""
    trace = error.__traceback__
    if trace is None or not _open.depth:
        return
    _clear_ended()
    known = {id(frame) for frame in _open.frames}
    here = _running_here()
    running: list[FrameType] = []
    frame: FrameType | None = trace.tb_frame
    while frame is not None and id(frame) not in known and not frame.f_code.co_flags & _GENERATORS:
        if id(frame) in here and _is_ours(frame):  # else of another thread, which clears it, or it has ended
            running.append(frame)
        frame = frame.f_back  # a generator has none while it waits
    _open.frames += reversed(running)
    for chained in _chain(error):
        trace = chained.__traceback__
        while trace is not None:
            if trace.tb_frame not in running:
                _clear(trace.tb_frame)
            trace = trace.tb_next


def _running_here() -> set[int]:
    """The frames of this thread; a failure that another thread made leads to frames of that one."""
    found = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found.add(id(frame))
        frame = frame.f_back
    return found


def let_go(error: BaseException) -> None:
    """Forget the variables of our frames that an error came through; those of the user's functions stay as they are.

    Some of them hold the error itself, or a list that it is in. With them everything that its traceback leads to, the
    consumer's iterator and its open files, would wait for the garbage collector once the error is dropped.
    """
    seen: set[int] = set()
    for found in _chain(error):
        at = found.__traceback__
        while at is not None:
            frame: FrameType | None = at.tb_frame
            while frame is not None and id(frame) not in seen:
                seen.add(id(frame))
                _clear(frame)
                frame = frame.f_back  # whoever called it, and has returned since
            at = at.tb_next


def _chain(error: BaseException) -> list[BaseException]:
    """An error, and those that it was raised from or beside."""
    found = [error]
    for one in found:
        found += [
            other for other in (one.__cause__, one.__context__) if other and all(other is not known for known in found)
        ]
    return found


def _clear_ended() -> None:
    """A frame runs for as long as one that it called: from the innermost outwards until one still does."""
    frames = _open.frames
    while frames:
        try:
            frames[-1].clear()
        except RuntimeError:
            return
        frames.pop()


def _clear(frame: FrameType) -> None:
    if _is_ours(frame) and not frame.f_code.co_flags & _GENERATORS:  # clearing a generator's would end it
        with suppress(RuntimeError):  # it runs
            frame.clear()


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("penstock.")
