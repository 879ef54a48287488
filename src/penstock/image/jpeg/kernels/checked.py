"""Every read at an address looked up in a list of what may be read: a form of the kernels for tests and fuzzing.

It is compiled on demand, into no cache, in a process that has the variable PENSTOCK_CHECKED_READS when `bits` is
imported, and takes very much longer. Otherwise this module is not imported, and no trace of it compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

_allowed: list[tuple[int, int]] = []  # from an address on, and before another one
outside: list[tuple[int, int]] = []  # addresses and sizes of reads that lay in none of them


@contextmanager
def allowed(*files: Any) -> Iterator[None]:
    """Let `files`, arrays of bytes, be read, and nothing else.

    >>> import numpy as np
    >>> file = np.zeros(4, np.uint8)
    >>> with allowed(file):
    ...     _look(file.ctypes.data, 4)
    ...     _look(file.ctypes.data, 5)
    >>> [size for _, size in outside]
    [5]
    >>> outside.clear()
    """
    before = _allowed[:]
    _allowed.extend((file.ctypes.data, file.ctypes.data + file.size) for file in files)
    try:
        yield
    finally:
        _allowed[:] = before


def _look(address: int, size: int) -> None:
    if not any(start <= address and address + size <= stop for start, stop in _allowed):
        outside.append((address, size))


_CALL: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(_look)
_LONG = ir.IntType(64)


def emit(builder: Any, address: Any, size: int) -> None:
    """Put a call of `_look` where `builder` is."""
    place = ir.Constant(_LONG, ctypes.cast(_CALL, ctypes.c_void_p).value)
    function = builder.inttoptr(place, ir.FunctionType(ir.VoidType(), [_LONG, _LONG]).as_pointer())
    builder.call(function, [address, ir.Constant(_LONG, size)])
