"""Jobs: passes that several consumers share: where their ranges are cut, and which worker makes which.

A machine without sockets or a clock. All it knows may be forgotten: consumers know where they are, and any
cuts will do.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.errors import FailedPreconditionError

_MOST_CUTS = 1 << 14  # of one pass that are known: a consumer further behind has its ranges cut, and made, anew


@dataclass(slots=True)
class _Pass:
    """The cuts of one pass, by where they begin."""

    starts: list[int] = field(default_factory=list)
    cuts: dict[int, tuple[int, str]] = field(default_factory=dict)


class Jobs:
    """What consumers of named jobs have been told."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._consumers: dict[str, set[str]] = {}
        self._passes: dict[tuple[str, int], _Pass] = {}
        self._turn = 0

    def join(self, name: str, digest: str, consumer: str) -> None:
        """Another consumer. Raises FailedPreconditionError if the job's other consumers make something else."""
        known = self._digests.setdefault(name, digest)
        if known != digest:
            message = f"The job {name!r} is a pass over another data set: its consumers share what is made."
            raise FailedPreconditionError(message, hint="Give each data set a job_name of its own.")
        self._consumers.setdefault(name, set()).add(consumer)

    def leave(self, name: str, consumer: str) -> None:
        """One of them is gone; with the last one the job is forgotten."""
        left = self._consumers.get(name, set())
        left.discard(consumer)
        if not left:
            self._consumers.pop(name, None)
            self._digests.pop(name, None)
            for key in [key for key in self._passes if key[0] == name]:
                del self._passes[key]

    def cut(self, name: str, epoch: int, start: int, length: int, workers: Sequence[str]) -> tuple[int, str | None]:
        """Where a range that begins at `start` ends, and who makes it: as others have been told, else anew."""
        found = self._passes.setdefault((name, epoch), _Pass())
        at = bisect_right(found.starts, start) - 1
        if at >= 0:
            begin = found.starts[at]
            stop, worker = found.cuts[begin]
            if start < stop:  # inside of a cut: to where the next one begins
                if worker not in workers and workers:
                    worker = self._next(workers)
                    found.cuts[begin] = stop, worker
                return stop, worker if worker in workers else None
        if not workers:
            return start + length, None
        stop = start + length
        if at + 1 < len(found.starts):
            stop = min(stop, found.starts[at + 1])
        worker = self._next(workers)
        insort(found.starts, start)
        found.cuts[start] = stop, worker
        if len(found.starts) > _MOST_CUTS:
            del found.cuts[found.starts.pop(0)]
        return stop, worker

    def told(self) -> dict[str, int]:
        """The consumers of each job."""
        return {name: len(consumers) for name, consumers in self._consumers.items()}

    def _next(self, workers: Sequence[str]) -> str:
        self._turn += 1
        return workers[self._turn % len(workers)]
