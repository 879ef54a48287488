"""Compiled: a module of compiled kernels, which may take seconds to be there the first time on a machine.

numba keeps what it compiled on disk, so only the very first use is slow. That use does not wait: a child process
compiles, and callers run the plain version, which gives the same bits, until the kernels can be loaded.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import importlib.metadata
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from types import ModuleType

from penstock.compiled.sources import source_files

_begun: list[Compiled] = []


def wait_for_kernels() -> None:
    """Return when all kernels asked for so far are compiled: what a measurement does before it begins.

    >>> wait_for_kernels()
    """
    for kernels in _begun:
        kernels.settle()


class Compiled:
    """The kernels of one module; importing it, and its `warm_up` if it has one, compiles them. Thread-safe."""

    def __init__(self, module: str) -> None:
        self._name = module
        self._lock = threading.Lock()
        self._module: ModuleType | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._given_up = False

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
        self.settle()
        with self._lock:
            self._module = importlib.import_module(self._name)
            return self._module

    def settle(self) -> None:
        """Wait for the child process that compiles, if there is one."""
        with self._lock:
            if self._child is not None:
                self._child.wait()

    def _look(self) -> None:
        if self._child is None:
            if _marker(self._name).exists() or not self._start():
                self._module = importlib.import_module(self._name)
            return
        status = self._child.poll()
        if status == 0:
            self._module = importlib.import_module(self._name)
        elif status is not None:
            self._given_up = True
            reason = b"" if self._child.stderr is None else self._child.stderr.read()
            said = reason.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {status}"]
            message = f"penstock runs without the kernels of {self._name}, which could not be compiled: {said[0]}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _start(self) -> bool:
        """Begin compiling in a child process; False where there is no interpreter to start."""
        code = f"from penstock.compiled import compile_kernels; compile_kernels({self._name!r})"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except (OSError, TypeError):
            return False
        atexit.register(_end, self._child)
        _begun.append(self)
        return True


def _end(child: subprocess.Popen[bytes]) -> None:
    """No process outlives ours; what it had not finished is begun anew next time."""
    if child.poll() is None:
        child.terminate()
        child.wait()
    if child.stderr is not None:
        child.stderr.close()


def compile_kernels(name: str) -> None:
    """Compile the kernels of a module into numba's cache, and note that this was done. Runs in the child process."""
    module = importlib.import_module(name)
    warm_up = getattr(module, "warm_up", None)
    if warm_up is not None:
        warm_up()
    marker = _marker(name)
    with contextlib.suppress(OSError):  # without the note the next process compiles once more
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def _marker(name: str) -> Path:
    """The file that says: the kernels of this module, as its sources are now, are in the cache."""
    files = source_files(name)
    stamps = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    sources = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    tag = f"{name}-{sources}-{sys.implementation.cache_tag}-{importlib.metadata.version('numba')}"
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return Path(folder) / f"{tag}.compiled"
    beside = files[0].parent / "__pycache__"
    if os.access(beside if beside.exists() else files[0].parent, os.W_OK):
        return beside / f"{tag}.compiled"
    return Path.home() / ".cache" / "penstock" / f"{tag}.compiled"
