"""Where prepared data sets live."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import options

Given = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


def data_dir(given: Given = None) -> Path:
    """The folder `given` (the first of several), else that of PENSTOCK_DATA_DIR, else `penstock_datasets` at home.

    >>> data_dir("somewhere").name
    'somewhere'
    """
    if given is not None and not isinstance(given, str | os.PathLike):
        given = next(iter(given), None)
    chosen: Any = given if given is not None else options.environment("DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / "penstock_datasets"


def data_dirs(given: Given = None) -> list[Path]:
    """Where prepared data is looked for: the folders `given`, else `data_dir()` and that of tfds.

    >>> [folder.name for folder in data_dirs(["here", "there"])]
    ['here', 'there']
    """
    if given is None:
        return [data_dir(), Path.home() / "tensorflow_datasets"]
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    return [Path(one).expanduser() for one in several] or [data_dir()]
