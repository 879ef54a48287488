"""Advice: one improvement of a pipeline; Report: a tuple of them; Check: a function that finds them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from penstock.plan.node import Node, short_location
from penstock.profiler.lint.inspection import Inspection

_WIDTH = 100


class Finding(NamedTuple):
    """A step with the effect that a check has found, the better calls, and why they are better.

    `concern` is set if it differs from that of the check's group in `CHECKS`.
    """

    node: Node
    message: str
    mended: str
    why: str
    concern: str | None = None


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
    def of(cls, code: str, concern: str, found: Finding) -> Advice:
        """Return the advice for a finding of a check."""
        node, message, mended, why, own = found
        return cls(code, own or concern, node.label, short_location(node.where) or None, message, mended, why)

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}  "
        why = textwrap.fill(self.why, _WIDTH, initial_indent="  ", subsequent_indent="  ")
        return f"{place}{self.message} [{self.code}, {self.concern}]\n  write  {self.mended}\n{why}"


Check = Callable[[Inspection], Iterator[Finding]]


class Report(tuple[Advice, ...]):
    """A tuple of `Advice` with a readable text."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing to advise"

    __repr__ = __str__
