"""compile_ahead: all kernels of penstock, compiled now and not when they are first asked for."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from penstock.compiled.compiler import Compiler
from penstock.compiled.module import Compiled
from penstock.compiled.processors import processors
from penstock.compiled.shipped import ARM, INTO, LEVELS, note_sources, tag
from penstock.errors import InvalidArgumentError


def modules_of_kernels() -> list[str]:
    """The modules that penstock compiles, by name.

    >>> "penstock.io.kernels.tfrecord.scan" in modules_of_kernels()
    True
    """
    package = Path(__file__).parents[1]
    for file in sorted(package.rglob("*.py")):
        if "= Compiled(" in file.read_text(encoding="utf-8"):
            importlib.import_module(".".join([package.name, *file.relative_to(package).with_suffix("").parts]))
    return sorted(name for name in Compiled.KNOWN if name.startswith(f"{package.name}."))


def compile_ahead(jobs: int | None = None, done: Callable[[str], None] = lambda name: None) -> dict[str, str]:
    """Have `jobs` processes compile what is not compiled yet; by name the reasons for what could not be.

    `done` is called with each name, in their order, when its kernels are there.
    """
    names = modules_of_kernels()
    # each is asked for all: they divide them by the locks that they take, and so the first knows of all in the end
    first, *_ = [Compiler(most=1, background=False).ask_all(names) for _ in range(jobs or processors())]
    if first is None:
        return dict.fromkeys(names, "no process could be started")
    for asked in first:
        asked.finished.wait()
        if not asked.reason:
            done(asked.name)
    return {asked.name: asked.reason for asked in first if asked.reason}


def compile_into(
    folder: Path, level: str, jobs: int | None = None, done: Callable[[str], None] = lambda name: None
) -> dict[str, str]:
    """As `compile_ahead`, for any processor of a level of `shipped`, below `folder`, as `shipped` is laid out.

    Raises InvalidArgumentError for a level that no processor would look for.
    """
    if level not in (*LEVELS, ARM):
        message = f"level must be one of {', '.join(map(repr, (*LEVELS, ARM)))}, got level={level!r}."
        raise InvalidArgumentError(message, hint="Kernels are looked for by these names; 'generic' is for ARM.")
    into = folder / tag() / level
    with tempfile.TemporaryDirectory() as notes:
        chosen = {INTO: str(into), "NUMBA_CACHE_DIR": notes, "NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
        before = {name: os.environ.get(name) for name in chosen}
        os.environ.update(chosen)  # children are given them
        try:
            failed = compile_ahead(jobs, done)
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
    note_sources(into, [name for name in modules_of_kernels() if name not in failed])
    return failed
