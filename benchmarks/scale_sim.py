"""Simulate the service with 1 to 10,000 workers and 1 to 1,000 consumers, to find where it saturates.

The discrete-event simulation follows the protocol of `penstock.delivery`. A consumer asks workers for ranges, at most
two at a time from each worker and `ahead` in all, and takes the results in order. Consumers of a shared job first ask
the dispatcher where a range ends. Each process does one thing at a time. The program first measures the costs with real
processes:

    - consumer: CPU time of asking for a range and receiving it
    - worker: time of a range without work
    - dispatcher: CPU time of an answer about the end of a range

Then it compares one prediction with a run: batches that sleep, on 1, 2, 4 and 8 workers.

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

RANGE = 0.05  # seconds of work in a range: the target of `delivery.window.RangeSizer`
ASK, NEXT = -1, -2  # events: a consumer may ask for another range; a consumer has time for a waiting event
SLEEP = 0.01  # seconds of a batch in the predicted run


@dataclass(frozen=True)
class Costs:
    """Seconds per range."""

    consumer: float
    worker: float  # without its work
    cut: float  # for the dispatcher


@dataclass(frozen=True)
class Found:
    """Result of a simulation: ranges per second, and the busy shares of workers, consumers and dispatcher."""

    rate: float
    workers: float
    consumers: float
    dispatcher: float


def simulated(workers: int, consumers: int, costs: Costs, *, work: float = RANGE, shared: bool, ahead: int) -> Found:
    """Simulate until each consumer has its share of about 20 ranges per worker.

    Each consumer gets at least 200 ranges, or 40 if there are more than 100 consumers.
    """
    count = max(20 * workers // consumers, 200 if consumers <= 100 else 40)
    ahead = min(ahead, 2 * workers)
    free = [0.0] * workers  # the time when a worker has finished its requests
    consumer_free = [0.0] * consumers
    asked = [0] * consumers
    taken = [0] * consumers
    arrived: list[set[int]] = [set() for _ in range(consumers)]
    dispatcher_free = dispatcher_busy = worker_busy = end = 0.0
    made: dict[int, float] = {}  # ranges of a shared job, and when they are ready
    events: list[tuple[float, int, int]] = []  # time, consumer, and the number of a ready result, or ASK or NEXT
    waiting: list[deque[int]] = [deque() for _ in range(consumers)]  # events that wait until the consumer has time
    asking = [True] * consumers  # True if the consumer's ASK is among the events
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
        else:  # a worker has the range already, and sends it again
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
        elif inbox or now < consumer_free[consumer]:  # the consumer is busy
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
    """Build ranges of one batch each: the ranges of trainers that step together are never longer."""
    dataset = ps.Dataset.range(4 * count).map(function).batch(2)
    return dataset.distribute(workers=workers, num_consumers=2, consumer_index=0)


def wall_and_cpu(dataset):
    """Return the seconds and CPU seconds of a range, after the start of the workers."""
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
        f"measured: consumer {costs.consumer * 1e6:.0f} µs per range, "
        f"worker {costs.worker * 1e6:.0f} µs without its work, "
        f"dispatcher {costs.cut * 1e6:.0f} µs per cut"
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
    """Return the seconds of two sleeps of `SLEEP / 2` each, as the system does them."""
    began = time.perf_counter()
    for _ in range(10):
        sleeping(0)
        sleeping(0)
    return (time.perf_counter() - began) / 10


if __name__ == "__main__":
    main()
