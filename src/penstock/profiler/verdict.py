"""The verdict on a recorded run: whether it waits for data, the step responsible, and the gain of changes.

`compare` compares two runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.profiler.analysis.advice import advice, gain, nothing_to_do
from penstock.profiler.analysis.bottleneck import SLIGHTLY, bottleneck
from penstock.profiler.analysis.figures import LOOP, Analysis, Step, named, number, percent, seconds, waited_text

# The figures of steady work are those of an `Analysis`, and the same code as in `explain(analyze=True)` computes the
# bottleneck and the advice. A verdict adds the time that an analysis leaves out: the time before the first element of
# each iteration, in which buffers are filled and files opened.

CLEARLY = 0.20  # share of waiting time from which a run is input-bound; below it, only slightly
_LEAST_HELD = 8  # elements in a shuffle from which its filling is mentioned
_QUARTER = 0.25
_WORTH = 1.05


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict on a run.

    `kind` is "consumer", "filling", "start", "nothing", or the kind of an analysis's bottleneck.

    `input_bound` is "no", "slightly" or "yes". `waited_share` refers to the time after first elements. `gain` is the
    speed-up by the first of the `changes`: the current time of the run divided by the predicted time; 1.0 without a
    change.
    """

    kind: str
    input_bound: str
    step: str | None
    waited_share: float
    sentences: tuple[str, ...]
    changes: tuple[str, ...] = ()
    gain: float = 1.0

    @property
    def text(self) -> str:
        """All sentences in one string."""
        return " ".join((*self.sentences, *self.changes))


def verdict(analysis: Analysis, waits: dict[str, Any], start: dict[str, Any] | None) -> RunVerdict:
    """Return the verdict on one pipeline of a run, from its analysis, and the values of its `Waits` and its `Start`."""
    found, share = bottleneck(analysis), analysis.consumer_waited
    starting, waited = waits["starting"], waits["waited"]
    running = max(waits["running"], waited, 1e-9)
    if not waits["steps"]:
        return RunVerdict("nothing", "no", found.step, share, (found.sentence,))
    late = starting > SLIGHTLY * running
    bound, title = _bound(share)
    if bound != "yes" and late and 2 * starting > waited:
        return _of_start(analysis, waits, start, running)
    told = [f"{title}: {waited_text(analysis)}.", found.sentence]
    if bound == "no":
        return RunVerdict("consumer" if found.step is None else found.kind, bound, found.step, share, tuple(told))
    changes, ratio = _changes(analysis, starting, running)
    if not changes:
        told.append(f"What would help: {nothing_to_do(analysis)}.")
    if late:
        told.append(f"The first elements came after {seconds(starting)} in all: {_what_started(analysis, start)}.")
    return RunVerdict(found.kind, bound, found.step, share, tuple(told), changes, ratio)


def _bound(share: float) -> tuple[str, str]:
    """Return "no", "slightly" or "yes" for a share of waiting time, and the words for it."""
    if share < SLIGHTLY:
        return "no", "Not input-bound"
    return ("slightly", "Slightly input-bound") if share < CLEARLY else ("yes", "Input-bound")


def _changes(analysis: Analysis, starting: float, running: float) -> tuple[tuple[str, ...], float]:
    """Return the advice in sentences, and the speed-up of the whole run by the first of them."""
    found = advice(analysis)
    texts = tuple(each.sentence[:1].upper() + each.sentence[1:] for each in found)
    ratio = next((each.ratio for each in found if each.change.cores is None), 1.0)
    return texts, running / (starting + (running - starting) / ratio)


# -- before the first element


def _filling(analysis: Analysis, start: dict[str, Any] | None) -> tuple[Step, float] | None:
    """Return the shuffle that was filled before the first element, and the number of elements it received."""
    if start is None:
        return None
    for step in reversed(analysis.steps):
        came = max((start["made"].get(below, 0.0) for below in step.inputs), default=0.0)
        if "shuffle" in step.kind and came >= _LEAST_HELD and came > 2 * start["made"].get(step.name, 0.0):
            return step, came
    return None


def _slowest_before(analysis: Analysis, start: dict[str, Any] | None) -> Step | None:
    """Return the step that took most of the time before the first element."""
    if start is None or not start["busy"]:
        return None
    busy = start["busy"]
    name = max(busy, key=lambda each: busy[each])
    return next((step for step in analysis.steps if step.name == name), None)


def _what_started(analysis: Analysis, start: dict[str, Any] | None) -> str:
    filled = _filling(analysis, start)
    if filled is not None:
        return f"{named(filled[0])} was filling its buffer with {number(filled[1])} elements"
    slowest = _slowest_before(analysis, start)
    begun = "files are opened and functions are called for the first time"
    return begun if slowest is None else f"{begun}, mostly in {named(slowest)}"


def _of_start(analysis: Analysis, waits: dict[str, Any], start: dict[str, Any] | None, running: float) -> RunVerdict:
    """Return the verdict if the loop waited before first elements, and little after them."""
    starting = waits["starting"]
    bound, title = _bound(starting / running)
    when = "the first element" if waits["passes"] == 1 else f"the first elements of {waits['passes']} iterations"
    told = [
        f"{title} before {when}, for {seconds(starting)} of {seconds(running)}: {_what_started(analysis, start)}.",
        f"After that {waited_text(analysis)}.",
    ]
    filled, slowest = _filling(analysis, start), _slowest_before(analysis, start)
    share = analysis.consumer_waited
    if filled is None or start is None:
        told.append(
            "This time is paid once for each iteration, not for each element. It matters less in a longer iteration."
        )
        return RunVerdict("start", bound, None if slowest is None else slowest.name, share, tuple(told))
    step, came = filled
    changes, expected = [], 1.0
    ratio = running / _with_buffer(analysis, waits, start, step, came)
    if ratio >= _WORTH:
        ahead = " and prefetch(AUTOTUNE) after it" if step.lane == LOOP else ""
        expected = ratio
        changes.append(f"Use a quarter of that buffer{ahead}: expect {gain(ratio)} for a run of this length.")
    if slowest is not None and slowest.name != step.name:
        changes.append(f"The buffer waits for {named(slowest)}: making that faster fills it sooner.")
    changes.append("Shuffling file names or indices before reading needs a smaller buffer for the same disorder.")
    return RunVerdict("filling", bound, step.name, share, tuple(told), tuple(changes), expected)


def _with_buffer(analysis: Analysis, waits: dict[str, Any], start: dict[str, Any], step: Step, came: float) -> float:
    """Return the seconds of the run with a quarter of the buffer.

    Elements come at the rate at which the buffer was filled. After the buffer is full, they come while the loop works.
    """
    passes = max(waits["passes"], 1)
    filling = waits["starting"] / passes
    loop = (max(waits["running"], waits["waited"]) - waits["waited"]) / passes
    below = max((analysis.step(name) for name in step.inputs), key=lambda each: each.elements)
    later = below.elements if start["made"].get(below.name, 0.0) < below.elements or passes > 1 else 0.0
    total = came + later if passes == 1 else max(later / passes, came)
    reading = filling * total / came
    return float(passes * (_QUARTER * filling + max(reading - _QUARTER * filling, loop)))


_SAME = 0.05


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return lines that compare two summaries (`summary.json`), pipeline by pipeline in order of their start."""
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
        lines.append(f"  the bottleneck: {held[0]} → {held[1]}" if held[0] != held[1] else f"  still: {held[0]}")
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
