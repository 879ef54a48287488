"""Advice: one improvement of a pipeline; Report: a tuple of them; Check: a function that finds them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.plan.node import Node, short_location
from penstock.profiler.lint.inspection import Inspection

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Advice:
    """A probably unintended effect of a step, and the better calls.

    `code` is the name of the check. `concern` is the subject: "data" (other elements or another order than intended),
    "speed" or "memory". `step` and `where` are the step and the user's line that created it. `mended` are the better
    calls. `why` describes the gain, and the changes in behaviour.
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
        """Return advice on one step of a plan."""
        return cls(code, concern, node.label, short_location(node.where) or None, message, mended, why)

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}  "
        why = textwrap.fill(self.why, _WIDTH, initial_indent="  ", subsequent_indent="  ")
        return f"{place}{self.message} [{self.code}, {self.concern}]\n  write  {self.mended}\n{why}"


Check = Callable[[Inspection], Iterator[Advice]]


class Report(tuple[Advice, ...]):
    """A tuple of `Advice` with a readable text."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing to advise"

    __repr__ = __str__
