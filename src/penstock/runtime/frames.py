"""What a failure's traceback holds on to: frames of ours, with the stages, files and buffers in their variables."""

from __future__ import annotations

import inspect
from contextlib import suppress
from types import FrameType

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def let_go(error: BaseException) -> None:
    """Forget the variables of our frames that an error came through; those of the user's functions stay as they are.

    Some of them hold the error itself, or a list that it is in. With them everything that its traceback leads to, the
    consumer's iterator and its open files, would wait for the garbage collector once the error is dropped.
    """
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        waiting += [found.__cause__, found.__context__]
        at = found.__traceback__
        while at is not None:
            frame: FrameType | None = at.tb_frame
            while frame is not None and id(frame) not in seen:
                seen.add(id(frame))
                _clear(frame)
                frame = frame.f_back  # whoever called it, and has returned since
            at = at.tb_next


def _clear(frame: FrameType) -> None:
    ours = str(frame.f_globals.get("__name__", "")).startswith("penstock.")
    if ours and not frame.f_code.co_flags & _GENERATORS:  # clearing a generator's would end it
        with suppress(RuntimeError):  # it runs
            frame.clear()
