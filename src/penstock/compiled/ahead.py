"""compile_ahead: all kernels of penstock, compiled now and not when they are first asked for."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread

from penstock.compiled.child import DONE
from penstock.compiled.compiler import child_process, processors
from penstock.compiled.module import Compiled


def modules_of_kernels() -> list[str]:
    """The modules that penstock compiles, by name.

    >>> "penstock.io.kernels.csv" in modules_of_kernels()
    True
    """
    package = Path(__file__).parents[1]
    for file in sorted(package.rglob("*.py")):
        if "= Compiled(" in file.read_text(encoding="utf-8"):
            importlib.import_module(".".join([package.name, *file.relative_to(package).with_suffix("").parts]))
    return sorted(name for name in Compiled.KNOWN if name.startswith(f"{package.name}."))


def compile_ahead(jobs: int | None = None, done: Callable[[str], None] = lambda name: None) -> dict[str, str]:
    """Have `jobs` processes compile what is not compiled yet; by name the reasons for what could not be.

    `done` is called with each name when its kernels are there.
    """
    names = modules_of_kernels()
    found: dict[str, str] = {}
    lock = Lock()

    def follow(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(DONE):
                _, name, reason = line.rstrip("\n").split("\t", 2)
                with lock:
                    if name not in found and not reason:
                        done(name)
                    found.setdefault(name, reason)

    with contextlib.ExitStack() as running:
        followers = []
        for _ in range(jobs or processors()):  # each is given all: they divide them by the locks that they take
            process = running.enter_context(child_process(names))
            running.callback(process.kill)
            followers.append(Thread(target=follow, args=(process,)))
            followers[-1].start()
        for follower in followers:
            follower.join()
    return {name: reason for name in names if (reason := found.get(name, "its process ended"))}
