"""Shortens tracebacks to the lines of the user: frames of the engine before and between them are removed."""

from __future__ import annotations

from types import TracebackType

from penstock.errors import InternalError, PenstockError
from penstock.hints import is_miscalled
from penstock.options import environment

_ELSEWHERE = "in a worker process:\n"


def folded(error: BaseException) -> TracebackType | None:
    """Return the traceback of an error without the engine's frames, for `raise error.with_traceback(...)`.

    An error that penstock raises about data or functions of the user needs no frame of the engine, and neither do its
    causes. Any other error keeps the engine's frames after the last line of the user, and all of them if there is no
    such line. The lines of an error from a worker process are in its note. PENSTOCK_FULL_TRACEBACK=1 keeps all frames.
    """
    if environment("FULL_TRACEBACK"):
        return error.__traceback__
    explained = isinstance(error, PenstockError) and not isinstance(error, InternalError)
    cause = error.__cause__ or error.__context__
    if explained and isinstance(error.__context__, PenstockError):  # it has the same message
        error.__suppress_context__ = True
    done = {id(error)}  # an error may be the context of its own cause
    while explained and cause is not None and id(cause) not in done:
        done.add(id(cause))
        cause.with_traceback(_users(cause.__traceback__))
        cause = cause.__cause__ or cause.__context__
    if explained or _is_from_elsewhere(error) or is_miscalled(error):
        return _users(error.__traceback__)
    return _users(error.__traceback__, ending=True)


def _users(trace: TracebackType | None, *, ending: bool = False) -> TracebackType | None:
    """Return the frames of the user's code, and with `ending` the engine's frames after them."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for frame in reversed(frames):
        ending = ending and _is_ours(frame)
        if ending or not _is_ours(frame):
            found = TracebackType(found, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return found


def add_lines(error: BaseException, text: str) -> None:
    """Add the traceback to an error as a note, because an error loses its traceback when it leaves its process."""
    error.add_note(f"{_ELSEWHERE}{text}")


def _is_from_elsewhere(error: BaseException) -> bool:
    return any(str(note).startswith(_ELSEWHERE) for note in getattr(error, "__notes__", ()))


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] == "penstock"
