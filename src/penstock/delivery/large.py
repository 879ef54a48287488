"""Large results: their arrays go through a piece of memory that both sides map, where the system has that.

Each has a piece of its own, which is gone when the consumer holds no array of it any more. Over the socket they would
be copied four times.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import Any

import numpy as np

from penstock.runtime.processes.link import Link, Message, Packed

_LEAST = 1 << 18  # bytes from which a piece of memory is worth its two calls


def send(link: Link, head: tuple[Any, ...], packed: Packed) -> None:
    """As `link.send`."""
    if packed.nbytes >= _LEAST and hasattr(os, "memfd_create"):
        with suppress(OSError):  # no memory of that kind, or no open file left: the socket does
            descriptor = _written(packed)
            try:
                link.send(head, packed, 0, descriptor)
                return
            finally:
                os.close(descriptor)
    link.send(head, packed)


def received(link: Link) -> Message:
    """As `link.receive`, with the arrays in the message's body wherever they came."""
    message = link.receive()
    if message.descriptor is not None:
        try:
            # a copy of one's own as soon as it is written to: a forked child does not see what its parent writes
            memory = mmap.mmap(message.descriptor, message.nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        finally:
            os.close(message.descriptor)
        message.body, message.descriptor, message.region = np.frombuffer(memory, np.uint8), None, -1
    return message


def _written(packed: Packed) -> int:
    descriptor = os.memfd_create("penstock")
    try:
        os.ftruncate(descriptor, packed.nbytes)
        with mmap.mmap(descriptor, packed.nbytes) as memory:
            packed.write(np.frombuffer(memory, np.uint8))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
