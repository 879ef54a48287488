"""Check that AUTOTUNE soon finds the best number of workers for functions that wait, and keeps it.

Each iteration takes about two seconds over a map with a sleeping function and `num_parallel_calls=AUTOTUNE`, in a
process without remembered settings. The cases are waits of 1 to 100 ms; skewed waits, where each hundredth element
takes fifty times as long; a map after an interleave; and a map before a shuffle. The numbers 16, 32 and 64 run in
separate processes, and AUTOTUNE is compared with the best of them. Goals: from the third iteration on, 0.95 of the best
on average, and at most 10 % between any two iterations; 0.8 of the best in the second second of the first iteration.
Sleeping uses no processor, but other programs on the machine affect each figure. The program takes two minutes.

    python benchmarks/waits.py [--only TEXT] [--passes N]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from _common.duel import figures_of

HAND = (16, 32, 64)
SECONDS = 2.0  # of an iteration with 32 workers
LONG, EACH = 50, 100  # a skewed function takes `LONG` times as long for one in `EACH` elements

Build = Callable[[Any, Callable[[Any], Any], int, int], Any]


def plain(ps: Any, function: Callable[[Any], Any], count: int, calls: int) -> Any:
    return ps.Dataset.range(count).map(function, num_parallel_calls=calls).batch(32)


def after_interleave(ps: Any, function: Callable[[Any], Any], count: int, calls: int) -> Any:
    inputs = ps.Dataset.range(16).interleave(
        lambda i: ps.Dataset.range(count // 16), 16, num_parallel_calls=ps.AUTOTUNE
    )
    return inputs.map(function, num_parallel_calls=calls).batch(32)


def before_shuffle(ps: Any, function: Callable[[Any], Any], count: int, calls: int) -> Any:
    return ps.Dataset.range(count).map(function, num_parallel_calls=calls).shuffle(200).batch(32)


def wait(x: Any, *, seconds: float, skewed: bool) -> Any:
    time.sleep(seconds * LONG if skewed and x % EACH == 0 else seconds)
    return x


WAITS: dict[str, tuple[float, bool, Build]] = {
    "1 ms": (0.001, False, plain),
    "5 ms": (0.005, False, plain),
    "20 ms": (0.02, False, plain),
    "100 ms": (0.1, False, plain),
    "1 ms, skewed": (0.001, True, plain),
    "5 ms, skewed": (0.005, True, plain),
    "5 ms, after an interleave": (0.005, False, after_interleave),
    "5 ms, before a shuffle": (0.005, False, before_shuffle),
}


def rates(name: str, calls: int, passes: int) -> list[list[float]]:
    """Return, for each iteration, the elements per second, and the same within its second second."""
    import penstock as ps

    seconds, skewed, build = WAITS[name]
    mean = seconds * (1 + (LONG - 1) / EACH) if skewed else seconds
    count = int(SECONDS * min(32 / mean, 12_000)) // 32 * 32
    dataset = build(ps, partial(wait, seconds=seconds, skewed=skewed), count, ps.AUTOTUNE if calls < 0 else calls)
    found = []
    for _ in range(passes):
        began, taken, within = time.perf_counter(), 0, 0
        for batch in dataset:
            taken += len(batch)
            within += len(batch) if 1.0 <= time.perf_counter() - began < 2.0 else 0
        took = time.perf_counter() - began
        found.append([taken / took, within / max(min(took, 2.0) - 1.0, 1e-9) if took > 1.1 else taken / took])
    return found


def alone(name: str, calls: int, passes: int) -> list[list[float]]:
    """Measure in a separate process that neither reads nor writes remembered settings."""
    command = [sys.executable, sys.argv[0], "--only", name, "--calls", str(calls), "--passes", str(passes)]
    found: list[list[float]] = figures_of(command, {"XDG_CACHE_HOME": "/dev/null/none"})
    return found


def show(name: str, passes: int) -> None:
    by_hand = {calls: max(rate for rate, _ in alone(name, calls, 3)[1:]) for calls in HAND}
    best = max(by_hand.values())
    found = alone(name, -1, passes)
    later = [rate for rate, _ in found[2:]]
    mean, spread = sum(later) / len(later), max(later) / min(later) - 1
    met = mean >= 0.95 * best and spread <= 0.1 and found[0][1] >= 0.8 * best
    print(f"{name}: by hand {', '.join(f'{calls}: {rate:.0f}' for calls, rate in by_hand.items())} /s")
    print(f"    AUTOTUNE {', '.join(f'{rate:.0f}' for rate, _ in found)} /s")
    print(
        f"    second second {found[0][1] / best:.2f}, from the third iteration on {mean / best:.2f} of the best, "
        f"spread {100 * spread:.0f} %  {'met' if met else 'MISSED'}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="AUTOTUNE for functions that wait")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only waits whose names contain TEXT")
    parser.add_argument("--passes", type=int, default=6, metavar="N", help="iterations of AUTOTUNE (%(default)s)")
    parser.add_argument("--calls", type=int, default=0, help="run one wait with this number of calls, in this process")
    chosen = parser.parse_args()
    if chosen.calls:
        print(json.dumps(rates(chosen.only, chosen.calls, chosen.passes)))
    else:
        for each in [name for name in WAITS if chosen.only in name]:
            show(each, chosen.passes)
