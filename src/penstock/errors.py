"""The one family of errors: every class is also a builtin, and every text says what was wanted, what came, what to do.

The engine fills in where an error happened (stage, the user's line, element, file and byte offset) on its way to the
caller; code that raises states only what it knows. An exception from a user's function keeps its own type and
traceback and carries the same facts as a note (`annotate`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn, TypeVar

from penstock.frames import kept
from penstock.hints import NO_ELEMENT, hint_for, is_miscalled, redacted

__all__ = [
    "AlreadyExistsError",
    "AnotherPlanError",
    "BudgetWarning",
    "Context",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "FrozenError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidTypeError",
    "MissingDependencyError",
    "NotFoundError",
    "OutOfRangeError",
    "PenstockError",
    "PermissionDeniedError",
    "RandomnessWarning",
    "ResourceExhaustedError",
    "ShardWarning",
    "UnavailableError",
    "UnimplementedError",
    "UnknownNameError",
]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Context:
    """Place of an error. Every field may be None, if it is unknown.

    Attributes:
        stage: Step of the pipeline.
        where: File and line of the user's code that defines the step.
        element: Number of the element.
        file: File that the element was read from.
        offset: Byte offset in the file.
        line: Line of the file, from 1.
        holds: Elements that a batch contains.

    Example:
        >>> Context(stage="map(f)", element=3).lines()
        ['in stage map(f)', 'element 3']
    """

    stage: str | None = None
    where: str | None = None
    element: int | None = None
    file: str | None = None
    offset: int | None = None
    line: int | None = None  # of the file, from 1
    holds: str | None = None  # which elements it is made of, if it is a batch

    def filled_from(self, other: Context) -> Context:
        """Keep what is known here, take the rest from `other`: the innermost stage knows best."""
        known = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}
        if known.get("file", other.file) != other.file:  # an offset belongs to its own file
            other = replace(other, offset=None, line=None)
        return replace(other, **known)

    def lines(self) -> list[str]:
        found = []
        if self.stage is not None:
            found.append(f"in stage {self.stage}" + (f", defined at {self.where}" if self.where else ""))
        if self.element is not None:
            found.append(f"element {self.element}" + (f", a batch of {self.holds}" if self.holds else ""))
        if self.file is not None:
            line = "" if self.line is None else f", line {self.line}"
            offset = "" if self.offset is None else f" at byte {self.offset}"
            found.append(f"in file {redacted(self.file)}{offset}{line}")
        return found


class PenstockError(Exception):
    """Base of all errors that penstock raises; `message`, `hint` and `context` are its parts."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str | None = None,
        offset: int | None = None,
        context: Context | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = Context(file=file, offset=offset).filled_from(context or Context())

    def __str__(self) -> str:
        lines = [self.message, *(f"  {line}" for line in self.context.lines())]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        notes = {name: value for name, value in vars(self).items() if name == "__notes__"}
        return _rebuild, (type(self), self.message, self.hint, self.context), notes


def _rebuild(kind: type[PenstockError], message: str, hint: str | None, context: Context) -> PenstockError:
    return kind(message, hint=hint, context=context)


class InvalidArgumentError(PenstockError, ValueError):
    """A value that cannot be: a batch size of 0, a tensor of the wrong shape, a feature of the wrong length."""


class UnknownNameError(InvalidArgumentError, AttributeError):
    """A setting that does not exist; the hint names the nearest one that does."""


class InvalidTypeError(PenstockError, TypeError):
    """A value of the wrong kind: a string for a count, a structure that differs from the one before."""


class DataLossError(PenstockError, ValueError):
    """Stored data is damaged: a truncated record, a checksum that does not match, an image cut short."""


class OutOfRangeError(PenstockError, IndexError):
    """An index behind the last element, or an element asked for where there is none left.

    An IndexError, so that `ds[i]` ends a loop of Python's own the way a list does.
    """


class NotFoundError(PenstockError, FileNotFoundError):
    """A file is missing, or a pattern matches none."""


class AlreadyExistsError(PenstockError, FileExistsError):
    """What was to be written is there already: a saved data set, a snapshot of another pipeline."""


class FailedPreconditionError(PenstockError, RuntimeError):
    """The object is not in the state the call needs: a closed iterator, a checkpoint of another plan."""


class AnotherPlanError(FailedPreconditionError, NotFoundError):
    """A checkpoint of another data set: the place that it names is not in this one."""


class FrozenError(FailedPreconditionError, ValueError):
    """Options that are in use already cannot be changed; a copy of them can."""


class UnimplementedError(PenstockError, NotImplementedError):
    """What this kind of data set cannot do at all: random access to a source without an index."""


class DeadlineExceededError(PenstockError, TimeoutError):
    """What took longer than it may: a function with one element (`Options.element_timeout`)."""


class UnavailableError(PenstockError, ConnectionError):
    """A server did not answer, or said that it cannot now, each time it was asked."""


class PermissionDeniedError(PenstockError, PermissionError):
    """A server, or the system, does not let you: there are no credentials, or others are needed."""


class MissingDependencyError(PenstockError, ImportError):
    """An optional package is needed; the hint names the extra to install."""


def optional_package(module: str, asked_by: str, extra: str) -> Any:
    """Return a module of an optional package.

    Args:
        module: Name of the module.
        asked_by: The function or the task that needs the module, for the message.
        extra: Extra of penstock that installs the package.

    Raises:
        MissingDependencyError: If the package is not installed, or fails to load.
    """
    try:
        return import_module(module)
    except ImportError as error:
        message = f"{asked_by} needs the package {module.partition('.')[0]}, which cannot be imported: {error}."
        raise MissingDependencyError(message, hint=f"Install it with: pip install 'penstock[{extra}]'") from error


class ResourceExhaustedError(PenstockError, MemoryError):
    """A buffer of a size you gave, or one element, is larger than the budget for all buffers together."""


NO_MEMORY = (
    "Make elements and batches smaller, or the shuffles and caches beside them, or give the program more memory."
)


class BudgetWarning(UserWarning):
    """A buffer is larger than the budget that follows from the machine: there may be memory for it, or not."""


class InternalError(PenstockError, RuntimeError):
    """A mistake inside penstock, and of no element: the pass ends with it, and a further `next()` raises it again."""


class RandomnessWarning(UserWarning):
    """Random numbers, or a random order, are probably not what the user intended.

    - A cache or snapshot stores the random numbers, or the shuffled order, of the first epoch for all epochs.
    - A function uses random numbers that the pipeline does not seed.
    - `take` and `skip` split a data set that has a different order in each epoch.
    """


class ShardWarning(UserWarning):
    """A consumer gets nothing: there are fewer files than consumers to deal them to."""


def annotate(error: BaseException, context: Context) -> None:
    """Add what `context` knows to an error in flight: into a `PenstockError`, as a note on any other exception."""
    if isinstance(error, PenstockError):
        error.context = error.context.filled_from(context)
        return
    lines = context.lines()
    if not lines or context_of(error) is not None:  # an outer stage has nothing to add to the innermost one
        return
    with suppress(Exception):  # a frozen dataclass lets nobody add anything
        error._penstock_context = context  # type: ignore[attr-defined]
        error.add_note("penstock: " + "; ".join(lines))
        if isinstance(error, MemoryError):  # the system's own says little, or nothing
            error.add_note(f"penstock: the memory did not suffice. {NO_MEMORY}")


def context_of(error: BaseException) -> Context | None:
    """What `annotate` said of an exception that is not one of ours."""
    try:
        found = getattr(error, "_penstock_context", None)
    except Exception:  # a class of the user's may do anything
        return None
    return found if isinstance(found, Context) else None


def said(error: BaseException) -> str:
    """What an exception says, where it can say it.

    >>> said(ValueError("no"))
    'no'
    """
    try:
        return error.message if isinstance(error, PenstockError) else str(error)
    except Exception as raised:
        return f"<its text cannot be had: __str__ raised {type(raised).__name__}>"


@contextmanager
def writing_to(path: Any) -> Iterator[None]:
    """Put the file's name into what the system raises without it, such as on a full disk.

    >>> with writing_to("a.tfrecord"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'a.tfrecord'
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def as_failure(raised: Exception, context: Context, element: Any = NO_ELEMENT) -> Exception:
    """An exception from a user's function as the consumer gets it: with its context, and never a StopIteration.

    Python's iterators mean their end by StopIteration; from a user's function it is a mistake, and not the end. What is
    known to be behind the exception is said in a note, with the help of the element that the function was given.
    """
    if not isinstance(raised, StopIteration):
        annotate(raised, context)
        _add_hint(raised, element)
        kept(raised)
        return marked(raised)
    message = "The function raised StopIteration, which would look like the end of the data."
    hint = "Give next() a default, or end a data set with take_while()."
    error = InvalidArgumentError(message, hint=hint, context=context)
    error.__cause__ = raised
    return error


def raise_as_failure(raised: Exception, context: Context) -> NoReturn:
    """Raise what has just been caught from a user's function, or a source, as the failure that it is."""
    error = as_failure(raised, context)
    if error is raised:
        raise error
    raise error from raised


def marked(error: Exception) -> Exception:
    """An exception that takes the place of an element: it has come out of a user's function, or of a source."""
    if not isinstance(error, PenstockError):
        _facts(error)["_penstock_failure"] = True
    return error


def is_failure(error: Exception) -> bool:
    """Whether somebody has said that an exception takes the place of an element; a `PenstockError` says so itself.

    A StopIteration never does: where it is raised it looks like the end.
    """
    if isinstance(error, PenstockError):
        return True
    return "_penstock_failure" in _facts(error) and not isinstance(error, StopIteration)


def is_mistake(error: Exception, *, first: bool) -> bool:
    """Return True for an error of the program, which other data would not avoid.

    `first` is True if no element has succeeded before: a wrong name or type then follows from the code.
    """
    if isinstance(error, (NameError, ImportError)) or "_penstock_miscalled" in _facts(error):
        return True
    return first and isinstance(error, (AttributeError, TypeError))


def _facts(error: BaseException) -> dict[str, Any]:
    """The attributes of an exception, whatever its class makes of asking for one, or of setting one."""
    found: dict[str, Any] = object.__getattribute__(error, "__dict__")
    return found


def _add_hint(raised: Exception, element: Any) -> None:
    facts = _facts(raised)
    if isinstance(raised, PenstockError) or "_penstock_hint" in facts:
        return
    with suppress(Exception):  # its text cannot be had, or no note can be added
        if is_miscalled(raised):
            facts["_penstock_miscalled"] = True
        hint = hint_for(raised, element)
        if hint is not None:
            facts["_penstock_hint"] = True
            raised.add_note(f"penstock: {hint}")


def called_for(where: str | None, function: Callable[..., R], *given: object) -> R:
    """Call a function that the user gave to the step at `where`, which is the `user_location` of what it makes itself.

    >>> called_for("train.py:7", user_location)
    'train.py:7'
    """
    return function(*given)


_CALLED_FOR = called_for.__code__


def user_location() -> str | None:
    """`file.py:12` of the innermost frame outside penstock: the line of user code that called us."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] != "penstock":
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if frame.f_code is _CALLED_FOR:
            where: str | None = frame.f_locals["where"]
            return where
        frame = frame.f_back
    return None


def __dir__() -> list[str]:
    return sorted(__all__)
