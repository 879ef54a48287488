"""`penstock service start|status|stop`."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Worker processes of this machine that several programs share: Dataset.distribute(service=ADDRESS)."
    parser = commands.add_parser("service", help="workers that several programs share", description=text)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    begin = actions.add_parser("start", help="run a service until a stop request or Ctrl-C")
    begin.add_argument("--workers", type=int, metavar="N", help="processes (default: as many as help, up to the cores)")
    begin.add_argument("--folder", metavar="DIR", help="where its sockets are (default: a new folder in /tmp)")
    begin.add_argument("--ray", nargs="?", const="ray", metavar="CLUSTER", help="on Ray, by default the local cluster")
    begin.add_argument("--name", metavar="NAME", help="what others find a service on Ray by (default: a new one)")
    begin.set_defaults(run=start)
    told = actions.add_parser("status", help="print what a service is at, as JSON")
    told.add_argument("address", metavar="ADDRESS", help="what `penstock service start` printed")
    told.set_defaults(run=status)
    end = actions.add_parser("stop", help="end a service")
    end.add_argument("address", metavar="ADDRESS", help="what `penstock service start` printed")
    end.set_defaults(run=stop)


def start(chosen: argparse.Namespace) -> int:
    """Run the service in this process until it is stopped."""
    import shutil
    import tempfile

    from penstock.delivery.dispatcher import Dispatcher
    from penstock.delivery.served import PREFIX
    from penstock.plan.node import check_int
    from penstock.runtime.machine.granted import granted_cpus

    hint = "Leave it out for as many as there are cores."
    if chosen.ray is not None:
        from penstock.service import start as start_service

        workers = "auto" if chosen.workers is None else chosen.workers
        cluster = "auto" if chosen.ray == "ray" else chosen.ray
        print(start_service(workers, on=cluster, folder=chosen.folder, name=chosen.name).address)
        return 0
    size = granted_cpus() if chosen.workers is None else check_int("--workers", chosen.workers, least=1, hint=hint)
    folder = str(Path(chosen.folder or tempfile.mkdtemp(prefix="penstock-", dir="/tmp")).expanduser())
    service = Dispatcher(folder, size, auto=chosen.workers is None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.stop())
    print(PREFIX + folder, flush=True)
    try:
        service.run()
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def status(chosen: argparse.Namespace) -> int:
    """Print the status of a service."""
    from penstock.service import connect

    print(json.dumps(connect(chosen.address).status(), indent=1))
    return 0


def stop(chosen: argparse.Namespace) -> int:
    """Stop a service."""
    from penstock.service import connect

    connect(chosen.address).stop()
    return 0
