"""Pipelines to tune: the cost of each segment, and the grid of fixed settings to compare with."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from tests.runtime.autotune.simulator import Sim, Work, play

from penstock.runtime.autotune.figures import Knobs, Means, TunerLimits
from penstock.runtime.autotune.tuner import decide

MIB = 1 << 20
RAM = 1 << 30
COUNTS = (1, 2, 4, 16, 64)
BOTH = ("thread", "process")
THREADS = ("thread",)


@dataclass(frozen=True)
class Scenario:
    make: Callable[[int], Sim]  # by seed
    seconds: float = 8.0
    measured: float = 3.0  # time from which the rate has to be that of the best setting
    share: float = 0.95
    settled: float = 2.6  # time until no setting is on trial any more
    calm: float = 5.0  # time from which hardly any setting changes
    windows: tuple[int, ...] = ()  # further sizes of the grid


def pipeline(*works, start=None, cpus=2.0, executors=BOTH, most=64, ram=RAM, gil=True, **more):
    """Build segments named a, b, … from the source on."""

    def make(seed):
        names = "abcdef"[: len(works)]
        begin = start or Knobs(max(1, round(cpus)))
        starts = begin if isinstance(begin, dict) else dict.fromkeys(names, begin)
        limits = {name: TunerLimits(1, most, executors) for name in names}
        means = Means(cpus, ram, gil=gil, processes_ready=False)
        return Sim(dict(zip(names, works, strict=True)), starts, limits, means, seed=seed, **more)

    return make


def heads(count, best, loss):
    """Return a disk: elements per second for the number of parallel reads."""
    return lambda workers: best * min(workers, count) / count / (1 + loss * max(workers - count, 0))


def link(most):
    """Return a store with a bandwidth."""
    return lambda workers: most


SCENARIOS = {
    # workloads of every loader
    "jpeg": Scenario(pipeline(Work(cpu=0.004, nbytes=150_000))),
    "heavy augment": Scenario(pipeline(Work(cpu=0.02, nbytes=600_000), noise=0.1)),
    "tiny elements": Scenario(pipeline(Work(cpu=2e-6, gil=1e-6, pull=3e-6, nbytes=8))),
    "parse-bound": Scenario(pipeline(Work(cpu=60e-6, pull=10e-6, nbytes=500))),
    "memory-bound": Scenario(pipeline(Work(cpu=0.001, nbytes=4 * MIB, speed_of=link(1600)))),
    "interpreter's lock": Scenario(pipeline(Work(gil=0.005, nbytes=4000))),
    "sleeping": Scenario(pipeline(Work(sleep=0.005))),
    "store with latency": Scenario(pipeline(Work(sleep=0.05, cpu=0.0003, nbytes=100_000))),
    "skewed cost": Scenario(
        pipeline(Work(cpu=0.0015, nbytes=40_000, ahead=400), start=Knobs(2, window=8 * MIB)), windows=(64 * MIB, RAM)
    ),
    "slow consumer": Scenario(pipeline(Work(cpu=0.005, nbytes=150_000), consumer=0.03)),
    # other workloads
    "contended, computing": Scenario(pipeline(Work(lock_cpu=0.005), executors=THREADS)),
    "contended, sleeping": Scenario(pipeline(Work(lock_sleep=0.005))),
    "contended on 8 cores": Scenario(pipeline(Work(lock_sleep=0.004, cpu=0.0001), cpus=8)),
    "lock on 8 cores": Scenario(pipeline(Work(gil=0.005), cpus=8)),
    "lock, dear to ship": Scenario(pipeline(Work(gil=0.002, ship=0.003, nbytes=4 * MIB))),
    "lock, small elements": Scenario(pipeline(Work(gil=0.0004, ship=0.00002))),
    "lock in two segments": Scenario(pipeline(Work(gil=0.002), Work(gil=0.003), cpus=4), settled=3.5),
    "free-threaded": Scenario(pipeline(Work(gil=0.005), gil=False)),
    "the first of two waits": Scenario(pipeline(Work(sleep=0.02), Work(cpu=0.0004)), settled=3.0),
    "the second of two waits": Scenario(pipeline(Work(cpu=0.0004), Work(sleep=0.02))),
    "half a core": Scenario(pipeline(Work(cpu=0.004), cpus=0.5)),
    "a core and a half": Scenario(pipeline(Work(cpu=0.004, sleep=0.001), cpus=1.5)),
    "disk of four heads": Scenario(pipeline(Work(sleep=0.008, speed_of=heads(4, 480, 0.1)))),
    "one disk": Scenario(pipeline(Work(sleep=0.004, speed_of=heads(1, 240, 0.15)))),
    "link": Scenario(pipeline(Work(sleep=0.05, nbytes=MIB, speed_of=link(300))), settled=3.5),
    "slow calls": Scenario(pipeline(Work(sleep=0.3)), seconds=12, measured=6, settled=7, calm=8),
    "batches of sleepers": Scenario(pipeline(Work(sleep=0.01, rows=64))),
    "noise": Scenario(pipeline(Work(sleep=0.02), noise=0.2)),
    "noise, computing": Scenario(pipeline(Work(cpu=0.004), noise=0.2)),
    "sleeping and a lock": Scenario(pipeline(Work(sleep=0.01, gil=0.001)), settled=3.5),
    "among other programs": Scenario(pipeline(Work(cpu=0.004), others=0.9), settled=3.5),
    "sleeping among others": Scenario(pipeline(Work(sleep=0.005, cpu=0.00001), others=1.6)),
    # settings remembered from another run
    "remembered, too many": Scenario(pipeline(Work(cpu=0.004), start=Knobs(64))),
    "remembered, too few": Scenario(pipeline(Work(sleep=0.005), start=Knobs(1))),
    "remembered, right": Scenario(pipeline(Work(sleep=0.005), start=Knobs(64))),
    "remembered, one for a lock": Scenario(pipeline(Work(gil=0.005), start=Knobs(1))),
    "remembered, processes": Scenario(
        pipeline(Work(cpu=0.0005, ship=0.001, nbytes=MIB), start=Knobs(2, executor="process"))
    ),
    "remembered, sleeping in processes": Scenario(
        pipeline(Work(sleep=0.01), start=Knobs(2, executor="process")), settled=3.5
    ),
    # changes during the run
    "gets slower": Scenario(
        pipeline(Work(sleep=0.005, speed_of=link(1500)), later={6.0: {"a": Work(sleep=0.05, speed_of=link(1200))}}),
        seconds=16,
        measured=10,
        calm=12,
    ),
    "gets faster": Scenario(
        pipeline(Work(sleep=0.05), later={6.0: {"a": Work(sleep=0.002, cpu=0.0005)}}), seconds=16, measured=10, calm=12
    ),
    "begins to hold the lock": Scenario(
        pipeline(Work(cpu=0.004), later={6.0: {"a": Work(gil=0.004)}}), seconds=16, measured=10, calm=12
    ),
    "the consumer speeds up": Scenario(
        pipeline(Work(cpu=0.005, nbytes=150_000), consumer=0.03, later={8.0: {"consumer": 0.0}}),
        seconds=16,
        measured=12,
        calm=14,
    ),
}


def simulation(name, seed):
    return SCENARIOS[name].make(seed)


@cache
def tuned(name, seed):
    """Run the tuner from the scenario's start on."""
    return play(simulation(name, seed), SCENARIOS[name].seconds, decide)


@cache
def best_fixed(name, seed):
    """Return the throughput of the best setting of the grid, over the same time and with the same noise."""
    scenario = SCENARIOS[name]
    sim = scenario.make(seed)
    grid = []
    executors = sim.limits[sim.names[0]].executors
    for executor, window in itertools.product(executors, (None, *scenario.windows)):
        for counts in _counts(sim, executor):
            grid.append((executor, window, counts))
    return max(_fixed(scenario, seed, *setting) for setting in grid)


def _counts(sim, executor):
    """Return the workers by segment. The number of processes is at most that of cores."""
    if len(sim.names) > 1:
        return list(itertools.product((2, 8, 64), repeat=len(sim.names)))
    return [(count,) for count in (COUNTS if executor == "thread" else (max(2, round(sim.means.cpus)),))]


def _fixed(scenario, seed, executor, window, counts):
    sim = scenario.make(seed)
    for name, count in zip(sim.names, counts, strict=True):
        knobs = replace(sim.knobs[name], parallelism=count, executor=executor)
        sim.knobs[name] = knobs if window is None else replace(knobs, window=window)
    return play(sim, scenario.seconds).throughput(scenario.measured, scenario.seconds)
