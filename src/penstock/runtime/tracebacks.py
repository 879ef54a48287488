"""Tracebacks as the user's own lines: frames of the engine in front of, and between, those of the user are left out."""

from __future__ import annotations

from types import TracebackType

from penstock.options import environment

_ELSEWHERE = "in a worker process:\n"


def folded(error: BaseException) -> TracebackType | None:
    """The traceback of an error without the engine's frames, for `raise error.with_traceback(...)`.

    What was raised inside penstock, behind the last line of the user's, keeps its frames; so does an error that no line
    of the user's had a part in. Of one that came from a worker process, whose lines are in its note, there is none to
    keep. PENSTOCK_FULL_TRACEBACK=1 keeps all.
    """
    whole = error.__traceback__
    if environment("FULL_TRACEBACK"):
        return whole
    frames = []
    trace = whole
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    last = max((at for at, frame in enumerate(frames) if not _is_ours(frame)), default=None)
    if last is None:
        return None if _is_from_elsewhere(error) else whole
    kept = [frame for at, frame in enumerate(frames) if at > last or not _is_ours(frame)]
    found: TracebackType | None = None
    for frame in reversed(kept):
        found = TracebackType(found, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return found


def add_lines(error: BaseException, text: str) -> None:
    """Say in a note where an error was raised that leaves its process, and loses its traceback."""
    error.add_note(f"{_ELSEWHERE}{text}")


def _is_from_elsewhere(error: BaseException) -> bool:
    return any(str(note).startswith(_ELSEWHERE) for note in getattr(error, "__notes__", ()))


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] == "penstock"
