"""Starting a service, and finding one."""

from __future__ import annotations

import os

from penstock.delivery import handle
from penstock.delivery.handle import Handle
from penstock.plan.node import AUTOTUNE, check_int

__all__ = ["Handle", "connect", "start"]


def start(workers: int | str = "auto", *, folder: str | os.PathLike[str] | None = None) -> Handle:
    """Start a service on this machine: a dispatcher, and `workers` processes.

    "auto" begins with half as many as there are cores; more are started while consumers wait, up to the cores, and let
    go of when there is no consumer. `status()` says how many there are, and how much consumers wait.

    It ends with `stop()`, with the `with` block, or with this process. Its sockets are files in `folder`, which nobody
    but you may enter; by default a new one in the system's temporary folder. Who connects has to know the token that is
    kept there. A service that was started again with the folder of one that died goes on where consumers are.

    >>> import penstock as ps
    >>> with ps.service.start(workers=1) as service:
    ...     len(service.status()["workers"])
    1

    Raises FailedPreconditionError where a service runs in the folder already, or others may enter it.
    """
    count = None
    if workers != "auto" and workers != AUTOTUNE:
        hint = "The number of worker processes, or 'auto' for as many as there are cores."
        count = check_int("workers", workers, least=1, hint=hint)
    return handle.start(count, None if folder is None else os.fspath(folder))


def connect(address: str) -> Handle:
    """The service at an address, which another process has started.

    >>> import penstock as ps
    >>> with ps.service.start(workers=1) as service:
    ...     ps.service.connect(service.address).status() == service.status()
    True

    Raises FailedPreconditionError where none answers.
    """
    found = Handle(handle.folder_of(address))
    found.status()
    return found
