"""Elements of 1 MB through a parallel interleave and a prefetch of 4000, which takes 4 GB without a limit."""

from __future__ import annotations

from typing import Any

BYTES = 1 << 20
CYCLE, FILE, AHEAD = 16, 64, 4000


def made(number: Any) -> Any:
    import numpy as np

    return np.full(BYTES, int(number) % 256, np.uint8)


def turned(array: Any) -> Any:
    return array[::-1].copy()


def penstock(ram_budget: int) -> Any:
    import penstock as ps

    ds = ps.Dataset.range(1 << 20).repeat()
    ds = ds.interleave(
        lambda number: ps.Dataset.range(FILE).map(made), cycle_length=CYCLE, num_parallel_calls=ps.AUTOTUNE
    )
    ds = ds.prefetch(AHEAD).map(turned, num_parallel_calls=ps.AUTOTUNE).prefetch(ps.AUTOTUNE)
    return ds.with_options(ps.Options(autotune={"ram_budget": ram_budget}))
