"""`facts`: what a function of the user does beside computing its result. Policies follow from it.

| policy | refuses |
|---|---|
| may it move to another process? | side effects, random numbers, the clock, results that differ there (`shipping`) |
| may it be called at another time, or less often? | side effects, random numbers, the clock (`why_visible`) |
| may it be called before its element is needed? | the same, and reading files or waiting (`why_not_certain`) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType, MappingProxyType
from typing import Any

from penstock.functions.libraries import Kind
from penstock.functions.memory import recalled
from penstock.functions.objects import WatchedPlaces

_NONE: Mapping[str, Any] = MappingProxyType({})
_VISIBLE = (Kind.EFFECT, Kind.RANDOM, Kind.SEEDED, Kind.CLOCK)


class Reason(str):
    """A reason, as a sentence about the function, with the line of the function's code if it is known."""

    line: int | None = None

    @classmethod
    def at(cls, line: int | None, why: str) -> Reason:
        """Return the reason with its line."""
        found = cls(why)
        found.line = line
        return found


@dataclass(frozen=True, slots=True)
class Facts:
    """The effects of a function: the first reason of each kind, and the user functions that it calls."""

    reasons: Mapping[Kind, Reason]
    creates_objects: bool
    watched: tuple[WatchedPlaces, ...]

    def why(self, *kinds: Kind) -> Reason | None:
        """Return the first reason of these kinds."""
        return next((self.reasons[kind] for kind in kinds if kind in self.reasons), None)

    @property
    def functions(self) -> list[FunctionType]:
        """The functions of the user whose code was read."""
        found = (watch.owner() for watch in self.watched if watch.name is None)
        return list(dict.fromkeys(one for one in found if one is not None))


def facts(function: Any) -> Facts:
    """Return what a function does beside computing its result. The answer is remembered until the function changes.

    >>> facts(lambda x: x * 2).reasons
    {}
    """

    def read() -> tuple[Facts, list[Any]]:
        found = scanned(function)
        return found, list(found.watched)

    return recalled(function, "facts", read, by_value=True)[0]


def scanned(function: Any, given: Mapping[str, Any] = _NONE) -> Facts:
    """Return the facts of a function. Changing the arguments in `given` is a side effect: other code uses them."""
    from penstock.functions.scan import FunctionScan  # a late import, because its tables are large

    scan = FunctionScan()
    try:
        scan.start(function, given)
        reasons = {kind: Reason.at(line, why) for kind, (why, line) in scan.notes.items()}
    except RecursionError:
        reasons = {Kind.EFFECT: Reason("it is nested too deeply to be analysed")}
    except Exception as error:  # unknown code may raise any error here
        reasons = {Kind.EFFECT: Reason(f"it cannot be analysed ({type(error).__name__})")}
    return Facts(reasons, scan.creates_objects, tuple(scan.watched.values()))


def why_visible(function: Any) -> Reason | None:
    """Return why the time or number of a function's calls matters, or None.

    >>> why_visible(lambda x: x * 2)
    >>> why_visible(lambda x: print(x))
    'it prints'
    """
    return facts(function).why(*_VISIBLE)


def why_not_certain(function: Any) -> Reason | None:
    """Return why a function may do more than compute, or None. Generators of the process are seeded for its calls."""
    return facts(function).why(Kind.EFFECT, Kind.RANDOM, Kind.CLOCK, Kind.OUTSIDE, Kind.ACCELERATOR)
