"""What the child process runs: modules of kernels are compiled one after another, and a line printed for each."""

from __future__ import annotations

import contextlib
import importlib
import sys

from penstock.compiled.note import note_of

MARK = "compiled\t"  # how the lines begin that are for the parent


def compile_kernels(*names: str) -> None:
    """Compile the kernels of these modules into numba's cache, and note that this was done.

    The lines are MARK, the name, a tab, and the reason why a module could not be compiled, if there is one.
    """
    for name in names:
        reason = ""
        try:
            _compile(name)
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = ": ".join([type(error).__name__, *lines[:1]])
        sys.stdout.write(f"{MARK}{name}\t{reason}\n")
        sys.stdout.flush()


def _compile(name: str) -> None:
    module = importlib.import_module(name)
    warm_up = getattr(module, "warm_up", None)
    if warm_up is not None:
        warm_up()
    note = note_of(name)
    with contextlib.suppress(OSError):  # without the note the next process compiles once more
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
