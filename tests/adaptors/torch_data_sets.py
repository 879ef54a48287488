"""Data sets for the tests of DataLoader, in a module that worker processes can import."""

import collections
import os
import random
import signal

import numpy as np
import torch
from torch.utils import data

Point = collections.namedtuple("Point", "x y")


class Rows(data.Dataset):
    """`size` rows of a kind, told by its name."""

    def __init__(self, kind, size):
        self.kind, self.size = kind, size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        if i >= self.size:
            raise IndexError(i)
        return {
            "tensors": lambda: torch.full((2, 3), float(i)),
            "tuples": lambda: (torch.tensor(i, dtype=torch.int16), np.float32(i), i, i / 2),
            "dicts": lambda: {"x": np.full(3, i, np.uint8), "name": f"row {i}", "point": Point(i, -i)},
            "nests": lambda: [(i, {"deep": torch.tensor([i], dtype=torch.bfloat16)}), str(i)],
            "objects": lambda: {i, "set"},
            "gradients": lambda: torch.tensor([float(i)]),
        }[self.kind]()


class Many(Rows):
    """One that is asked for several at once."""

    def __getitems__(self, indices):
        return [(i, -1) for i in indices]


class Drawing(data.Dataset):
    """Rows of random numbers from every global generator, and who was asked."""

    def __len__(self):
        return 9

    def __getitem__(self, i):
        info = data.get_worker_info()
        return (
            i,
            random.random(),
            np.random.random(),
            torch.rand(()),
            info is not None and 0 <= info.id < info.num_workers,
        )


class Failing(Rows):
    def __getitem__(self, i):
        if i == 3:
            raise ValueError("row 3 is bad")
        return i


class Deadly(Rows):
    """Row 3 ends the process that asks for it."""

    def __getitem__(self, i):
        if i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Large(data.Dataset):
    """Rows of 40 KB and more, which grow, with a small and a large tensor beside."""

    def __len__(self):
        return 14

    def __getitem__(self, i):
        size = 10_000 * (1 + i // 6)
        return torch.full((size,), i / 7), {"mask": np.full((size, 2), i, np.uint8), "row": i}


def kept(samples, _all=[]):  # noqa: B006 - as collate functions do that keep a batch
    _all.append(data.default_collate(samples))
    return _all[-1]


def loaded_by(kind):
    return [batch.tolist() for batch in kind(range(3), 2, num_workers=1)]


class Stopping(Rows):
    def __getitem__(self, i):
        if i == 3:
            raise StopIteration
        return i


class Stream(data.IterableDataset):
    """Numbers, of which each worker gives its own."""

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(10)) if info is None else iter(range(info.id, 10, info.num_workers))


def as_list(samples):
    return list(samples)


def negative(samples):
    return -torch.tensor(samples)


def parameters(samples):
    return torch.nn.Parameter(torch.stack(samples))


class Counting(data.Dataset):
    """Tells what `worker_init_fn` made of this copy, and how often the copy was asked."""

    made_by = -1
    asked = 0
    epoch = 0

    def __len__(self):
        return 4

    def __getitem__(self, i):
        self.asked += 1
        return self.made_by, self.asked, self.epoch


def initialise(number):
    info = data.get_worker_info()
    assert info.id == number
    info.dataset.made_by += 1 + number
