"""A consumer's view of a service: its own processes (Local), or a service that others use too (SharedService)."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.delivery.contact import AnyContact, Contact, Workforce
from penstock.delivery.crew import crew
from penstock.delivery.delivered import Delivered
from penstock.delivery.dispatcher import Line
from penstock.delivery.part import Packet, PlanPart
from penstock.delivery.requests import Requests
from penstock.delivery.sockets import connected, token_of
from penstock.errors import FailedPreconditionError, PenstockError, said
from penstock.physical.lower import Lowering, Service
from penstock.physical.stage import Stage
from penstock.physical.stretch import Fatal
from penstock.plan.distribution import Remote
from penstock.runtime.machine.granted import granted_cpus


@dataclass(frozen=True, slots=True)
class Local(Service):
    """`workers` local processes; None: on demand, up to the cores.

    At most `max_outstanding` ranges are requested ahead.
    """

    workers: int | None = None
    max_outstanding: int | None = None

    @property
    def name(self) -> str:
        return "'local'"

    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        size = 1 if node.part is not None else self.workers or granted_cpus()
        auto = node.part is None and self.workers is None
        hire = partial(crew, size, auto=auto)
        return Delivered(Requests(node, packet_of(node, lowering), hire, lowering, self.max_outstanding), lowering)


def packet_of(node: Remote, lowering: Lowering) -> Packet:
    """Return the packed part for the workers. Raises InvalidArgumentError if it cannot be packed."""
    part = PlanPart(node.base, node.middle, lowering.options, lowering.dataset, lowering.provenance, node.finish)
    return Packet.of(node, part)


PREFIX = "unix://"
_AGAIN = 0.2  # seconds between questions to the dispatcher while there are no workers
_LOOK = 2.0  # seconds between questions while there are workers, as more may have started
_PATIENCE = 60.0  # seconds without a dispatcher and a worker, after which an iteration ends


class ServiceForce(Workforce[AnyContact]):
    """The workers that the dispatcher of a service lists. If the dispatcher is gone, it waits for the next one.

    For a `part`, it uses one worker as long as that worker lives. `job` is the shared job, if there is one.
    """

    def __init__(self, job: str | None, digest: str, part: int | None) -> None:
        super().__init__()
        self._job = job
        self._digest = digest
        self._part = part
        self._asked = -_LOOK
        self._alone = time.monotonic()  # start of the time without workers
        self._waiting = 0.0  # share of the consumer's time

    def told(self, waiting: float) -> None:
        self._waiting = waiting

    def lost(self, contact: Contact) -> bool:
        if self.there.pop(contact.name, None) is not None:
            contact.close()
        if not self.there:
            self._alone = time.monotonic()
        self._asked = -_LOOK
        return contact.ready

    def tend(self) -> None:
        now = time.monotonic()
        if now < self._asked + (_LOOK if self.there else _AGAIN):
            return
        self._asked = now
        try:
            listed = self._listed()
            if self._part is not None and listed:
                listed = [] if self.there else [listed[self._part % len(listed)]]
            for name, worker in listed:
                if name not in self.there:
                    self.there[name] = self._connected(name, worker)
        except PenstockError as error:
            raise Fatal(error) from error
        except (EOFError, OSError) as error:
            if not self.there and now > self._alone + _PATIENCE:
                raise Fatal(self._unreachable(error)) from error

    @abstractmethod
    def cut(self, *question: Any) -> tuple[int, str | None]:
        """Return the end and the worker of the next range of a shared job."""

    @abstractmethod
    def _listed(self) -> list[tuple[str, Any]]:
        """Return the names of workers, and how to reach them. A new dispatcher receives the job of this consumer."""

    @abstractmethod
    def _connected(self, name: str, worker: Any) -> AnyContact:
        """Return the contact of a listed worker."""

    @abstractmethod
    def _unreachable(self, error: Exception) -> PenstockError:
        """Return the error for a service that has not answered for long."""


class Served(ServiceForce[Contact]):
    """Workers of a service in a folder."""

    def __init__(self, folder: str, job: str | None, digest: str, part: int | None) -> None:
        super().__init__(job, digest, part)
        self.line = Line(folder)

    def lost(self, contact: Contact) -> bool:
        ready = super().lost(contact)
        try:
            self.line.ask("workers", self._waiting)
        except (EOFError, OSError):  # the whole service is gone, so the worker's range is not to blame
            return False
        return ready

    def cut(self, *question: Any) -> tuple[int, str | None]:
        stop, worker = self.line.ask("cut", *question)
        return stop, worker

    def _listed(self) -> list[tuple[str, str]]:
        if self._job is not None and not self.line.connected:
            error = self.line.ask("join", self._job, self._digest)
            if error is not None:
                raise error
        found: list[tuple[str, str]] = self.line.ask("workers", self._waiting)
        return found

    def _connected(self, name: str, worker: str) -> Contact:
        return Contact(name, connected(worker, token_of(self.line.folder)))

    def _unreachable(self, error: Exception) -> PenstockError:
        message = f"The service in {self.line.folder!r} cannot be reached: {said(error)}."
        hint = "`penstock service start` with this folder starts it again; a saved state goes on there."
        return FailedPreconditionError(message, hint=hint)

    def close(self) -> None:
        super().close()
        self.line.close()


@dataclass(frozen=True, slots=True)
class SharedService(Service):
    """The service of a folder. With `job_name`, consumers share results, and each consumer gets all elements."""

    folder: str
    job_name: str | None = None
    max_outstanding: int | None = None

    @property
    def name(self) -> str:
        return repr(PREFIX + self.folder) if self.job_name is None else f"{PREFIX + self.folder!r}, {self.job_name!r}"

    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        def hire(job: str | None, digest: str) -> Served:
            return Served(self.folder, job, digest, node.part)

        return shared(node, lowering, hire, self.job_name, self.max_outstanding)


def shared(
    node: Remote,
    lowering: Lowering,
    hire: Callable[[str | None, str], ServiceForce[Any]],
    job_name: str | None,
    max_outstanding: int | None,
) -> Stage:
    """Return the stage of a part that workers of a service compute. `hire(job, digest)` returns the workers.

    With `job_name`, consumers share results: the dispatcher cuts the ranges.
    """
    packet, part, epoch = packet_of(node, lowering), node.part, lowering.epoch
    job = job_name if part is None or job_name is None else f"{job_name}, part {part}"
    forces = list[ServiceForce[Any]]()

    def hired() -> ServiceForce[Any]:
        forces[:] = [hire(job, packet.digest)]
        return forces[0]

    def cut(start: int, length: int) -> tuple[int, str | None]:
        try:
            return forces[0].cut(job, epoch, start, length, part)
        except (EOFError, OSError):  # the range is computed even if the dispatcher does not return
            return start + length, None

    how: dict[str, Any] = {} if job is None else {"shared": f"{job}:{packet.digest}:{epoch}", "cut": cut}
    return Delivered(Requests(node, packet, hired, lowering, max_outstanding, **how), lowering)
