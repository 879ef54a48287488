"""Tracer: a Meter that also keeps each call as a span, and knows what every thread is at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.plan.node import Node
from penstock.plan.scan import Scan
from penstock.profiler.analysis.meter import Frame, Key, Meter, _Cell, _count, _Local
from penstock.profiler.analysis.places import steps_of
from penstock.profiler.recording.tracks import Tracks

_SHORTEST = 2e-5  # seconds; what is shorter is in the sums only


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
        """The same call, measured and kept; one wrapper for both, since it is called for every Block."""
        if key.part == "take":
            return super().measured(call, key, pulls=pulls)  # it waits for what others do
        name, tracks, local = self._tracks.name(self._title(key)), self._tracks, self._local
        if isinstance(self.nodes[key.node], Scan):
            tracks.reading.add(name)
        wall, cpu = time.perf_counter, time.thread_time

        def call_traced(*arguments: Any) -> Any:
            frames = local.frames
            frame = Frame(key)
            frames.append(frame)
            failed, result = 0, None
            began, worked = wall(), cpu()
            try:
                result = call(*arguments)
            except Exception:
                failed = 1
                raise
            finally:
                work, took = cpu() - worked, wall() - began
                frames.pop()
                if frames:
                    outer = frames[-1]
                    outer.wall += took
                    outer.cpu += work
                cell = local.cells.get(key)
                if cell is None:
                    cell = local.cells[key] = [0.0] * 7
                cell[0] += 1
                cell[5] += took - frame.wall
                cell[6] += work - frame.cpu
                _count(cell, arguments, result, failed)
                if took > _SHORTEST:
                    tracks.ring().append((name, int(began * 1e9), int(took * 1e9)))
            return result

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
