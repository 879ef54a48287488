"""What the child process runs: modules of kernels are compiled one after another, and lines printed about each."""

from __future__ import annotations

import contextlib
import importlib
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.compiled.note import note_of

BEGUN, DONE = "compiling\t", "compiled\t"  # how the lines begin that are for the parent


def compile_kernels(*names: str) -> None:
    """Compile the kernels of these modules into numba's cache, and note that this was done.

    What another process is compiling comes last: it is there then, and is not compiled twice. The lines are BEGUN and
    the name; and DONE, the name, a tab, and the reason why a module could not be compiled, if there is one.
    """
    elsewhere = [name for name in names if not _compiled(name, wait=False)]
    for name in elsewhere:
        _compiled(name, wait=True)


def _compiled(name: str, *, wait: bool) -> bool:
    """Whether that is done; without `wait`, not if another process is at it."""
    note = note_of(name)
    with _alone(note, wait=wait) as alone:
        if not alone:
            return False
        _say(f"{BEGUN}{name}")
        reason = ""
        try:
            if not note.exists():
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

            file = held.enter_context(note.with_name("compiling.lock").open("w"))
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, zlib.crc32(note.name.encode()))
        except (BlockingIOError, PermissionError):  # which of the two, systems differ
            yield wait
            return
        except (ImportError, OSError):
            pass
        yield True
