"""The frameworks, loaded where they are first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.errors import MissingDependencyError


def framework(module: str, asked_by: str, extra: str) -> Any:
    """A framework's module.

    Raises:
        MissingDependencyError: it is not installed, or fails to load; the hint names the extra to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        message = f"{asked_by} needs the package {module}, which cannot be imported: {error}."
        raise MissingDependencyError(message, hint=f"Install it with: pip install 'penstock[{extra}]'") from error
