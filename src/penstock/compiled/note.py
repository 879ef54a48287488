"""note_of: the file that says that the kernels of a module are in numba's cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import sys
from pathlib import Path

from penstock.compiled.sources import source_files


def note_of(name: str) -> Path:
    """Where it stands for the module `name`, as its sources are now."""
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
