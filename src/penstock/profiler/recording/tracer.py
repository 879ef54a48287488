"""Tracer: a Meter that also keeps each call as a span, and knows what every thread is at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.plan.node import Node
from penstock.profiler.analysis.meter import Frame, Key, Meter, _Cell, _Local
from penstock.profiler.analysis.places import steps_of
from penstock.profiler.recording.tracks import Tracks

_SHORTEST = 5_000  # nanoseconds; what is shorter is in the sums only


class Tracer(Meter):
    """Measures all passes over plans of one shape; each is begun with `begin`."""

    def __init__(self, plan: Node, tracks: Tracks) -> None:
        self.threads: list[tuple[int, list[Frame], dict[Key, _Cell]]] = []  # native number, calls, cells
        self._tracks = tracks
        super().__init__(plan, warm=True)
        self._local = _Own(self._cells, self.threads)

    def begin(self, copy: Node) -> None:
        """Another pass: nodes of earlier ones are let go of."""
        self._copies, self._numbers = [], {}
        super().begin(copy)

    def measured(self, call: Callable[..., Any], key: Key, *, pulls: bool = False) -> Callable[..., Any]:
        inner = super().measured(call, key, pulls=pulls)
        if key.part == "take":
            return inner  # it waits for what others do
        name, ring, clock = self._tracks.name(self._title(key)), self._tracks.ring, time.perf_counter_ns

        def call_traced(*arguments: Any) -> Any:
            began = clock()
            try:
                return inner(*arguments)
            finally:
                took = clock() - began
                if took > _SHORTEST:
                    ring().append((name, began, took))

        return call_traced

    def _title(self, key: Key) -> str:
        node = self.nodes[key.node]
        if key.part == "step":
            steps = steps_of(node)
            return steps[min(key.step, len(steps) - 1)].label
        return f"pull for {node.label}" if key.part == "pull" else node.label

    def cells_of_this_thread(self) -> dict[Key, _Cell]:
        return self._local.cells


class _Own(_Local):
    """A thread's calls and cells, and its number, by which the system tells its state."""

    def __init__(self, all_cells: list[dict[Key, _Cell]], threads: list[Any]) -> None:
        super().__init__(all_cells)
        threads.append((threading.get_native_id(), self.frames, self.cells))
