"""Compare windows of tokens from a memory map with a data set of torch in its DataLoader without workers.

    ps.TokenDataset(file, np.uint16, 1024, step=1, shift=True).shuffle(ps.ALL).batch(32)
    ps.Dataset.range(COUNT).shuffle(ps.ALL).map(lambda i: (tokens[i : i + 1024], tokens[i + 1 : i + 1025])).batch(32)

All sides return batches of 32 pairs (x, y) as int64. torch's `__getitem__` converts them like nanoGPT. The figure is
CPU time per window. The sides take turns in one process. Goal: at most half of torch's time.

    python benchmarks/token_windows.py [--rounds N]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

import penstock as ps

LENGTH, BATCH, BATCHES = 1024, 32, 150
TOKENS = 50_000_000


class TorchWindows(Dataset):
    """Pairs of windows, `step` tokens apart."""

    def __init__(self, tokens: np.ndarray, step: int) -> None:
        self.tokens, self.step = tokens, step

    def __len__(self) -> int:
        return (len(self.tokens) - LENGTH - 1) // self.step + 1

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.tokens[i * self.step : i * self.step + LENGTH + 1].astype(np.int64)
        return torch.from_numpy(window[:-1]), torch.from_numpy(window[1:])


def as_int64(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both in the dtype that models take."""
    return x.astype(np.int64), y.astype(np.int64)


def sides(file: Path) -> dict[str, Iterable[Any]]:
    """Return batches of each side by its name."""
    tokens = np.memmap(file, np.uint16, "r")
    windows = ps.TokenDataset(file, np.uint16, LENGTH, step=1, shift=True)
    aligned = ps.TokenDataset(file, np.uint16, LENGTH, shift=True)
    numbers = ps.Dataset.range(len(tokens) - LENGTH)

    def pair(i: int) -> tuple[np.ndarray, np.ndarray]:
        return tokens[i : i + LENGTH].astype(np.int64), tokens[i + 1 : i + 1 + LENGTH].astype(np.int64)

    every = TorchWindows(tokens, 1)
    return {
        "torch, random": DataLoader(every, BATCH, sampler=RandomSampler(every, True, BATCH * BATCHES)),
        "torch, aligned": DataLoader(TorchWindows(tokens, LENGTH), BATCH),
        "TokenDataset, random": windows.shuffle(ps.ALL, seed=1).map(as_int64).batch(BATCH),
        "TokenDataset, aligned": aligned.map(as_int64).batch(BATCH),
        "slices in map, random": numbers.shuffle(ps.ALL, seed=1).map(pair).batch(BATCH),
    }


def cpu_per_window(batches: Iterable[Any]) -> float:
    """Return the CPU microseconds per window of the first batches."""
    began = time.process_time()
    count = sum(1 for _ in islice(batches, BATCHES))
    return (time.process_time() - began) / count / BATCH * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="windows of tokens, in penstock and torch")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="measured iterations (%(default)s)")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokens.bin")
        np.random.default_rng(0).integers(0, 50_000, TOKENS).astype(np.uint16).tofile(file)
        measured: dict[str, Callable[[], float]] = {
            name: (lambda batches=batches: cpu_per_window(batches)) for name, batches in sides(file).items()
        }
        took: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(1 + chosen.rounds):  # the first one warms up
            for name, measure in measured.items():
                took[name].append(measure())
    for name, found in took.items():
        peer = median(took[f"torch, {name.rpartition(', ')[2]}"][1:])
        print(f"{name:24} {median(found[1:]):6.1f} µs per window, {peer / median(found[1:]):.2f} times torch")


if __name__ == "__main__":
    main()
