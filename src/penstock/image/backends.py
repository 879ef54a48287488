"""The optional packages behind the codecs, loaded at first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import MissingDependencyError
from penstock.image.threads import calm_opencv

if TYPE_CHECKING:
    from types import ModuleType


@cache
def _load(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        message = f"Reading and writing images needs the package {package}, which cannot be imported: {error}."
        raise MissingDependencyError(message, hint="Install it with: pip install 'penstock[image]'") from error


def simplejpeg() -> Any:
    """The module `simplejpeg`: libjpeg-turbo; it works without the GIL.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return _load("simplejpeg", "simplejpeg")


def opencv() -> Any:
    """The module `cv2`, without threads of its own unless the user has set their number (see `threads`).

    Raises:
        MissingDependencyError: it is not installed.
    """
    cv2 = _load("cv2", "opencv-python-headless")
    calm_opencv()
    return cv2
