"""Does AUTOTUNE give functions that wait what the best number of workers gives, from pass to pass, and how soon?

Passes of about two seconds over a map whose function sleeps, with `num_parallel_calls=AUTOTUNE`, in a process that has
no earlier run to go by: waits of 1 to 100 ms; skewed, where each hundredth element takes fifty times as long; behind an
interleave and in front of a shuffle. The numbers 16, 32 and 64 by hand are measured in a process each; the best is what
the passes are held against. Goals: 0.95 of it in the mean from the third pass on, and no such pass further than 10 %
from another; 0.8 of it within the second second of the first pass. Sleeping takes no processor, but other programs on
the machine show in each figure. Two minutes.

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

from _common.duel import output_of

HAND = (16, 32, 64)
SECONDS = 2.0  # of a pass with 32 workers
LONG, EACH = 50, 100  # a skewed function takes so many times as long for each hundredth element

Build = Callable[[Any, Callable[[Any], Any], int, int], Any]


def plain(ps: Any, function: Callable[[Any], Any], count: int, calls: int) -> Any:
    return ps.Dataset.range(count).map(function, num_parallel_calls=calls).batch(32)


def behind_interleave(ps: Any, function: Callable[[Any], Any], count: int, calls: int) -> Any:
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
    "5 ms, behind an interleave": (0.005, False, behind_interleave),
    "5 ms, in front of a shuffle": (0.005, False, before_shuffle),
}


def rates(name: str, calls: int, passes: int) -> list[list[float]]:
    """Of each pass: elements per second, and the same within its second second."""
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
    """In a process of its own, which keeps what it learns for itself."""
    command = [sys.executable, sys.argv[0], "--only", name, "--calls", str(calls), "--passes", str(passes)]
    found: list[list[float]] = json.loads(output_of(command, {"XDG_CACHE_HOME": "/dev/null/none"}).splitlines()[-1])
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
        f"    second second {found[0][1] / best:.2f}, from the third pass on {mean / best:.2f} of the best, "
        f"spread {100 * spread:.0f} %  {'met' if met else 'MISSED'}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="AUTOTUNE for functions that wait, pass after pass")
    parser.add_argument("--only", default="", metavar="TEXT", help="the waits whose names contain it")
    parser.add_argument("--passes", type=int, default=6, metavar="N", help="of AUTOTUNE (%(default)s)")
    parser.add_argument("--calls", type=int, default=0, help="run one wait with so many, in this process")
    chosen = parser.parse_args()
    if chosen.calls:
        print(json.dumps(rates(chosen.only, chosen.calls, chosen.passes)))
    else:
        for each in [name for name in WAITS if chosen.only in name]:
            show(each, chosen.passes)
