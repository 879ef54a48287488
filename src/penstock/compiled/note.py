"""note_of: the file that says that the kernels of a module are in numba's cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from functools import cache
from pathlib import Path

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


def note_of(name: str) -> Path:
    """Where it stands for the module `name`, as its sources are now and for this processor."""
    files = source_files(name)
    stamps = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    sources = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    chosen = [os.environ.get(variable, "") for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    target = hashlib.sha256(repr([processor(), *chosen]).encode()).hexdigest()[:8]
    tag = f"{name}-{sources}-{target}-{sys.implementation.cache_tag}-{importlib.metadata.version('numba')}"
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return Path(folder) / f"{tag}.compiled"
    beside = files[0].parent / "__pycache__"
    if os.access(beside if beside.exists() else files[0].parent, os.W_OK):
        return beside / f"{tag}.compiled"
    return Path.home() / ".cache" / "penstock" / f"{tag}.compiled"
