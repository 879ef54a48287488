"""Compiled: a module of compiled kernels, which may take seconds to be there the first time.

`compile_ahead` compiles all of them now.

numba keeps what it compiled on disk, so only the very first use is slow. That use does not wait: a child process
compiles, and callers run the plain version, which gives the same bits, until the kernels can be loaded.
"""

from __future__ import annotations

import importlib
import logging
import os
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from penstock.compiled.child import processors
from penstock.compiled.compiler import COMPILER, Asked, Compiler
from penstock.compiled.kernel_files import ARM, INTO, LEVELS, is_compiled, note_sources, source_files, tag
from penstock.errors import InvalidArgumentError
from penstock.forked import in_child, new_lock

_LOG = logging.getLogger("penstock.compiled")
_AGAIN = 0.25  # seconds behind which a plain version that still serves is no trial of a single element
_PATIENCE = 5.0  # seconds that plain versions serve until the log says so


def wait_for_kernels() -> None:
    """Return when all kernels asked for so far are compiled: what a measurement does before it begins.

    Raises DeadlineExceededError, which says what is being compiled, when none has been finished for ten minutes.

    >>> wait_for_kernels()
    """
    COMPILER.settle()


def compiling() -> bool:
    """Whether kernels are being compiled: what runs their plain versions will be faster soon.

    >>> wait_for_kernels()
    >>> compiling()
    False
    """
    return COMPILER.busy


def plain_versions() -> list[str]:
    """In place of which kernels plain versions serve in this process, and why: a line for each.

    >>> wait_for_kernels()
    >>> plain_versions()
    []
    """
    asked = [kernels for kernels in (found() for found in Compiled.ASKED.valuerefs()) if kernels is not None]
    return sorted(f"{kernels.name}: {kernels.reason}" for kernels in asked)


class Compiled:
    """The kernels of one module; importing it, and its `warm_up` if it has one, compiles them. Thread-safe.

    Those that still serve in their plain version are compiled before those that were asked for once, and those with
    `most`, which take most of a pipeline's time, before all others, on a processor that the pipeline leaves them.
    """

    KNOWN: ClassVar[set[str]] = set()  # the names of all that there are
    ASKED: ClassVar[weakref.WeakValueDictionary[int, Compiled]] = weakref.WeakValueDictionary()  # plain versions serve
    SAID: ClassVar[set[str]] = set()  # whether the log says that there are such

    def __init__(self, module: str, *, most: bool = False) -> None:
        self.name = module
        self._most = most
        self.reason = ""  # why its plain version serves
        self.KNOWN.add(module)
        self._lock = new_lock()
        self._module: ModuleType | None = None
        self._asked: Asked | None = None
        self._asked_at = 0.0
        self._asked_again = False
        self._looked_at = 0.0
        self._given_up = False
        in_child(self._leave_to_parent)

    @property
    def is_coming(self) -> bool:
        """Whether it will be there later: its plain version serves until then."""
        return self._module is None and not self._given_up

    def ready(self, *, asks: bool = True) -> ModuleType | None:
        """The module, or None while it is being compiled: run the plain version then.

        Without `asks` it is not asked for, nor once more where somebody has: another one will do this work.
        """
        if self._module is not None or self._given_up:
            return self._module
        with self._lock:
            if self._module is None and not self._given_up and (asks or self._asked is not None):
                self._look(asks=asks)
            return self._module

    def get(self) -> ModuleType:
        """The module, however long that takes: for work without a plain version."""
        module = self.ready()
        if module is not None:
            return module
        asked = self._asked
        if asked is not None:
            COMPILER.hurry(asked)
            asked.finished.wait()
        with self._lock:
            return self._load()

    def _load(self) -> ModuleType:
        self._module = importlib.import_module(self.name)
        self.ASKED.pop(id(self), None)
        if self.SAID and not self.ASKED:
            self.SAID.clear()
            _LOG.info("All kernels that were asked for are compiled, and serve from now on.")
        return self._module

    def _look(self, *, asks: bool) -> None:
        asked = self._asked
        if asked is None:
            if not is_compiled(self.name):
                self._asked = asked = COMPILER.ask(self.name)
            if asked is None:
                self._load()
                return
            self._asked_at = self._looked_at = time.monotonic()
            self.reason = "being compiled, as it was never on this machine"
            self.ASKED[id(self)] = self
        if not asked.finished.is_set():
            if asks and not self._asked_again and time.monotonic() - self._asked_at >= _AGAIN:
                self._asked_again = True
                COMPILER.ask_again(asked, most=self._most)
            if self._is_there_now():
                COMPILER.found(asked)
                self._load()
            else:
                self._say_so()
        elif not asked.reason:
            self._load()
        else:
            self._given_up = True
            self.reason = f"could not be compiled: {asked.reason}"
            message = f"penstock runs without the kernels of {self.name}, which {self.reason}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _is_there_now(self) -> bool:
        """Whether another process has compiled it, whom our child may wait for until all else is done, too.

        That is a look at some files, and so done now and then only.
        """
        now = time.monotonic()
        if now - self._looked_at < _AGAIN:
            return False
        self._looked_at = now
        return is_compiled(self.name)

    def _say_so(self) -> None:
        if self.SAID or time.monotonic() - self._asked_at < _PATIENCE:
            return
        self.SAID.add(self.name)
        text = (
            "Plain versions, which are slower, serve until %s and others are compiled, once on this machine, by a "
            "process in the background that may outlive this one (`penstock info`). `penstock compile` does so ahead."
        )
        _LOG.info(text, self.name)

    def _leave_to_parent(self) -> None:
        """In a forked child: who waits for what the parent asked for would wait for ever."""
        if self._asked is not None and not self._asked.finished.is_set():
            self._asked, self._asked_again = None, False
            self.ASKED.pop(id(self), None)


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


def _size(name: str) -> int:
    return sum(file.stat().st_size for file in source_files(name))


def compile_ahead(jobs: int | None = None, done: Callable[[str], None] = lambda name: None) -> dict[str, str]:
    """Have `jobs` processes compile what is not compiled yet; by name the reasons for what could not be.

    `done` is called with each name, in their order, when its kernels are there.
    """
    # Each is asked for all: they divide them by the locks that they take, and so the first knows of all in the end.
    # Large ones, which share parts, lie beside each other; one process has them, and another one begins at the end.
    names = sorted(modules_of_kernels(), key=_size, reverse=True)
    orders = [names[:: -1 if job % 2 else 1] for job in range(jobs or processors())]
    first, *_ = [Compiler(most=1, background=False).ask_all(order) for order in orders]
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
    """As `compile_ahead`, for any processor of a level in `LEVELS`, below `folder`, laid out as `shipped/` is.

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
