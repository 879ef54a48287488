"""Where prepared data sets live."""

from __future__ import annotations

import os
from pathlib import Path

from penstock import options


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder `given`, else that of the variable PENSTOCK_DATA_DIR, else `penstock_datasets` in the home folder.

    >>> data_dir("somewhere").name
    'somewhere'
    """
    chosen = given if given is not None else options.environment("DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / "penstock_datasets"
