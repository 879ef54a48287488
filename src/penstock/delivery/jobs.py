"""Jobs: passes that several consumers share, as a dispatcher knows them.

With them Registered, data sets known by a name, and Scale, how many workers there are to be.

A machine without sockets or a clock. All it knows may be forgotten: consumers know where they are, and any
cuts will do.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

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


# What registered data sets are is the consumers' own matter: here they are bytes.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PREFIX = "dataset-"


class Kept(Protocol):
    """Where they are kept: bytes by name."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, content: bytes) -> None: ...
    def names(self) -> list[str]: ...


class InFolder:
    """Files of a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def get(self, name: str) -> bytes | None:
        try:
            return (self._folder / f"{_PREFIX}{name}").read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        part = self._folder / f"part-{os.getpid()}-{name}"
        part.write_bytes(content)
        part.replace(self._folder / f"{_PREFIX}{name}")

    def names(self) -> list[str]:
        return [path.name.removeprefix(_PREFIX) for path in self._folder.glob(f"{_PREFIX}*")]


class Registered:
    """Used by one thread at a time."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(self, name: str, fingerprint: str, content: bytes) -> None:
        """Keep a data set, unless the same is there. Raises FailedPreconditionError if the name is another one's."""
        if not _NAME.fullmatch(name):
            message = f"dataset_id must be 1 to 64 letters, digits, '_', '.' and '-', got dataset_id={name!r}."
            raise InvalidArgumentError(message, hint="Leave it out to have one made of what the data set does.")
        head = fingerprint.encode() + b"\n"
        found = self._kept.get(name)
        if found is None:
            self._kept.put(name, head + content)
        elif not found.startswith(head):
            message = f"Another data set is registered as {name!r}."
            raise FailedPreconditionError(message, hint="Leave dataset_id out, or give each data set its own.")

    def get(self, name: str) -> bytes:
        """The data set of this name. Raises NotFoundError."""
        found = self._kept.get(name) if _NAME.fullmatch(name) else None
        if found is None:
            known = ", ".join(map(repr, self.names())) or "none"
            message = f"No data set is registered as {name!r}; known are: {known}."
            raise NotFoundError(message, hint="ps.service.register_dataset(service, dataset) gives the id of one.")
        return found.partition(b"\n")[2]

    def names(self) -> list[str]:
        """The names of all data sets that are registered."""
        return sorted(self._kept.names())


# The number of workers grows only: those of one consumer end with its pass, and those of a service that nobody uses are
# let go of (`rest`). No element depends on it.
_MUCH = 0.1  # of a consumer's time: a further worker may shorten it


class Scale:
    """`wanted` workers, from half of `most` to `most`; always `most` unless it is `auto`."""

    def __init__(self, most: int, *, auto: bool) -> None:
        self.most = most
        self._least = max(most // 2, 1) if auto else most
        self.wanted = self._least

    def told(self, waiting: float, there: int) -> None:
        """A consumer has waited this share of its time, while so many workers were ready."""
        if waiting > _MUCH and there >= self.wanted:
            self.wanted = min(self.wanted + max(self.wanted // 2, 1), self.most)

    def rest(self) -> None:
        """Nobody needs them now."""
        self.wanted = self._least
