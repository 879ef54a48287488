"""A simulated run on a virtual clock: segments, cores, locks, a consumer, byte windows, and seeded noise.

It is a fluid model: in each hundredth of a second, each segment computes as many elements as its limits allow: workers,
cores, the interpreter lock, its own locks, its store, its input and its window. Downstream segments get cores first, as
in the scheduler. The simulator reports the same figures as an engine: those of `penstock.runtime.autotune`.
"""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from penstock.runtime.autotune.figures import Decision, Flow, Knobs, Means, Sample, TunerLimits
from penstock.runtime.autotune.tuner_state import compacted

DT = 0.01
SLOT = 0.1  # seconds over which the noise is constant
HAND_OVER = 90e-6  # CPU seconds per Block between threads, with the interpreter lock
SHIP = 400e-6  # CPU seconds per Block to a process and back


@dataclass(frozen=True)
class Work:
    """The cost of an element, in seconds."""

    cpu: float = 0.0  # on any core
    gil: float = 0.0  # CPU seconds with the interpreter lock
    sleep: float = 0.0
    lock_cpu: float = 0.0  # CPU seconds with a lock of the function
    lock_sleep: float = 0.0
    nbytes: int = 1000
    ship: float = 0.0  # CPU seconds of sending an element to a process and back, besides the cost of a Block
    speed_of: Callable[[float], float] = lambda workers: math.inf  # largest rate for the number of workers inside
    ahead: int = 0  # results that must fit into the window, so that a slow one does not block others
    pull: float = 0.0  # CPU seconds of the serial part, with the interpreter lock
    rows: int = 1  # elements of a result: a batch
    fill: int = 0  # elements that are read before the first result: a shuffle

    def slowed(self, factor):
        return replace(self, cpu=self.cpu * factor, gil=self.gil * factor, pull=self.pull * factor)

    @property
    def service(self):
        return self.cpu + self.gil + self.sleep + self.lock_cpu + self.lock_sleep

    @property
    def computing(self):
        return self.cpu + self.gil + self.lock_cpu


@dataclass
class Sim:
    """Segments from the source to the consumer."""

    segments: dict[str, Work]
    start: dict[str, Knobs]
    limits: dict[str, TunerLimits]
    means: Means
    consumer: float = 0.0  # seconds of the consumer's step
    consumer_cpu: float = 0.0
    noise: float = 0.05
    seed: int = 0
    later: dict[float, dict] = field(default_factory=dict)  # time -> attributes or segments that change
    others: float = 0.0  # cores that other programs use
    rivals: Callable[[float], float] = lambda now: 0.0  # threads of other programs that compute at a time
    siblings: float = 0.0  # slowdown of everything while rivals compute on the other hardware thread of a core
    processes_take: float = 0.6  # seconds until worker processes have started
    processes_start: float = 0.0  # cores that starting processes use
    processes_load: float = 0.0  # seconds until processes have loaded a function

    def __post_init__(self):
        self.names = list(self.segments)
        self.now = 0.0
        self.taken = 0.0
        self.cpu_total = 0.0
        self.asked_at = None
        self.held = dict.fromkeys(self.names, 0.0)
        self.knobs = dict(self.start)
        self.inside = dict.fromkeys(self.names, 0.0)  # working workers, which follow the knob with a delay
        self.pause = dict.fromkeys(self.names, 0.0)
        self.changes = sorted(self.later)
        self.segments = dict(self.segments)
        self.factors = {}
        self.fraction = dict.fromkeys(self.names, 0.0)
        self.filled = dict.fromkeys(self.names, 0.0)
        self.untold = dict.fromkeys(self.names, 0.0)  # seconds of the current wait of a pull
        self._reset()

    # -- the engine's side

    def set(self, knobs):
        for name, new in knobs.items():
            if new.executor != self.knobs[name].executor:
                self.pause[name] = 0.06 + (self.processes_load if new.executor == "process" else 0.0)
                self.inside[name] = 0.0
            self.knobs[name] = new

    def sample(self):
        flows = tuple(
            Flow(name, self.knobs[name], self.limits[name], consumer=self.consumer_of(name), **self._whole(name))
            for name in self.names
        )
        found = Sample(self.since, self.now, self.cpu, flows, None if self.seed % 3 == 2 else self.idle)
        self._reset()
        return found

    def means_now(self):
        ready = self.means.processes_ready or (
            self.asked_at is not None and self.now >= self.asked_at + self.processes_take
        )
        return replace(self.means, processes_ready=ready)

    def consumer_of(self, name):
        index = self.names.index(name) + 1
        return self.names[index] if index < len(self.names) else None

    def run(self, seconds):
        for _ in range(max(1, round(seconds / DT))):
            self._step()

    # -- the model

    def _reset(self):
        self.since, self.cpu, self.idle = self.now, 0.0, 0.0
        zero = dict.fromkeys(("elements", "results", "run_seconds", "run_cpu", "pull_seconds", "pull_cpu"), 0.0)
        zero |= dict.fromkeys(("delayed", "waiting", "starved", "full", "inputs"), 0.0)
        self.sums = {name: dict(zero) for name in self.names}
        self.most = dict(self.held)
        self.least = dict(self.held)

    def _whole(self, name):
        """Round to whole numbers. Started elements count in the next period."""
        sums, work = self.sums[name], self.segments[name]
        made = sums["inputs"] + self.fraction[name]
        inputs = math.floor(made)
        self.fraction[name] = made - inputs
        results = math.ceil(inputs / (self._block(name) * work.rows))
        return {
            **sums,
            "inputs": inputs if work.rows > 1 else 0,
            "elements": inputs // work.rows,
            "results": results,
            "nbytes": inputs * work.nbytes,
            "held_most": int(self.most[name] * work.nbytes),
            "held_least": int(self.least[name] * work.nbytes),
            "busy_most": self.knobs[name].parallelism,
        }

    def _block(self, name):
        """Return the number of elements in a Block."""
        service = max(self.segments[name].service, 1e-7)
        return max(1.0, self.knobs[name].block_seconds / service)

    def _noise(self):
        slot = int(self.now / SLOT)
        if slot not in self.factors:
            generator = random.Random(f"{self.seed}/{slot}")
            self.factors[slot] = math.exp(generator.gauss(0, self.noise)) if self.noise else 1.0
        return self.factors[slot]

    def _step(self):
        while self.changes and self.now >= self.changes[0]:
            for key, value in self.later[self.changes.pop(0)].items():
                if key in self.segments:
                    self.segments[key] = value
                else:
                    setattr(self, key, value)
        noise = self._noise()
        takes = DT / self.consumer if self.consumer else math.inf
        before = self.cpu
        rivals, (runnable, threads) = self._rivals(), self._runnable()
        free = self.means.cpus - self.others
        share = free * threads / max(threads + rivals, 1e-9)
        cores = (max(free - rivals, min(share, max(1.2 * runnable, 0.1))) if rivals else free) * DT
        self.queued = max(runnable - cores / DT, 0.0) / max(runnable, 1e-9) if rivals else 0.0
        lock = 1.0 * DT if self.means.gil else math.inf
        if self.consumer:
            cores -= self.consumer_cpu * min(takes, self.held[self.names[-1]])
        for name in reversed(self.names):
            used, python = self._segment(name, noise, max(cores, 0.0), max(lock, 0.0))
            cores -= used
            lock -= python
            self.cpu += used
            self.cpu_total += used
        last = self.names[-1]
        taken = min(self.held[last], takes)
        self.held[last] -= taken
        self.least[last] = min(self.least[last], self.held[last])
        self.taken += taken
        used = taken * self.consumer_cpu
        self.cpu += used
        self.idle += max(free * DT - (self.cpu - before) - rivals * DT, 0.0)
        self.sums[last]["starved"] += DT * (1 - taken / takes if self.consumer else 0.97)
        self.now += DT

    def _rivals(self):
        """Return the computing threads besides ours: of other programs, and of starting worker processes."""
        started = self.asked_at is not None and self.now < self.asked_at + self.processes_take
        return self.rivals(self.now) + (self.processes_start if started else 0.0)

    def _runnable(self):
        """Return the requested cores and the runnable threads and processes. Threads with the lock count as one."""
        found, threads, python = 0.0, 0.0, 0.0
        for name, work in self.segments.items():
            away = self.knobs[name].executor == "process"
            workers = min(self.inside[name], self.means.cpus) if away else self.inside[name]
            wanting = workers * work.computing / max(work.service, 1e-9)
            locked = 0.0 if away or not self.means.gil else wanting * work.gil / max(work.computing, 1e-9)
            found, python = found + wanting - locked, python + locked
            threads += 1.0 if locked > wanting / 2 and work.sleep < work.computing else workers
        return found + min(python, 1.0), threads

    def _segment(self, name, noise, cores, lock):
        work, knobs, sums = self.segments[name], self.knobs[name], self.sums[name]
        if self.queued or self._rivals():
            work = work.slowed(1 + self.siblings)
        if self.pause[name] > 0:
            self.pause[name] -= DT
            return 0.0, 0.0
        lag = min(DT / max(work.service, DT), 1.0)
        self.inside[name] += (knobs.parallelism - self.inside[name]) * lag
        workers = self.inside[name] if knobs.parallelism > self.inside[name] else float(knobs.parallelism)
        away = knobs.executor == "process"
        per_block = self._block(name)
        over = (SHIP / per_block + work.ship) if away else HAND_OVER / per_block
        crowd = 1.0 if work.computing * 3 < work.service or workers <= 4 * self.means.cpus else 0.97
        python = over + work.pull if away else over + work.gil + work.pull
        needs = work.computing + over + work.pull
        bounds = [
            workers / (work.service + over),
            crowd * cores / DT / needs,
            work.speed_of(workers),
            1 / work.pull if work.pull else math.inf,
            lock / DT / max(python, 1e-12) * (0.97 if workers > 1 and work.gil and not away else 1.0),
        ]
        if away:  # a worker process for each core
            bounds.append(self.means.cpus / (work.computing + work.sleep + work.lock_sleep + over))
        held_lock = work.lock_cpu + work.lock_sleep
        if held_lock and not (away and work.lock_cpu):
            bounds.append((0.985 if workers > 1 else 1.0) / held_lock)
        possible = max(min(bounds) * noise, 1e-9)
        result_bytes = max(work.nbytes * per_block * work.rows, 1)
        results = max(knobs.window / result_bytes, 1.0)
        free = min(results / work.ahead, 1.0) if work.ahead else 1.0
        child = self._child(name)
        input_bound = self.held[child] / DT if child else math.inf
        room = max(results * per_block * work.rows - self.held[name], 0.0) / DT
        rate = min(possible * free, input_bound, room)
        made = rate * DT
        fills = self.filled[name] < work.fill
        self.filled[name] += made
        self.held[name] += 0.0 if fills else made
        if child:
            self.held[child] -= made
            self.least[child] = min(self.least[child], self.held[child])
            if input_bound < min(possible * free, room):
                lacking = DT * (1 - rate / min(possible * free, room))
                self.untold[name] += lacking
                self.sums[child]["starved"] += lacking
        if room < min(possible * free, input_bound):
            sums["full"] += DT * (1 - rate / min(possible * free, input_bound))
        sums["full"] += DT * (1 - free) if rate == possible * free else 0.0
        if not fills:
            sums["waiting"] += self.untold[name]
            self.untold[name] = 0.0
        self.most[name] = max(self.most[name], self.held[name])
        sums["inputs"] += 0.0 if fills else made
        inside = workers * DT * rate / possible
        sums["run_seconds"] += inside
        if bounds[1] == min(bounds) and self.seed % 3 == 0:  # cores are the limit, and the system reports it
            sums["delayed"] += max(inside - made * (work.service + over), 0.0) if not self.queued else 0.0
        if self.seed % 3 == 0 and not away:
            sums["delayed"] += self.queued * min(inside, DT if work.gil and self.means.gil else inside)
        sums["run_cpu"] += made * work.computing
        sums["pull_seconds"] += made * work.pull
        sums["pull_cpu"] += made * work.pull
        return made * needs, made * python

    def _child(self, name):
        index = self.names.index(name)
        return self.names[index - 1] if index else None


@dataclass
class Outcome:
    """The result of a run."""

    rates: list[tuple[float, float]]  # time, number of elements so far
    cpus: list[tuple[float, float]]
    knobs: list[tuple[float, dict]]  # each change
    decisions: list[tuple[float, Decision]]
    history: list[Sample]

    def throughput(self, start, stop):
        return (_at(self.rates, stop) - _at(self.rates, start)) / (stop - start)

    def cpu(self, start, stop):
        return (_at(self.cpus, stop) - _at(self.cpus, start)) / (stop - start)

    def final(self, name):
        return self.knobs[-1][1][name]

    def changes_after(self, start):
        return sum(1 for time, _ in self.knobs if time > start)

    def settled_at(self):
        return next((time for time, decision in self.decisions if decision.settled), math.inf)


def _at(series, time):
    for (t0, v0), (t1, v1) in itertools.pairwise(series):
        if t0 <= time <= t1:
            return v0 + (v1 - v0) * (time - t0) / (t1 - t0)
    return series[-1][1]


def play(sim, seconds, tuner=None, keep=64, history=()):
    """Run with a tuner, with the history of an earlier run or without one, from the initial knobs."""
    rates, cpus, knobs = [(0.0, 0.0)], [(0.0, 0.0)], [(0.0, dict(sim.knobs))]
    history, decisions = list(history), []
    jitter = random.Random(f"{sim.seed}/period")
    period = 0.1
    while sim.now < seconds:
        sim.run(period * (1 + jitter.random() * 0.2))
        history = compacted(history, sim.sample(), keep)
        rates.append((sim.now, sim.taken))
        cpus.append((sim.now, sim.cpu_total))
        if tuner is None:
            continue
        decision = tuner(history, sim.means_now())
        decisions.append((sim.now, decision))
        if decision.want_processes and sim.asked_at is None:
            sim.asked_at = sim.now
        period = decision.period
        new = dict(decision.knobs)
        if new != sim.knobs:
            sim.set(new)
            knobs.append((sim.now, new))
    return Outcome(rates, cpus, knobs, decisions, history)
