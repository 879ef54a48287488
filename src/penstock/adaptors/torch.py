"""torch: batches as its tensors.

`TorchLoader` is the type of the result of `Dataset.to_torch`. The module also copies batches to a CUDA device during
the step, offers a data set as torch's IterableDataset, and reads the ranks of torch.distributed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from penstock.adaptors.conversion import Conversion, check_there, checked_names
from penstock.adaptors.feed import AheadFeed, DirectFeed, Elements, Feed
from penstock.adaptors.loader import Loader, Reiterable, check_alike
from penstock.block.spec import RaggedTensorSpec, TensorSpec
from penstock.block.structure import Structure, map_leaves
from penstock.block.tensors import RaggedTensor
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError, optional_package
from penstock.plan.node import check_int


@cache
def iterable_type() -> type:
    """Return the class, which is derived from a class of torch.

    Raises:
        MissingDependencyError: If torch is not installed.
    """
    data = optional_package("torch.utils.data", "as_iterable_dataset", "torch")

    class IterablePasses(data.IterableDataset):  # type: ignore[misc, name-defined]
        """Elements of a data set. Each of n workers of torch's DataLoader yields every n-th element.

        Each `iter` is an epoch: that of `set_epoch`, or the next one from 0 on. Workers do not know the number of past
        epochs. Without `set_epoch`, they derive the epoch from the seed that torch chooses for each iteration.
        """

        def __init__(self, dataset: Any) -> None:
            self.dataset = dataset
            self._passes = 0  # number of iterations of this copy

        def set_epoch(self, epoch: int) -> None:
            self.dataset.set_epoch(epoch)

        def __len__(self) -> int:
            return len(self.dataset)

        def __iter__(self) -> Iterator[Any]:
            info = data.get_worker_info()
            dataset = self.dataset if info is None else self.dataset.shard(info.num_workers, info.id)
            drawn = 0 if info is None else (info.seed - info.id) % 2**31
            named = self.dataset._named_epoch()
            epoch = drawn + self._passes if named is None else named
            self._passes += 1
            with dataset.iterator(epoch=epoch) as elements:
                for element in elements:
                    yield map_leaves(_own, element)

    return IterablePasses


def _own(value: Any) -> Any:
    """Copy a read-only array, because torch warns about it."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value


def world(torch: Any) -> tuple[int, int]:
    """Return the size of the process group and the rank in it, or (1, 0) without torch.distributed."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size(), distributed.get_rank()
    return 1, 0


def own_part(torch: Any) -> tuple[int, int]:
    """Return `world()`.

    Raises FailedPreconditionError if WORLD_SIZE announces several ranks but there is no group yet.
    """
    found = world(torch)
    announced = os.environ.get("WORLD_SIZE", "1")
    if found == (1, 0) and announced not in ("", "1") and not torch.distributed.is_initialized():
        message = f'shard="rank" found no process group, though WORLD_SIZE={announced} says there are several ranks.'
        hint = "Call torch.distributed.init_process_group() before, or give shard=(count, index)."
        raise FailedPreconditionError(message, hint=hint)
    return found


def agree(torch: Any, mine: dict[str, Any]) -> None:
    """Raise FailedPreconditionError on every rank unless all have the same identity. It waits for all of them."""
    everyone: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, mine)
    check_alike(everyone)


# dtypes of ml_dtypes, as integers with the same bits
_AS_BITS = {"bfloat16": np.int16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}
_NAMES = {"bool", "complex64", "complex128", "float16", "float32", "float64", *_AS_BITS}
_NAMES |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


class Tensors(Conversion):
    """Converts the leaves of an element to tensors on the CPU. `cast` converts them to the requested dtype."""

    value = "tensor of torch"

    def __init__(self, torch: Any, dtype: Any, as_numpy: Any, spec: Any, ragged: Any = None) -> None:
        self._torch, self._from_numpy = torch, torch.from_numpy
        self._floats, self._dtypes = _dtypes(torch, dtype)
        if ragged not in (None, "list"):
            message = f'ragged must be None or "list", got {ragged!r}.'
            raise InvalidArgumentError(message, hint='"list" makes a list of tensors of each ragged column.')
        self._ragged = ragged
        if ragged and spec is not None:
            spec = map_leaves(_flat_spec, spec)
        super().__init__(as_numpy, spec)

    def _learn(self, structure: Structure) -> None:
        super()._learn(structure)
        check_there("dtype", self._dtypes, self.names)

    def _converted(self, value: Any, number: int) -> Any:
        if self._ragged and isinstance(value, RaggedTensor):
            return [self._converted(value[row], number) for row in range(len(value))]
        return super()._converted(value, number)

    def holds(self, dtype: np.dtype) -> bool:
        return dtype.name in _NAMES and dtype.isnative

    def convert(self, array: np.ndarray, number: int) -> Any:
        if not array.flags.c_contiguous and min(array.strides) < 0:
            array = array.copy()
        if array.dtype.kind == "V":
            name = array.dtype.name
            return self._from_numpy(array.view(_AS_BITS[name])).view(getattr(self._torch, name))
        return self._from_numpy(array)

    @property
    def casts(self) -> bool:
        return bool(self._dtypes) or self._floats is not None

    def cast(self, tensor: Any, number: int) -> Any:
        """Return the tensor in the requested dtype. It may be on its device by now, where the cast is faster."""
        wanted = self._dtypes.get(self.names[number]) if self._dtypes else None
        if wanted is None and self._floats is not None and tensor.is_floating_point():
            wanted = self._floats
        return tensor if wanted is None else tensor.to(wanted)


def _flat_spec(spec: Any) -> Any:
    return TensorSpec(None, spec.dtype) if isinstance(spec, RaggedTensorSpec) else spec


def _dtypes(torch: Any, dtype: Any) -> tuple[Any, dict[str, Any]]:
    """Return the dtype of all floating-point columns, and the dtypes of single columns."""
    if isinstance(dtype, Mapping):
        checked_names("dtype", list(dtype))
        return None, {name: _dtype(torch, wanted) for name, wanted in dtype.items()}
    if dtype is None:
        return None, {}
    found = _dtype(torch, dtype)
    if not found.is_floating_point:
        message = f"dtype={dtype!r} is for all floating-point columns, and no dtype of floating-point numbers."
        raise InvalidArgumentError(message, hint='For a single column write dtype={"label": torch.int32}.')
    return found, {}


def _dtype(torch: Any, dtype: Any) -> Any:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if isinstance(found, torch.dtype):
        return found
    message = f"dtype must be a dtype of torch, got {dtype!r}."
    raise InvalidTypeError(message, hint='Such as torch.bfloat16, "bfloat16", or {"image": torch.float16}.')


class Copied(NamedTuple):
    """An element that is being copied to the device, and the event of its arrival."""

    leaves: list[Any]
    arrived: Any


class CudaCopies:
    """Copies the tensors of an element to `device` while the device computes.

    A thread that runs ahead calls `start`. It takes pinned memory from torch's allocator, which reuses a buffer only
    after the copy from it, and starts the copy on the side stream. The thread of the step calls `finish`. It makes the
    stream of the step wait for the copy, while the thread itself does not wait. It also tells the allocator of the
    device that this stream uses the memory, so that the memory is not reused before the step is done.
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
        if isinstance(leaf, list):
            return [self._copy(part, number) for part in leaf]
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
    parts = (_tensors_of(torch, leaf) if isinstance(leaf, list) else [leaf] for leaf in leaves)
    return [leaf for part in parts for leaf in part if isinstance(leaf, torch.Tensor)]


class TorchLoader(Loader):
    """Elements of a data set as nests of torch tensors, on the CPU or on a device.

    A training loop iterates over it once per epoch: your own loop, Lightning, Accelerate or the Trainer of Hugging
    Face. On the CPU, tensors use the memory of the batch. Only read-only memory is copied.
    """

    def __init__(
        self,
        dataset: Reiterable,
        torch: Any,
        tensors: Tensors,
        *,
        device: Any,
        pin_memory: Any,
        prefetch: int,
        agreed: Callable[[int], None] | None = None,
    ) -> None:
        self._torch, self._tensors = torch, tensors
        self._device = None if device is None else _device(torch, device)
        self._pin = _pins(torch, self._device, pin_memory)
        self._depth = check_int("prefetch", prefetch, least=1, hint="Batches that are copied ahead of the step.")
        super().__init__(dataset, self._fed, agreed)

    def __getattr__(self, name: str) -> Any:
        """Raise a helpful error for `skip_first_batches` of Accelerate, which the Trainer of Hugging Face calls."""
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ("sampler", "batch_sampler"):
            message += (
                ": nothing has to be read to skip batches. load_state_dict() continues after the delivered ones. "
                "Tell a Trainer of Hugging Face with TrainingArguments(ignore_data_skip=True)"
            )
        raise AttributeError(message)

    def _fed(self, elements: Elements) -> Feed:
        if self._device is not None and self._device.type == "cuda":
            # "cuda" is the current device of the iterating thread; the thread that copies ahead has another one
            number = self._torch.cuda.current_device() if self._device.index is None else self._device.index
            device = self._torch.device("cuda", number)
            copies = CudaCopies(self._torch, self._tensors, device, pin=self._pin)
            return AheadFeed(elements, copies.start, self._depth, copies.finish)
        return DirectFeed(elements, self._made)

    def _made(self, element: Any) -> Any:
        tensors = self._tensors
        leaves = tensors.leaves(element)
        if self._device is not None or self._pin or tensors.casts:
            leaves = [self._moved(leaf, number) for number, leaf in enumerate(leaves)]
        return tensors.nest(leaves)

    def _moved(self, leaf: Any, number: int) -> Any:
        if isinstance(leaf, list):
            return [self._moved(part, number) for part in leaf]
        if not isinstance(leaf, self._torch.Tensor):
            return leaf
        moved = leaf.pin_memory() if self._pin else leaf if self._device is None else leaf.to(self._device)
        return self._tensors.cast(moved, number)


def _device(torch: Any, device: Any) -> Any:
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        message = f"device must be a device of torch, got {device!r}."
        raise InvalidTypeError(message, hint='Such as "cpu", "cuda", "cuda:1" or torch.device("cuda").') from error
    if found.type == "cuda" and not torch.cuda.is_available():
        message = f"device={str(found)!r} was asked for, and torch finds no CUDA device here."
        hint = 'Write device="cuda" if torch.cuda.is_available() else "cpu", or install a build of torch with CUDA.'
        raise FailedPreconditionError(message, hint=hint)
    if found.type == "cuda" and found.index is not None and found.index >= torch.cuda.device_count():
        message = (
            f"device={str(found)!r} was asked for, and torch finds {torch.cuda.device_count()} CUDA device(s) here."
        )
        raise FailedPreconditionError(message, hint='They are counted from 0: "cuda:0"; "cuda" is the current one.')
    return found


def _pins(torch: Any, device: Any, pin_memory: Any) -> bool:
    if pin_memory not in (True, False, "auto"):
        message = f'pin_memory must be True, False or "auto", got {pin_memory!r}.'
        raise InvalidArgumentError(message, hint='"auto" pins what is copied to a CUDA device.')
    if pin_memory == "auto":
        return device is not None and device.type == "cuda"
    if pin_memory and not torch.cuda.is_available():
        message = "pin_memory=True was asked for, and torch finds no accelerator here that memory could be pinned for."
        raise FailedPreconditionError(message, hint='pin_memory="auto" pins where there is one.')
    return bool(pin_memory)
