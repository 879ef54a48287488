"""Region: one piece of memory that two processes share. It has no name, so nothing of it can outlive them."""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress

import numpy as np


class Owner:
    """The worker that regions belong to, as seen from here."""

    def __init__(self) -> None:
        self.alive = True
        self.dropped: list[int] = []  # regions that it has to unmap


class Region:
    """One piece of shared memory."""

    __slots__ = ("_mapping", "array", "descriptor", "lent", "nbytes", "number", "owner", "retired")

    def __init__(self, owner: Owner, number: int, nbytes: int) -> None:
        self.owner = owner
        self.number = number
        self.nbytes = nbytes
        self.lent = False  # arrays lie over it
        self.retired = False  # a forked child may still read it: not to be used again
        self.descriptor: int | None = _created(nbytes)
        self._mapping, self.array = mapped(self.descriptor, nbytes)

    def sent(self) -> None:
        """The owner has it: mappings keep the memory from here on."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def empty(self) -> None:
        """Give the memory itself back, also while the owner still maps it."""
        self.sent()
        if hasattr(mmap, "MADV_REMOVE"):
            with suppress(OSError):  # a file system without holes
                self._mapping.madvise(mmap.MADV_REMOVE)

    def __del__(self) -> None:
        if getattr(self, "descriptor", None) is not None:
            self.sent()


def mapped(descriptor: int, nbytes: int) -> tuple[mmap.mmap, np.ndarray]:
    """A region as bytes that can be written; unmapped when nobody holds the array. The file may be closed."""
    if sys.version_info >= (3, 13):
        mapping = mmap.mmap(descriptor, nbytes, trackfd=False)
    else:
        mapping = mmap.mmap(descriptor, nbytes)
    return mapping, np.frombuffer(mapping, np.uint8)


def _created(nbytes: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("penstock")
        try:
            os.ftruncate(descriptor, nbytes)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    import tempfile

    with tempfile.TemporaryFile() as file:  # unlinked from the start
        file.write(bytes(nbytes))  # now, and not by a bus error when the disk is full
        file.flush()
        return os.dup(file.fileno())
