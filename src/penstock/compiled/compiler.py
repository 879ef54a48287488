"""Compiler: the child processes that compile kernels while the pipeline runs their plain versions."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.compiled.child import BEGUN, DONE
from penstock.forked import in_child, new_lock


@dataclass(slots=True, eq=False)
class Asked:
    """A module that was asked for; once `finished`, `reason` says why it could not be compiled, if it could not."""

    name: str
    finished: threading.Event = field(default_factory=threading.Event)
    reason: str = ""


@dataclass(slots=True, eq=False)
class _Child:
    process: subprocess.Popen[str]
    left: list[Asked]  # what it has not finished; the first is what it is at

    def begin(self, name: str) -> None:
        self.left.sort(key=lambda asked: asked.name != name)

    def finish(self, reason: str) -> None:
        asked = self.left.pop(0)
        asked.reason = reason
        asked.finished.set()


def processors() -> int:
    """That this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Compiler:
    """A child process compiles all that waits when it starts; a thread follows what it says. Thread-safe.

    There are children for a quarter of the processors, at least one: the pipeline, which is to give its first batch
    meanwhile, needs them, too. And to load numba takes as long as to compile a small module.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = max(1, processors() // 4) if most is None else most
        self._lock = new_lock()
        self._waiting: list[Asked] = []
        self._children: list[_Child] = []
        self._ended = False
        in_child(self._leave_to_parent)

    def ask(self, name: str) -> Asked | None:
        """Have a module compiled; None where there is no interpreter to start."""
        found = self.ask_all([name])
        return None if found is None else found[0]

    def ask_all(self, names: Sequence[str]) -> list[Asked] | None:
        """Have modules compiled, by one child if one can be started now; None where there is no interpreter."""
        found = [Asked(name) for name in names]
        with self._lock:
            self._waiting += found
            if len(self._children) < self._most and not self._start(self._waiting):
                self._waiting = [asked for asked in self._waiting if asked not in found]
                return None
        return found

    def hurry(self, asked: Asked) -> None:
        """Nothing serves meanwhile: a child of its own compiles it at once, if it still waits for one."""
        with self._lock:
            if asked in self._waiting:
                self._start([asked])

    @property
    def busy(self) -> bool:
        """Whether something that was asked for is not finished."""
        return bool(self._waiting) or any(child.left for child in list(self._children))

    def settle(self) -> None:
        """Wait until all that was asked for is finished."""
        with self._lock:
            unfinished = [*self._waiting, *(asked for child in self._children for asked in child.left)]
        for asked in unfinished:
            asked.finished.wait()

    def _start(self, batch: list[Asked]) -> bool:
        names = [asked.name for asked in batch]
        code = f"from penstock.compiled.child import compile_kernels; compile_kernels(*{names})"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        except (OSError, TypeError):
            return False
        child = _Child(process, list(batch))
        self._children.append(child)
        self._waiting = [asked for asked in self._waiting if asked not in child.left]
        atexit.register(self._end, process, os.getpid())
        threading.Thread(target=self._follow, args=(child,), name="penstock-compiling", daemon=True).start()
        return True

    def _follow(self, child: _Child) -> None:
        assert child.process.stdout is not None
        said = ""
        with child.process.stdout as lines:
            for line in lines:
                if line.startswith(BEGUN):
                    with self._lock:
                        child.begin(line.rstrip("\n").removeprefix(BEGUN))
                elif line.startswith(DONE):
                    with self._lock:
                        child.finish(line.rstrip("\n").split("\t", 2)[2])
                else:
                    said = line.strip() or said
        status = child.process.wait()
        with self._lock:
            if child.left and not self._ended:  # it ended over the first of them
                child.finish(said or f"exit status {status}")
                self._waiting = child.left + self._waiting
            self._children.remove(child)
            if self._ended:
                return
            if self._waiting and len(self._children) < self._most and not self._start(self._waiting):
                for asked in self._waiting:
                    asked.reason = "no process could be started"
                    asked.finished.set()
                self._waiting = []

    def _end(self, process: subprocess.Popen[str], parent: int) -> None:
        """No process outlives ours; what it had not finished is begun anew next time."""
        if os.getpid() != parent:
            return
        self._ended = True
        if process.poll() is None:
            process.terminate()
            process.wait()

    def _leave_to_parent(self) -> None:
        """In a forked child: the processes that compile are the parent's, and so is waiting for them."""
        for child in self._children:
            child.process.returncode = 0  # or Popen would complain that it still runs
        self._waiting, self._children = [], []


COMPILER = Compiler()
