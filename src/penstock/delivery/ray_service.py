"""A service on Ray: a dispatcher and workers that are actors, for consumers on any node of a cluster.

It is like the service of a folder (`dispatcher`, `served`), with Ray actors instead of processes and sockets. Every
program with access to the cluster finds it by its name. The dispatcher stores no positions of consumers. If it dies,
Ray restarts it. It then finds its workers, which continue meanwhile, and consumers send their jobs again. Registered
data sets are in Ray's key-value store, which outlives the dispatcher.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.delivery.contact import Contact, check_version
from penstock.delivery.dispatcher_base import DispatcherBase
from penstock.delivery.handle import ServiceHandle
from penstock.delivery.on_ray import (
    ActorContact,
    ActorForce,
    RayWorker,
    connect_to,
    end_if_stopped,
    here,
    the_ray,
)
from penstock.delivery.served import ServiceForce, shared
from penstock.delivery.wire import Wire
from penstock.delivery.worker import version
from penstock.errors import FailedPreconditionError, InvalidArgumentError, PenstockError
from penstock.physical.lower import Lowering, Service
from penstock.physical.stage import Stage
from penstock.plan.distribution import Remote

PREFIX = "ray-service://"
_NAMESPACE = "penstock"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LOOK = 0.5  # seconds between the dispatcher's checks of its workers and consumers
_PING = 5.0  # seconds between pings of a worker
_SILENT = 10.0  # seconds without an answer to a ping, after which a check finds whether a signal has stopped the worker
_VANISHED = 60.0  # seconds without a message, after which a consumer counts as gone
_PATIENCE = 60.0  # seconds that the first worker of a service may take to start
_ANSWER = 20.0  # seconds that an answer of the dispatcher may take


class RayDispatcher(DispatcherBase):
    """The actor. Its methods and the thread that checks workers exclude each other; none takes long."""

    def __init__(self, name: str, size: int | None, vanished: float = _VANISHED) -> None:
        import ray

        self._ray = ray
        self._name = name
        self._store = InRay(name)
        cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        super().__init__(size or cores, self._store, auto=size is None)
        self._vanished = vanished
        self._heard: dict[str, float] = {}  # time of the last message, by consumer
        self._pings: dict[str, tuple[float, Any]] = {}
        self._over = False
        self._members.update(members(ray, name))
        threading.Thread(target=self._look, name="penstock-dispatcher", daemon=True).start()

    def _look(self) -> None:
        while not self._over:
            with self._lock, suppress(self._ray.exceptions.RayError):  # a passing error, such as a node that leaves
                self._settle()
                self._tend()
            time.sleep(_LOOK)

    def _tend(self) -> None:
        while not self._over and len(self._members) < self._scale.wanted:
            name = f"{self._name}/worker-{secrets.token_hex(4)}"
            kind = self._ray.remote(num_cpus=1, max_restarts=0)(RayWorker)
            self._members[name] = kind.options(name=name, namespace=_NAMESPACE, lifetime="detached").remote()
        for name, actor in list(self._members.items()):
            since, ping = self._pings.get(name, (0.0, None))
            if ping is None:
                if time.monotonic() > since + _PING:
                    self._pings[name] = time.monotonic(), actor.hello.remote()
                continue
            if self._ray.wait([ping], timeout=0)[0]:
                try:
                    _, where, process = self._ray.get(ping)
                    self._ready[name] = where, process
                    self._pings[name] = time.monotonic(), None
                except self._ray.exceptions.RayError:
                    self._lose(name)
            # the worker may compute a long range, or be stopped
            elif name in self._ready and time.monotonic() > since + _SILENT:
                self._pings[name] = time.monotonic(), ping
                end_if_stopped(self._ray, *self._ready[name])

    def _lose(self, name: str) -> None:
        actor = self._members.pop(name, None)
        self._pings.pop(name, None)
        self._ready.pop(name, None)
        if actor is not None:
            with suppress(Exception):
                self._ray.kill(actor)

    def _settle(self) -> None:
        """Forget consumers that have vanished. Reduce the number of workers after a while without consumers."""
        now = time.monotonic()
        for consumer in [each for each, heard in self._heard.items() if now > heard + self._vanished]:
            self._leave(consumer)
        for name in self._surplus():
            self._lose(name)

    def _leave(self, consumer: str) -> None:
        super()._leave(consumer)
        self._heard.pop(consumer, None)
        for actor in self._members.values():
            actor.leave.remote(consumer)

    # -- questions of consumers, and of handles

    def workers(self, consumer: str, waiting: float) -> tuple[str, bool, list[tuple[str, Any]]]:
        """Return the version, True if the consumer's jobs are known, and the workers."""
        with self._lock:
            known = consumer in self._heard
            self._heard[consumer] = time.monotonic()
            self._waiting[consumer] = waiting
            self._scale.told(waiting, len(self._ready))
            return version(), known, [(name, self._members[name]) for name in self._ready]

    def join(self, consumer: str, job: str, digest: str) -> Exception | None:
        with self._lock:
            self._heard[consumer] = time.monotonic()
        return super().join(consumer, job, digest)

    def lost(self, name: str) -> None:
        """Replace a worker that a consumer reports as gone."""
        with self._lock:
            self._lose(name)
            self._tend()

    def _shown(self) -> list[str]:
        return sorted(self._ready)

    def stop(self) -> None:
        """End all workers, and forget all data sets."""
        with self._lock:
            self._over = True
            for name in list(self._members):
                self._lose(name)
            self._store.forget()


def members(ray: Any, service: str) -> list[tuple[str, Any]]:
    """Return the names and actors of the workers of a service."""
    found = []
    for each in ray.util.list_named_actors(all_namespaces=True):
        if each["namespace"] == _NAMESPACE and each["name"].startswith(f"{service}/worker"):
            with suppress(ValueError):  # the actor has just ended
                found.append((each["name"], ray.get_actor(each["name"], _NAMESPACE)))
    return found


class InRay:
    """A store in Ray's key-value store, under the name of a service."""

    def __init__(self, service: str) -> None:
        from ray.experimental import internal_kv

        self._store = internal_kv
        self._before = f"penstock/{service}/".encode()

    def get(self, name: str) -> bytes | None:
        found: bytes | None = self._store._internal_kv_get(self._before + name.encode())
        return found

    def put(self, name: str, content: bytes) -> None:
        self._store._internal_kv_put(self._before + name.encode(), content, overwrite=True)

    def names(self) -> list[str]:
        keys = self._store._internal_kv_list(self._before)
        return [bytes(key).removeprefix(self._before).decode() for key in keys]

    def forget(self) -> None:
        """Remove all values of the service."""
        for name in self.names():
            self._store._internal_kv_del(self._before + name.encode())


class RayLine:
    """A connection to the dispatcher with a name. `ask` raises EOFError if no dispatcher answers."""

    def __init__(self, name: str, ray: Any) -> None:
        self._name = name
        self._ray = ray
        self._actor: Any = None

    def ask(self, method: str, *question: Any) -> Any:
        """Return the dispatcher's answer."""
        try:
            if self._actor is None:
                self._actor = self._ray.get_actor(self._name, _NAMESPACE)
            return self._ray.get(getattr(self._actor, method).remote(*question), timeout=_ANSWER)
        except (self._ray.exceptions.RayError, ValueError) as error:  # ValueError: no actor has this name
            self._actor = None
            raise EOFError(type(error).__name__) from error


class RayServed(ActorForce, ServiceForce[ActorContact]):
    """The workers of a service on Ray. With `local`, only workers on the consumer's node are used."""

    def __init__(
        self, line: RayLine, ray: Any, wire: Wire, job: str | None, digest: str, part: int | None, *, local: bool
    ) -> None:
        ServiceForce.__init__(self, job, digest, part)
        self._ray = ray
        self._wire = wire
        self.line = line
        self.me = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._local = local
        self._left: set[str] = set()  # workers of other nodes

    def cut(self, *question: Any) -> tuple[int, str | None]:
        found: tuple[int, str | None] = self.line.ask("cut", *question)
        return found

    def lost(self, contact: Contact) -> bool:
        ready = super().lost(contact)
        with suppress(EOFError):
            self.line.ask("lost", contact.name)
        return ready

    def tend(self) -> None:
        for name, each in list(self.there.items()):
            if self._local and each.ready and each.apart:
                self._left.add(name)
                del self.there[name]
        super().tend()

    def _listed(self) -> list[tuple[str, Any]]:
        theirs, known, listed = self.line.ask("workers", self.me, self._waiting)
        check_version(theirs, "The service")
        error = None if known or self._job is None else self.line.ask("join", self.me, self._job, self._digest)
        if error is not None:
            raise error
        return [each for each in listed if each[0] not in self._left]

    def _connected(self, name: str, worker: Any) -> ActorContact:
        return ActorContact(name, worker, self._ray, self._wire, shared=self.me)

    def _unreachable(self, error: Exception) -> PenstockError:
        hint = "ps.service.start(on='ray') starts one; a saved state goes on there."
        return FailedPreconditionError(f"No service answers on Ray: {error}.", hint=hint)

    def close(self) -> None:
        super().close()
        with suppress(EOFError):
            self.line.ask("leave", self.me)


@dataclass(frozen=True, slots=True)
class RayShared(Service):
    """The service of a name on Ray. With `job_name`, consumers share results, and each consumer gets all elements."""

    service: str
    address: str | None = None  # address of the cluster
    job_name: str | None = None
    max_outstanding: int | None = None
    compression: str | None = "auto"
    local: bool = False

    @property
    def name(self) -> str:
        return repr(PREFIX + self.service) + ("" if self.job_name is None else f", {self.job_name!r}")

    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        ray = the_ray()

        def hire(job: str | None, digest: str) -> RayServed:
            connect_to(ray, self.address or "auto")
            line, local = RayLine(self.service, ray), self.local and here(ray) != ""
            return RayServed(line, ray, Wire(self.compression), job, digest, node.part, local=local)

        return shared(node, lowering, hire, self.job_name, self.max_outstanding)


class RayHandle(ServiceHandle):
    """Handle of a service on Ray, as `ps.service.start(on="ray")` returns it.

    Its `address` names the service for every process that is connected to the cluster. `stop()` or the end of a `with`
    block stops the service. The end of the process that started it does not.

    Example:
        >>> import penstock as ps
        >>> service = ps.service.start(on="ray", name="features")  # doctest: +SKIP
    """

    def __init__(self, name: str, cluster: str | None = None) -> None:
        self.service = name
        self.cluster = cluster

    @property
    def address(self) -> str:
        """The address, which `Dataset.distribute(service=...)` takes in any process."""
        return PREFIX + self.service

    def ask(self, method: str, *question: Any) -> Any:
        """Return the dispatcher's answer. Raises FailedPreconditionError if no dispatcher answers."""
        ray = the_ray()
        try:
            connect_to(ray, self.cluster or "auto")
            return RayLine(self.service, ray).ask(method, *question)
        except (EOFError, ConnectionError) as error:
            message = f"No service answers on Ray by the name {self.service!r}."
            raise FailedPreconditionError(message, hint="ps.service.start(on='ray') starts one.") from error

    def status(self) -> dict[str, Any]:
        """Return the state of the service as a dict.

        The keys are `workers` by name, `jobs` with the number of consumers, `datasets`, `version`.
        """
        found: dict[str, Any] = self.ask("status")
        return found

    def stop(self) -> None:
        """End the service and its workers, even if the dispatcher does not answer. Idempotent."""
        with suppress(FailedPreconditionError):
            self.ask("stop")
        ray = the_ray()
        if not ray.is_initialized():  # there is no cluster
            return
        for name, actor in (*members(ray, self.service), (self.service, None)):
            with suppress(ValueError):
                ray.kill(actor or ray.get_actor(name, _NAMESPACE))

    def __reduce__(self) -> tuple[Any, ...]:
        return RayHandle, (self.service, self.cluster)


def start(size: int | None, cluster: str | None, name: str | None) -> RayHandle:
    """Start a dispatcher and its workers. Return when the first worker is ready."""
    ray = the_ray()
    connect_to(ray, cluster)
    name = name or f"service-{secrets.token_hex(4)}"
    found = named(PREFIX + name, cluster)
    kind = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)(RayDispatcher)
    try:
        kind.options(name=name, namespace=_NAMESPACE, lifetime="detached").remote(name, size)
    except ValueError as error:
        message = f"A service runs on Ray by the name {name!r} already."
        raise FailedPreconditionError(message, hint="Stop it, or give another name.") from error
    until = time.monotonic() + _PATIENCE
    try:
        while True:
            with suppress(FailedPreconditionError):  # the dispatcher's actor has not started yet
                if found.status()["workers"]:
                    return found
            if time.monotonic() > until:
                free = ray.available_resources().get("CPU", 0)
                message = f"No worker of the service has started on Ray in {_PATIENCE:.0f} s: {free:g} CPUs are free."
                raise FailedPreconditionError(message, hint="Each worker needs a CPU of the cluster.")
            time.sleep(0.05)
    except BaseException:
        found.stop()
        raise


def named(address: str, cluster: str | None = None) -> RayHandle:
    """Return the service at an address. Raises InvalidArgumentError if the name is invalid."""
    name = address.removeprefix(PREFIX)
    if not _NAME.fullmatch(name):
        message = f"The name of a service on Ray is 1 to 64 letters, digits, '_', '.' and '-', got {name!r}."
        raise InvalidArgumentError(message, hint=f"Its address is {PREFIX} and the name.")
    return RayHandle(name, cluster)
