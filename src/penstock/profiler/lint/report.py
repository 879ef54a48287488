"""Report: the advice on a data set, as a sequence that prints itself."""

from __future__ import annotations

from penstock.profiler.lint.advice import Advice


class Report(tuple[Advice, ...]):
    """A tuple of `Advice`; its text is for people."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "nothing to advise"

    __repr__ = __str__
