"""Write the printed rows of the benchmarks into docs/benchmarks.md, the README, and "Before and after".

    python tools/figures/benchmarks.py build/bench.jsonl     # `make bench` does it

Run it in the environment of the benchmarks: the page names the installed versions.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from filled import ROOT, fill, machine
from timeline import titled

from penstock.profiler.views.picture import Picture

PEERS = ("penstock", "tensorflow-cpu", "tensorflow", "torch", "grain", "nvidia-dali-cuda130", "spdl-core", "numpy")
HEAD = ["| workload | penstock | compared with | its rate | ratio |", "|---|---:|---|---:|---:|"]
# Rows of the README: workloads with their names there, and the first words of the peers' names.
CHOSEN = {
    "JPEG to batches of 32": "JPEG images 500×375 to batches of 224×224 floats",
    "parse 40 features": "TFRecord rows of 40 features to columns",
    "numbers one by one": "numbers, one by one",
    "map, filter, shuffle, batch of numbers": "numbers: map, filter, shuffle, batch",
}
PAIRS = "before and after: "  # prefix of the workloads of "Before and after"
UNITS = {"/s": 1.0, "k/s": 1e3, "M/s": 1e6}
BARS = {"tf.data", "torch, 2 workers", "grain, 2 threads", "DALI on the CPU", "SPDL, 2 threads"}
LIBRARIES = ("tf.data", "torch", "grain", "DALI")


def line(row: dict[str, Any], workload: str) -> str:
    return f"| {workload} | {row['penstock']} | {row['peer']} | {row['theirs']} | {ratio(row)} |"


def ratio(row: dict[str, Any]) -> str:
    middle, low, high = map(_figure, (median(row["ratios"]), min(row["ratios"]), max(row["ratios"])))
    return f"{middle}× ({low} to {high})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the rates of the first chosen workload as bars."""
    workload, title = next(iter(CHOSEN.items()))
    peers = [row for row in rows if row["workload"] == workload and row["peer"] in BARS]
    rates = {"penstock": peers[0]["penstock"], **{row["peer"]: row["theirs"] for row in peers}}
    values = {name: float(number) * UNITS[unit] for name, found in rates.items() for number, unit in [found.split()]}
    picture = Picture(720, 30 + 26 * len(values))
    picture.text(0, 16, f"{title}, per second", size=14, bold=True)
    for i, name in enumerate(sorted(values, key=lambda name: -values[name])):
        y, length = 30 + 26 * i, 460 * values[name] / max(values.values())
        picture.text(170, y + 14, name, size=13, anchor="end")
        picture.rectangle(180, y, length, 19, "step" if name == "penstock" else "h7")
        picture.text(188 + length, y + 14, f"{values[name]:,.0f}", size=13)
    rates_text = ", ".join(f"{name} {value:,.0f}" for name, value in values.items())
    path.write_text(titled(picture, f"Bars: {title} per second: {rates_text}"), encoding="utf-8")


def versions() -> str:
    found = []
    for name in PEERS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def main(path: Path) -> None:
    rows = [json.loads(each) for each in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in {(row["workload"], row["peer"]): row for row in rows}.values() if row["ratios"]]
    summary = f"Measured on {machine()}, with {versions()}. Runs of each pair: {len(rows[0]['ratios'])}."
    parts = {"rows": "\n".join([*HEAD, *(line(row, row["workload"]) for row in rows)]), "versions": summary}
    fill("docs/benchmarks.md", parts)
    pairs = [row for row in rows if row["workload"].startswith(PAIRS)]
    if pairs:
        head = ["| library | before | after: penstock | ratio |", "|---|---:|---:|---:|"]
        cells = [f"| {row['peer']} | {row['theirs']} | {row['penstock']} | {ratio(row)} |" for row in pairs]
        fill("docs/how-to/before-and-after.md", {"rates": "\n".join([*head, *cells])})
    draw(rows, ROOT / "docs" / "figures" / "rates.svg")
    chosen = []
    for workload, title in CHOSEN.items():
        for row in rows:
            if row["workload"] == workload and row["peer"].startswith(LIBRARIES):
                chosen.append(line(row, title))
                title = ""
    summary += (
        " The ratio is the rate of penstock divided by the other rate: the median, and the lowest and the highest."
    )
    summary += " [All rows](docs/benchmarks.md)."
    fill("README.md", {"benchmarks": "\n".join([*HEAD, *chosen]), "versions": summary})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
