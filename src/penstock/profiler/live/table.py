"""table: a snapshot as the rows and cells that every view of it shows; what they say is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.profiler.analysis.figures import number, percent, size

TITLES = ("step", "runs on", "elem/s", "waits", "CPU %", "fill", "held")
LEGEND = (
    "waits: of its threads' time, for elements. CPU %: 100 is one core. fill: of what it may make ahead. "
    "held: bytes in its buffers."
)


@dataclass(frozen=True, slots=True)
class Row:
    """A step. `weight` is how much it costs, for who has not room for all."""

    cells: tuple[str, ...]
    bottleneck: bool = False
    weight: float = 0.0


def head(told: dict[str, Any]) -> str:
    """A line on the process."""
    cores = number(told["cpus"])
    memory = f"{size(told['memory'])} of {size(told['memory_granted'])}"
    return f"process {told['pid']}: {told['program']} · memory {memory} · {cores} {'core' if cores == '1' else 'cores'}"


def title(each: dict[str, Any]) -> str:
    """A line on a pipeline."""
    state = "" if each["running"] else ", ended"
    passes = "1 iteration" if each["passes"] == 1 else f"{each['passes']:,} iterations"
    of = f" of {each['epoch_elements']:,}" if each["passes"] == 1 and each["epoch_elements"] else ""
    text = f"{each['name']} ({each['defined_at']}{state}): {each['elements']:,}{of} elements, {passes}"
    if each["running"]:
        text += f", {number(each['elements_per_second'])} a second, {number(each['cpu_used'])} cores used"
    return text


def rows(each: dict[str, Any]) -> list[Row]:
    """The loop first, then the steps from there to the source."""
    rate = number(each["elements_per_second"])
    found = [
        Row(("the loop", "", rate, percent(each["waited_share"]), "", "", ""), each["verdict"]["kind"] == "consumer")
    ]
    for row in each["rows"]:
        idle = not row["elements"]
        found.append(
            Row(
                (
                    row["prefix"] + row["label"],
                    "(idle)" if idle else row["runs_on"],
                    number(row["per_second"]),
                    "" if row["waits"] is None else percent(row["waits"]),
                    f"{100 * row['cores']:.0f}",
                    "" if row["fill"] is None else percent(row["fill"]),
                    size(row["held"]) if row["held"] else "",
                ),
                row["bottleneck"],
                row["cores"] + row["per_second"] * row["waiting_us"] / 1e6,
            )
        )
    return found


def fitted(found: list[Row], room: int) -> list[Row]:
    """As many as there is room for: the loop, the bottleneck, and what costs most; a row says how many are left out."""
    if len(found) <= room:
        return found
    keep = {0, *(index for index, row in enumerate(found) if row.bottleneck)}
    by_weight = sorted(range(len(found)), key=lambda index: -found[index].weight)
    for index in by_weight:
        if len(_with_gaps(found, keep | {index})) <= max(room, 3):
            keep.add(index)
    return _with_gaps(found, keep)


def _with_gaps(found: list[Row], keep: set[int]) -> list[Row]:
    shown: list[Row] = []
    left_out = 0
    for index, row in enumerate(found):
        if index not in keep:
            left_out += 1
            continue
        shown += [_gap(left_out)] if left_out else []
        shown.append(row)
        left_out = 0
    return shown + ([_gap(left_out)] if left_out else [])


def _gap(count: int) -> Row:
    return Row((f"… {count} more", *([""] * (len(TITLES) - 1))))


def sentences(each: dict[str, Any]) -> list[str]:
    """The verdict."""
    found = [*each["verdict"]["sentences"], *each["verdict"]["changes"][:1]]
    return found if each["running"] else [f"Ended. {found[0]}", *found[1:]]
