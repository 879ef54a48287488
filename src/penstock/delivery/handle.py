"""Handle: a service that this process has started, or whose address it knows."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

from penstock.delivery.dispatcher import Dispatcher, Line, check_free
from penstock.delivery.served import PREFIX
from penstock.delivery.sockets import private_folder
from penstock.errors import FailedPreconditionError, InvalidArgumentError, said
from penstock.runtime.machine.granted import granted_cpus
from penstock.runtime.processes.link import Link, follow
from penstock.runtime.processes.start import Process, births, watch_forks
from penstock.runtime.processes.worker import SERVE, START

_START = START.replace(SERVE, "from penstock.delivery.handle import serve")
_PATIENCE = 60.0  # seconds that a service may take to start
_LEAVE = 5.0  # seconds that a service may take to end


def serve(descriptor: int, lifeline: int) -> None:
    """Run the dispatcher in the process that `start` has created. It ends with its parent."""
    follow(lifeline)
    with socket.socket(fileno=descriptor) as end:
        folder, size, auto = Link(end).receive().head
    Dispatcher(folder, size, auto=auto).run()


class ServiceHandle(ABC):
    """A handle of a service. The end of a `with` block stops the service."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The address, which `Dataset.distribute(service=...)` takes."""

    @abstractmethod
    def ask(self, *question: Any) -> Any:
        """Return the dispatcher's answer. Raises FailedPreconditionError if no dispatcher answers."""

    @abstractmethod
    def stop(self) -> None:
        """End the service and its workers. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<service at {self.address}>"


class Handle(ServiceHandle):
    """Handle of a service on this machine, as `ps.service.start` returns it.

    Its `address`, or a pickle of the handle, names the service for every process of this user. `stop()`, the end of a
    `with` block, or the end of the process that started the service stops it.

    Example:
        >>> import penstock as ps
        >>> with ps.service.start(workers=1) as service:
        ...     len(service.status()["workers"])
        1
    """

    def __init__(self, folder: str, process: Process | None = None, *, temporary: bool = False) -> None:
        self.folder = folder
        self._process = process
        self._temporary = temporary
        if process is not None:
            self.process = process  # a forked child closes its copies of the process's descriptors
            births.living.add(self)
            weakref.finalize(self, _ended, process, folder if temporary else None)

    @property
    def address(self) -> str:
        """The address, which `Dataset.distribute(service=...)` takes in any process."""
        return PREFIX + self.folder

    def status(self) -> dict[str, Any]:
        """Return the state of the service as a dict.

        `pid` is the process of the dispatcher, and `workers` has the processes of the workers. `jobs` has the number of
        consumers of each job. `most_workers` is the limit of workers. `waiting` is the share of time that each consumer
        has waited.

        Raises FailedPreconditionError if no service answers.
        """
        return dict(self.ask("status"))

    def ask(self, *question: Any) -> Any:
        """Return the dispatcher's answer. Raises FailedPreconditionError if no dispatcher answers."""
        try:
            with closing(Line(self.folder)) as line:
                return line.ask(*question)
        except (EOFError, OSError) as error:
            raise _unanswered(self.folder, said(error)) from error

    def stop(self) -> None:
        """End the service and its workers. Idempotent."""
        line = Line(self.folder)
        until = time.monotonic() + _LEAVE
        with suppress(EOFError, OSError):
            line.ask("stop")
            while self._process is None and time.monotonic() < until:
                line.ask("status")
                time.sleep(0.01)
        line.close()
        process, self._process = self._process, None
        if process is not None:
            process.end(_LEAVE)
            _ended(process, self.folder if self._temporary else None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Handle, (self.folder,)


def start(workers: int | None = None, folder: str | None = None) -> Handle:
    """Start a dispatcher with `workers` processes, and wait until all are ready.

    If `workers` is None, the number follows the demand, and the call waits for one worker.
    """
    size = workers or granted_cpus()
    temporary = folder is None
    found = tempfile.mkdtemp(prefix="penstock-", dir="/tmp") if folder is None else folder
    private_folder(found)
    check_free(found)
    watch_forks()
    with births.lock:
        process = Process(_START)
    made = Handle(found, process, temporary=temporary)
    try:
        Link(process.socket).send((found, size, workers is None))
        _wait_until_there(found, 1 if workers is None else size, process)
    except BaseException:
        made.stop()
        raise
    return made


def _wait_until_there(folder: str, workers: int, process: Process) -> None:
    """Return when a starting service has enough workers. Raises FailedPreconditionError if this takes too long."""
    until = time.monotonic() + _PATIENCE
    with closing(Line(folder)) as line:
        while True:
            try:
                count = len(line.ask("status")["workers"])
                if count >= workers:
                    return
                reason = f"{count} of {workers} workers are there"
            except (EOFError, OSError) as error:
                reason = said(error)
            if time.monotonic() > until or process.popen.poll() is not None:
                raise _unanswered(folder, reason)
            time.sleep(0.02)


def _unanswered(folder: str, reason: str) -> FailedPreconditionError:
    message = f"No service answers in {folder!r}: {reason}."
    return FailedPreconditionError(message, hint="`penstock service start` starts one.")


def folder_of(address: str) -> str:
    """Return the folder that an address names."""
    if not address.startswith(PREFIX):
        message = f"The address of a service begins with {PREFIX}, got {address!r}."
        raise InvalidArgumentError(message, hint="It is what `penstock service start` prints, and Handle.address.")
    return str(Path(address.removeprefix(PREFIX)).expanduser())


def _ended(process: Process, folder: str | None) -> None:
    """Release a process that has ended or is ending, and remove its temporary folder."""
    process.let_go()
    process.end(_LEAVE)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
