"""Where does the service saturate? A discrete-event simulation of 1 to 10,000 workers and 1 to 1,000 consumers.

It simulates the protocol of `penstock.delivery`: a consumer asks workers for ranges, no more than two at a time of each
and `ahead` in all, and takes what comes in order. Consumers of a shared job ask the dispatcher first where a range
ends. Everybody does one thing at a time. What the things cost is measured here first, with real processes:

- consumer: CPU time of asking for a range and taking it in
- worker: time of a range in which nothing is to be done
- dispatcher: CPU time of telling where a range ends

Then one prediction is held against a run: batches that sleep, on 1, 2, 4 and 8 workers.

    python benchmarks/scale_sim.py [--quick]
"""

from __future__ import annotations

import argparse
import heapq
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import penstock as ps
from penstock.delivery.dispatcher import Line

RANGE = 0.05  # seconds of work in a range: what `delivery.window.RangeSizer` aims at
ASK, NEXT = -1, -2  # events: a consumer may ask for another range; it has time for what waits
SLEEP = 0.01  # of a batch in the run that is predicted


@dataclass(frozen=True)
class Costs:
    """Seconds."""

    consumer: float  # for a range
    worker: float  # for a range, beside its work
    cut: float  # of the dispatcher


@dataclass(frozen=True)
class Found:
    """What came out: ranges in a second, and how much of their time the three were busy."""

    rate: float
    workers: float
    consumers: float
    dispatcher: float


def simulated(workers: int, consumers: int, costs: Costs, *, work: float = RANGE, shared: bool, ahead: int) -> Found:
    """Until each consumer has its part of about 20 ranges for a worker, 200 at least."""
    count = max(20 * workers // consumers, 200 if consumers <= 100 else 40)
    ahead = min(ahead, 2 * workers)
    free = [0.0] * workers  # when a worker is done with what it was asked for
    consumer_free = [0.0] * consumers
    asked = [0] * consumers
    taken = [0] * consumers
    arrived: list[set[int]] = [set() for _ in range(consumers)]
    dispatcher_free = dispatcher_busy = worker_busy = end = 0.0
    made: dict[int, float] = {}  # ranges of a shared job, and when they are there
    events: list[tuple[float, int, int]] = []  # when, for whom, and which result is there, or ASK or NEXT
    waiting: list[deque[int]] = [deque() for _ in range(consumers)]  # for the consumer to have time for
    asking = [True] * consumers  # whether that is among the events
    turn = 0

    def ask(consumer: int, now: float) -> None:
        nonlocal dispatcher_free, dispatcher_busy, worker_busy, turn
        number = asked[consumer]
        asked[consumer] += 1
        now += costs.consumer / 2
        if shared:
            now = dispatcher_free = max(dispatcher_free, now) + costs.cut
            dispatcher_busy += costs.cut
        consumer_free[consumer] = now
        there = made.get(number) if shared else None
        if there is None:
            worker, turn = turn % workers, turn + 1
            seconds = costs.worker + work
        else:  # one of them has it, and sends it again
            worker, seconds = number % workers, costs.worker
        free[worker] = max(free[worker], now) + seconds
        worker_busy += seconds
        if there is None and shared:
            made[number] = free[worker]
        heapq.heappush(events, (free[worker], consumer, number))

    for consumer in range(consumers):
        heapq.heappush(events, (0.0, consumer, ASK))
    while events:
        now, consumer, number = heapq.heappop(events)
        inbox = waiting[consumer]
        if number == NEXT:
            number = inbox.popleft()
        elif inbox or now < consumer_free[consumer]:  # it is at something else
            if not inbox:
                heapq.heappush(events, (consumer_free[consumer], consumer, NEXT))
            inbox.append(number)
            continue
        if number == ASK:
            asking[consumer] = False
            ask(consumer, now)
        else:
            consumer_free[consumer] = now + costs.consumer / 2
            arrived[consumer].add(number)
            while taken[consumer] in arrived[consumer]:
                arrived[consumer].discard(taken[consumer])
                taken[consumer] += 1
        room = asked[consumer] < count and asked[consumer] - taken[consumer] < ahead
        if room and not asking[consumer]:
            asking[consumer] = True
            heapq.heappush(events, (consumer_free[consumer], consumer, ASK))
        if inbox:
            heapq.heappush(events, (consumer_free[consumer], consumer, NEXT))
    end = max(consumer_free)
    total = count * consumers
    return Found(
        total / end, worker_busy / end / workers, total * costs.consumer / end / consumers, dispatcher_busy / end
    )


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeping(x):
    time.sleep(SLEEP / 2)
    return x


def batches(function, count, workers):
    """Ranges of one batch each: those of trainers that step together are never longer."""
    dataset = ps.Dataset.range(4 * count).map(function).batch(2)
    return dataset.distribute(workers=workers, num_consumers=2, consumer_index=0)


def wall_and_cpu(dataset):
    """Seconds of a range, once workers are there."""
    with iter(dataset) as elements:
        for _ in range(20):
            next(elements)
        began, cpu = time.perf_counter(), time.process_time()
        count = sum(1 for _ in elements)
        return (time.perf_counter() - began) / count, (time.process_time() - cpu) / count


def measured() -> Costs:
    walls, cpus = zip(*(wall_and_cpu(batches(lambda x: x, 1500, 1)) for _ in range(3)), strict=True)
    with ps.service.start(workers=1) as service:
        line = Line(service.folder)
        line.ask("join", "job", "digest")
        before, count = cpu_of(service.status()["pid"]), 20_000
        for number in range(count):
            line.ask("cut", "job", 0, number, 1, None)
        cut = (cpu_of(service.status()["pid"]) - before) / count
        line.close()
    return Costs(min(cpus), max(min(walls) - min(cpus), 0.0), cut)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 workers and 100 consumers")
    quick = parser.parse_args().quick
    costs = measured()
    print(
        f"measured: consumer {costs.consumer * 1e6:.0f} us a range, "
        f"worker {costs.worker * 1e6:.0f} us beside its work, "
        f"dispatcher {costs.cut * 1e6:.0f} us a cut"
    )
    print(f"\nprediction and run: batches that sleep {SLEEP * 1e3:.0f} ms, seconds of a range")
    for workers in (1, 2, 4, 8):
        sleep = timed_sleep()
        found = simulated(workers, 1, costs, work=sleep, shared=False, ahead=3 * workers + 1)
        wall, _ = wall_and_cpu(batches(sleeping, 150 * workers, workers))
        print(f"{workers} workers: predicted {1e3 / found.rate:.2f} ms, run {wall * 1e3:.2f} ms")
    for shared in (False, True):
        print(f"\n{'a shared job' if shared else 'consumers of their own'}, ranges of {RANGE * 1e3:.0f} ms")
        print(f"{'workers':>8} {'consumers':>9} {'ranges/s':>9} {'of ideal':>8}   busy: {'w':>4} {'c':>4} {'d':>4}")
        for workers in (1, 10, 100, 1000) if quick else (1, 10, 100, 1000, 10_000):
            for consumers in (1, 10, 100) if quick else (1, 10, 100, 1000):
                found = simulated(workers, consumers, costs, shared=shared, ahead=3 * workers + 1)
                ideal = workers / RANGE * (consumers if shared else 1)
                busy = f"{found.workers:4.2f} {found.consumers:4.2f} {found.dispatcher:4.2f}"
                print(f"{workers:8} {consumers:9} {found.rate:9.0f} {found.rate / ideal:8.2f}         {busy}")


def timed_sleep() -> float:
    """What two sleeps take that ask for `SLEEP` together."""
    began = time.perf_counter()
    for _ in range(10):
        sleeping(0)
        sleeping(0)
    return (time.perf_counter() - began) / 10


if __name__ == "__main__":
    main()
