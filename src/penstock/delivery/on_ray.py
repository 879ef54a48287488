"""OnRay: workers that are Ray actors. Ray does placement, transport and access; this module assigns ranges to workers.

Only this module imports Ray, when a user selects it.
"""

from __future__ import annotations

import logging
import os
import signal
import time
import traceback
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from penstock.block.shared_memory import Region
from penstock.delivery.contact import Contact, Workforce, check_version
from penstock.delivery.delivered import Delivered
from penstock.delivery.jobs import Scale
from penstock.delivery.maker import KEPT_BYTES, Makers
from penstock.delivery.part import Packet, PlanPart, opened
from penstock.delivery.requests import Requests
from penstock.delivery.results import Lent, Regions, path_of
from penstock.delivery.served import packet_of
from penstock.delivery.wire import Wire, compressed, plain
from penstock.delivery.worker import version
from penstock.errors import FailedPreconditionError, optional_package
from penstock.physical.lower import Lowering, Service
from penstock.physical.stage import Stage
from penstock.physical.stretch import Fatal
from penstock.plan.distribution import Remote
from penstock.runtime.machine.malloc import KEPT_ALONE, keep_freed_memory
from penstock.runtime.processes.link import Message

_LOG = logging.getLogger("penstock.delivery")
_LATE = 20  # seconds without a worker, after which the reason is reported
_SILENT = 10.0  # seconds without an answer, after which a check finds whether a signal has stopped the actor
_MOST_STARTS = 30  # limit of replacements for dead actors, per iteration
_NO_REGIONS = Regions()


class RayWorker:
    """The actor: takes parts once, then ranges.

    Element errors are in the results. Other errors become answers, so no method raises.

    An actor of a service knows its consumers and stores shared results, as `delivery.worker` does.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        keep_freed_memory(kept=KEPT_ALONE)
        self._parts: OrderedDict[str, PlanPart | str] = OrderedDict()
        self._jobs: dict[str, tuple[str, int, bool]] = {}
        self._users: dict[str, set[str]] = {}  # consumers by job
        self._makers = Makers(kept_bytes)
        self._regions: dict[str, Regions] = {}  # regions of consumers on this machine

    def hello(self) -> tuple[str, str, Process]:
        """Return the version, the node of this actor, and its process on that node."""
        return version(), node(), (os.getpid(), _started(os.getpid()))

    def begin(
        self,
        job: str,
        digest: str,
        epoch: int,
        kept: bool,  # noqa: FBT001 - a message
        user: str,
        content: bytes,
        buffers: list[Any],
    ) -> None:
        """Start an iteration for a consumer. Without `content`, the consumer has sent the part before.

        The part and its job come in one message. Otherwise the message of another consumer could come between them and
        remove the part.
        """
        if content and digest not in self._parts:
            try:
                self._parts[digest] = opened(content, buffers)
            except Exception as raised:
                self._parts[digest] = "".join(traceback.format_exception(raised)).rstrip()
        self._jobs.setdefault(job, (digest, epoch, kept))
        self._users.setdefault(job, set()).add(user)

    def leave(self, user: str) -> None:
        """Remove a consumer, and the jobs that only this consumer has used."""
        self._regions.pop(user, None)
        for job in list(self._users):
            self.drop(job, user)

    def drop(self, job: str, user: str) -> None:
        """End a consumer's use of an iteration. An iteration without consumers is forgotten."""
        users = self._users.get(job, set())
        users.discard(user)
        if users:
            return
        self._users.pop(job, None)
        digest, *_ = self._jobs.pop(job, ("", 0, False))
        self._makers.drop(job)
        if all(digest != other for other, *_ in self._jobs.values()):
            self._parts.pop(digest, None)

    def lend(self, user: str, number: int, nbytes: int, path: str, mark: bytes) -> None:
        """Open a memory region of a consumer on this machine, for results."""
        self._regions.setdefault(user, Regions()).open(number, nbytes, path, mark)

    def unmap(self, user: str, number: int) -> None:
        if user in self._regions:
            self._regions[user].unmap(number)

    def make(self, job: str, start: int, stop: int, codec: str | None, user: str = "", region: int = -1) -> Made:
        """Compute a range. Return the results with the codec that the consumer requests, or in its region."""
        regions = self._regions.get(user, _NO_REGIONS)
        known = region < 0 or region in regions
        if job not in self._jobs:
            return ("unmade", job, start, stop), b"", [], None, 0.0, None, -1 if known else None, []
        digest, epoch, kept = self._jobs[job]
        part = partial(self._parts.__getitem__, digest)
        head, found = self._makers.answer(job, start, stop, part, epoch, keep=kept)
        if regions.write(found, region):
            return head, found.content, [], found.sizes, 0.0, None, region, found.starts
        content, buffers, sizes, seconds = compressed(found, codec)
        return head, content, buffers, sizes, seconds, codec, -1 if known else None, []


Process = tuple[int, str]  # id of the process, and its start time
# The fields are: a head; content and buffers; the sizes of buffers, None if they are not compressed; seconds and codec
# of the compression; the region of the results; the offsets in the region. The region is -1 for none, and None if the
# actor could not open it.
Made = tuple[tuple[Any, ...], bytes, list[Any], list[int] | None, float, str | None, int | None, list[int]]


@dataclass(slots=True)
class RayAnswer:
    """The answer of an actor, with the attributes of other workers' messages."""

    head: tuple[Any, ...]
    content: Any
    parts: list[Any]

    @property
    def nbytes(self) -> int:
        return sum(memoryview(part).nbytes for part in self.parts)

    def buffers(self) -> list[Any]:
        return self.parts


class ActorContact(Contact):
    """The consumer's view of an actor. The actor ends with the iteration, unless it is `shared` by a service."""

    def __init__(self, name: str, actor: Any, ray: Any, wire: Wire, *, shared: str | None = None) -> None:
        self.name = name
        self.ready = False
        self.actor = actor
        self._ray = ray
        self._wire = wire
        self._user = shared or ""
        self._shared = shared is not None
        user = self._user
        self._lent = Lent(partial(_lend, actor, user), lambda number: actor.unmap.remote(user, number))
        self._lends = hasattr(os, "memfd_create")
        self.apart = False  # True if the actor is on another machine
        self._where, self._process = "", (0, "")
        self._heard = time.monotonic()
        self._known: set[str] = set()
        self._passes: dict[str, tuple[Packet, int, bool]] = {}
        self.waiting: deque[Any] = deque([actor.hello.remote()])  # pending answers, in order

    def begin(self, job: str, packet: Packet, epoch: int, *, kept: bool = False) -> None:
        if job not in self._passes:
            self._passes[job] = packet, epoch, kept
            self._tell(job)

    def _tell(self, job: str) -> None:
        packet, epoch, kept = self._passes[job]
        content, buffers = packet.packed.content, packet.packed.buffers
        if packet.digest in self._known and not self._shared:  # a service removes a part together with its last job
            content, buffers = b"", []
        self._known.add(packet.digest)
        self.actor.begin.remote(job, packet.digest, epoch, kept, self._user, content, buffers)

    def ask(self, job: str, start: int, stop: int, nbytes: int) -> None:
        codec = self._wire.codec() if self.apart else None
        region = self._lent.offer((job, start), nbytes) if self._lends and not self.apart else -1
        if not self.waiting:
            self._heard = time.monotonic()
        self.waiting.append(self.actor.make.remote(job, start, stop, codec, self._user, region))

    def drop(self, job: str) -> None:
        if self._passes.pop(job, None) is not None and self._shared:
            self.actor.drop.remote(job, self._user)

    def hear(self) -> Any:
        began = time.perf_counter()
        try:
            answer = self._ray.get(self.waiting[0])
        except self._ray.exceptions.RayError as error:  # the actor, its node or its result is gone
            raise EOFError from error
        self.waiting.popleft()
        self._heard = time.monotonic()
        if not self.ready:
            theirs, self._where, self._process = answer
            check_version(theirs, "The worker on Ray")
            self.ready, self.apart = True, self._where != here(self._ray)
            return None
        head, content, buffers, sizes, seconds, codec, region, starts = answer
        if region is None:  # the actor has another user or runs in its own container
            self._lends = False
        where = -1 if region is None else region
        placed = sizes if sizes and starts else []
        message = Message(head, memoryview(content), placed, starts, where, np.empty(0, np.uint8), None)
        self._lent.settle(head[1:3], message)
        if head[0] == "unmade":
            _, job, start, stop = head
            if job in self._passes:  # the service took this consumer for dead after a long silence
                self._tell(job)
                self.ask(job, start, stop, 0)
            return None
        if len(message.body):
            return message
        whole = RayAnswer(head, content, plain(buffers, codec, sizes))
        if self.apart:
            self._wire.saw(codec, whole.nbytes, seconds + time.perf_counter() - began)
        return whole

    def look(self) -> None:
        """Check whether a signal has stopped the actor, if it has not answered for long."""
        now = time.monotonic()
        if self.ready and now > self._heard + _SILENT:
            self._heard = now
            end_if_stopped(self._ray, self._where, self._process)

    def close(self) -> None:
        self._lent.end()
        if not self._shared:
            self._ray.kill(self.actor)


def _lend(actor: Any, user: str, region: Region) -> None:
    actor.lend.remote(user, region.number, region.nbytes, *path_of(region))


class ActorForce(Workforce[ActorContact]):
    """Workers that are Ray actors, started by this consumer or by a service."""

    _ray: Any
    _wire: Wire

    def wait(self, seconds: float) -> None:
        waiting = [each.waiting[0] for each in self.there.values() if each.waiting]
        if not waiting:
            time.sleep(seconds)
            return
        # While compression is measured, a result is fetched on demand. Otherwise Ray fetches it at once.
        measured = self._wire.measuring and any(each.apart for each in self.there.values())
        self._ray.wait(waiting, timeout=seconds, fetch_local=not measured)

    def spoken(self) -> list[Contact]:
        first = {each.waiting[0]: each for each in self.there.values() if each.waiting}
        if not first:
            return []
        ready, late = self._ray.wait(list(first), num_returns=len(first), timeout=0, fetch_local=False)
        for ref in late:
            first[ref].look()
        return [first[ref] for ref in ready]


class Actors(ActorForce):
    """`size` actors for one iteration. With `local`, all are on the consumer's node."""

    def __init__(self, size: int | None, ray: Any, wire: Wire, beside: int, *, local: bool) -> None:
        super().__init__()
        self._ray = ray
        self._wire = wire
        cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        where: dict[str, Any] = {}
        if local:
            cores = max(int(_node_resources(ray).get("CPU", 1)), 1)
            where["scheduling_strategy"] = _on_node(here(ray))
        # Actors that take turns wait for each other, so all of them need a place at once.
        share = 1 if beside <= cores else cores / beside
        self._kind = ray.remote(num_cpus=share, max_restarts=0, **where)(RayWorker)
        self._scale = Scale(size or cores, auto=size is None)
        self._starts = 0
        self._since, self._said = time.monotonic(), False  # `_said` is True after the report that no worker starts

    def lost(self, contact: Contact) -> bool:
        found = self.there.pop(contact.name, None)
        if found is None:
            return False
        found.close()
        return found.ready

    def tend(self) -> None:
        if not self._said and time.monotonic() > self._since + _LATE:
            self._said = True
            if not any(each.ready for each in self.there.values()):
                _LOG.warning(
                    "distribute('ray'): none of %d workers has started in %d s; each needs a CPU of the cluster, and "
                    "%g are free.",
                    len(self.there),
                    _LATE,
                    self._ray.available_resources().get("CPU", 0),
                )
        while len(self.there) < self._scale.wanted:
            if self._starts >= _MOST_STARTS + self._scale.most:
                message = f"Workers on Ray died again and again: {self._starts} were started for this pass."
                raise Fatal(FailedPreconditionError(message, hint="Ray's logs say why its actors end."))
            self._starts += 1
            name = f"actor {self._starts}"
            self.there[name] = ActorContact(name, self._kind.remote(), self._ray, self._wire)

    def told(self, waiting: float) -> None:
        self._scale.told(waiting, sum(each.ready for each in self.there.values()))


def node() -> str:
    """Return the id of the node that this process runs on."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def here(ray: Any) -> str:
    """Return the consumer's node. It is "" for a Ray client outside the cluster; results are then sent to it."""
    return "" if ray.util.client.ray.is_connected() else node()


def end_if_stopped(ray: Any, where: str, process: Process) -> None:
    """Kill a worker's process on its node, if a signal has stopped it. The consumer then finds the actor dead.

    Ray takes a stopped process for alive, so its answers would never come.
    """
    with suppress(ray.exceptions.RayError):
        task = ray.remote(num_cpus=0, max_retries=0)(_end_if_stopped)
        task.options(scheduling_strategy=_on_node(where)).remote(*process)


def _end_if_stopped(pid: int, started: str) -> None:
    state = _stat(pid)
    if state and state[0] == "T" and _started(pid) == started:  # the check excludes another process with the same id
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _started(pid: int) -> str:
    """Return the start time, which identifies a process if ids are used again.

    It is "" if the system does not report it.
    """
    state = _stat(pid)
    return state[19] if len(state) > 19 else ""


def _stat(pid: int) -> list[str]:
    """Return the fields of a process in Linux's /proc, from its state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _on_node(name: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(name, soft=False)


def _node_resources(ray: Any) -> dict[str, float]:
    name = here(ray)
    found: dict[str, float] = next((each["Resources"] for each in ray.nodes() if each["NodeID"] == name), {})
    return found


@dataclass(frozen=True, slots=True)
class OnRay(Service):
    """Actors on the cluster with the address `address`. None means the cluster of this process, or a local one."""

    address: str | None = None
    workers: int | None = None
    max_outstanding: int | None = None
    compression: str | None = "auto"
    local: bool = False  # use workers on the consumer's node only

    @property
    def name(self) -> str:
        return repr(self.address or "ray")

    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        packet, ray = packet_of(node, lowering), the_ray()
        size, beside = (self.workers, 1) if node.part is None else (1, self.workers or 1)

        def hire() -> Actors:
            connect_to(ray, self.address)
            if self.local and not here(ray):
                message = "target_workers='LOCAL' needs this program on a node of the cluster, and it is none's."
                raise Fatal(FailedPreconditionError(message, hint="Run it there, or leave target_workers out."))
            return Actors(size, ray, Wire(self.compression), beside, local=self.local)

        return Delivered(Requests(node, packet, hire, lowering, self.max_outstanding), lowering)


def connect_to(ray: Any, address: str | None) -> None:
    """Connect this process to a cluster, if it is not connected. None starts a local cluster."""
    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False if address is None else None)


def the_ray() -> Any:
    """Return the module ray. Raises MissingDependencyError if it is not installed."""
    return optional_package("ray", "A service on Ray", "ray")
