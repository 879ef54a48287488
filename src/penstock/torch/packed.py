"""A batch of any type as two values that a Block carries: a pickled header and the memory of its tensors."""

from __future__ import annotations

import io
import pickle
from importlib import import_module
from typing import Any

import cloudpickle
import numpy as np

from penstock.block.transport import by_reference_fails
from penstock.runtime.processes.link import aligned, place_in
from penstock.runtime.processes.worker import ResultRoom


def pack(batch: Any, room: ResultRoom | None = None, first: int = 0) -> tuple[bytes, np.ndarray]:
    """Pickle a batch, with the memory of dense CPU tensors and arrays in one separate buffer.

    The buffer is that of `room`, from byte `first` on, if it is large enough. Tensors that already lie in the room are
    not copied.

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
    """Pickle by reference, which is several times faster, if the loop can import all referenced names.

    Pickle by value otherwise.
    """
    for kind in (_Plain, _ByValue):
        buffers: list[Any] = []
        stream = io.BytesIO()
        try:
            pickler = kind(stream, protocol=5, buffer_callback=buffers.append)
            pickler.storages = {}
            pickler.dump(batch)
        except Exception:
            if kind is _ByValue:
                raise
            continue
        content = stream.getvalue()
        if kind is _ByValue or not by_reference_fails(content):
            break
    return content, buffers


def _together(views: list[np.ndarray]) -> tuple[list[int], np.ndarray]:
    """Return copies of all views in new memory, and the start of each copy."""
    starts, size = [], 0
    for view in views:
        starts.append(size)
        size += aligned(view.nbytes)
    memory = np.empty(size, np.uint8)
    for start, view in zip(starts, views, strict=True):
        memory[start : start + view.nbytes] = view
    return starts, memory


def _in_room(views: list[np.ndarray], room: ResultRoom | None, first: int) -> tuple[list[int], np.ndarray] | None:
    """Return the starts of the views and the memory of `room` from `first` on, or None if the room is too small."""
    if room is None:
        return None
    first = aligned(first)
    places = [-1 if room.memory is None else place_in(room.memory, view) for view in views]
    others = [number for number, place in enumerate(places) if place < first]  # views that lie elsewhere
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
    """Return the batch, with tensors and arrays over `memory`. No other object may use `memory`."""
    count = int.from_bytes(header[:8], "little")
    places = np.frombuffer(header, np.int64, 2 * count, 8).reshape(count, 2).tolist()
    if not memory.flags.writeable:
        memory = memory.copy()
    buffers = [memory[start : start + size] for start, size in places]
    return pickle.loads(header[8 + 16 * count :], buffers=buffers)


class _Plain(pickle.Pickler):
    storages: dict[int, np.ndarray]

    def reducer_override(self, obj: Any) -> Any:
        return _as_buffer(obj, self.storages) or NotImplemented


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]
    storages: dict[int, np.ndarray]

    def reducer_override(self, obj: Any) -> Any:
        return _as_buffer(obj, self.storages) or super().reducer_override(obj)


def _as_buffer(obj: Any, storages: dict[int, np.ndarray]) -> Any:
    if type(obj).__name__ == "Tensor" and type(obj).__module__ == "torch":
        return _reduced(obj, storages)
    return None


def _reduced(tensor: Any, storages: dict[int, np.ndarray]) -> Any:
    """Return the memory and strides of a plain tensor, or None for a tensor that torch pickles itself.

    torch pickles tensors with gradients, on a device, and sparse, nested or quantised ones. `storages` holds the memory
    of the previous tensors by address, so that views of one tensor share memory after unpickling, too.
    """
    torch = import_module("torch")
    plain = tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_nested
    if not plain or tensor.requires_grad or tensor.is_quantized:
        return None
    tensor = tensor.resolve_conj().resolve_neg()
    memory = storages.get(tensor.untyped_storage().data_ptr())
    if memory is None:
        if tensor.untyped_storage().nbytes() > _SLACK * tensor.numel() * tensor.element_size():
            tensor = tensor.clone()  # the tensor is a small part of a large storage; clone keeps the strides
        storage = tensor.untyped_storage()
        memory = storages[storage.data_ptr()] = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
    return _tensor, (memory, tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride())


_SLACK = 2  # bytes sent at most per byte of a tensor


def _tensor(memory: np.ndarray, dtype: Any, first: int, shape: Any, strides: tuple[int, ...]) -> Any:
    torch = import_module("torch")
    return torch.empty(0, dtype=dtype).set_(torch.from_numpy(memory).untyped_storage(), first, shape, strides)
