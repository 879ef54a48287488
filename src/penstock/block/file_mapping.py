"""Files mapped into memory, which keep no file open: a process may have few of them, and an interleave many."""

from __future__ import annotations

import errno
import functools
import mmap
import os
import sys
from typing import Any

import numpy as np

REFUSED = frozenset({errno.ENOMEM, errno.ENODEV, errno.EAGAIN, errno.EPERM, errno.EACCES})  # of what may be read


def mapped(descriptor: int, nbytes: int) -> np.ndarray:
    """`nbytes` bytes of an open file, at least one, read-only; unmapped when nobody holds the array.

    The file may be closed, and should be. Python's own `mmap` keeps a descriptor until 3.13, so that whatever
    held an array, as an error's traceback or a Block in a queue, held a file open with it. Raises OSError.
    """
    if sys.version_info >= (3, 13):
        return np.frombuffer(mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ, trackfd=False), np.uint8)
    if os.name != "posix":
        return np.frombuffer(mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ), np.uint8)
    return np.asarray(Mapping(descriptor, nbytes))


class Mapping:
    """Owner of mapped memory: what numpy keeps as the base of the array over it."""

    def __init__(self, descriptor: int, nbytes: int) -> None:
        import ctypes

        self._unmap, self._nbytes, self._address = _calls()[1], nbytes, None
        address = _calls()[0](None, nbytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == ctypes.c_void_p(-1).value:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self._address = address
        data = (address, True)
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": data}

    def __del__(self) -> None:
        address, self._address = self._address, None
        if address is not None:
            self._unmap(address, self._nbytes)


@functools.cache
def _calls() -> tuple[Any, Any]:
    """The system's `mmap` and `munmap`."""
    import ctypes

    system = ctypes.CDLL(None, use_errno=True)
    put, away = system.mmap, system.munmap
    put.restype, away.restype = ctypes.c_void_p, ctypes.c_int
    put.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    away.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return put, away
