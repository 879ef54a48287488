"""What ends a run, as against the failure of one element, which a run goes on behind.

An exception is a *failure* where somebody who knows says so: a `PenstockError` says what was wrong with an element, and
`as_failure` marks what a user's function or a source has raised. Steps count failures, keep them in buffers and leave
them out. Any other exception is an error of the engine, or of the machine (no memory, a full disk): nothing is known of
the elements behind it. Stepped over like a failure it could look like the end of the data, which only a source knows.
`Stage` therefore lets nothing but failures out of `next`: what else comes up there becomes `Fatal`, which is no
`Exception`, so that no step handles it. It closes the run, and is raised where the elements are taken.
"""

from __future__ import annotations

from penstock.errors import Context, InternalError, PenstockError, ResourceExhaustedError, annotate, is_failure
from penstock.frames import kept

_NO_THREADS = (
    "Raise the limit (ulimit -u, pids.max of the container), run fewer passes at once, give the steps fewer parallel "
    'calls, or use executor="inline", which starts none.'
)


class Fatal(BaseException):
    """The run ends here; who holds it raises `error` in its place."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def failed(error: Exception, label: str | None = None, where: str | None = None) -> Exception:
    """An exception that was caught, if it is the failure of an element. Raises Fatal for any other."""
    if is_failure(error):
        kept(error)
        return error
    raise fatal(error, label, where) from error


def fatal(error: Exception, label: str | None = None, where: str | None = None) -> Fatal:
    """An exception that is nobody's failure, met in the step of this label, as what ends the run."""
    context = Context(label, where)
    if isinstance(error, (PenstockError, MemoryError, OSError, Warning)):  # these say what is wrong
        annotate(error, context)
        return Fatal(error)
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        message = "The system starts no further thread: this process, or its user, has as many as it may have."
        found = ResourceExhaustedError(message, hint=_NO_THREADS, context=context)
        found.__cause__ = error
        return Fatal(found)
    message = f"An error inside penstock, and not of an element: {type(error).__name__}: {error}".rstrip(": ")
    hint = "The pass ends here. This is a mistake of ours: please report it, with the traceback above."
    made = InternalError(message, hint=hint, context=context)
    made.__cause__ = error
    return Fatal(made)
