"""TorchLoader: what `Dataset.to_torch` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.adaptors.feed import Ahead, Direct, Elements, Feed
from penstock.adaptors.loader import Loader, Passes
from penstock.adaptors.torch.cuda import CudaCopies
from penstock.adaptors.torch.tensors import Tensors
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.plan.node import check_int


class TorchLoader(Loader):
    """Elements of a data set as nests of torch tensors, on the CPU or on a device.

    It is iterated over, once for each epoch, by a loop of your own, Lightning, Accelerate or the Trainer of Hugging
    Face. On the CPU tensors lie over the memory of the batch; nothing is copied that is the tensor's alone.
    """

    def __init__(
        self,
        dataset: Passes,
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
        """For `skip_first_batches` of Accelerate, which the Trainer of Hugging Face calls when it resumes."""
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ("sampler", "batch_sampler"):
            message += (
                ": nothing has to be read to skip batches. load_state_dict() goes on behind those that were given; "
                "tell a Trainer of Hugging Face so with TrainingArguments(ignore_data_skip=True)"
            )
        raise AttributeError(message)

    def _fed(self, elements: Elements) -> Feed:
        if self._device is not None and self._device.type == "cuda":
            # "cuda" is the current device of the thread that iterates; the one that copies ahead has another
            number = self._torch.cuda.current_device() if self._device.index is None else self._device.index
            device = self._torch.device("cuda", number)
            copies = CudaCopies(self._torch, self._tensors, device, pin=self._pin)
            return Ahead(elements, copies.start, self._depth, copies.finish)
        return Direct(elements, self._made)

    def _made(self, element: Any) -> Any:
        tensors, device = self._tensors, self._device
        leaves = tensors.leaves(element)
        if device is not None or self._pin or tensors.casts:
            for number, leaf in enumerate(leaves):
                if isinstance(leaf, self._torch.Tensor):
                    moved = leaf.pin_memory() if self._pin else leaf if device is None else leaf.to(device)
                    leaves[number] = tensors.cast(moved, number)
        return tensors.nest(leaves)


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
