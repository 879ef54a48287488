"""A consumer's view of a service: its own processes (Local), or a service that others use too (SharedService)."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.delivery.contact import Contact, Workforce
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


class ServiceForce(Workforce):
    """The workers of a service, which a dispatcher lists."""

    @abstractmethod
    def cut(self, *question: Any) -> tuple[int, str | None]:
        """Return the end and the worker of the next range of a shared job."""


class Served(ServiceForce):
    """Connects to the workers that the dispatcher of a folder lists, and waits for a dispatcher that is gone.

    For a `part`, it uses one worker as long as that worker lives.
    """

    def __init__(
        self, folder: str, join: Callable[[Line], None], patience: float = _PATIENCE, part: int | None = None
    ) -> None:
        self.line = Line(folder)
        self._join = join
        self._folder = folder
        self._patience = patience
        self._part = part
        self._contacts: dict[str, Contact] = {}
        self._asked = -_LOOK
        self._alone = time.monotonic()  # start of the time without workers
        self._waiting = 0.0  # share of the consumer's time

    def told(self, waiting: float) -> None:
        self._waiting = waiting

    def cut(self, *question: Any) -> tuple[int, str | None]:
        _, stop, worker = self.line.ask("cut", *question)
        return stop, worker

    def contacts(self) -> dict[str, Contact]:
        return dict(self._contacts)

    def lost(self, contact: Contact) -> bool:
        if self._contacts.pop(contact.name, None) is not None:
            contact.close()
        if not self._contacts:
            self._alone = time.monotonic()
        self._asked = -_LOOK
        try:
            self.line.ask("workers", self._waiting)
        except (EOFError, OSError):  # the whole service is gone, so the worker's range is not to blame
            return False
        return contact.ready

    def tend(self) -> None:
        now = time.monotonic()
        if now < self._asked + (_LOOK if self._contacts else _AGAIN):
            return
        self._asked = now
        try:
            if not self.line.connected:
                self._join(self.line)
            listed = dict(self.line.ask("workers", self._waiting)[1])
            if self._part is not None:
                listed = self._one_of(listed)
            token = token_of(self._folder)
            for name, path in listed.items():
                if name not in self._contacts:
                    self._contacts[name] = Contact(name, connected(path, token))
        except PenstockError as error:
            raise Fatal(error) from error
        except (EOFError, OSError) as error:
            if not self._contacts and now > self._alone + self._patience:
                message = f"The service in {self._folder!r} cannot be reached: {said(error)}."
                hint = "`penstock service start` with this folder starts it again; a saved state goes on there."
                raise Fatal(FailedPreconditionError(message, hint=hint)) from error

    def _one_of(self, listed: dict[str, str]) -> dict[str, str]:
        assert self._part is not None
        if self._contacts or not listed:
            return {}
        name = list(listed)[self._part % len(listed)]
        return {name: listed[name]}

    def close(self) -> None:
        contacts, self._contacts = self._contacts, {}
        for contact in contacts.values():
            contact.close()
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
            return Served(self.folder, partial(join, job=job, digest=digest), part=node.part)

        return shared(node, lowering, hire, self.job_name, self.max_outstanding)


def shared(
    node: Remote,
    lowering: Lowering,
    hire: Callable[[str | None, str], ServiceForce],
    job_name: str | None,
    max_outstanding: int | None,
) -> Stage:
    """Return the stage of a part that workers of a service compute. `hire(job, digest)` returns the workers.

    With `job_name`, consumers share results: the dispatcher cuts the ranges.
    """
    packet, part, epoch = packet_of(node, lowering), node.part, lowering.epoch
    job = job_name if part is None or job_name is None else f"{job_name}, part {part}"
    forces = list[ServiceForce]()

    def hired() -> ServiceForce:
        forces[:] = [hire(job, packet.digest)]
        return forces[0]

    def cut(start: int, length: int) -> tuple[int, str | None]:
        try:
            return forces[0].cut(job, epoch, start, length, part)
        except (EOFError, OSError):  # the range is computed even if the dispatcher does not return
            return start + length, None

    how: dict[str, Any] = {} if job is None else {"shared": f"{job}:{packet.digest}:{epoch}", "cut": cut}
    return Delivered(Requests(node, packet, hired, lowering, max_outstanding, **how), lowering)


def join(line: Line, job: str | None, digest: str) -> None:
    """Add this consumer to a job, if it shares one. Raises the error that the dispatcher returns."""
    error = None if job is None else line.ask("join", job, digest)[1]
    if error is not None:
        raise error
