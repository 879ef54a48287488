"""Bounds: knobs as the user's limits and the byte budget allow them, whatever was wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.runtime.autotune.figures import Flow, Knobs, Limits

LEAST_WINDOW = 1  # a segment always has room for one result, whatever its window says


def within(knobs: Knobs, limits: Limits) -> Knobs:
    """The nearest knobs that are allowed."""
    least = max(1, limits.least)
    parallelism = min(max(knobs.parallelism, least), max(limits.most, least))
    executor = knobs.executor
    if limits.executors and executor not in limits.executors:
        executor = limits.executors[0]
    window = max(knobs.window, LEAST_WINDOW)
    return replace(knobs, parallelism=parallelism, executor=executor, window=window)


def bounded(knobs: Mapping[str, Knobs], flows: Mapping[str, Flow], ram: int) -> dict[str, Knobs]:
    """All segments' knobs within their limits, and their windows together within the budget."""
    allowed = {name: within(value, flows[name].limits) for name, value in knobs.items() if name in flows}
    total = sum(value.window for value in allowed.values())
    if total <= ram:
        return allowed
    room, windows = max(ram, 0), {}
    for name, value in sorted(allowed.items(), key=lambda item: item[1].window):
        windows[name] = max(value.window * room // total, LEAST_WINDOW)
        total -= value.window
        room = max(room - windows[name], 0)
    return {name: replace(value, window=windows[name]) for name, value in allowed.items()}
