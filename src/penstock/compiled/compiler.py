"""Compiler: the child processes that compile kernels while the pipeline runs their plain versions."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.compiled.child import (
    BEGUN,
    DONE,
    MOST,
    at_work,
    code_of,
    compile_in_background,
    compile_kernels,
    processors,
)
from penstock.errors import DeadlineExceededError
from penstock.forked import in_child, new_lock

PATIENCE = 600.0  # seconds in which no module is finished: the largest takes a tenth of it on a busy machine


@dataclass(slots=True, eq=False)
class Asked:
    """A module that was asked for; once `finished`, `reason` says why it could not be compiled, if it could not.

    The plain version of one that is the `most` serves, and takes most of a pipeline's time.
    """

    name: str
    most: bool = False
    finished: threading.Event = field(default_factory=threading.Event)
    reason: str = ""


def _said(asked: Asked) -> str:
    return f"{MOST}{asked.name}" if asked.most else asked.name


@dataclass(slots=True, eq=False)
class _Child:
    process: subprocess.Popen[str]
    left: list[Asked]  # what it has not finished; the first is what it is at
    begun: bool = False  # it may have to wait until others on the machine are done

    def begin(self, name: str) -> None:
        self.begun = True
        self.left = sorted(self.left, key=lambda asked: asked.name != name)  # others look at it without our lock

    def finish(self, name: str, reason: str) -> None:
        for asked in [asked for asked in self.left if asked.name == name]:
            self.left.remove(asked)
            asked.reason = reason
            asked.finished.set()

    def pass_on(self, names: Sequence[str]) -> None:
        """Have it compile these, too, when it is done; also when this process has ended by then."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):  # it has just ended, and nobody writes to it any more
                os.write(self.process.stdin.fileno(), "".join(f"{name}\n" for name in names).encode())


class Compiler:
    """A child process compiles all that waits when it starts; a thread follows what it says. Thread-safe.

    There are children for a quarter of the processors, at least one: the pipeline, which is to give its first batch
    meanwhile, needs them, too. And to load numba takes as long as to compile a small module. Children in the
    background (`compile_in_background`) go on when this process has ended.
    """

    def __init__(self, most: int | None = None, *, background: bool = True) -> None:
        self._background = background
        self._most = max(1, processors() // 4) if most is None else most
        self._lock = new_lock()
        self._waiting: list[Asked] = []
        self._children: list[_Child] = []
        self._ended = False
        self._told: list[Callable[[], None]] = []
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
            if len(self._children) >= self._most:
                self._children[0].pass_on(names)
            elif not self._start(self._waiting):
                self._waiting = [asked for asked in self._waiting if asked not in found]
                return None
        return found

    def ask_again(self, asked: Asked, *, most: bool = False) -> None:
        """Have it compiled before all that was asked for fewer times, or with `most`, now and no nicer than we are."""
        with self._lock:
            asked.most = most
            for child in self._children:
                if asked in self._waiting or asked in child.left:
                    child.pass_on([_said(asked)])
        self._tell()

    def found(self, asked: Asked) -> None:
        """Another process has compiled it; our child will find that out when it comes to it."""
        asked.most = False
        self._tell()

    def watch(self, told: Callable[[], None]) -> None:
        """Call `told`, on any thread, when `wants_processor` may have changed."""
        self._told.append(told)

    def _tell(self) -> None:
        """Not under our lock: who is told has locks, too."""
        for told in self._told:
            told()

    def hurry(self, asked: Asked) -> None:
        """Nothing serves meanwhile: a child of its own compiles it at once, unless one is at it."""
        with self._lock:
            behind = (child.left[1:] if child.begun else child.left for child in self._children)
            held_up = any(asked in left for left in behind)
            if asked in self._waiting or held_up:
                self._start([asked], urgent=True)

    @property
    def busy(self) -> bool:
        """Whether something that was asked for is not finished."""
        return bool(self._waiting) or any(child.left for child in list(self._children))

    @property
    def wants_processor(self) -> bool:
        """Whether something is compiled whose plain version serves, and takes `most` of a pipeline's time."""
        left = [*self._waiting, *(asked for child in list(self._children) for asked in child.left)]
        return any(asked.most for asked in left)

    def settle(self, patience: float = PATIENCE) -> None:
        """Wait until all that was asked for is finished.

        Raises DeadlineExceededError when nothing of it has been finished for `patience` seconds.
        """
        with self._lock:
            unfinished = [*self._waiting, *(asked for child in self._children for asked in child.left)]
        while unfinished:
            unfinished[0].finished.wait(patience)
            left = [asked for asked in unfinished if not asked.finished.is_set()]
            if len(left) == len(unfinished):
                raise self._too_slow(left, patience)
            unfinished = left

    def _too_slow(self, left: list[Asked], patience: float) -> DeadlineExceededError:
        with self._lock:
            doing = [
                f"process {child.process.pid} compiles {child.left[0].name}"
                if child.begun
                else f"process {child.process.pid} has not begun"
                for child in self._children
                if child.left
            ]
        other = at_work()
        if other is not None and not any(f"process {other['pid']} " in one for one in doing):
            doing.append(f"process {other['pid']}, of another program, compiles {', '.join(other['modules'])}")
        message = (
            f"No kernels were compiled for {patience:g} s, and there are some still to be compiled: "
            f"{', '.join(asked.name for asked in left)} ({'; '.join(doing) or 'by no process'})."
        )
        hint = "`penstock compile` compiles them ahead and says how far it is; end a process that does not go on."
        return DeadlineExceededError(message, hint=hint)

    def _start(self, batch: list[Asked], *, urgent: bool = False) -> bool:
        background = self._background and not urgent
        names = [_said(asked) if background else asked.name for asked in batch]
        code = code_of(compile_in_background if background else compile_kernels, names)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdin=subprocess.PIPE if background else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                process_group=0 if self._background and os.name == "posix" else None,  # Ctrl-C is not meant for it
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
                        name = line.rstrip("\n").removeprefix(BEGUN)
                        child.left += [asked for asked in self._waiting if asked.name == name]  # was passed on
                        self._waiting = [asked for asked in self._waiting if asked.name != name]
                        child.begin(name)
                elif line.startswith(DONE):
                    with self._lock:
                        child.finish(*line.rstrip("\n").split("\t", 2)[1:])
                    self._tell()
                else:
                    said = line.strip() or said
        status = child.process.wait()
        if child.process.stdin is not None:
            child.process.stdin.close()
        with self._lock:
            if child.left and not self._ended:  # it ended over the first of them
                child.finish(child.left[0].name, said or f"exit status {status}")
                self._waiting = child.left + self._waiting
            self._children.remove(child)
            if self._ended:
                return
            if self._waiting and len(self._children) < self._most and not self._start(self._waiting):
                for asked in self._waiting:
                    asked.reason = "no process could be started"
                    asked.finished.set()
                self._waiting = []
        self._tell()

    def _end(self, process: subprocess.Popen[str], parent: int) -> None:
        """What compiles for a pipeline goes on, so that no work is lost; what `penstock compile` started does not."""
        if os.getpid() != parent:
            return
        self._ended = True
        if process.poll() is not None:
            return
        if self._background:
            process.returncode = 0  # or Popen would complain that it still runs
            return
        process.terminate()
        process.wait()

    def _leave_to_parent(self) -> None:
        """In a forked child: the processes that compile are the parent's, and so is waiting for them."""
        for child in self._children:
            child.process.returncode = 0  # or Popen would complain that it still runs
        self._waiting, self._children = [], []


COMPILER = Compiler()
