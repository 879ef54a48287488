"""Starting a service, and finding one."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.delivery import handle, ray_service
from penstock.delivery.handle import Handle
from penstock.delivery.ray_service import RayHandle
from penstock.errors import InvalidArgumentError
from penstock.plan.node import AUTOTUNE, check_int

__all__ = ["Handle", "RayHandle", "connect", "start"]


def start(
    workers: int | str = "auto",
    *,
    folder: str | os.PathLike[str] | None = None,
    on: str = "local",
    name: str | None = None,
) -> Handle | RayHandle:
    """Start a service: a dispatcher, and `workers` processes of this machine, or actors of a cluster of Ray.

    "auto" begins with half as many as there are cores; more are started while consumers wait, up to the cores, and let
    go of when there is no consumer. `status()` says how many there are, and how much consumers wait.

    It ends with `stop()`, with the `with` block, or with this process. Its sockets are files in `folder`, which nobody
    but you may enter; by default a new one in the system's temporary folder. Who connects has to know the token that is
    kept there. A service that was started again with the folder of one that died goes on where consumers are.

    >>> import penstock as ps
    >>> with ps.service.start(workers=1) as service:
    ...     len(service.status()["workers"])
    1

    With `on="ray"`, or the address of a cluster, dispatcher and workers are actors. Every program that is connected to
    the cluster, on any machine, finds them by `name`: `"ray-service://name"`. Ray starts the dispatcher anew when it
    dies, and the dispatcher workers. It ends with `stop()` or the `with` block; otherwise it outlives this process, as
    long as the cluster is there.

        service = ps.service.start(on="ray", name="features")

    Raises FailedPreconditionError where a service runs in the folder, or by the name, already, or others may enter the
    folder; MissingDependencyError without Ray.
    """
    count = None
    if workers != "auto" and workers != AUTOTUNE:
        hint = "The number of worker processes, or 'auto' for as many as there are cores."
        count = check_int("workers", workers, least=1, hint=hint)
    if on == "local":
        if name is not None:
            message = f"A service of this machine is found by its folder, got name={name!r}."
            raise InvalidArgumentError(message, hint="Give folder=..., or start it with on='ray'.")
        return handle.start(count, None if folder is None else str(Path(folder).expanduser()))
    if on not in ("ray", "auto") and ":" not in on:
        message = f"on must be 'local', 'ray' or the address of a cluster of Ray, got on={on!r}."
        raise InvalidArgumentError(message, hint="Such as 'ray://host:10001', or 'host:6379' on one of its nodes.")
    if folder is not None:
        message = f"A service on Ray has a name and no folder, got folder={os.fspath(folder)!r}."
        raise InvalidArgumentError(message, hint="Give name=..., or leave both out.")
    return ray_service.start(count, None if on == "ray" else on, name)


def connect(address: str) -> Handle | RayHandle:
    """The service at an address, which another process has started.

    >>> import penstock as ps
    >>> with ps.service.start(workers=1) as service:
    ...     ps.service.connect(service.address).status() == service.status()
    True

    Raises FailedPreconditionError where none answers.
    """
    found: Handle | RayHandle
    if address.startswith(ray_service.PREFIX):
        found = ray_service.named(address)
    else:
        found = Handle(handle.folder_of(address))
    found.status()
    return found
