"""Whether code is the user's, or comes with Python, penstock or another package."""

from __future__ import annotations

import functools
import sys
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

_PACKAGES = ("site-packages", "dist-packages")


def is_users(value: Any) -> bool:
    """Whether a function, class or module is the user's own; what the others use is their own business."""
    if isinstance(value, FunctionType):
        return not _is_penstock(value.__module__) and _is_users_file(value.__code__.co_filename)
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    if _is_penstock(name):
        return False
    if name == "__main__":
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(file, str) and _is_users_file(file)


def is_users_file(name: str | None) -> bool:
    """Whether a file of Python code, named by an import's spec, is the user's."""
    return name is not None and name.endswith(".py") and _is_users_file(name)


def _is_penstock(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "penstock"


def _is_users_file(name: str) -> bool:
    return not name.startswith(_library_folders()) and not any(folder in PurePath(name).parts for folder in _PACKAGES)


@functools.cache
def _library_folders() -> tuple[str, ...]:
    from sysconfig import get_path

    return ("<frozen", *(get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")))
