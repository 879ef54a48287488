"""OnRay: workers that are actors of Ray. Placement, transport and access are Ray's; who makes which range is ours.

Ray is imported here alone, when somebody asks for it.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.delivery.contact import Contact, Workforce, check_version
from penstock.delivery.delivered import Delivered
from penstock.delivery.local import ahead, packet_of
from penstock.delivery.maker import Maker
from penstock.delivery.part import Packet, Part, opened
from penstock.delivery.results import packed
from penstock.delivery.scale import Scale
from penstock.delivery.worker import version
from penstock.errors import FailedPreconditionError, MissingDependencyError, said
from penstock.physical.delivered import Service
from penstock.physical.fatal import Fatal
from penstock.physical.lower import Lowering
from penstock.physical.stage import Stage
from penstock.plan.distribution import Remote
from penstock.runtime.machine.malloc import keep_freed_memory
from penstock.runtime.processes.worker import packed_end

_LOG = logging.getLogger("penstock.delivery")
_LATE = 20  # seconds without a worker, behind which it is said why
_MOST_STARTS = 30  # actors in the place of those that died, for one pass


class Worker:
    """The actor: takes parts once, then ranges. Errors of elements are in their places; no other leaves a method."""

    def __init__(self) -> None:
        keep_freed_memory()
        self._parts: dict[str, Part | str] = {}
        self._jobs: dict[str, tuple[str, int]] = {}
        self._makers: dict[str, Maker] = {}

    def hello(self) -> str:
        return version()

    def take(self, digest: str, content: bytes, buffers: list[Any]) -> None:
        try:
            self._parts[digest] = opened(content, buffers)
        except Exception as raised:
            self._parts[digest] = "".join(traceback.format_exception(raised)).rstrip()

    def begin(self, job: str, digest: str, epoch: int) -> None:
        self._jobs[job] = digest, epoch

    def make(self, job: str, start: int, stop: int) -> tuple[tuple[Any, ...], bytes, list[Any]]:
        digest, epoch = self._jobs[job]
        part = self._parts[digest]
        if isinstance(part, str):
            return ("unready", job, start, part), b"", []
        try:
            if job not in self._makers:
                self._makers[job] = Maker(part, epoch)
            made = self._makers[job].make(start, stop)
            found = packed(made.parts)
        except (Exception, Fatal) as raised:
            error = raised.error if isinstance(raised, Fatal) else raised
            text = "".join(traceback.format_exception(error)).rstrip()
            return ("mistaken", job, start, f"{type(error).__name__}: {said(error)}", text), b"", []
        except BaseException as raised:  # a function asks for the end of the program
            found = packed_end(raised)
            return ("ended", job, start), found.content, found.buffers
        head = ("made", job, start, stop, made.elements, made.ended, made.seconds, made.nbytes)
        return head, found.content, found.buffers


@dataclass(slots=True)
class Answer:
    """What an actor has returned, as the messages of other workers are."""

    head: tuple[Any, ...]
    content: Any
    parts: list[Any]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def buffers(self) -> list[Any]:
        return self.parts


class ActorContact(Contact):
    """An actor as the consumer sees it."""

    def __init__(self, name: str, actor: Any, ray: Any) -> None:
        self.name = name
        self.ready = False
        self.actor = actor
        self._ray = ray
        self._known: set[str] = set()
        self._told: set[str] = set()
        self.waiting: deque[Any] = deque([actor.hello.remote()])  # what it will answer, in that order

    def begin(self, job: str, packet: Packet, epoch: int, *, kept: bool = False) -> None:
        if packet.digest not in self._known:
            self.actor.take.remote(packet.digest, packet.packed.content, packet.packed.buffers)
            self._known.add(packet.digest)
        if job not in self._told:
            self.actor.begin.remote(job, packet.digest, epoch)
            self._told.add(job)

    def ask(self, job: str, start: int, stop: int, nbytes: int) -> None:
        self.waiting.append(self.actor.make.remote(job, start, stop))

    def drop(self, job: str) -> None:
        """The actor ends with the pass."""

    def hear(self) -> Any:
        try:
            answer = self._ray.get(self.waiting[0])
        except self._ray.exceptions.RayError as error:  # the actor, its node or what it returned is gone
            raise EOFError from error
        self.waiting.popleft()
        if not self.ready:
            check_version(answer, "The worker on Ray")
            self.ready = True
            return None
        return Answer(*answer)

    def close(self) -> None:
        self._ray.kill(self.actor)


class Actors(Workforce):
    """`size` actors, as long as one pass needs them."""

    def __init__(self, size: int | None, ray: Any, beside: int = 1) -> None:
        self._ray = ray
        cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        # those of parts that are taken in turn wait for each other: all of them have to have a place
        self._kind = ray.remote(num_cpus=1 if beside <= cores else cores / beside, max_restarts=0)(Worker)
        self._scale = Scale(size or cores, auto=size is None)
        self._there: dict[str, ActorContact] = {}
        self._starts = 0
        self._since, self._said = time.monotonic(), False  # whether it was said that no worker starts

    def contacts(self) -> dict[str, Contact]:
        return dict(self._there)

    def lost(self, contact: Contact) -> bool:
        found = self._there.pop(contact.name, None)
        if found is None:
            return False
        found.close()
        return found.ready

    def tend(self) -> None:
        if not self._said and time.monotonic() > self._since + _LATE:
            self._said = True
            if not any(each.ready for each in self._there.values()):
                _LOG.warning(
                    "distribute('ray'): none of %d workers has started in %d s; each needs a CPU of the cluster, and "
                    "%g are free.",
                    len(self._there),
                    _LATE,
                    self._ray.available_resources().get("CPU", 0),
                )
        while len(self._there) < self._scale.wanted:
            if self._starts >= _MOST_STARTS + self._scale.most:
                message = f"Workers on Ray died again and again: {self._starts} were started for this pass."
                raise Fatal(FailedPreconditionError(message, hint="Ray's logs say why its actors end."))
            self._starts += 1
            name = f"actor {self._starts}"
            self._there[name] = ActorContact(name, self._kind.remote(), self._ray)

    def told(self, waiting: float) -> None:
        self._scale.told(waiting, sum(each.ready for each in self._there.values()))

    def wait(self, seconds: float) -> None:
        waiting = [each.waiting[0] for each in self._there.values() if each.waiting]
        self._ray.wait(waiting, timeout=seconds)

    def spoken(self) -> list[Contact]:
        first = {each.waiting[0]: each for each in self._there.values() if each.waiting}
        if not first:
            return []
        ready, _ = self._ray.wait(list(first), num_returns=len(first), timeout=0, fetch_local=False)
        return [first[ref] for ref in ready]

    def close(self) -> None:
        there, self._there = self._there, {}
        for each in there.values():
            each.close()


@dataclass(frozen=True, slots=True)
class OnRay(Service):
    """Actors on the cluster that `address` names, None: the one this process is connected to, or a local one."""

    address: str | None = None
    workers: int | None = None
    max_outstanding: int | None = None

    @property
    def name(self) -> str:
        return repr(self.address or "ray")

    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        packet = packet_of(node, lowering)
        return Delivered(node, packet, self._hire(alone=node.part is not None), lowering, self.most)

    def _hire(self, *, alone: bool) -> Callable[[], Workforce]:
        ray = the_ray()

        def hire() -> Workforce:
            if not ray.is_initialized():
                ray.init(address=self.address, include_dashboard=False if self.address is None else None)
            return Actors(1, ray, self.workers or 1) if alone else Actors(self.workers, ray)

        return hire

    def most(self, workers: int) -> int:
        return ahead(workers, self.max_outstanding)


def the_ray() -> Any:
    """The module. Raises MissingDependencyError where it is not installed."""
    try:
        import ray
    except ImportError as error:
        message = "Ray is not installed."
        raise MissingDependencyError(message, hint="pip install 'penstock[ray]'") from error
    return ray
