"""note_of: the file that says that the kernels of a module are in numba's cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from penstock.compiled import shipped
from penstock.compiled.sources import source_files

_TELLING = {"vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features", "isa"}


@cache
def processor() -> str:
    """Which kind it is: kernels of another one, as in an image that was built elsewhere, are of no use.

    numba goes by the same, and takes half a second to say so. Where the system does not tell, it is the architecture.

    >>> processor() == processor()
    True
    """
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        first = ""
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in _TELLING]
    return "\n".join([platform.machine(), *lines])


def is_compiled(name: str) -> bool:
    """Whether the kernels of the module `name` can be loaded: compiled on this machine, or come with penstock."""
    files = source_files(name)
    return shipped.has(name, files) or _note(name, files).exists()


def note_of(name: str) -> Path:
    """Where it stands for the module `name`, as its sources are now and for this processor."""
    return _note(name, source_files(name))


def _note(name: str, files: Sequence[Path]) -> Path:
    stamps = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    sources = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    chosen = [os.environ.get(variable, "") for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    target = hashlib.sha256(repr([processor(), *chosen]).encode()).hexdigest()[:8]
    tag = f"{name}-{sources}-{target}-{sys.implementation.cache_tag}-{importlib.metadata.version('numba')}"
    return _folder(files[0].parent) / f"{tag}.compiled"


def root() -> Path:
    """The folder of what concerns all modules: who compiles."""
    return _folder(Path(__file__).parents[1])


def _folder(sources: Path) -> Path:
    """Where notes of modules in the folder `sources` stand."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return Path(folder)
    beside = sources / "__pycache__"
    if os.access(beside if beside.exists() else sources, os.W_OK):
        return beside
    return Path.home() / ".cache" / "penstock"
