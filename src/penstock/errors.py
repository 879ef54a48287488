"""The errors of penstock. Each class is also a builtin exception.

A message says what was needed, what was given, and how to correct it. Code that raises an error states what it knows;
the engine adds the place: stage, the user's line, element, file and byte offset. An exception from a user's function
keeps its type and traceback. The same facts are added to it as a note (`annotate`).
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
    line: int | None = None
    holds: str | None = None

    def filled_from(self, other: Context) -> Context:
        """Return this context, with unknown fields taken from `other`, the context of an outer stage."""
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
    """Base of all errors that penstock raises. Its parts are `message`, `hint` and `context`."""

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
    """A value is not allowed, such as a batch size of 0, or a tensor of the wrong shape."""


class UnknownNameError(InvalidArgumentError, AttributeError):
    """A setting does not exist. The hint names the nearest one that does."""


class InvalidTypeError(PenstockError, TypeError):
    """A value has the wrong type, such as a string for a count, or an element another structure than the one before."""


class DataLossError(PenstockError, ValueError):
    """Stored data is damaged, such as a truncated record or image, or a checksum that does not match."""


class OutOfRangeError(PenstockError, IndexError):
    """An index is beyond the last element, or no element is left.

    It is an IndexError, so a Python loop over `ds[i]` ends as it does for a list.
    """


class NotFoundError(PenstockError, FileNotFoundError):
    """A file is missing, or a pattern matches no file."""


class AlreadyExistsError(PenstockError, FileExistsError):
    """The target exists already, such as a saved data set, or a snapshot of another pipeline."""


class FailedPreconditionError(PenstockError, RuntimeError):
    """An object is in the wrong state for the call, such as a closed iterator, or a checkpoint of another plan."""


class AnotherPlanError(FailedPreconditionError, NotFoundError):
    """A checkpoint belongs to another data set: it names a step that this data set does not have."""


class FrozenError(FailedPreconditionError, ValueError):
    """Options are in use and cannot change. A copy of them can."""


class UnimplementedError(PenstockError, NotImplementedError):
    """A data set cannot do this at all, such as random access to a source without an index."""


class DeadlineExceededError(PenstockError, TimeoutError):
    """A call took too long, such as that of a function for one element (`Options.element_timeout`)."""


class UnavailableError(PenstockError, ConnectionError):
    """A server did not answer, or was unavailable, at every attempt."""


class PermissionDeniedError(PenstockError, PermissionError):
    """A server or the system denies access: credentials are missing or insufficient."""


class MissingDependencyError(PenstockError, ImportError):
    """An optional package is missing. The hint names the extra to install."""


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
    """One element, or a buffer with a size that you gave, is larger than the memory budget of all buffers."""


NO_MEMORY = (
    "Make elements and batches smaller, or the shuffles and caches beside them, or give the program more memory."
)


class BudgetWarning(UserWarning):
    """A buffer is larger than the memory budget, a share of the machine's memory. The memory may not suffice."""


class InternalError(PenstockError, RuntimeError):
    """A fault inside penstock, not in an element. It ends the iteration; later calls of `next()` raise it again."""


class RandomnessWarning(UserWarning):
    """Random numbers, or a random order, are probably not what the user intended.

    - A cache or snapshot stores the random numbers, or the shuffled order, of the first epoch for all epochs.
    - A function uses random numbers that the pipeline does not seed.
    - `take` and `skip` split a data set that has a different order in each epoch.
    """


class ShardWarning(UserWarning):
    """A consumer gets no elements, because there are fewer files than consumers."""


def annotate(error: BaseException, context: Context) -> None:
    """Add the context to an error: to the fields of a `PenstockError`, and to any other exception as a note."""
    if isinstance(error, PenstockError):
        error.context = error.context.filled_from(context)
        return
    lines = context.lines()
    if not lines or context_of(error) is not None:  # the innermost stage has written the note
        return
    with suppress(Exception):  # a frozen dataclass accepts no attributes
        error._penstock_context = context  # type: ignore[attr-defined]
        error.add_note("penstock: " + "; ".join(lines))
        if isinstance(error, MemoryError):  # the system's message is short or empty
            error.add_note(f"penstock: the memory did not suffice. {NO_MEMORY}")


def context_of(error: BaseException) -> Context | None:
    """Return the context that `annotate` added to an exception that is not a `PenstockError`, or None."""
    try:
        found = getattr(error, "_penstock_context", None)
    except Exception:  # a user's class may raise anything
        return None
    return found if isinstance(found, Context) else None


def said(error: BaseException) -> str:
    """Return the message of an exception, also if its `__str__` fails.

    >>> said(ValueError("no"))
    'no'
    """
    try:
        return error.message if isinstance(error, PenstockError) else str(error)
    except Exception as raised:
        return f"<its text cannot be had: __str__ raised {type(raised).__name__}>"


@contextmanager
def writing_to(path: Any) -> Iterator[None]:
    """Add the name of the file to an OSError without one, such as that of a full disk.

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
    """Return an exception from a user's function in the form for the consumer: with its context and a hint.

    Python's iterators end by StopIteration. From a user's function it is a mistake, so another error replaces it. The
    hint is a note about the probable cause, which may depend on `element`, the argument of the function.
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
    """Raise an exception of a user's function or a source as a failure (`as_failure`)."""
    error = as_failure(raised, context)
    if error is raised:
        raise error
    raise error from raised


def marked(error: Exception) -> Exception:
    """Mark an exception of a user's function or a source as a failure, which takes the place of an element."""
    if not isinstance(error, PenstockError):
        _facts(error)["_penstock_failure"] = True
    return error


def is_failure(error: Exception) -> bool:
    """Return True if an exception takes the place of an element: a marked exception, or a `PenstockError`.

    A StopIteration never does, because it looks like the end.
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
    """Return the attributes of an exception as a dict, past the class's own `__getattr__` and `__setattr__`."""
    found: dict[str, Any] = object.__getattribute__(error, "__dict__")
    return found


def _add_hint(raised: Exception, element: Any) -> None:
    facts = _facts(raised)
    if isinstance(raised, PenstockError) or "_penstock_hint" in facts:
        return
    with suppress(Exception):  # its __str__ may fail, or it accepts no notes
        if is_miscalled(raised):
            facts["_penstock_miscalled"] = True
        hint = hint_for(raised, element)
        if hint is not None:
            facts["_penstock_hint"] = True
            raised.add_note(f"penstock: {hint}")


def called_for(where: str | None, function: Callable[..., R], *given: object) -> R:
    """Call the user's function of the step at `where`. The steps that it creates have `where` as their location, too.

    >>> called_for("train.py:7", user_location)
    'train.py:7'
    """
    return function(*given)


_CALLED_FOR = called_for.__code__


def user_location() -> str | None:
    """Return the file and line of the user's code that called penstock, such as `file.py:12`."""
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
