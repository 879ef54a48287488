"""View: how the run does under the setting that proved best, and which segment limits it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.autotune.figures import Flow, Knobs, Means
from penstock.runtime.autotune.measure import Measure, idle, measure, starvation
from penstock.runtime.autotune.trials import CONTENT
from penstock.runtime.autotune.tuner_state import TunerState

_SATURATED = 0.85  # of the granted cores in use: work is shared out by demand, and no knob makes it less
_CROWDED = 0.1  # of the granted cores idle, when programs beside this one use the rest
_QUEUE = 0.3  # workers ready and without a core, for each granted core, that say the same
_TAKES_PART = 0.25  # of the granted cores in use by a run that would be faster alone; one that sleeps uses less
_SERIAL = 0.7  # share of its time at work from which on a puller limits a segment by itself
_WAITS = 0.3  # share of its time that a segment's puller waits for upstream, when upstream is what limits it
_BLOCKED = 0.1  # share without room, while the consumer waits: a slow element holds up those behind it


@dataclass(frozen=True, slots=True)
class View:
    """The setting that proved best, measured."""

    state: TunerState
    means: Means
    flows: Mapping[str, Flow]  # as last seen
    measures: Mapping[str, Measure]
    hunger: float  # share of the time that the user's loop waited
    used: float  # cores
    idle: float  # cores that nobody used, infinity if that is not known

    @property
    def knobs(self) -> Mapping[str, Knobs]:
        return self.state.knobs

    @property
    def cores(self) -> int:
        """Workers that keep all granted cores busy."""
        return max(1, math.ceil(self.means.cpus))

    @property
    def content(self) -> bool:
        """Whether the consumer is the slow side: it does not wait, and there is always something for it to take."""
        roots = [self.measures[name] for name in self.roots()]
        return self.hunger < CONTENT and all(found.held_least > 0 or not found.result_bytes for found in roots)

    def roots(self) -> list[str]:
        """Segments whose results the user's loop takes."""
        return [name for name, flow in self.flows.items() if flow.consumer not in self.flows] or list(self.flows)

    @property
    def ahead(self) -> float:
        """Cores that fill windows for which nobody waits: what is needed more gets them at once."""
        return sum(found.cores for found in self.measures.values() if max(found.starved, found.full) < CONTENT)

    @property
    def saturated(self) -> bool:
        """Whether this run needs all cores that it is granted."""
        return self.used - self.ahead >= _SATURATED * self.means.cpus

    @property
    def crowded(self) -> bool:
        """Whether it is granted more cores than there are, as other programs use them: more workers make no more."""
        cpus = self.means.cpus
        if math.isfinite(self.idle):
            lacking = self.idle + self.ahead <= _CROWDED * cpus
        else:  # many workers that pass the interpreter on queue for cores as well, while others stand idle
            lacking = sum(found.delayed for found in self.measures.values()) - self.ahead >= _QUEUE * cpus
        return lacking and self.used - self.ahead >= _TAKES_PART * cpus

    @property
    def handing_over(self) -> float:
        """Cores that are used outside functions and pulls: Blocks on their way, and the user's loop."""
        return max(self.used - sum(found.cores for found in self.measures.values()), 0.0)

    def one_core(self) -> bool:
        """Several threads are at work, and together they compute on one core, as where each needs a lock."""
        inside = [name for name in self.measures if self.knobs[name].executor == "thread"]
        workers = sum(self.knobs[name].parallelism for name in inside)
        return excluding(workers, [self.measures[name] for name in inside], self.used)

    def path(self) -> list[str]:
        """Segments from the user's loop to the one that limits them all."""
        found: list[str] = []
        candidates = self.roots()
        while candidates:
            name = max(candidates, key=lambda name: self.measures[name].starved)
            if found and self.measures[name].starved < _WAITS / 2:
                break
            found.append(name)
            if self.measures[name].waiting < _WAITS:
                break
            candidates = [n for n, flow in self.flows.items() if flow.consumer == name and n not in found]
        return found

    def blocked(self, name: str) -> bool:
        """Whether the segment had no room while its consumer waited."""
        found = self.measures[name]
        return found.full >= _BLOCKED and found.starved >= _BLOCKED


def excluding(workers: int, inside: Sequence[Measure], used: float) -> bool:
    """Whether workers look as if each kept the others waiting, inside functions or before they get there."""
    busy = sum(found.busy - found.delayed for found in inside)
    cores = sum(found.cores for found in inside)
    if workers < 2 or cores < 0.5 or any(found.pulling >= _SERIAL for found in inside):
        return False
    if busy >= 1.4:
        return cores < 0.8 * busy and 0.75 <= used <= 1.4
    idle = max((max(found.waiting, found.full) for found in inside), default=0.0)
    return idle < CONTENT and 0.85 <= used <= 1.2


def view(state: TunerState, means: Means) -> View:
    latest = {flow.name: flow for period in state.periods[-2:] for flow in period.samples[-1].flows}
    flows = {name: flow for name, flow in latest.items() if name in state.knobs}
    tails = {name: state.since.tail(name) for name in flows}
    measures = {name: measure(tail, name) for name, tail in tails.items()}
    longest = max(tails.values(), key=len, default=())
    used = max((m.used for m in measures.values()), default=0.0)
    return View(state, means, flows, measures, starvation(longest), used, idle(longest))
