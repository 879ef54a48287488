"""What a module of kernels is made of: what was compiled from it holds until one of these files changes."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path

_IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)$", re.MULTILINE)


def source_files(module: str) -> list[Path]:
    """The file of `module`, then those of its own package that it imports from, directly or not. Imports none of them.

    >>> names = [file.name for file in source_files("penstock.compiled.note")]
    >>> names[0], "sources.py" in names
    ('note.py', True)
    """
    package = module.partition(".")[0]
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    origin = Path(found.origin)
    files: list[Path] = []
    waiting = [module]
    while waiting:
        name = waiting.pop(0)
        file = _file(name, package, origin)
        if file is None or file in files:
            continue
        files.append(file)
        for source, names in _IMPORT.findall(file.read_text("utf-8")):
            if source.partition(".")[0] == package:  # what it imports may be modules themselves
                waiting += [source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))]
    return files


def _file(name: str, package: str, origin: Path) -> Path | None:
    """The source of the module `name`, or None if there is no such module."""
    if name == package:
        return origin
    place = origin.parent.joinpath(*name.split(".")[1:])
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists()), None)


def digest(module: str) -> str:
    """A digest of the contents of all `source_files`."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in source_files(module))).hexdigest()
