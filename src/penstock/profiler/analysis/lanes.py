"""Lanes: assigns steps of a plan to threads. Lanes begin at the hand-overs of a run."""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.profiler.analysis.figures import LOOP, LaneFigures
from penstock.profiler.analysis.places import Place
from penstock.profiler.analysis.together import LaneSamples, Together
from penstock.runtime.autotune.figures import Knobs


class Lanes:
    """The lanes of one iteration."""

    def __init__(self, found: list[Place], plan: Node, together: Together) -> None:
        self._together = together
        self._names = {id(place.node): place.name for place in found}  # name of its step nearest to the consumer
        self._by_node: dict[int, str] = {}
        self._consumers: dict[str, str] = {}
        self._owners: dict[str, Node] = {}
        self._enter(plan, LOOP)

    def _enter(self, node: Node, lane: str) -> None:
        if id(node) in self._by_node:
            return
        own = self._names.get(id(node))
        if own is None:  # a prefetch that is not a step of its own
            pass
        elif id(node) in self._together.meter.segments:
            self._consumers[own], self._owners[own] = lane, node
            lane = own
        elif id(node) in self._together.meter.lanes:
            self._consumers[f"{own} inputs"], self._owners[f"{own} inputs"] = lane, node
        self._by_node[id(node)] = lane
        for below in node.inputs:
            self._enter(below, lane)

    def of(self, place: Place) -> tuple[str, bool]:
        """Return the lane of a step, and True if several of its workers run it at the same time."""
        return self._by_node[id(place.node)], id(place.node) in self._together.meter.segments

    def of_inputs(self, place: Place) -> tuple[str, bool]:
        """Return the lane of the data sets that a step opens, and True if several workers run them at the same time."""
        own = f"{place.name} inputs"
        return (own, True) if own in self._owners else (self._by_node[id(place.node)], False)

    def executor(self, place: Place) -> str:
        return self._settings(place.node)[0].executor

    def _settings(self, node: Node) -> tuple[Knobs, str | None]:
        look, lane = self._together.looks.get(id(node)), self._together.meter.lanes.get(id(node))
        seen = None if look is None else look.mostly(self._together.begin.at)
        if seen is not None or lane is None:
            return seen or (Knobs(1), None)
        return lane.knobs, lane.reason

    def all(self, elapsed: float) -> tuple[LaneFigures, ...]:
        return (LaneFigures(LOOP), *(self._lane(name, node, elapsed) for name, node in self._owners.items()))

    def _lane(self, name: str, node: Node, elapsed: float) -> LaneFigures:
        flow = self._together.end.flows[id(node)]
        look = self._together.looks.get(id(node), LaneSamples())
        knobs, reason = self._settings(node)
        return LaneFigures(
            name,
            self._consumers[name],
            workers=knobs.parallelism,
            executor=knobs.executor,
            autotuned=flow.limits.least < flow.limits.most,
            starved=self._share(node, "starved", elapsed),
            full=self._share(node, "full", elapsed),
            busy=look.busy / look.looks if look.looks else 0.0,
            held_bytes=max(look.held, flow.held_most),
            window=int(self._together.meter.lanes[id(node)].window.limit),
            reason=reason,
        )

    def _share(self, node: Node, field: str, elapsed: float) -> float:
        return min(max(self._together.flow(id(node), field) / elapsed, 0.0), 1.0)
