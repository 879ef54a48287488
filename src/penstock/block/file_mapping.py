"""Files mapped into memory without an open file: a process may open few files, and `interleave` maps many."""

from __future__ import annotations

import errno
import functools
import mmap
import os
import sys
from typing import Any

import numpy as np

# mmap may fail with these errors although the file can be read
REFUSED = frozenset({errno.ENOMEM, errno.ENODEV, errno.EAGAIN, errno.EPERM, errno.EACCES})


def mapped(descriptor: int, nbytes: int) -> np.ndarray:
    """Map `nbytes` bytes (at least one) of an open file, read-only. The memory is unmapped when the array is gone.

    Close the file after the call. Before Python 3.13, `mmap` kept a file descriptor open. Each array in a traceback or
    in a queued Block would then keep a file open.

    Raises:§OSError: If the system cannot map the file.
    """
    if sys.version_info >= (3, 13):
        return np.frombuffer(mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ, trackfd=False), np.uint8)
    if os.name != "posix":
        return np.frombuffer(mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_READ), np.uint8)
    return np.asarray(Mapping(descriptor, nbytes))


class Mapping:
    """Owner of mapped memory. numpy stores it as the base of the array over the memory."""

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
    """Return the system's functions `mmap` and `munmap`."""
    import ctypes

    system = ctypes.CDLL(None, use_errno=True)
    put, away = system.mmap, system.munmap
    put.restype, away.restype = ctypes.c_void_p, ctypes.c_int
    put.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    away.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return put, away
