"""May the engine move a function to another process by itself, without anybody noticing? Decided without calling it.

There nobody sees what the function changes, prints or counts, and what it draws or reads from its own process is not
the same. So it must not do any of that: the bytecode is gone through (`trace.effects`), with the user's own functions
and methods that it calls. Lists, dicts, arrays and objects from outside may be read; they must not be written to, by
itself or by what it hands them to. Of the functions of libraries those count as harmless of which it is known. What
is left is tried: the function must be one that can be pickled, and not be too large.

Elements, and what has been made from them, are the function's own and may be changed at will. What methods of elements
do is not seen, nor what arithmetic and comparisons do on objects whose class says so itself.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.trace.effects.watched import Watched

_MOST_BYTES = 1 << 26  # of a function with what it closes over


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was found of a function, and the places it was read from."""

    function: weakref.ref[Any]
    why: str | None
    watched: tuple[Watched, ...]


_verdicts: dict[int, _Verdict] = {}


def get_ready() -> None:
    """Import what a verdict needs, where that holds nobody up: its tables are large, and seldom asked."""
    import cloudpickle  # noqa: F401

    import penstock.trace.effects.verdict  # noqa: F401


def why_not_shippable(function: Callable[..., Any]) -> str | None:
    """Why the engine must not send this function to another process unasked, as a short sentence; None where it may.

    >>> why_not_shippable(lambda x: x * 2)
    >>> seen = []
    >>> why_not_shippable(lambda x: seen.append(x))
    'it appends to `seen`'
    """
    known = _verdicts.get(id(function))
    if known is not None and known.function() is function and all(place.unchanged() for place in known.watched):
        return known.why
    from penstock.trace.effects.verdict import why_visible  # see get_ready

    watched: list[Watched] = []
    try:
        why = why_visible(function, watched) or _why_stuck(function)
    except RecursionError:
        why = "it is nested too deeply to be looked through"
    except Exception as error:  # code that is read may hold anything; whoever cannot read it does not move it
        why = f"it cannot be looked through ({type(error).__name__})"
    _remember(function, why, tuple(watched))
    return why


class _TooLarge(Exception):
    """More bytes than are sent unasked."""


class _Counter:
    """A file that counts what is written to it, up to a limit."""

    def __init__(self) -> None:
        self._left = _MOST_BYTES

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise _TooLarge
        return size

    def beside(self, buffer: pickle.PickleBuffer) -> None:
        self.write(buffer.raw())


def _why_stuck(function: Any) -> str | None:
    """Why it cannot be pickled, or had better not."""
    import cloudpickle

    counter = _Counter()
    try:
        cloudpickle.dump(function, counter, protocol=5, buffer_callback=counter.beside)
    except _TooLarge:
        return f"it takes along more than {_MOST_BYTES >> 20} MiB"
    except Exception as error:
        said = str(error).splitlines() or [""]
        return f"it cannot be pickled: {said[0] or type(error).__name__}"
    return None


def _remember(function: Any, why: str | None, watched: tuple[Watched, ...]) -> None:
    number, known = id(function), _verdicts  # a module's names are gone when the interpreter ends

    def forget(gone: object) -> None:
        known.pop(number, None)

    try:
        _verdicts[number] = _Verdict(weakref.ref(function, forget), why, watched)
    except TypeError:  # of the interpreter's own, which is looked up as fast as a verdict
        return
