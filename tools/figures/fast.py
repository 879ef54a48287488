"""Measure the variants of examples/make_it_fast.py, draw their timelines, and fill docs/make-it-fast.md.

    python tools/figures/fast.py --rounds 4       # measure; the best of all rounds counts
    python tools/figures/fast.py --timelines      # record each variant once and draw it
    python tools/figures/fast.py                  # fill the page with the measured figures

The variants take turns within a round. Other programs only make a run slower, so the best of the runs counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
os.environ["PENSTOCK_REMEMBER"] = "0"  # off, so that a run does not use settings of earlier runs

import make_it_fast as program
from filled import ROOT, fill, machine
from timeline import draw

import penstock as ps
from penstock.profiler.recording.store import Recorded

FIGURES = ROOT / "docs" / "figures"
MEASURED = FIGURES / "make-it-fast.json"
PAGE = "docs/make-it-fast.md"
DRAWN = 0.6  # seconds of a timeline
TITLES = {
    "slow": "the first program",
    "prefetch": "prefetch",
    "interleave": "parallel interleave",
    "threads": "parallel maps, in threads",
    "processes": "the Python loop in processes",
    "batched": "batch, then map with numpy",
    "cached": "cache",
    "small_cache": "cache of uint8",
    "snapshot": "snapshot, after the first epoch",
    "distributed": "the program with processes, in a service with 2 workers",
    "automatic": "the first program, with default options",
    "fast": "the whole program, with default options",
}


@contextmanager
def variants() -> Iterator[dict[str, ps.Dataset[Any]]]:
    """Yield the data sets by name."""
    with tempfile.TemporaryDirectory() as folder, ps.service.start(workers=2) as service:
        images = Path(folder) / "images"
        images.mkdir()
        program.write_images(images)
        files = ps.Dataset.list_files(f"{images}/*.tfrecord", seed=0)
        found = {name: make(files) for name, make in program.VARIANTS.items() if name != "fast"}
        found["snapshot"] = program.snapshot(files, f"{folder}/snapshot")
        found["distributed"] = program.distributed(files, service)
        found = {name: ds.with_options(program.AS_WRITTEN) for name, ds in found.items()}
        found |= {"automatic": program.slow(files), "fast": program.fast(files)}
        yield found


def store(measured: dict[str, Any]) -> None:
    """Add figures to the figures of earlier runs."""
    before = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    MEASURED.write_text(json.dumps(before | measured, indent=1) + "\n", encoding="utf-8")


def measure(rounds: int, only: list[str]) -> None:
    """Measure each variant once in each round, and keep the best rate of all rounds so far."""
    best = json.loads(MEASURED.read_text(encoding="utf-8"))["rates"] if MEASURED.exists() else {}
    with variants() as found:
        for _ in range(rounds):
            for name, ds in found.items():
                if not only or name in only:
                    rate, waiting = program.train(ds)
                    print(f"{name}: {rate:.0f} images/s, {waiting:.0%}", flush=True)
                    if rate > best.get(name, (0, 0))[0]:
                        best[name] = (round(rate, 1), round(waiting, 3))
    store({"rates": best, "machine": machine()})


def record(only: list[str]) -> None:
    """Record each variant, and draw the end of its run."""
    runs: dict[str, Recorded] = {}
    with variants() as found, tempfile.TemporaryDirectory() as logs:
        for name, ds in found.items():
            if (not only or name in only) and name not in ("small_cache", "snapshot", "automatic"):
                with ps.profiler.Profiler(logs, run=name):
                    program.train(ds, 1.0)
                label = f"Timeline of {DRAWN * 1000:.0f} ms: {TITLES[name]}"
                runs[TITLES[name]] = Recorded(Path(logs) / name)
                draw({"": runs[TITLES[name]]}, FIGURES / f"make-it-fast-{name}.svg", DRAWN, label)
        if {TITLES["slow"], TITLES["fast"]} <= runs.keys():
            both = {title: runs[title] for title in (TITLES["slow"], TITLES["fast"])}
            draw(both, FIGURES / "make-it-fast.svg", DRAWN, "Timelines of the first program and of the whole program")


def shuffle_bytes(ds: ps.Dataset[Any]) -> int:
    """Return the bytes in the shuffle buffer after the first batch."""
    with iter(ds) as batches:
        next(batches)
        return max(row.nbytes for row in ds.memory().rows if row.kind == "shuffle" and "128" in row.stage)


def memory() -> None:
    """Measure the shuffle buffers and the caches, and analyse the first program."""
    best: dict[str, Any] = {}
    with variants() as found, tempfile.TemporaryDirectory() as folder:
        program.write_images(Path(folder))
        files = ps.Dataset.list_files(f"{folder}/*.tfrecord", seed=0)
        for name in ("late_shuffle", "early_shuffle"):
            best[name] = shuffle_bytes(getattr(program, name)(files).with_options(program.AS_WRITTEN))
        for name in ("cached", "small_cache"):
            ds = found[name].repeat(2)
            with iter(ds) as batches:
                for _ in range(program.SHARDS * program.IMAGES // 32 + 1):  # until the second epoch
                    next(batches)
                best[name] = max(row.nbytes for row in ds.memory().rows if row.kind == "cache")
        best["explained"] = found["slow"].explain(analyze=True, seconds=4, consumer_seconds=program.TRAINING_STEP)
    store(best)


def write() -> None:
    """Fill the page."""
    found = json.loads(MEASURED.read_text())
    rates = found["rates"]
    first = rates["slow"][0]

    def sentence(name: str) -> str:
        rate, waiting = rates[name]
        times = "" if name == "slow" else f", {rate / first:.1f} times the first program"
        return f"**{rate:.0f} images/s{times}. The loop waits for data {waiting:.0%} of the time.**"

    parts = {"machine": f"The machine: {found['machine']}."}
    for name in TITLES:
        drawn = FIGURES / f"make-it-fast-{name}.svg"
        image = f"![Timeline: {TITLES[name]}](figures/{drawn.name})\n\n" if drawn.exists() else ""
        parts[name] = image + sentence(name)
    rows = [
        f"| {TITLES[name]} | {rates[name][0]:.0f} | {rates[name][0] / first:.1f} | {rates[name][1]:.0%} |"
        for name in TITLES
    ]
    parts["table"] = "\n".join(["| program | images/s | ratio | loop waits |", "|---|---:|---:|---:|", *rows])
    parts["memory"] = "\n".join(
        [
            "| buffer | bytes |",
            "|---|---:|",
            f"| shuffle of 128 decoded images | {size(found['late_shuffle'])} |",
            f"| shuffle of 128 records | {size(found['early_shuffle'])} |",
            f"| cache of 160 images as float32 | {size(found['cached'])} |",
            f"| cache of 160 images as uint8 | {size(found['small_cache'])} |",
        ]
    )
    explained = found["explained"]
    parts["explained"] = f"```text\n{explained[explained.index('measured') :].rstrip()}\n```"
    fill(PAGE, parts)


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="measure each variant N times")
    parser.add_argument("--timelines", action="store_true", help="draw the timelines")
    parser.add_argument("--memory", action="store_true", help="measure the buffers")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="run only these variants")
    chosen = parser.parse_args()
    if chosen.rounds:
        measure(chosen.rounds, chosen.only)
    if chosen.timelines:
        record(chosen.only)
    if chosen.memory:
        memory()
    if (ROOT / PAGE).exists():
        write()
