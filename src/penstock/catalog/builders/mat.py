"""`read_mat`: arrays of a MATLAB file."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from penstock.errors import DataLossError, MissingDependencyError


def read_mat(path: str | os.PathLike[str], *names: str) -> list[np.ndarray[Any, Any]]:
    """The arrays called `names` in a MATLAB file of version 5, with the shapes that they have there; whole, in memory.

    Raises:
        MissingDependencyError: scipy, which reads the format, is not installed.
        DataLossError: it is no such file, or not whole, or an array is missing.
    """
    try:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError
    except ImportError as error:
        message = "Reading MATLAB files needs the package scipy."
        raise MissingDependencyError(message, hint="pip install 'penstock[mat]'") from error
    try:
        found = loadmat(path, variable_names=names)
    except (MatReadError, ValueError, TypeError, OSError, EOFError, zlib.error, NotImplementedError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        message = f"the MATLAB file is damaged ({type(error).__name__}: {error})."
        raise DataLossError(message, hint="Delete it, and it is downloaded again.", file=str(path)) from error
    missing = [name for name in names if name not in found]
    if missing:
        message = f"the MATLAB file has no array {', '.join(map(repr, missing))}."
        raise DataLossError(message, hint="Was it changed by those who publish it?", file=str(path))
    return [found[name] for name in names]
