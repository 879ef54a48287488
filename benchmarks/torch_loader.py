"""Measure the gain of `from penstock.torch import DataLoader` over torch's DataLoader.

    python benchmarks/torch_loader.py

Two map-style data sets, batches of 32, 2 workers, shuffled, several epochs:

    - "python": a transform in pure Python, which holds the interpreter lock;
    - "array": a crop, a flip and a conversion of a 256 x 256 image by numpy.

The columns are the rows per second of all epochs except the first (median of the rounds, and their spread), and the
seconds to the first batch, in the first epoch and in a later one. Both loaders get the same data set object and take
turns. Workers are not persistent, which is torch's default: on Linux with Python below 3.14 both loaders fork them for
each epoch.
"""

import statistics
import time
from importlib.util import find_spec

EPOCHS, ROUNDS, SIZE, BATCH = 4, 3, 1024, 32


def data_sets():
    import numpy as np
    import torch

    class PurePython(torch.utils.data.Dataset):
        def __len__(self):
            return SIZE

        def __getitem__(self, i):
            return sum(j * i % 7 for j in range(20_000)), i

    class Array(torch.utils.data.Dataset):
        def __len__(self):
            return SIZE

        def __getitem__(self, i):
            rng = np.random.default_rng(i)
            image = rng.integers(0, 256, (256, 256, 3), np.uint8)
            top, left = rng.integers(0, 32, 2)
            image = image[top : top + 224, left : left + 224][:, :: 1 if i % 2 else -1]
            return torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32) / 255), i

    return {"python": PurePython(), "array": Array()}


def epochs(loader):
    """Return the seconds to the first batch, and the rows per second, of each epoch."""
    found = []
    for _ in range(EPOCHS):
        started = time.perf_counter()
        batches = iter(loader)
        next(batches)
        first = time.perf_counter() - started
        count = 1 + sum(1 for _ in batches)
        found.append((first, count * BATCH / (time.perf_counter() - started)))
    return found


def main():
    if find_spec("torch") is None:
        print("torch is not installed: nothing to compare")
        return
    from torch.utils import data

    from penstock.torch import DataLoader

    kinds = {"torch": data.DataLoader, "penstock": DataLoader}
    print(f"{'data set':<10}{'loader':<10}{'rows/s':>9}  {'spread':<16}{'first batch':>12}{'later':>9}")
    for name, dataset in data_sets().items():
        rounds = {kind: [] for kind in kinds}
        for _ in range(ROUNDS):
            for kind, make in kinds.items():
                rounds[kind].append(epochs(make(dataset, BATCH, shuffle=True, num_workers=2)))
        for kind, found in rounds.items():
            rates = [rate for one in found for _, rate in one[1:]]
            later = statistics.median(first for one in found for first, _ in one[1:])
            spread = f"{min(rates):.0f} to {max(rates):.0f}"
            rate = statistics.median(rates)
            print(f"{name:<10}{kind:<10}{rate:>9.0f}  {spread:<16}{found[0][0][0]:>11.2f}s{later:>8.2f}s")


if __name__ == "__main__":
    main()
