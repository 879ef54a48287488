"""Advice: one thing that would make a pipeline better; a Report of several; and the Check that finds them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.plan.node import Node, short_location
from penstock.profiler.lint.inspection import Inspection

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Advice:
    """What a step does that is probably not meant, and the calls to write in its place.

    `code` is the name of the check, `concern` what is at stake: "data" (other elements, or another order, than meant),
    "speed" or "memory". `step` and `where` are the step in question and the user's line that made it; `mended` the
    calls in their better form; `why` says what that gives, and what it changes.
    """

    code: str
    concern: str
    step: str
    where: str | None
    message: str
    mended: str
    why: str

    @classmethod
    def on(cls, node: Node, code: str, concern: str, message: str, mended: str, why: str) -> Advice:
        """Advice on one step of a plan."""
        return cls(code, concern, node.label, short_location(node.where) or None, message, mended, why)

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}  "
        why = textwrap.fill(self.why, _WIDTH, initial_indent="  ", subsequent_indent="  ")
        return f"{place}{self.message} [{self.code}, {self.concern}]\n  write  {self.mended}\n{why}"


Check = Callable[[Inspection], Iterator[Advice]]


class Report(tuple[Advice, ...]):
    """A tuple of `Advice`; its text is for people."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing to advise"

    __repr__ = __str__
