"""What the child process runs: modules of kernels are compiled one after another, and lines printed about each.

A child in the background may outlive its process: what was begun is finished, for the next process, and a kernel of a
module is kept as soon as it is compiled, whatever ends the child.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.compiled.kernel_files import is_compiled, note_of, root

if TYPE_CHECKING:
    from concurrent.futures import Future

_WANTED: list[bool] = []
_AT: list[str] = []  # what is being compiled, and not waited for


def want_lean() -> None:
    """Have `make_lean` called when the first module of kernels is imported, which loads numba."""
    _WANTED.append(True)


def if_wanted() -> None:
    if _WANTED:
        _WANTED.clear()
        from penstock.compiled.lean import make_lean

        make_lean()


def processors() -> int:
    """That this process may run on.

    >>> processors() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


NICER = 5  # where others need all processors, a compiling thread gets a quarter of one beside one thread of theirs
_STARVED, _SHARE = 2.0, 0.05  # seconds in which an idle thread got no larger share of a processor: nobody leaves any
MOST = "most:"  # before the name of a module whose plain version serves now, and takes most of a pipeline's time
MOST_SECONDS = 600  # of CPU time: no compiler loops for ever
LOCK, PLACES, AT_WORK = "compiling.lock", "compilers.lock", "compiling.json"
_LOOK = 0.1  # seconds
BEGUN, DONE = "compiling\t", "compiled\t"  # how the lines begin that are for the parent


def code_of(run: Callable[..., None], names: Iterable[str], **options: bool) -> str:
    """Python code, for a process of its own, that has one of our functions compile these."""
    given = ", ".join([*map(repr, names), *(f"{name}={value}" for name, value in options.items())])
    # os._exit: what lies about in memory need not be tidied up
    return f"import os; from {__name__} import {run.__name__}; {run.__name__}({given}); os._exit(0)"


def compile_in_background(*names: str, idle: bool = True) -> None:
    """As `compile_kernels`, with what the pipeline leaves of the processors, and after it has ended, too.

    There are such compilers on a machine for a quarter of its processors, at least one. Who finds no place waits, as
    long as its parent lives. What was asked for most often comes first, and before it what was asked for as MOST; that
    is compiled with as much right as the pipeline has, which is the shorter the sooner it is done, and does not wait
    for a place, unless another process is at it. All else gets what nobody else wants (on Linux: `idle`); where that is
    next to nothing, it begins anew and is only NICER than others.
    """
    parent = os.getppid()
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    with contextlib.ExitStack() as held:
        want_lean()
        queue = _Queue(names)
        while not _placed(held):
            if os.getppid() != parent:
                return
            queue.hear()
            for name in queue.urgent():
                if _compiled(name, wait=False):
                    queue.forget(name)
            time.sleep(_LOOK)
        told = root() / AT_WORK
        held.callback(_forgotten, told)
        begun = time.time()
        humble = held.enter_context(_Humble(idle=idle))
        with contextlib.suppress(ImportError):  # now: what is asked for meanwhile may come before the first module
            importlib.import_module("penstock.compiled.kernel")
        while queue.hear() and _wanted(told.parent):
            with contextlib.suppress(OSError):
                told.write_text(json.dumps({"pid": os.getpid(), "begun": begun, "modules": queue.modules()}))
            name, alone = queue.take()
            if name in queue.most:
                done = _compiled(name, wait=alone)
            else:
                done = humble.compiled(name, queue, wait=alone)
            if not done:
                queue.elsewhere.append(name)


class _Queue:
    """What is to be compiled: as `most`, then what was asked for most often; last, what other processes are at."""

    def __init__(self, names: Iterable[str]) -> None:
        self.most: set[str] = set()
        self.elsewhere: list[str] = []
        self._asked = Counter[str]()
        self._add(names)

    def _add(self, names: Iterable[str]) -> None:
        for name in names:
            self._asked[name.removeprefix(MOST)] += 1
            if name.startswith(MOST):
                self.most.add(name.removeprefix(MOST))

    def hear(self) -> bool:
        """Take in what was asked for meanwhile; whether anything is left."""
        self._add(_asked_meanwhile())
        return bool(self._asked or self.elsewhere)

    def modules(self) -> list[str]:
        """All, in their order."""
        left = [name for name, _ in self._asked.most_common()]  # of those asked for as often, the first first
        return [*sorted(left, key=lambda name: name not in self.most), *self.elsewhere]

    def names(self) -> list[str]:
        """All, as they were asked for, and as often."""
        asked = [f"{MOST}{name}" if name in self.most else name for name in self._asked.elements()]
        return [*asked, *self.elsewhere]

    def take(self) -> tuple[str, bool]:
        """The next one, and whether there is nothing else to do but wait where another process is at it."""
        name = self.modules()[0]
        self.forget(name)
        return name, not self._asked

    def forget(self, name: str) -> None:
        """Leave it out from now on: it is done, or somebody is at it."""
        if name in self._asked:
            del self._asked[name]
        else:
            self.elsewhere.remove(name)

    def urgent(self) -> list[str]:
        """List those of the `most` that wait, and that no other process was found at."""
        return [name for name in self._asked if name in self.most]


class _Humble:
    """A thread that compiles with less right to the processors than others have; on Linux, with none (`idle`).

    Where nobody leaves it any, and where something urgent comes, this process begins anew, without what it was at: a
    thread never gets back a right that it gave up, and numba compiles one function at a time.
    """

    def __init__(self, *, idle: bool) -> None:
        from concurrent.futures import ThreadPoolExecutor  # which pipelines need not load

        self._idle = idle and hasattr(os, "SCHED_IDLE")
        self._thread = ThreadPoolExecutor(1, initializer=_be_idle if self._idle else _be_nicer)

    def __enter__(self) -> _Humble:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def compiled(self, name: str, queue: _Queue, *, wait: bool) -> bool:
        """As `_compiled`."""
        work = self._thread.submit(_compiled, name, wait=wait)
        looked, had = time.monotonic(), time.process_time()
        while self._idle and not _is_done(work, _LOOK):
            queue.hear()
            if queue.urgent():
                _begin_anew([*queue.names(), name], idle=True)
            if time.monotonic() - looked < _STARVED:
                continue
            if name in _AT and time.process_time() - had < _SHARE * _STARVED:
                _begin_anew([name, *queue.names()], idle=False)
            looked, had = time.monotonic(), time.process_time()
        return work.result()


def _is_done(work: Future[bool], seconds: float) -> bool:
    from concurrent.futures import wait

    return bool(wait([work], seconds).done)


def _begin_anew(names: Iterable[str], *, idle: bool) -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-c", code_of(compile_in_background, names, idle=idle)])


def _be_idle() -> None:
    """This thread runs where no other one would; it cannot get more right to the processors ever again."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _be_nicer() -> None:
    """On Linux this thread, elsewhere the whole process, for good."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(NICER)


def _forgotten(told: Path) -> None:
    with contextlib.suppress(OSError):
        told.unlink()


def _asked_meanwhile() -> tuple[str, ...]:
    """What was written to our input so far, by a parent that may have ended since: a name in each line."""
    text = b""
    with contextlib.suppress(OSError):  # nothing more, or a system that cannot look without waiting
        os.set_blocking(0, False)
        while piece := os.read(0, 1 << 16):
            text += piece
    return tuple(text.decode().split())


def _placed(held: contextlib.ExitStack) -> bool:
    """Return True if this process is one of the machine's compilers, until `held` is closed.

    A place is a byte of a file. Who closes a file loses all its locks of it, by any name: nothing else opens this one
    here, and a process that begins anew inherits it open, with its place.
    """
    try:
        root().mkdir(parents=True, exist_ok=True)
        import fcntl

        file = (root() / PLACES).open("w")
    except (ImportError, OSError):
        return True
    os.set_inheritable(file.fileno(), True)
    for place in range(max(1, processors() // 4)):
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # which of the two, systems differ
            continue
        except OSError:
            pass
        held.enter_context(file)
        return True
    file.close()
    return False


def at_work() -> dict[str, Any] | None:
    """The `pid` of a compiler in the background, since when it compiles (`begun`), and which `modules`; else None.

    Where there was never one, or all is done:

    >>> at_work() is None or at_work()["pid"] > 0
    True
    """
    try:
        told: dict[str, Any] = json.loads((root() / AT_WORK).read_text())
        os.kill(told["pid"], 0)
    except (OSError, OverflowError, ValueError, KeyError, TypeError):
        return None
    return told


def compile_kernels(*names: str, within: Path | None = None) -> None:
    """Compile the kernels of these modules into numba's cache, and note that this was done.

    What another process is compiling comes last: it is there then, and is not compiled twice. The lines are BEGUN and
    the name; and DONE, the name, a tab, and the reason why a module could not be compiled, if there is one.
    If the folder `within` is removed meanwhile, nobody wants the rest.
    """
    want_lean()
    elsewhere = [name for name in names if _wanted(within) and not _compiled(name, wait=False)]
    for name in elsewhere:
        if _wanted(within):
            _compiled(name, wait=True)


def _wanted(within: Path | None) -> bool:
    return within is None or within.exists()


def _compiled(name: str, *, wait: bool) -> bool:
    """Whether that is done; without `wait`, not if another process is at it."""
    note = note_of(name)
    with _alone(note, wait=wait) as alone:
        if not alone:
            return False
        _say(f"{BEGUN}{name}")
        _AT.append(name)
        reason = ""
        try:
            if not is_compiled(name):
                _compile(name, note)
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = ": ".join([type(error).__name__, *lines[:1]])
        _AT.remove(name)
        _say(f"{DONE}{name}\t{reason}")
        return True


def _compile(name: str, note: Path) -> None:
    module = importlib.import_module(name)
    warm_up = getattr(module, "warm_up", None)
    if warm_up is not None:
        warm_up()
    with contextlib.suppress(OSError):  # without the note the next process compiles once more
        note.touch()


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # who asked may have ended
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextmanager
def _alone(note: Path, *, wait: bool) -> Iterator[bool]:
    """Whether no other process compiles what the note is about; where files cannot be locked, that is not known.

    The lock is a byte of a file for all modules beside each other, and gone with the process.
    """
    with contextlib.ExitStack() as held:
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            import fcntl

            file = held.enter_context(note.with_name(LOCK).open("w"))
            os.set_inheritable(file.fileno(), True)  # after `_begin_anew` the process still has the lock
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, zlib.crc32(note.name.encode()))
        except (BlockingIOError, PermissionError):  # which of the two, systems differ
            yield wait
            return
        except (ImportError, OSError):
            pass
        yield True
