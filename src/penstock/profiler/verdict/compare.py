"""compare: two recorded runs beside each other: what a change has given."""

from __future__ import annotations

from typing import Any

from penstock.profiler.analysis.wording import number, percent

_SAME = 0.05


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Lines on two summaries (`summary.json`), pipeline by pipeline, in the order in which they began."""
    lines = []
    for one, two in zip(before["pipelines"], after["pipelines"], strict=False):
        rates = one["steps_per_second"], two["steps_per_second"]
        ratio = rates[1] / rates[0] if rates[0] else 0.0
        change = "about the same" if abs(ratio - 1) < _SAME else f"{ratio:.2f} times as fast"
        lines.append(f"{one['name']}: {number(rates[0])} → {number(rates[1])} steps a second, {change}")
        shares = percent(one["verdict"]["waited_share"]), percent(two["verdict"]["waited_share"])
        lines.append(f"  waited for data: {shares[0]} → {shares[1]} of the time")
        expected = one["verdict"]["gain"]
        if expected > 1 + _SAME and ratio:
            lines.append(f"  the first run's advice was expected to give {expected:.2f} times as many")
        held = one["verdict"]["step"] or one["verdict"]["kind"], two["verdict"]["step"] or two["verdict"]["kind"]
        lines.append(f"  what holds it back: {held[0]} → {held[1]}" if held[0] != held[1] else f"  still: {held[0]}")
        lines += _steps(one["analysis"], two["analysis"])
    if len(before["pipelines"]) != len(after["pipelines"]):
        lines.append("The runs have different numbers of pipelines; the rest is not compared.")
    return lines


def _steps(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    costs = [{step["name"]: step["cpu"] + step["waiting"] for step in each["steps"]} for each in (before, after)]
    found = []
    for name, cost in costs[0].items():
        now = costs[1].get(name)
        if now is None:
            found.append(f"  {name}: gone")
        elif cost and now and not 1 / 1.2 < now / cost < 1.2:
            found.append(f"  {name}: {number(cost * 1e6)} → {number(now * 1e6)} µs for an element")
    return [*found, *(f"  {name}: new" for name in costs[1] if name not in costs[0])]
