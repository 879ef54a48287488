"""Pipeline: all iterations over one plan during a recording, and figures computed from them."""

from __future__ import annotations

import time
import weakref
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.alone import Alone, LockProbe, copy_speed_here
from penstock.profiler.analysis.analyse import assembled
from penstock.profiler.analysis.figures import LARGE, Analysis
from penstock.profiler.analysis.meter import NOTHING, Cost, Costs, MeterKey
from penstock.profiler.analysis.places import AsWritten, as_written, places, steps_of
from penstock.profiler.analysis.together import LaneSamples, RunProgress, Together, _since
from penstock.profiler.recording.loop import ConsumingLoop, Waits
from penstock.profiler.recording.sampler import Looks
from penstock.profiler.recording.tracer import RunTracer, Tracks
from penstock.rewrite.driver import rewrite
from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.lane import Lane

_KEPT = 60  # progress marks, one per second
_RECENTLY = 5.0  # seconds covered by `recent`, if any element came in them
_MOST_CHOICES = 200  # decisions of AUTOTUNE that are stored


@dataclass(frozen=True, slots=True)
class Start:
    """The time before the first element of the first iteration: seconds, and the elements yielded by each step."""

    seconds: float
    made: dict[str, float]
    busy: dict[str, float]  # seconds of work and waiting of each step


class LaneWatch:
    """Samples of the lanes of a pipeline, and the decisions of AUTOTUNE about them."""

    def __init__(self) -> None:
        self.samples: dict[int, LaneSamples] = {}  # by node
        self.choices: deque[dict[str, Any]] = deque(maxlen=_MOST_CHOICES)
        self._knobs: dict[int, Knobs] = {}

    def again(self, now: float, node: int, lane: Lane, name: str) -> dict[str, Any]:
        """Sample one lane."""
        knobs, reason = lane.knobs, lane.reason
        look = self.samples.setdefault(node, LaneSamples())
        look.again(lane)
        del look.settings[:-2000:2], look.settings[:-4000]
        if self._knobs.get(node) != knobs:
            self._knobs[node] = knobs
            chosen = {"at": now, "lane": name, "workers": knobs.parallelism, "executor": knobs.executor}
            self.choices.append(chosen | {"reason": reason})
        limit = lane.window.limit
        held = {"held": lane.held, "room": int(limit) if limit < 1 << 62 else None}
        return {"lane": name, "busy": lane.busy, "workers": knobs.parallelism, **held}


class Pipeline:
    """One plan, or plans of one shape created at the same lines: those of the epochs of a training run."""

    def __init__(self, name: str, plan: Node, options: Options, tracks: Tracks) -> None:
        self.name = name
        self.options = options
        self.plan = plan
        self.tracer = RunTracer(plan, tracks)
        self.looks = Looks()
        self.lanes = LaneWatch()
        self._zero = RunProgress(time.perf_counter(), {}, {}, cpu=time.process_time())
        self.loop = ConsumingLoop(self._zero.at)
        self.start: Start | None = None
        self.written: weakref.ref[Node] | None = None  # the plan of the latest iteration, as the user wrote it
        self.as_written: AsWritten | None = None  # the plan of the first iteration, for the report
        self._recent: deque[tuple[RunProgress, Waits]] = deque(maxlen=_KEPT)  # progress, one second apart
        self._first: RunProgress | None = None
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
        self.loop.began()
        self.written = weakref.ref(written)
        if self.as_written is None and self.tracer.tracks.are_kept:
            self.as_written = as_written(written, rewrite(written, self.options)[1])
        self._recent.clear()
        self.tracer.begin(copy)

    def refilled(self, asked: float, got: float, cpu: float, steps: int, *, first: bool) -> None:
        """Record that the loop requested and received a Block of `steps` elements; 0 for a failure or the end."""
        self.loop.cells = self.tracer.cells_of_this_thread()
        self.loop.refilled(asked, got, cpu, steps, first=first)
        if first and self._first is None:
            self._first = self._mark(got)
            self._note_start(got - asked)

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
        return RunProgress(
            now,
            self.tracer.costs(),
            self.tracer.flows(),
            self.loop.taken,
            self.loop.failures,
            self.loop.cpu(),
            time.process_time() + self.tracer.away(),
            self.loop.between(now),
        )

    def watch(self, now: float) -> list[dict[str, Any]]:
        """Sample the lanes: their fill, and changes by AUTOTUNE."""
        lanes = list(self.tracer.lanes.items())
        found = [self.lanes.again(now, node, lane, self._names.get(node, lane.name)) for node, lane in lanes]
        if self.loop.running:
            self._recent.append((self._mark(now), self.loop.waits_now(now)))
        return found

    def recent(self) -> tuple[Analysis, Waits]:
        """Return the figures of the last seconds, extended until they contain an element; without one, all figures."""
        now = time.perf_counter()
        waits, marks = self.loop.waits_now(now), list(self._recent)
        late = [each for each in marks if each[0].at <= now - _RECENTLY and each[0].taken < self.loop.taken]
        if not self.loop.running or not late:
            return self.analysis(), waits
        mark, before = late[-1]
        names = "steps", "waited", "starting", "running"
        since = replace(waits, **{name: getattr(waits, name) - getattr(before, name) for name in names})
        return self.analysis(mark, since), since

    def totals(self) -> Analysis:
        """Return `analysis` for the time from the start, so that counts of elements never decrease."""
        return self.analysis(self._zero)

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
            first, before = self._zero, {key: cost for key, cost in calls if key.part != "take"}
        loop = self.loop.waits
        made = loop.steps if loop.whole_passes == 1 and loop.passes == 1 else None
        return Together(
            self.tracer,
            begin=first,
            end=end,
            costs=_since(before, end.costs),
            looks=dict(self.lanes.samples),
            passes=loop.whole_passes,
            epoch=made,
            first_failure=self.loop.first_failure,
        )

    def analysis(self, begin: RunProgress | None = None, since: Waits | None = None) -> Analysis:
        """Return the figures of steady work, as in `explain(analyze=True)`; or those since `begin`, with its waits."""
        together = self.together(begin)
        waits = self.loop.waits_now() if since is None else since
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
            costs[key] = cost._replace(wall=cost.cpu + waited)
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
