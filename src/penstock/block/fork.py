"""Fork: what happens to memory shared with workers while this process forks."""

from __future__ import annotations

import mmap
import os
import select
from collections.abc import Iterable
from typing import Protocol

import numpy as np

_PATIENCE = 10.0  # seconds that a child may take to copy what it sees


class Shared(Protocol):
    """Memory that is prepared for a fork, and told of it afterwards."""

    def hold(self) -> None:
        """Nothing changes hands until one of the others is called."""

    def is_read(self) -> bool:
        """Whether anybody may read it."""

    def go_on(self) -> None:
        """In the parent."""

    def leave_to_parent(self) -> None:
        """In the child."""


class Fork:
    """The child gets a copy of the shared memory it can see.

    The parent goes on when that is made: what it writes later is not the child's.
    """

    def __init__(self, memories: Iterable[Shared]) -> None:
        self._memories = memories
        self._held: list[Shared] = []
        self._copied: tuple[int, int] | None = None  # a pipe

    def before(self) -> None:
        self._held = list(self._memories)
        for memory in self._held:
            memory.hold()
        if any(memory.is_read() for memory in self._held):
            self._copied = os.pipe()

    def in_parent(self) -> None:
        held, self._held = self._held, []
        if self._copied is not None:
            (near, far), self._copied = self._copied, None
            os.close(far)
            select.select([near], [], [], _PATIENCE)  # until it breaks
            os.close(near)
        for memory in held:
            memory.go_on()

    def in_child(self) -> None:
        held, self._held = self._held, []
        for memory in held:
            memory.leave_to_parent()
        if self._copied is not None:
            pipe, self._copied = self._copied, None
            for descriptor in pipe:
                os.close(descriptor)

    def watch(self) -> None:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.before, after_in_parent=self.in_parent, after_in_child=self.in_child)


def made_private(array: np.ndarray) -> None:
    """Put memory of this process in the place of shared memory, with the same content at the same address."""
    import ctypes

    content = array.copy()
    map_memory = ctypes.CDLL(None).mmap
    map_memory.restype = ctypes.c_void_p
    map_memory.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fixed = 0x10  # MAP_FIXED, on Linux and macOS
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed
    place = map_memory(array.ctypes.data, array.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if place == array.ctypes.data:
        array[:] = content
