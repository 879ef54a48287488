"""A data set as torch's IterableDataset, for torch's own DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from penstock.adaptors.framework import framework
from penstock.block.structure import map_leaves
from penstock.plan.node import check_int


@cache
def iterable_type() -> type:
    """The class, derived from torch's.

    Raises:
        MissingDependencyError: torch is not installed.
    """
    data = framework("torch.utils.data", "as_iterable_dataset", "torch")

    class IterablePasses(data.IterableDataset):  # type: ignore[misc, name-defined]
        """Elements of a data set. Of n workers of torch's DataLoader each gives every n-th: together, each once.

        Each `iter` is a pass of an epoch of its own: that of `set_epoch`, or those from 0 on. Workers cannot tell how
        many passes there were; without `set_epoch` theirs is made of the seed that torch draws for each pass.
        """

        def __init__(self, dataset: Any) -> None:
            self.dataset = dataset
            self._epoch: int | None = None
            self._passes = 0  # of this copy

        def set_epoch(self, epoch: int) -> None:
            self._epoch = check_int("epoch", epoch, least=0, hint="Passes are counted from 0.")

        def __len__(self) -> int:
            return len(self.dataset)

        def __iter__(self) -> Iterator[Any]:
            info = data.get_worker_info()
            dataset = self.dataset if info is None else self.dataset.shard(info.num_workers, info.id)
            drawn = 0 if info is None else (info.seed - info.id) % 2**31
            epoch = drawn + self._passes if self._epoch is None else self._epoch
            self._passes += 1
            with dataset.iterator(epoch=epoch) as elements:
                for element in elements:
                    yield map_leaves(_own, element)

    return IterablePasses


def _own(value: Any) -> Any:
    """torch warns of arrays that cannot be written to."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value
