"""What does packing cost, for short sequences in memory?

    sequences.pack(1024)                                     # first fit, 64 open rows

Grain's FirstFitPackIterDataset has the same length and as many bins. It gives all its bins once none has room, where
penstock gives the fullest. penstock packs `NUMBER` sequences, Grain a tenth of them, since its cost is per sequence. A
rate counts sequences. Goal: 1 million sequences per second and core.

    python benchmarks/packing.py [--pairs N]
"""

from __future__ import annotations

from functools import partial

import numpy as np
from _common.duel import Pass, Side, duel

NUMBER = 200_000
FEWER = NUMBER // 10
LENGTH, OPEN = 1024, 64


def sequences(count: int) -> list[np.ndarray]:
    """Arrays of about 20 tokens, some much longer."""
    sizes = np.random.default_rng(0).lognormal(2.7, 0.7, count).astype(int).clip(1, LENGTH)
    return [np.arange(size, dtype=np.int32) for size in sizes]


def penstock(*, strategy: str = "first_fit") -> Pass:
    import penstock as ps

    arrays = sequences(NUMBER)
    held = ps.Dataset.from_generator(lambda: iter(arrays)).cache()
    ds = held.pack(LENGTH, strategy=strategy, open_rows=OPEN)
    tokens = sum(array.size for array in arrays)

    def one_pass() -> int:
        with ds.iterator(executor="inline") as rows:
            assert sum(np.count_nonzero(row["segment_ids"]) for row in rows) == tokens
        return NUMBER

    return one_pass


def grain() -> Pass:
    import grain

    arrays = sequences(FEWER)
    tokens = sum(array.size for array in arrays)
    in_this_thread = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)  # its threads cost six times as much here
    ds = grain.experimental.FirstFitPackIterDataset(
        grain.MapDataset.source([{"tokens": array} for array in arrays]).to_iter_dataset(in_this_thread),
        length_struct={"tokens": LENGTH},
        num_packing_bins=OPEN,
        shuffle_bins=False,
    )

    def one_pass() -> int:
        assert sum(np.count_nonzero(row["tokens_segment_ids"]) for row in ds) == tokens
        return FEWER

    return one_pass


if __name__ == "__main__":
    duel(
        "packing of short sequences",
        Side("penstock", penstock),
        Side("grain", grain, needs="grain"),
        Side("penstock, best fit", partial(penstock, strategy="best_fit")),
    )
