"""One module per group of steps: its meaning in plain Python (registered with `tests.reference.elements`) and `STEPS`,
the generated steps for `tests.strategies`.
"""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import penstock as ps

FOLDER = "PENSTOCK_GENERATED"  # where files of generated sources lie that several processes read


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of this package, imported when first asked for: they import those that ask."""
    return tuple(import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))


@cache
def _own() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="penstock-generated-")


def folder() -> Path:
    """Where the files of generated sources lie: of this process alone, or of all that name the same folder."""
    return Path(os.environ.get(FOLDER) or _own().name)


def made(name: str, write: Callable[[Path], object]) -> Path:
    """The file or directory of that name, written by whoever asks first, and there only when it is whole."""
    path = folder() / name
    if not path.exists():
        unfinished = folder() / f"{os.getpid()}-{name}"
        write(unfinished)
        unfinished.rename(path)
    return path


def cardinality(at: Any) -> int:
    """That of a pipeline, which must not depend on what lies in caches and snapshots: it is made again in the midst."""
    stored = any(step in at.text for step in ("cache(folder)", "snapshot("))
    return ps.UNKNOWN_CARDINALITY if stored else at.dataset.cardinality()
