"""Pipeline: all iterations over one plan during a recording, and figures computed from them."""

from __future__ import annotations

import time
import weakref
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.alone import Alone, LockProbe, copy_speed_here
from penstock.profiler.analysis.analyse import assembled
from penstock.profiler.analysis.figures import LARGE, Analysis
from penstock.profiler.analysis.meter import NOTHING, Cost, Costs, MeterKey
from penstock.profiler.analysis.places import AsWritten, as_written, places, steps_of
from penstock.profiler.analysis.together import LaneSamples, RunProgress, Together, _since
from penstock.profiler.recording.sampler import Looks
from penstock.profiler.recording.tracer import RunTracer, Tracks
from penstock.rewrite.driver import rewrite
from penstock.runtime.autotune.figures import Knobs

_KEPT = 60  # progress marks, one per second
_RECENTLY = 5.0  # seconds covered by `recent`, if any element came in them
_MOST_CHOICES = 200  # decisions of AUTOTUNE that are stored
_BUCKETS = 40  # buckets for waiting times: bucket i contains those below 2**i microseconds


@dataclass(slots=True)
class Waits:
    """Waiting times of the loop. Sums are exact; times in seconds."""

    steps: int = 0  # elements (batches) that the loop received
    waited: float = 0.0  # total
    starting: float = 0.0  # the part before the first element of each iteration
    longest: float = 0.0
    running: float = 0.0  # from the first request of each iteration to its end
    passes: int = 0
    whole_passes: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * _BUCKETS)  # number of waits per bucket

    def add(self, seconds: float, steps: int) -> None:
        self.waited += seconds
        self.longest = max(self.longest, seconds)
        self.steps += steps
        self.histogram[min(int(seconds * 1e6).bit_length(), _BUCKETS - 1)] += 1


@dataclass(frozen=True, slots=True)
class Start:
    """The time before the first element of the first iteration: seconds, and the elements yielded by each step."""

    seconds: float
    made: dict[str, float]
    busy: dict[str, float]  # seconds of work and waiting of each step


class Pipeline:
    """One plan, or plans of one shape created at the same lines: those of the epochs of a training run."""

    def __init__(self, name: str, plan: Node, options: Options, tracks: Tracks) -> None:
        self.name = name
        self.options = options
        self.plan = plan
        self.tracer = RunTracer(plan, tracks)
        self._for_report = tracks.are_kept
        self.looks = Looks()
        self.waits = Waits()
        self.start: Start | None = None
        self.running = 0  # number of running iterators
        self.written: weakref.ref[Node] | None = None  # the plan of the latest iteration, as the user wrote it
        self.as_written: AsWritten | None = None  # the plan of the first iteration, for the report
        self.asking: float | None = None  # start of the current wait of the loop
        self._pass_began: float | None = None  # time of the first request of the current iteration
        self._recent: deque[tuple[RunProgress, Waits]] = deque(maxlen=_KEPT)  # progress, one second apart
        self.choices: deque[dict[str, Any]] = deque(maxlen=_MOST_CHOICES)
        self.first_failure: Exception | None = None
        self.failures = 0
        self._refill_cpu = 0.0
        self._loop_cells: dict[MeterKey, Any] = {}
        self._settings: dict[int, LaneSamples] = {}
        self._knobs: dict[int, Knobs] = {}
        self._begun_at = time.perf_counter()
        self._cpu_at = time.process_time()
        self._first: RunProgress | None = None
        self._between = 0.0
        self._left_at: float | None = self._begun_at
        found = places(plan)
        self._names = {id(place.node): place.name for place in found}  # name of its step nearest to the consumer
        self._joined = {
            (id(place.node), index): place.name
            for place in found
            for index, step in enumerate(steps_of(place.node))
            if step is place.step
        }

    # -- called by the loop

    def began(self, copy: Node, written: Node) -> None:
        self.running += 1
        self.written = weakref.ref(written)
        if self.as_written is None and self._for_report:
            self.as_written = as_written(written, rewrite(written, self.options)[1])
        self._pass_began = None
        self._recent.clear()
        self.waits.passes += 1
        self.tracer.begin(copy)

    def refilled(self, asked: float, got: float, cpu: float, steps: int, *, first: bool) -> None:
        """Record that the loop requested and received a Block of `steps` elements; 0 for a failure or the end."""
        if self._left_at is not None:
            self._between += max(asked - self._left_at, 0.0)
            self._left_at = None
        self.asking = None
        if first:
            self._pass_began = asked
        self._refill_cpu += cpu
        self._loop_cells = self.tracer.cells_of_this_thread()
        self.waits.add(got - asked, steps)
        if first:
            self.waits.starting += got - asked
            if self._first is None:
                self._first = self._mark(got)
                self._note_start(got - asked)

    def failed(self, error: Exception) -> None:
        self.failures += 1
        self.first_failure = self.first_failure or error

    def ended(self, began: float, now: float, *, whole: bool) -> None:
        self.running -= 1
        self.waits.running += now - began
        self.waits.whole_passes += whole
        self._pass_began, self.asking = None, None
        if not self.running:
            self._left_at = now

    def _name_of(self, key: MeterKey) -> str | None:
        """Return the step that a call belongs to: one of several fused steps, or the last of them."""
        if key.part == "step":
            return self._joined.get((key.node, key.step))
        return self._names.get(key.node)

    def _note_start(self, seconds: float) -> None:
        made: dict[str, float] = {}
        busy: dict[str, float] = {}
        for key, cost in self.tracer.costs().items():
            node = key.node
            while node in self.tracer.opened_by and node not in self._names:
                node = self.tracer.opened_by[node]
            name = self._name_of(key) if key.node == node else self._names.get(node)
            if name is not None and key.part != "take":
                if key.node == node:
                    made[name] = max(made.get(name, 0.0), cost.elements)
                busy[name] = busy.get(name, 0.0) + cost.wall
        self.start = Start(seconds, made, busy)

    # -- called by the writer

    def _mark(self, now: float) -> RunProgress:
        between = self._between + (0.0 if self._left_at is None else now - self._left_at)
        loop = max(self._refill_cpu - sum(cell[6] for cell in list(self._loop_cells.values())), 0.0)
        return RunProgress(
            now,
            self.tracer.costs(),
            self.tracer.flows(),
            self.waits.steps + self.failures,
            self.failures,
            loop,
            time.process_time() + self.tracer.away(),
            between,
        )

    def watch(self, now: float) -> list[dict[str, Any]]:
        """Sample the lanes: their fill, and changes by AUTOTUNE."""
        found = []
        for node, lane in list(self.tracer.lanes.items()):
            knobs, reason = lane.knobs, lane.reason
            look = self._settings.setdefault(node, LaneSamples())
            look.again(lane)
            del look.settings[:-2000:2], look.settings[:-4000]
            name = self._names.get(node, lane.name)
            if self._knobs.get(node) != knobs:
                self._knobs[node] = knobs
                chosen = {"at": now, "lane": name, "workers": knobs.parallelism, "executor": knobs.executor}
                self.choices.append(chosen | {"reason": reason})
            limit = lane.window.limit
            held = {"held": lane.held, "room": int(limit) if limit < 1 << 62 else None}
            found.append({"lane": name, "busy": lane.busy, "workers": knobs.parallelism, **held})
        if self.running:
            self._recent.append((self._mark(now), self.waits_now(now)))
        return found

    def waits_now(self, now: float | None = None) -> Waits:
        """Return the waiting times including the current iteration and the current wait."""
        now = time.perf_counter() if now is None else now
        since, began = self.asking, self._pass_began
        found = replace(self.waits)
        if since is not None:
            found.waited += max(now - since, 0.0)
            if began is None:
                began = since
                found.starting += max(now - since, 0.0)
        if began is not None:
            found.running += max(now - began, 0.0)
        return found

    def recent(self) -> tuple[Analysis, Waits]:
        """Return the figures of the last seconds, extended until they contain an element; without one, all figures."""
        now = time.perf_counter()
        waits, marks = self.waits_now(now), list(self._recent)
        taken = self.waits.steps + self.failures
        late = [each for each in marks if each[0].at <= now - _RECENTLY and each[0].taken < taken]
        if not self.running or not late:
            return self.analysis(), waits
        mark, before = late[-1]
        names = "steps", "waited", "starting", "running"
        since = replace(waits, **{name: getattr(waits, name) - getattr(before, name) for name in names})
        return self.analysis(mark, since), since

    def totals(self) -> Analysis:
        """Return `analysis` for the time from the start, so that counts of elements never decrease."""
        return self.analysis(self._zero())

    def _zero(self) -> RunProgress:
        return RunProgress(self._begun_at, {}, {}, cpu=self._cpu_at)

    def together(self, begin: RunProgress | None = None) -> Together:
        """Return the measurements since the first element.

        The time before it, with first calls and full buffers, is separate.
        """
        now = time.perf_counter()
        end = self._mark(now)
        first = self._first if begin is None else begin
        before = {} if first is None else first.costs
        if first is None or (begin is None and end.taken <= first.taken):  # only a first element came
            calls = self.tracer.first_calls.items()
            first, before = self._zero(), {key: cost for key, cost in calls if key.part != "take"}
        made = self.waits.steps if self.waits.whole_passes == 1 and self.waits.passes == 1 else None
        return Together(
            self.tracer,
            begin=first,
            end=end,
            costs=_since(before, end.costs),
            looks=dict(self._settings),
            passes=self.waits.whole_passes,
            epoch=made,
            first_failure=self.first_failure,
        )

    def analysis(self, begin: RunProgress | None = None, since: Waits | None = None) -> Analysis:
        """Return the figures of steady work, as in `explain(analyze=True)`; or those since `begin`, with its waits."""
        together = self.together(begin)
        waits = self.waits_now() if since is None else since
        taken = max(together.end.taken - together.begin.taken, 1)
        # `elapsed` begins after the first element of the first iteration. It includes the start-up time of later
        # iterations.
        start = self.start if together.begin is self._first else None
        before, starting = (0.0, 0.0) if start is None else (start.seconds, waits.starting)
        consumer = max(together.elapsed - (waits.waited - before), 0.0) / taken if waits.steps else 0.0
        found = assembled(self.plan, self.options, self._as_if_alone(together), together, consumer)
        share = (waits.waited - starting) / max(waits.running - starting, 1e-9)
        return replace(found, consumer_waited=min(max(share, 0.0), 1.0))

    def _as_if_alone(self, together: Together) -> Alone:
        """Return the same costs without delays by other threads: waiting for elements, for a core, for the GIL."""
        held = self.looks.held()
        costs: Costs = {}
        probe = LockProbe([])
        for key, cost in together.costs.items():
            waited = 0.0 if key.part == "take" else self.looks.waiting(key, cost.wall, cost.cpu)
            costs[key] = replace(cost, wall=cost.cpu + waited)
            if key in held:  # as a share of its work; a probe counts outside waiting as time, too
                probe.asked[key] = round(1e9 * (cost.cpu + waited))
                probe.waited[key] = round(1e9 * cost.cpu * held[key])
        for node, lane in self.tracer.lanes.items():
            if lane.knobs.executor == "process":
                self._put_away(costs, node, together)
        large = any(cost.nbytes > LARGE * cost.elements for cost in costs.values())
        return Alone(self.tracer, costs, probe, slowed=1.0, copy_speed=copy_speed_here() if large else 0.0)

    def _put_away(self, costs: Costs, node: int, together: Together) -> None:
        """Assign the CPU time of worker processes to the last step of a node whose functions ran there."""
        flow = together.flow(node, "run_cpu")
        here = sum((costs.pop(key) for key in list(costs) if key.node == node), NOTHING)
        last = max((key.step for key in together.costs if key.node == node), default=0)
        inputs = together.flow(node, "inputs")
        spent = max(flow - here.cpu, 0.0)
        costs[MeterKey(node, "step", last)] = Cost(1.0, inputs, inputs, wall=spent, cpu=spent)
