"""gather: an array's elements by their numbers, as `take` does, and past the cache into batches that are large."""

from __future__ import annotations

import sys

import numpy as np

from penstock.compiled import Compiled

_NATIVE = Compiled("penstock.physical.kernels.gather_native")
_LARGE = 1 << 23  # bytes of a batch that is not in the cache any more when somebody reads it
_WORTH_COMPILING = 1 << 34  # bytes from which loading numba (0.3 s once per process) pays

_copied = 0  # bytes of large batches, about


def gather(whole: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """out[i] = whole[rows[i]], all of one dtype, C-contiguous, and the rows within `whole`."""
    global _copied
    if out.nbytes < _LARGE:
        whole.take(rows, axis=0, out=out, mode="clip")  # "raise" would copy twice
        return
    _copied += out.nbytes
    native = _NATIVE.ready() if "numba" in sys.modules or _copied > _WORTH_COMPILING else None
    if native is None:
        whole.take(rows, axis=0, out=out, mode="clip")
    elif native.gather(_bytes(whole), rows, _bytes(out), -out.ctypes.data % native.LINE):
        message = f"Elements {rows.min()} to {rows.max()} of {len(whole)} as {len(out)}."
        raise IndexError(message)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(len(array), -1).view(np.uint8)
