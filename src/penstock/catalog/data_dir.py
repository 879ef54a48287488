"""Where prepared data sets live."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import options
from penstock.errors import FailedPreconditionError
from penstock.io import storage
from penstock.io.writing import place, reading

# What errors over the folder say to do.
SETTING = "Choose another folder with data_dir=… (--data-dir on the command line), or with PENSTOCK_DATA_DIR."
SETTING_OF_DOWNLOADS = "Choose another folder with download_dir=… (--download-dir), or with PENSTOCK_DATA_DIR."

Given = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def data_dir(given: Given = None) -> Path:
    """The folder `given` (the first of several), $PENSTOCK_DATA_DIR, $TFDS_DATA_DIR, or `penstock_datasets` at home.

    >>> data_dir("somewhere").name
    'somewhere'
    """
    if given is not None and not isinstance(given, str | os.PathLike):
        given = next(iter(given), None)
    chosen: Any = given if given is not None else options.environment("DATA_DIR") or os.environ.get("TFDS_DATA_DIR")
    return place(chosen) if chosen else _at_home("penstock_datasets")


def local_data_dir() -> Path:
    """Where downloads lie, and data sets that are made for a place behind a URL: `data_dir()`, unless that is one."""
    found = data_dir()
    return _at_home("penstock_datasets") if storage.is_url(found) else found


def data_dirs(given: Given = None) -> list[Path]:
    """Where prepared data is looked for: the folders `given`, else `data_dir()` and that of tfds.

    >>> [folder.name for folder in data_dirs(["here", "there"])]
    ['here', 'there']
    """
    if given is None:
        return [data_dir(), place(os.environ.get("TFDS_DATA_DIR") or _at_home("tensorflow_datasets"))]
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    return [place(one) for one in several] or [data_dir()]


def is_file(path: Path) -> bool:
    """Whether a file is there, for all that one may see: a folder that may not be looked into holds none."""
    return storage.is_file(path)  # Path.is_file raises there


def entries(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where there is none.

    Raises FailedPreconditionError where one may not look.
    """
    with reading(f"the folder {str(folder)!r} of data sets"):
        return list(folder.iterdir()) if folder.is_dir() else []


def _at_home(name: str) -> Path:
    try:
        return Path.home() / name
    except RuntimeError:  # a user without an entry in the system's list, as in some containers
        message = "there is no home folder for data sets."
        raise FailedPreconditionError(message, hint=SETTING) from None
