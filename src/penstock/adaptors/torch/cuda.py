"""Copies to a CUDA device on a stream of their own, beside the step that computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.adaptors.torch.tensors import Tensors


class Copied(NamedTuple):
    """An element on its way to the device, and the event that says it has arrived."""

    leaves: list[Any]
    arrived: Any


class CudaCopies:
    """Copies the tensors of an element to `device` while the device computes.

    `start` is called by a thread that runs ahead. It takes pinned memory from torch's own allocator, which uses a piece
    again only behind the copy from it, and starts the copy on the side stream. `finish` is called by the step's thread:
    it makes the step's stream wait for the copy (the thread does not), and tells the allocator of the device that this
    stream uses the memory, so that it is not given away before the step is done.
    """

    def __init__(self, torch: Any, tensors: Tensors, device: Any, *, pin: bool) -> None:
        self._torch, self._tensors, self._device, self._pin = torch, tensors, device, pin
        self._stream = torch.cuda.Stream(device)

    def start(self, element: Any) -> Copied:
        cuda = self._torch.cuda
        host = self._tensors.leaves(element)
        with cuda.device(self._device), cuda.stream(self._stream):
            leaves = [self._copy(leaf, number) for number, leaf in enumerate(host)]
            arrived = cuda.Event()
            arrived.record(self._stream)
        return Copied(leaves, arrived)

    def _copy(self, leaf: Any, number: int) -> Any:
        if not isinstance(leaf, self._torch.Tensor):
            return leaf
        pinned = leaf.pin_memory() if self._pin else leaf
        return self._tensors.cast(pinned.to(self._device, non_blocking=self._pin), number)

    def finish(self, copied: Copied) -> Any:
        current = self._torch.cuda.current_stream(self._device)
        current.wait_event(copied.arrived)
        for leaf in _tensors_of(self._torch, copied.leaves):
            leaf.record_stream(current)
        return self._tensors.nest(copied.leaves)


def _tensors_of(torch: Any, leaves: Sequence[Any]) -> list[Any]:
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
