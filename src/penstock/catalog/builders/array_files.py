"""The functions `read_idx` and `read_mat` read arrays in the formats of MNIST and MATLAB."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import DataLossError, optional_package

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return the array in an IDX file, which may be compressed by gzip.

    The file has two zeros, a type, the number of dimensions, the sizes and the values.

    Raises:
        DataLossError: If the file is no IDX file, or is incomplete.
    """
    content = Path(path).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            message = f"the file is damaged ({error})."
            raise DataLossError(message, hint="Delete it, and it is downloaded again.", file=str(path)) from error
    dtype = np.dtype(_DTYPES.get(content[2] if len(content) > 3 else 0, "u1"))
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _DTYPES:
        message = f"an IDX file begins with two zeros and a type, and this one with {content[:4]!r}."
        raise DataLossError(message, hint="Delete it, and it is downloaded again.", file=str(path))
    begin = 4 + 4 * content[3]
    sizes = struct.unpack(f">{content[3]}I", content[4:begin]) if len(content) >= begin else ()
    if len(sizes) != content[3] or len(content) != begin + dtype.itemsize * math.prod(sizes):
        message = f"the file should hold {dtype.name} of shape {sizes}, and has {len(content)} bytes."
        raise DataLossError(message, hint="Delete it, and it is downloaded again.", file=str(path))
    return np.frombuffer(content, dtype, offset=begin).reshape(sizes).astype(dtype.newbyteorder("="))


def read_mat(path: str | os.PathLike[str], *names: str) -> list[np.ndarray[Any, Any]]:
    """Return the arrays called `names` in a MATLAB file of version 5, with their shapes in the file.

    Raises:
        MissingDependencyError: If scipy, which reads the format, is not installed.
        DataLossError: If the file is no MATLAB file or is incomplete, or if an array is missing.
    """
    matlab = optional_package("scipy.io.matlab", "Reading MATLAB files", "mat")
    try:
        found = matlab.loadmat(path, variable_names=names)
    except (matlab.MatReadError, ValueError, TypeError, OSError, EOFError, zlib.error, NotImplementedError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        message = f"the MATLAB file is damaged ({type(error).__name__}: {error})."
        raise DataLossError(message, hint="Delete it, and it is downloaded again.", file=str(path)) from error
    missing = [name for name in names if name not in found]
    if missing:
        message = f"the MATLAB file has no array {', '.join(map(repr, missing))}."
        raise DataLossError(message, hint="Was it changed by those who publish it?", file=str(path))
    return [found[name] for name in names]
