"""Driver samples the lanes of a run, calls the tuner, and sets the knobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.opencv import limit_threads
from penstock.runtime.autotune.figures import Decision, Flow, Knobs, Means, Sample, TunerLimits
from penstock.runtime.autotune.remembered import (
    Remembered,
    inputs_were_quick,
    last_pass,
    recall,
    remember,
    remember_inputs,
    remember_pass,
)
from penstock.runtime.autotune.tuner import decide
from penstock.runtime.autotune.tuner_state import compacted, continued, tuner_state
from penstock.runtime.lane import Lane
from penstock.runtime.machine.granted import granted_cpus, idle_seconds, outside_cpu, share
from penstock.runtime.machine.switching import Switching
from penstock.runtime.memory.ledger import Ledger
from penstock.runtime.observers import Instrument
from penstock.runtime.processes.pool import ProcessPool
from penstock.runtime.scheduler import Scope

_FIRST_LOOK = 0.1  # seconds after the first result
_BEGINS = 0.2  # seconds until an iteration reaches its speed, if an earlier iteration measured that speed
_PROCESSES_COME = 20.0  # seconds, on a machine that can start them
_SAVE_AFTER = 2.0  # seconds between two writes of the results
_NEVER = float("inf")
_LEAST_PATIENCE = 0.02  # shortest wait in seconds while another thread samples


@dataclass(frozen=True, slots=True)
class _Readings:
    """Readings in seconds: of a clock, of the CPU time of this process and its workers, and of idle processors."""

    wall: float
    cpu: float
    idle: float | None
    delays: Mapping[Any, float]  # by worker: time in which it was ready but had no core
    outside: Mapping[Any, float] | None  # by other thread: CPU time


class Driver:
    """Controls the lanes of one run.

    The Driver has no thread. A thread that has finished a task, or a wait for one, calls `look` when it is `due`.
    """

    def __init__(
        self,
        instrument: Instrument,
        threads: Scope,
        memory: Ledger,
        switching: Switching,
        *,
        means: Callable[[], Means],
        processes: Callable[[], ProcessPool],
        tuned: bool,
        digest: Callable[[], str] | None = None,
    ) -> None:
        self.instrument = instrument
        self.memory = memory
        self.due = 0.0 if tuned else _NEVER
        self._switching = switching
        self._threads = threads
        self._means = means
        self._processes = processes
        self._ask_digest = digest if tuned else None
        self._digest: str | None = None  # of the plan; set with the first lane
        self._known: dict[str, Remembered] = {}
        self._before: Sequence[Sample] = ()  # the history of the last iteration
        self._proved: Mapping[str, Knobs] = {}
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._history: list[Sample] = []
        self._last: _Readings | None = None  # at the last sample
        self._beginning = False  # present measurements do not count: an earlier iteration measured this setting
        self._saved = 0.0
        self._asked: float | None = None  # time of the first request for processes

    @property
    def lanes(self) -> list[Lane]:
        with self._lock:
            return list(self._lanes.values())

    def lane(
        self,
        place: tuple[int, str, str | None],
        knobs: Knobs,
        limits: TunerLimits,
        *,
        bounded: bool,
        reads: bool = False,
        executors: Callable[[], tuple[str, ...]] | None = None,
    ) -> Lane:
        """Return the lane of a place in the plan.

        A place consists of the number of segments between it and the consumer, a label, and a line of the user.
        """
        depth, label, where = place
        key = (*place, limits.least, limits.most, bounded)
        with self._lock:
            if not self._lanes:
                self._recall()
            found = self._lanes.get(key)
            if found is None:
                alike = sum(1 for other in self._lanes if other[:2] == (depth, label))
                name = f"{depth}:{label}" + (f"#{alike + 1}" if alike else "")
                window = self.memory.window(label, where=where)
                found = Lane(
                    name, label, knobs, limits, window, where=where, bounded=bounded, reads=reads, executors=executors
                )
                known = self._known.get(name)
                if name in self._proved:
                    found.turn(_within(self._proved[name], knobs, found), None if known is None else known.reason)
                elif known is not None:
                    found.turn(_within(_added(known.knobs, knobs), knobs, found), known.reason)
                self._lanes[key] = found
            return found

    def _recall(self) -> None:
        """Load the known settings of the plan.

        Called with the first lane, because it costs as much as a short iteration.
        """
        if self._ask_digest is not None:
            self._digest = self._ask_digest()
            self._known, self._before = recall(self._digest), last_pass(self._digest)
            if len(self._before) > 1:
                self._proved = tuner_state(continued(self._before, 0.0)).knobs

    def inputs_were_quick(self, lane: Lane) -> bool:
        """Return True if the inputs that a lane reads took no time in the previous iteration."""
        return self._digest is not None and inputs_were_quick(self._digest, lane.name)

    def found_inputs(self, lane: Lane, *, quick: bool) -> None:
        """Record for the next iteration if an input of a lane took no time."""
        if self._digest is not None:
            remember_inputs(self._digest, lane.name, quick=quick)

    def workers(self) -> int:
        """Return the number of threads that the lanes need.

        Lanes that compute share the cores. Each lane that waits gets the threads that it asks for.
        """
        cores = granted_cpus()
        lanes = self.lanes
        computing = sum(lane.calls for lane in lanes if lane.calls_each <= cores)
        return min(computing, cores) + sum(lane.calls for lane in lanes if lane.calls_each > cores)

    def want(self) -> None:
        """Start or stop threads according to the present need of the lanes."""
        self._threads.want(self.workers())

    def patience(self) -> float | None:
        """Return the seconds that a thread may wait before the next sample is due, or None if no thread samples."""
        return None if self.due == _NEVER else max(self.due - time.perf_counter(), _LEAST_PATIENCE)

    def look(self, now: float) -> None:
        """Take a sample, decide, and set the knobs. Return at once if another thread does this."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            if now < self.due:
                return
            limit_threads()  # a function may have imported OpenCV since the last sample
            delays = self._threads.delays()
            clocks = _Readings(
                now,
                time.process_time() + sum(lane.choice.cpu_seconds() for lane in self.lanes),
                idle_seconds(),
                delays,
                outside_cpu(delays),
            )
            if self._last is None or self._beginning:
                for lane in self.lanes:
                    lane.flow()
                self._beginning = self._last is None and bool(self._proved)
                self.due = now + (_BEGINS if self._beginning else _FIRST_LOOK)
            else:
                self._look(clocks, self._last)
                # Last, because the measurement may take some milliseconds, which belong to the next period.
                self._switching.measure(share(clocks.outside, self._last.outside, now - self._last.wall))
            self._last = clocks
        finally:
            self._looking.release()

    def _look(self, now: _Readings, before: _Readings) -> None:
        flows = _with_delays([lane.flow() for lane in self.lanes], now, before)
        means, cpu = self._means(), now.cpu - before.cpu
        idle = None
        if now.idle is not None and before.idle is not None:  # a quota may be smaller than the idle time
            idle = max(min(now.idle - before.idle, means.cpus * (now.wall - before.wall) - cpu), 0.0)
        if not self._history:
            self._history = continued(self._before, before.wall)
            self._before = ()
        self._history = compacted(self._history, Sample(before.wall, now.wall, cpu, flows, idle))
        if self._digest is not None:
            remember_pass(self._digest, self._history)
        decision = decide(self._history, means)
        if decision.want_processes:
            self._ask_for_processes(now.wall)
        changed = False
        for lane in self.lanes:
            knobs = decision.knobs.get(lane.name, lane.knobs)
            changed |= knobs.parallelism != lane.knobs.parallelism
            lane.turn(knobs, _reason(decision, lane))
        if changed:
            self.want()
        self.due = now.wall + decision.period
        if decision.settled and not decision.crowded and now.wall > self._saved + _SAVE_AFTER:
            self._save(decision, flows, now.wall - before.wall)
            self._saved = now.wall

    def _ask_for_processes(self, now: float) -> None:
        """Start worker processes. If they do not start in time, give up the wait for them."""
        processes = self._processes()
        processes.warm_up()
        self._asked = now if self._asked is None else self._asked
        if now > self._asked + _PROCESSES_COME and not processes.ready():
            for lane in self.lanes:
                lane.choice.stay("worker processes did not start")

    def _save(self, decision: Decision, flows: tuple[Flow, ...], seconds: float) -> None:
        if self._digest is None:
            return
        found = {}
        for flow in flows:
            if flow.limits.least == flow.limits.most and len(flow.limits.executors) == 1:
                continue
            rate = flow.elements / seconds if seconds else 0.0
            cost = flow.run_cpu / flow.elements * 1e6 if flow.elements else 0.0
            found[flow.name] = Remembered(flow.knobs, decision.reasons.get(flow.name, ""), rate, cost)
        if found:
            remember(self._digest, found)


def _reason(decision: Decision, lane: Lane) -> str | None:
    """Return the reason for the knobs, and the obstacle to other knobs."""
    found = decision.reasons.get(lane.name)
    if found is None:
        return lane.reason
    return found if lane.choice.obstacle is None else f"{found}; {lane.choice.obstacle}"


def _with_delays(flows: list[Flow], now: _Readings, before: _Readings) -> tuple[Flow, ...]:
    """Divide the time that workers waited for a core among the lanes, in proportion to their working time."""
    delayed = sum(seconds - before.delays.get(thread, 0.0) for thread, seconds in now.delays.items())
    spent = sum(flow.run_seconds + flow.pull_seconds for flow in flows)
    if not delayed > 0 or not spent > 0:
        return tuple(flows)
    share = min(delayed / spent, 1.0)
    return tuple(replace(flow, delayed=share * flow.run_seconds) for flow in flows)


def _added(known: Knobs, start: Knobs) -> Knobs:
    """Return the knobs of an earlier process, with no fewer workers and no smaller window than the start of a run.

    The earlier process may have refused a change in a bad moment, so the change is tried again.
    """
    return replace(known, parallelism=max(known.parallelism, start.parallelism), window=max(known.window, start.window))


def _within(known: Knobs, start: Knobs, lane: Lane) -> Knobs:
    """Return the remembered knobs within the limits of this run."""
    limits = lane.choice.limits
    executor = known.executor if known.executor in limits.executors else start.executor
    return replace(known, parallelism=limits.bounded(known.parallelism, executor), executor=executor)
