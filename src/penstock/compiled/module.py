"""Compiled: a module of compiled kernels, which may take seconds to be there the first time on a machine.

numba keeps what it compiled on disk, so only the very first use is slow. That use does not wait: a child process
compiles, and callers run the plain version, which gives the same bits, until the kernels can be loaded.
"""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import ClassVar

from penstock.compiled.compiler import COMPILER, Asked
from penstock.compiled.note import note_of
from penstock.forked import in_child, new_lock


def wait_for_kernels() -> None:
    """Return when all kernels asked for so far are compiled: what a measurement does before it begins.

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


class Compiled:
    """The kernels of one module; importing it, and its `warm_up` if it has one, compiles them. Thread-safe."""

    KNOWN: ClassVar[set[str]] = set()  # the names of all that there are

    def __init__(self, module: str) -> None:
        self._name = module
        self.KNOWN.add(module)
        self._lock = new_lock()
        self._module: ModuleType | None = None
        self._asked: Asked | None = None
        self._given_up = False
        in_child(self._leave_to_parent)

    def ready(self) -> ModuleType | None:
        """The module, or None while it is being compiled: run the plain version then."""
        if self._module is not None or self._given_up:
            return self._module
        with self._lock:
            if self._module is None and not self._given_up:
                self._look()
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
            self._module = importlib.import_module(self._name)
            return self._module

    def _look(self) -> None:
        asked = self._asked
        if asked is None:
            if not note_of(self._name).exists():
                self._asked = asked = COMPILER.ask(self._name)
            if asked is None:
                self._module = importlib.import_module(self._name)
                return
        if not asked.finished.is_set():
            return
        if not asked.reason:
            self._module = importlib.import_module(self._name)
            return
        self._given_up = True
        message = f"penstock runs without the kernels of {self._name}, which could not be compiled: {asked.reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _leave_to_parent(self) -> None:
        """In a forked child: who waits for what the parent asked for would wait for ever."""
        if self._asked is not None and not self._asked.finished.is_set():
            self._asked = None
