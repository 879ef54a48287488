"""Costs of the steps of a plan in a complete iteration, stored for later runs on this machine.

`Uses` manages the automatic caches in files: their folders, and the disk space they may use.

There is one small JSON file per plan in the user's cache directory, next to those of the tuner. A damaged file counts
as missing, and write errors are ignored. The file contains names of steps, seconds and bytes. `PENSTOCK_REMEMBER=0`
turns this off.
"""

from __future__ import annotations

import math
import shutil
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from penstock.forked import new_lock
from penstock.options import Options
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.profiler.analysis.meter import NOTHING, Cost, Costs, Meter, MeterKey
from penstock.profiler.analysis.places import Place, steps_of
from penstock.profiler.placement.choose import Spot
from penstock.runtime.autotune.remembered import (
    DAMAGED,
    cache_folder,
    machine_key,
    read_small,
    small_file,
    write_small,
)
from penstock.store.entry import kept_below, make_room, size_of
from penstock.store.lock import Lock, use

Figures = Mapping[str, tuple[float, float | None]]  # by step: seconds per iteration, bytes


def recall(key: str) -> tuple[int, Figures]:
    """Return the number of complete iterations and the figures of the first one; (0, {}) if they are unknown."""
    path = _path(key)
    if path is None:
        return 0, {}
    try:
        body = read_small(path)
        if body["key"] != _whole(key):
            return 0, {}
        return body["epochs"], {name: (seconds, nbytes) for name, (seconds, nbytes) in body["steps"].items()}
    except DAMAGED:
        return 0, {}


def remember(key: str, epochs: int, spots: Sequence[Spot]) -> None:
    """Store the figures of steps after `epochs` complete iterations."""
    path = _path(key)
    steps = {spot.name: (spot.seconds, spot.nbytes) for spot in spots}
    if path is not None and all(math.isfinite(value or 0.0) for pair in steps.values() for value in pair):
        write_small(path, {"key": _whole(key), "epochs": epochs, "steps": steps})


def _whole(key: str) -> str:
    return f"{key}\n{machine_key()}"


def _path(key: str) -> Path | None:
    return small_file("placement", _whole(key))


class StepCost(NamedTuple):
    """Measurements of one step in an iteration: CPU seconds, bytes per element, number of elements, failures."""

    seconds: float
    each: float
    elements: float
    failures: float


def measured(places: list[Place], plan: Node, meter: Meter) -> dict[str, StepCost]:
    """Return the measurements of the executed `plan`, by the names of the steps as written."""
    costs = meter.costs()
    by_mark: dict[Any, StepCost] = {}
    for node in plan.walk():
        for index, step in enumerate(steps_of(node)):
            by_mark[_mark(step)] = _seen(costs, meter, node, index)
    return {place.name: by_mark[_mark(place.step)] for place in places if _mark(place.step) in by_mark}


def _mark(step: Node) -> Any:
    """Return a key that identifies a step after rewrites have moved or fused it."""
    function = getattr(step, "function", getattr(step, "predicate", None))
    return type(step), step.where, step.label, id(function)


def _seen(costs: Costs, meter: Meter, node: Node, index: int) -> StepCost:
    """Return the measurements of one step. The last step of a node includes the work around all of them."""
    own = costs.get(MeterKey(id(node), "step", index), NOTHING)
    seconds, given = own.cpu, own
    if index == len(steps_of(node)) - 1:
        around = {key.part: cost for key, cost in costs.items() if key.node == id(node) and key.part != "step"}
        away = not own.calls and any(hasattr(step, "function") or hasattr(step, "predicate") for step in steps_of(node))
        seconds += sum(cost.wall if away and part == "run" else cost.cpu for part, cost in around.items())
        seconds += sum(cost.cpu for cost in _inside(costs, meter, node))
        if not own.calls:
            given = around.get("take", around.get("next", own))
    return StepCost(seconds, given.nbytes / given.elements if given.elements else 0.0, given.elements, given.failures)


def _inside(costs: Costs, meter: Meter, node: Node) -> Iterator[Cost]:
    """Yield the costs of the data sets that a step opened."""
    opened = {id(node)}
    for number, opener in meter.opened_by.items():
        if opener in opened:
            opened.add(number)
    return (cost for key, cost in costs.items() if key.node in opened and key.node != id(node))


SHARE = 2  # divisor of the disk space (used by these caches, plus free) that these caches may use together


def folder_of(plan: Node, options: Options) -> Path | None:
    """Return the folder of a plan's caches in the user's cache directory. Its entries belong to different data."""
    folder = cache_folder("autocache")
    return None if folder is None else folder / fingerprint(plan, options.seed, options.deterministic)


def room(folder: Path) -> int:
    """Return the bytes that a cache of the plan with this folder may use, if all unused caches are removed."""
    others = [kept for kept in kept_below(folder.parent) if kept.in_use and kept.folder.parent != folder]
    return max(_most(folder.parent) - sum(kept.nbytes for kept in others), 0)


def _most(folder: Path) -> int:
    """Return the bytes that all these caches may use."""
    there = folder
    while not there.exists():
        there = there.parent
    return (shutil.disk_usage(there).free + sum(kept.nbytes for kept in kept_below(folder))) // SHARE


class Uses:
    """The entries that one data set uses. While this object lives, no process removes them to free space."""

    def __init__(self) -> None:
        self._locks: dict[str, Lock] = {}
        self._lock = new_lock()
        weakref.finalize(self, _release, self._locks)

    def begin(self, entry: str, nbytes: int) -> None:
        """Mark an entry as used. Other entries are removed if there is no room for its expected bytes."""
        with self._lock, suppress(OSError):  # without locks, nothing is removed
            if entry not in self._locks:
                self._locks[entry] = use(entry)
                own = Path(entry)
                folder = own.parent.parent
                make_room(folder, _most(folder) - max(nbytes, size_of(own)), own)


def _release(locks: dict[str, Lock]) -> None:
    for lock in locks.values():
        lock.release()
