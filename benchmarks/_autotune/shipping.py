"""Pipelines that move arrays from worker processes, or to them and back, in several libraries; two workers each.

Each function returns a function that iterates over `count` arrays of `size` bytes, and counts them.
"""

from __future__ import annotations

import itertools
from typing import Any

from _common.duel import Pass

WORKERS = 2


class Arrays:
    """Callable and sequence of arrays of one size, by number. Workers call it."""

    def __init__(self, size: int, count: int) -> None:
        self._size, self._count = size, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        return self(number)

    def __call__(self, number: Any) -> Any:
        import numpy as np

        return np.full(self._size, int(number) % 256, np.uint8)


def same(array: Any) -> Any:
    """Return the received array. Runs in a worker."""
    assert array.flags.c_contiguous
    return array


def counted(arrays: Any) -> int:
    """Return the number of arrays after reading a byte of each page."""
    return sum(int(array[::4096].max()) >= 0 for array in arrays)


def penstock_back(size: int, count: int) -> Pass:
    import penstock as ps

    ds = ps.Dataset.range(count).map(Arrays(size, count), num_parallel_calls=WORKERS, executor="process")
    return lambda: counted(ds)


def penstock_both_ways(size: int, count: int) -> Pass:
    import penstock as ps

    ds = ps.Dataset.from_tensors(Arrays(size, count)(1)).repeat(count)
    ds = ds.map(same, num_parallel_calls=WORKERS, executor="process")
    return lambda: counted(ds)


def pool_back(size: int, count: int) -> Pass:
    import multiprocessing

    pool = multiprocessing.Pool(WORKERS)
    return lambda: counted(pool.imap(Arrays(size, count), range(count)))


def pool_both_ways(size: int, count: int) -> Pass:
    import multiprocessing

    pool = multiprocessing.Pool(WORKERS)
    array = Arrays(size, count)(1)
    return lambda: counted(pool.imap(same, itertools.repeat(array, count)))


def torch_back(size: int, count: int) -> Pass:
    from torch.utils.data import DataLoader

    loader = DataLoader(Arrays(size, count), batch_size=None, num_workers=WORKERS, persistent_workers=True)
    return lambda: counted(loader)


def grain_back(size: int, count: int) -> Pass:
    import grain.python as pygrain

    ds = pygrain.MapDataset.range(count).map(Arrays(size, count)).to_iter_dataset()
    ds = ds.mp_prefetch(pygrain.MultiprocessingOptions(num_workers=WORKERS))
    return lambda: counted(ds)
