"""Jobs: iterations that several consumers share, in the view of a dispatcher.

This module also has Registered, data sets by name, and Scale, the wanted number of workers. It uses no sockets and no
clock. All of its state may be lost: consumers know their positions, and any cuts give equal elements.
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

# per iteration; a consumer before the oldest stored cut gets new cuts, and its ranges are computed again
_MOST_CUTS = 1 << 14


@dataclass(slots=True)
class _IterationCuts:
    """The cuts of one iteration, by their start."""

    starts: list[int] = field(default_factory=list)
    cuts: dict[int, tuple[int, str]] = field(default_factory=dict)


class Jobs:
    """The consumers of named jobs, and the cuts that were sent to them."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._consumers: dict[str, set[str]] = {}
        self._passes: dict[tuple[str, int], _IterationCuts] = {}
        self._turn = 0

    def join(self, name: str, digest: str, consumer: str) -> None:
        """Add a consumer. Raises FailedPreconditionError if the job's other consumers use another data set."""
        known = self._digests.setdefault(name, digest)
        if known != digest:
            message = f"The job {name!r} is a pass over another data set: its consumers share what is made."
            raise FailedPreconditionError(message, hint="Give each data set a job_name of its own.")
        self._consumers.setdefault(name, set()).add(consumer)

    def leave(self, consumer: str) -> None:
        """Remove a consumer from its jobs. A job without consumers is forgotten."""
        for name, consumers in list(self._consumers.items()):
            consumers.discard(consumer)
            if not consumers:
                del self._consumers[name], self._digests[name]
        self._passes = {key: cuts for key, cuts in self._passes.items() if key[0] in self._consumers}

    def cut(self, name: str, epoch: int, start: int, length: int, workers: Sequence[str]) -> tuple[int, str | None]:
        """Return the end of a range that begins at `start`, and its worker. A known cut is returned again."""
        found = self._passes.setdefault((name, epoch), _IterationCuts())
        at = bisect_right(found.starts, start) - 1
        if at >= 0:
            begin = found.starts[at]
            stop, worker = found.cuts[begin]
            if start < stop:  # the start lies inside a cut: return the rest of it
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
        """Return the number of consumers of each job."""
        return {name: len(consumers) for name, consumers in self._consumers.items()}

    def _next(self, workers: Sequence[str]) -> str:
        self._turn += 1
        return workers[self._turn % len(workers)]


# The dispatcher does not unpickle registered data sets: it stores bytes.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PREFIX = "dataset-"


class ByteStore(Protocol):
    """A store of bytes by name."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, content: bytes) -> None: ...
    def names(self) -> list[str]: ...


class InFolder:
    """A store in files of a folder."""

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
    """The registered data sets. One thread at a time uses it."""

    def __init__(self, kept: ByteStore) -> None:
        self._kept = kept

    def put(self, name: str, fingerprint: str, content: bytes) -> None:
        """Store a data set, if it is new. Raises FailedPreconditionError if another data set has the name."""
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
        """Return the data set of this name. Raises NotFoundError."""
        found = self._kept.get(name) if _NAME.fullmatch(name) else None
        if found is None:
            known = ", ".join(map(repr, self.names())) or "none"
            message = f"No data set is registered as {name!r}; known are: {known}."
            raise NotFoundError(message, hint="ps.service.register_dataset(service, dataset) gives the id of one.")
        return found.partition(b"\n")[2]

    def names(self) -> list[str]:
        """Return the names of all registered data sets."""
        return sorted(self._kept.names())


# The number of workers only grows while there are consumers. The workers of one consumer end with its iteration. A
# service without consumers reduces its workers (`rest`). No element depends on the number.
_MUCH = 0.1  # share of a consumer's time; if a consumer waits longer, another worker may help


class Scale:
    """The wanted number of workers, `wanted`: with `auto` from half of `most` up to `most`, otherwise `most`."""

    def __init__(self, most: int, *, auto: bool) -> None:
        self.most = most
        self._least = max(most // 2, 1) if auto else most
        self.wanted = self._least

    def told(self, waiting: float, there: int) -> None:
        """Take into account that a consumer has waited this share of its time, while `there` workers were ready."""
        if waiting > _MUCH and there >= self.wanted:
            self.wanted = min(self.wanted + max(self.wanted // 2, 1), self.most)

    def rest(self) -> None:
        """Reduce the number, because no consumer needs workers now."""
        self.wanted = self._least
