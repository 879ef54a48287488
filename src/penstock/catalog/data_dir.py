"""The folders of prepared data sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import options
from penstock.errors import FailedPreconditionError
from penstock.io import storage
from penstock.io.writing import place, reading

# Advice in errors about the folder.
SETTING = "Choose another folder with data_dir=… (--data-dir on the command line), or with PENSTOCK_DATA_DIR."
SETTING_OF_DOWNLOADS = "Choose another folder with download_dir=… (--download-dir), or with PENSTOCK_DATA_DIR."

Given = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def data_dir(given: Given = None) -> Path:
    """Return the folder `given` (the first of several), $PENSTOCK_DATA_DIR, $TFDS_DATA_DIR, or the default at home.

    The default is `penstock_datasets` in the home folder.

    >>> data_dir("somewhere").name
    'somewhere'
    """
    if given is not None and not isinstance(given, str | os.PathLike):
        given = next(iter(given), None)
    chosen: Any = given if given is not None else options.environment("DATA_DIR") or os.environ.get("TFDS_DATA_DIR")
    return place(chosen) if chosen else _at_home("penstock_datasets")


def local_data_dir() -> Path:
    """Return the folder for downloads, and for the work on data sets at a URL: `data_dir()`, unless it is a URL."""
    found = data_dir()
    return _at_home("penstock_datasets") if storage.is_url(found) else found


def data_dirs(given: Given = None) -> list[Path]:
    """Return the folders of prepared data: those `given`, otherwise `data_dir()` and the folder of tfds.

    >>> [folder.name for folder in data_dirs(["here", "there"])]
    ['here', 'there']
    """
    if given is None:
        return [data_dir(), place(os.environ.get("TFDS_DATA_DIR") or _at_home("tensorflow_datasets"))]
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    return [place(one) for one in several] or [data_dir()]


def is_file(path: Path) -> bool:
    """Return True if a file exists and is visible. A folder without permission contains no visible files."""
    return storage.is_file(path)  # Path.is_file raises for such a folder


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, or none if there is no folder.

    Raises:
        FailedPreconditionError: If the folder cannot be read.
    """
    with reading(f"the folder {str(folder)!r} of data sets"):
        return list(folder.iterdir()) if folder.is_dir() else []


def _at_home(name: str) -> Path:
    try:
        return Path.home() / name
    except RuntimeError:  # a user without an entry in the system's list, as in some containers
        raise FailedPreconditionError("there is no home folder for data sets.", hint=SETTING) from None
