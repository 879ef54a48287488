"""Check that a pipeline stays within its limits: bytes, and the consumer's cores.

    - *Bytes*: elements of 1 MB pass through a parallel interleave, a prefetch of 4000 and a parallel map. The
      `ram_budget` is 256 MB, and then 5 GB (or half of the free memory, if that is less). The consumer first takes
      elements as fast as it can, which gives the rate. Then it takes none until memory stops growing. Goals: resident
      memory, sampled all the time, grows by at most 300 MB; the rate is ≥ 0.9 of the rate with 5 GB.
    - *Cores*: the consumer has a step of 30 ms, and an element takes 5 ms of work. The CPU time of an element is
      compared with the CPU time if one thread computes each element on request (`executor="inline"`). Goal: ≤ 1.1.
      A further row has the CPU time of a second in which the consumer takes nothing and all buffers are full. It is
      close to zero, because waiting threads do not spin.

Each side runs in its own process, in turn. The program takes about five minutes.

    python benchmarks/budget.py [--only TEXT] [--rounds N] [--seconds S]
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from statistics import median

from _autotune.allowed import allowed_row
from _autotune.alone import alone, answer, arguments, in_turn, show, timing_of
from _autotune.drive import Figures, Timing, drive, take
from _autotune.resident import Peak
from _autotune.setting import AUTO
from _autotune.workloads import large
from _autotune.workloads.slow_consumer import SLOW_CONSUMER
from _common.duel import cpu_seconds
from _common.table import Row, rate

SMALL, LARGE = 256 << 20, 5 << 30
GROWTH, SHARE = 300.0, 0.9  # MB; share of the rate with a large budget
STALL = 20  # longest wait for full buffers, in seconds
FILLED = 6.0  # seconds until the buffers of a slow consumer are full; from then on work done equals work taken
CPU = 1.1
IDLE = 10.0  # milliseconds of CPU time per second


@dataclass(frozen=True)
class Held:
    """Elements per second, and bytes by which memory grew."""

    rate: float
    growth: int


@dataclass(frozen=True)
class Idle:
    """Milliseconds of CPU time per second."""

    ms: float


def held(ram_budget: int, timing: Timing) -> Held:
    import psutil

    dataset = large.penstock(min(ram_budget, psutil.virtual_memory().available // 2))
    with Peak() as peak, dataset.iterator() as elements:
        found = drive(elements, timing)
        until_full(peak)
        take(elements, 0)
    return Held(found.rate, peak.growth)


def until_full(peak: Peak) -> None:
    """Wait until memory has not grown for two seconds."""
    for _ in range(STALL // 2):
        before = peak.growth
        time.sleep(2)
        if peak.growth == before:
            return


def loader(timing: Timing, **how: str) -> Figures:
    with SLOW_CONSUMER.penstock(AUTO).iterator(**how) as elements:
        return drive(elements, Timing(max(timing.run_in, FILLED), timing.seconds), step=SLOW_CONSUMER.step)


def idle(timing: Timing) -> Idle:
    with SLOW_CONSUMER.penstock(AUTO).iterator() as elements:
        take(elements, timing.run_in, SLOW_CONSUMER.step)
        time.sleep(FILLED)
        before = cpu_seconds()
        time.sleep(timing.seconds)
        return Idle((cpu_seconds() - before) / timing.seconds * 1e3)


SIDES = {
    "bytes: 256 MB": partial(held, SMALL),
    "bytes: 5 GB": partial(held, LARGE),
    "cores: AUTOTUNE": loader,
    "cores: inline": partial(loader, executor="inline"),
    "idle": idle,
}


def of_bytes(timing: Timing, rounds: int) -> list[Row]:
    few, many = "bytes: 256 MB", "bytes: 5 GB"
    turns = [{name: Held(**alone(name, timing)) for name in (few, many)} for _ in range(rounds)]
    grown = [turn[few].growth / 1e6 for turn in turns]
    beyond = median(turn[many].growth for turn in turns) / 1e6
    return [
        allowed_row(f"ram_budget 256 MB: growth (5 GB: {beyond:.0f} MB)", grown, GROWTH, "MB"),
        Row(
            workload="ram_budget 256 MB: rate",
            penstock=rate(median(turn[few].rate for turn in turns)),
            peer="ram_budget 5 GB",
            theirs=rate(median(turn[many].rate for turn in turns)),
            ratios=[turn[few].rate / turn[many].rate for turn in turns],
            goal=SHARE,
        ),
    ]


def of_cores(timing: Timing, rounds: int) -> list[Row]:
    turns = in_turn(["cores: AUTOTUNE", "cores: inline"], timing, rounds)
    ours, inline = ([turn[f"cores: {name}"].cpu_us for turn in turns] for name in ("AUTOTUNE", "inline"))
    return [
        Row(
            workload="step of 30 ms: CPU of an element",
            penstock=f"{median(ours) / 1e3:.3g} ms",
            peer="inline, one thread",
            theirs=f"{median(inline) / 1e3:.3g} ms",
            ratios=[mine / other for mine, other in zip(ours, inline, strict=True)],
            cpu_penstock=median(ours),
            cpu_peer=median(inline),
            goal=CPU,
            at_most=True,
        )
    ]


def of_idleness(timing: Timing, rounds: int) -> list[Row]:
    found = [alone("idle", timing)["ms"] for _ in range(rounds)]
    return [allowed_row("no consumer asks: CPU in a second", found, IDLE, "ms")]


QUESTIONS = {"bytes": of_bytes, "cores": of_cores, "idle": of_idleness}

if __name__ == "__main__":
    parser = arguments("what a pipeline may use")
    parser.add_argument("--only", default="", metavar="TEXT", help=f"one of {', '.join(QUESTIONS)}")
    given = parser.parse_args()
    if given.side:
        show(SIDES, given)
        sys.exit()
    asked = [ask for name, ask in QUESTIONS.items() if given.only in name]
    sys.exit(answer(partial(ask, timing_of(given), given.rounds) for ask in asked))
