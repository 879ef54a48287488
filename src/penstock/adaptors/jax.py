"""JAX: batches as its arrays, on one device or sharded over a mesh.

The module contains JaxLoader, which `Dataset.to_jax` returns, and the agreement of processes on several hosts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from penstock.adaptors.conversion import Conversion, called, check_there, checked_names
from penstock.adaptors.feed import AheadFeed, DirectFeed, Elements, Feed
from penstock.adaptors.loader import Loader, Reiterable, check_alike
from penstock.block.structure import Structure
from penstock.errors import InvalidArgumentError, InvalidTypeError, optional_package
from penstock.plan.node import check_int

_WIDE = {"int64": np.iinfo(np.int32), "uint64": np.iinfo(np.uint32)}


class Arrays(Conversion):
    """Converts the leaves of an element to JAX arrays, with an optional sharding.

    On the CPU, JAX uses the memory of a numpy array if it is aligned to 64 bytes, even if JAX is asked to copy. This is
    safe: no other object uses the memory of the batch by then, and it is reused only after JAX has released it.
    """

    value = "array of JAX"

    def __init__(self, jax: Any, sharding: Any, as_numpy: Any, spec: Any) -> None:
        self._jax = jax
        self._common, self._shardings = _shardings(jax, sharding)
        super().__init__(as_numpy, spec)

    def _learn(self, structure: Structure) -> None:
        super()._learn(structure)
        check_there("sharding", self._shardings, self.names)

    def holds(self, dtype: np.dtype) -> bool:
        if dtype.kind in "biufc":
            return dtype.itemsize <= (16 if dtype.kind == "c" else 8)
        return dtype.kind == "V" and (dtype.name == "bfloat16" or dtype.name.startswith("float8"))

    def convert(self, array: np.ndarray, number: int) -> Any:
        narrow = _WIDE.get(array.dtype.name)
        if narrow is not None and not self._jax.config.jax_enable_x64:
            _check_fits(self.names[number], array, narrow)
        sharding = self._shardings.get(self.names[number], self._common)
        if sharding is None:
            return self._jax.device_put(array)
        try:
            return self._jax.make_array_from_process_local_data(sharding, array)
        except (ValueError, IndexError) as error:
            message = f"{called(self.names[number])}, of shape {array.shape}, cannot be laid out as {sharding}: {error}"
            hint = (
                "Each sharded dimension is a multiple of the devices along it: batch with drop_remainder=True. "
                'Give columns of other rank their own sharding: sharding={"image": ..., "step": ...}.'
            )
            raise InvalidArgumentError(message, hint=hint) from error


def _check_fits(name: str, array: np.ndarray, narrow: Any) -> None:
    """Raise InvalidArgumentError for integers beyond 32 bits, which JAX truncates by default."""
    if array.size and not (narrow.min <= array.min() and array.max() <= narrow.max):
        message = f"{called(name)} holds {array.dtype} numbers beyond 32 bits, which JAX would cut off."
        hint = 'Allow 64 bits with jax.config.update("jax_enable_x64", True), or split or hash them with map().'
        raise InvalidArgumentError(message, hint=hint)


def _shardings(jax: Any, sharding: Any) -> tuple[Any, dict[str, Any]]:
    """Return the sharding of all columns, and the shardings of single columns."""
    several = sharding if isinstance(sharding, Mapping) else {}
    checked_names("sharding", list(several))
    for one in several.values() if several else [sharding]:
        if one is not None and not isinstance(one, (jax.sharding.Sharding, jax.Device)):
            message = f"sharding must be a jax.sharding.Sharding or a device, got {one!r}."
            hint = 'Such as NamedSharding(mesh, PartitionSpec("data")), or a dict from column to sharding.'
            raise InvalidTypeError(message, hint=hint)
    single = jax.sharding.SingleDeviceSharding
    plain = {name: single(one) if isinstance(one, jax.Device) else one for name, one in several.items()}
    return (None if several else single(sharding) if isinstance(sharding, jax.Device) else sharding), plain


class JaxLoader(Loader):
    """Elements of a data set as nests of JAX arrays. They are put on their devices ahead of the step.

    On the CPU no transfer is needed, so arrays are made on demand.
    """

    def __init__(
        self,
        dataset: Reiterable,
        jax: Any,
        arrays: Arrays,
        *,
        prefetch: int,
        agreed: Callable[[int], None] | None = None,
    ) -> None:
        self._jax, self._arrays = jax, arrays
        self._depth = check_int("prefetch", prefetch, least=1, hint="Batches that are put on the device ahead.")
        super().__init__(dataset, self._fed, agreed)

    def _fed(self, elements: Elements) -> Feed:
        if self._jax.default_backend() == "cpu":
            return DirectFeed(elements, self._made)
        settings = self._settings()

        def made(element: Any) -> Any:
            with settings():
                return self._made(element)

        return AheadFeed(elements, made, self._depth)

    def _settings(self) -> Callable[[], AbstractContextManager[Any]]:
        """Return a context manager for the thread ahead, with the settings of this thread such as `default_device`."""
        jax = self._jax
        wide, device = jax.config.jax_enable_x64, jax.config.jax_default_device
        holder = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")  # for earlier versions
        enable = holder.enable_x64

        @contextmanager
        def set_here() -> Iterator[None]:
            with enable(wide), jax.default_device(device):
                yield

        return set_here

    def _made(self, element: Any) -> Any:
        return self._arrays.nest(self._arrays.leaves(element))


def own_part(jax: Any) -> tuple[int, int]:
    """Return the number of processes and the index of this process."""
    return jax.process_count(), jax.process_index()


def agree(mine: dict[str, Any]) -> None:
    """Raise FailedPreconditionError in every process unless all have the same identity. It waits for all of them."""
    gather = optional_package("jax.experimental.multihost_utils", "to_jax", "jax").process_allgather
    text = np.frombuffer(json.dumps(mine).encode(), np.uint8)
    lengths = np.ravel(gather(np.array([text.size], np.int32)))
    padded = np.zeros(int(lengths.max()), np.uint8)
    padded[: text.size] = text
    rows = np.asarray(gather(padded)).reshape(len(lengths), -1)
    check_alike([json.loads(row[:size].tobytes()) for row, size in zip(rows, lengths, strict=True)])
