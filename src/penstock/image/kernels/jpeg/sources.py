"""SOURCES: a digest of this package, which is part of the key under which its kernels are kept on disk.

numba looks only at the file of the function itself to tell whether what it kept is current; these kernels are made of
several files. A kernel that has the digest in its closure is compiled anew when any of them changes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path


def _digest(folder: Path) -> str:
    files = sorted(folder.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


SOURCES = _digest(Path(__file__).parent)
