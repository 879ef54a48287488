"""A batch of any kind as two values that a Block carries: what it is made of, and the memory of its tensors."""

from __future__ import annotations

import io
import pickle
from importlib import import_module
from typing import Any

import cloudpickle
import numpy as np

from penstock.block.transport import by_reference_fails
from penstock.runtime.processes.link import aligned, place_in
from penstock.runtime.processes.worker import Room


def pack(batch: Any, room: Room | None = None, first: int = 0) -> tuple[bytes, np.ndarray]:
    """Pickled, with the memory of dense CPU tensors and of arrays apart, in one buffer.

    That is the room's, from byte `first` on, where there is as much: what was made there is not copied.

    >>> header, memory = pack({"x": np.arange(3), "name": ["a"]})
    >>> unpack(header, memory)
    {'x': array([0, 1, 2]), 'name': ['a']}
    """
    content, buffers = _pickled(batch)
    views = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    starts, memory = _in_room(views, room, first) or _together(views)
    places = np.array([(start, view.nbytes) for start, view in zip(starts, views, strict=True)], np.int64)
    return len(views).to_bytes(8, "little") + places.tobytes() + content, memory


def _pickled(batch: Any) -> tuple[bytes, list[Any]]:
    """By reference, which is several times quicker, where the loop can look up all that is referred to."""
    for kind in (_Plain, _ByValue):
        buffers: list[Any] = []
        stream = io.BytesIO()
        try:
            kind(stream, protocol=5, buffer_callback=buffers.append).dump(batch)
        except Exception:
            if kind is _ByValue:
                raise
            continue
        content = stream.getvalue()
        if kind is _ByValue or not by_reference_fails(content):
            break
    return content, buffers


def _together(views: list[np.ndarray]) -> tuple[list[int], np.ndarray]:
    """All in memory of their own, and where each begins."""
    starts, size = [], 0
    for view in views:
        starts.append(size)
        size += aligned(view.nbytes)
    memory = np.empty(size, np.uint8)
    for start, view in zip(starts, views, strict=True):
        memory[start : start + view.nbytes] = view
    return starts, memory


def _in_room(views: list[np.ndarray], room: Room | None, first: int) -> tuple[list[int], np.ndarray] | None:
    """The same in the room from `first` on; None where it has too little."""
    if room is None:
        return None
    first = aligned(first)
    places = [-1 if room.memory is None else place_in(room.memory, view) for view in views]
    others = [number for number, place in enumerate(places) if place < first]  # made elsewhere
    if others:
        behind = room.empty(sum(aligned(views[number].nbytes) for number in others))
        if behind is None:
            return None
        at = 0
        for number in others:
            size = views[number].nbytes
            behind[at : at + size] = views[number]
            places[number] = room.used - behind.nbytes + at
            at += aligned(size)
    found = np.empty(0, np.uint8) if room.memory is None else room.memory[first : max(room.used, first)]
    return [place - first for place in places], found


def unpack(header: bytes, memory: np.ndarray) -> Any:
    """The batch again, its tensors and arrays over `memory`, which is to be nobody else's."""
    count = int.from_bytes(header[:8], "little")
    places = np.frombuffer(header, np.int64, 2 * count, 8).reshape(count, 2).tolist()
    if not memory.flags.writeable:
        memory = memory.copy()
    buffers = [memory[start : start + size] for start, size in places]
    return pickle.loads(header[8 + 16 * count :], buffers=buffers)


class _Plain(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        return _as_buffer(obj, NotImplemented)


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        found = _as_buffer(obj, None)
        return super().reducer_override(obj) if found is None else found


def _as_buffer(obj: Any, otherwise: Any) -> Any:
    if type(obj).__name__ == "Tensor" and type(obj).__module__ == "torch":
        return _reduced(obj) or otherwise
    return otherwise


def _reduced(tensor: Any) -> Any:
    """How a plain tensor is made again; None for those that torch pickles itself (gradients, devices, sparse)."""
    torch = import_module("torch")

    plain = tensor.device.type == "cpu" and tensor.layout == torch.strided
    if not plain or tensor.requires_grad or tensor.is_quantized:
        return None
    tensor = tensor.resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return _bfloat16, (tensor.view(torch.int16).numpy(),)
    try:
        return torch.from_numpy, (tensor.numpy(),)
    except TypeError:
        return None


def _bfloat16(bits: np.ndarray) -> Any:
    torch = import_module("torch")

    return torch.from_numpy(bits).view(torch.bfloat16)
