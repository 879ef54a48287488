"""Start a service, or connect to a running one."""

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
    """Start a service: a dispatcher and worker processes, on this machine or on a Ray cluster.

    The service ends with `stop()`, at the end of a `with` block, or with this process. Its sockets are in a folder that
    only this user can enter, and programs need the token that is stored there. A service that is started with the
    folder of a service that died continues its work.

    On Ray, the dispatcher and the workers are actors. Every program that is connected to the cluster finds the service
    as `"ray-service://name"`. Ray restarts the dispatcher if it dies, and the dispatcher restarts workers. The service
    outlives this process, unless `stop()` or the end of a `with` block ends it.

    Args:
        workers: Number of workers. `"auto"` starts with half of the cores, uses more while consumers wait, up to all
            cores, and stops workers without consumers.
        folder: Folder of the sockets. Default: a new temporary folder.
        on: `"local"`, `"ray"`, or the address of a Ray cluster.
        name: Name of the service on Ray.

    Returns:
        A handle with `address`, `status()` and `stop()`.

    Raises:
        FailedPreconditionError: If a service runs in this folder or by this name, or if others may enter the folder.
        MissingDependencyError: If Ray is asked for and not installed.

    Example:
        >>> import penstock as ps
        >>> with ps.service.start(workers=1) as service:
        ...     len(service.status()["workers"])
        1
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
    """Connect to a running service.

    Args:
        address: Address of the service, as its handle has it.

    Returns:
        A handle of the service.

    Raises:
        FailedPreconditionError: If no service answers.

    Example:
        >>> import penstock as ps
        >>> with ps.service.start(workers=1) as service:
        ...     ps.service.connect(service.address).status() == service.status()
        True
    """
    found: Handle | RayHandle
    if address.startswith(ray_service.PREFIX):
        found = ray_service.named(address)
    else:
        found = Handle(handle.folder_of(address))
    found.status()
    return found
