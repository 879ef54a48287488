"""JaxLoader: what `Dataset.to_jax` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from penstock.adaptors.feed import Ahead, Direct, Elements, Feed
from penstock.adaptors.jax.arrays import Arrays
from penstock.adaptors.loader import Loader, Passes
from penstock.plan.node import check_int


class JaxLoader(Loader):
    """Elements of a data set as nests of JAX arrays, put on their devices ahead of the step.

    On the CPU alone there is nothing to travel, and arrays are made when they are asked for.
    """

    def __init__(
        self,
        dataset: Passes,
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
            return Direct(elements, self._made)
        settings = self._settings()

        def made(element: Any) -> Any:
            with settings():
                return self._made(element)

        return Ahead(elements, made, self._depth)

    def _settings(self) -> Callable[[], AbstractContextManager[Any]]:
        """What `with` has set for the thread that iterates, `jax.default_device` say, for the one that runs ahead."""
        jax = self._jax
        wide, device = jax.config.jax_enable_x64, jax.config.jax_default_device
        holder = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")  # of earlier versions
        enable = holder.enable_x64

        @contextmanager
        def set_here() -> Iterator[None]:
            with enable(wide), jax.default_device(device):
                yield

        return set_here

    def _made(self, element: Any) -> Any:
        return self._arrays.nest(self._arrays.leaves(element))
