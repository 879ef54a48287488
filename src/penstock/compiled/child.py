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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.compiled.kernel_files import is_compiled, note_of, root

_WANTED: list[bool] = []


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
MOST = "most:"  # before the name of a module whose plain version serves now, and takes most of a pipeline's time
MOST_SECONDS = 600  # of CPU time: no compiler loops for ever
LOCK, AT_WORK = "compiling.lock", "compiling.json"
_PLACES = 1 << 33  # bytes of LOCK from here on are the places of compilers; those before, of modules
_LOOK = 0.1  # seconds
BEGUN, DONE = "compiling\t", "compiled\t"  # how the lines begin that are for the parent


def compile_in_background(*names: str) -> None:
    """As `compile_kernels`, with less right to the processors than the pipeline has, and after it has ended, too.

    There are such compilers on a machine for a quarter of its processors, at least one. Who finds no place waits, as
    long as its parent lives. What was asked for most often comes first, and before it what was asked for as MOST; that
    is compiled with as much right as the pipeline has, which is the shorter the sooner it is done.
    """
    from concurrent.futures import ThreadPoolExecutor  # which pipelines need not load

    parent = os.getppid()
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    with contextlib.ExitStack() as held:
        while not _placed(held):
            if os.getppid() != parent:
                return
            time.sleep(_LOOK)
        told = root() / AT_WORK
        held.callback(_forgotten, told)
        begun = time.time()
        want_lean()
        humbly = held.enter_context(ThreadPoolExecutor(1, initializer=_be_nicer))
        with contextlib.suppress(
            ImportError
        ):  # before the first module: what is asked for meanwhile may come before it
            importlib.import_module("penstock.compiled.kernel")
        asked, most, elsewhere = Counter[str](), set[str](), list[str]()
        said = names
        while True:
            said += _asked_meanwhile()
            asked.update(name.removeprefix(MOST) for name in said)
            most.update(name.removeprefix(MOST) for name in said if name.startswith(MOST))
            said = ()
            if not (asked or elsewhere) or not _wanted(told.parent):
                return
            left = [name for name, _ in asked.most_common()]  # of those asked for as often, the first first
            left.sort(key=lambda name: name not in most)
            with contextlib.suppress(OSError):
                told.write_text(json.dumps({"pid": os.getpid(), "begun": begun, "modules": [*left, *elsewhere]}))
            name = left[0] if left else elsewhere.pop(0)
            asked.pop(name, None)
            if name in most:
                done = _compiled(name, wait=not left)
            else:
                done = humbly.submit(_compiled, name, wait=not left).result()
            elsewhere += [] if done else [name]


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
    """Whether this process is one of the machine's compilers, until `held` is closed."""
    for place in range(max(1, processors() // 4)):
        try:
            root().mkdir(parents=True, exist_ok=True)
            import fcntl

            file = (root() / LOCK).open("w")
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _PLACES + place)
            except OSError:
                file.close()
                raise
            held.enter_context(file)
        except (BlockingIOError, PermissionError):  # which of the two, systems differ
            continue
        except (ImportError, OSError):
            pass
        return True
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
        reason = ""
        try:
            if not is_compiled(name):
                _compile(name, note)
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = ": ".join([type(error).__name__, *lines[:1]])
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
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, zlib.crc32(note.name.encode()))
        except (BlockingIOError, PermissionError):  # which of the two, systems differ
            yield wait
            return
        except (ImportError, OSError):
            pass
        yield True
