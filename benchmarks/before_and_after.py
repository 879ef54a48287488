"""Measure the programs of docs/how-to/before-and-after.md and the programs that they replace.

    python benchmarks/before_and_after.py [--pairs N] [--only WORD]

The code comes from the page. Only sizes change (`LARGER`): the photographs have 500×375 pixels instead of noise of
64×48, images have 224×224 pixels instead of 32×32, and there are more rows. A side runs the blocks of its section in
its own process: once to warm up, then again for the measurement. The time includes building the pipeline. A section is
left out if its library is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common.duel import Measured, cpu_seconds, figures_of, installed
from _common.photographs import singles
from _common.table import print_table, row_of

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "before-and-after.md"
LARGER = {
    "rng.integers(0, 256, (48, 64, 3), np.uint8)": "None",  # the photographs come from the benchmarks
    "[32, 32]": "[224, 224]",
    "(32, 32)": "(224, 224)",
    "RandomResizedCrop(32)": "RandomResizedCrop(224)",
    "batch_size=8": "batch_size=32",
    "batch(8": "batch(32",
    "batched(8": "batched(32",
    "return 100": "return 50_000",
    "for _ in range(40)": "for _ in range(50_000)",
    "for i in range(40)": "for i in range(50_000)",
    "np.arange(1000,": "np.arange(1_000_000,",
    "* 500}": "* 500_000}",
}
ELEMENTS = {
    "tf.data": 1600,
    "torch": 1600,
    "Grain": 50_000,
    "WebDataset": 1600,
    "Hugging Face": 50_000,
    "polars": 2_000_000,
}
NEEDS = {
    "tf.data": "tensorflow",
    "torch": "torchvision",
    "Grain": "grain",
    "WebDataset": "webdataset",
    "Hugging Face": "datasets",
    "polars": "polars",
}


def sections() -> dict[str, list[str]]:
    """Return the blocks of each library's section: preparation, before, after.

    The first entry has the blocks before the first section.
    """
    head, *rest = re.split(r"^## From ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {"": _blocks(head)}
    for text in rest:
        library = next((name for name in NEEDS if text.startswith(name)), None)
        if library is not None:
            before, after = text.index("Before:"), text.index("\nAfter")
            found[library] = ["\n".join(_blocks(part)) for part in (text[:before], text[before:after], text[after:])]
    return found


def _blocks(text: str) -> list[str]:
    code = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    for small, large in LARGER.items():
        code = [block.replace(small, large) for block in code]
    return code


def measure(library: str, side: str, seconds: float) -> dict[str, float]:
    """Run the blocks of one side in this process."""
    found = sections()
    prepare, before, after = found[library]
    space: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        script = Path(folder, "program.py")  # libraries read the source text of functions
        script.write_text(before if side == "before" else after, encoding="utf-8")
        program = compile(script.read_text(encoding="utf-8"), str(script), "exec")
        start, photos = found[""][0].split("photos = [", 1)
        exec(start, space)
        space["photos"] = [Path(name).read_bytes() for name in singles()]
        exec(photos.split("\n", 1)[1], space)
        exec(prepare, space)
        exec(program, space)
        elements, cpu, start_s = 0, cpu_seconds(), time.perf_counter()
        while (wall := time.perf_counter() - start_s) < seconds:
            exec(program, space)
            elements += ELEMENTS[library]
        wall = time.perf_counter() - start_s
        os.chdir("/")
    return {"rate": elements / wall, "cpu_us": (cpu_seconds() - cpu) / elements * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="measured at least so long per run")
    parser.add_argument("--only", metavar="WORD", default="", help="sections whose title contains this")
    parser.add_argument("--side", nargs=2, metavar=("LIBRARY", "SIDE"), help="run this side alone, in this process")
    chosen = parser.parse_args()
    if chosen.side:
        print(json.dumps(measure(*chosen.side, chosen.seconds)))
        return
    singles()
    rows = []
    for library in (name for name in NEEDS if chosen.only in name and installed(NEEDS[name])):
        runs: dict[str, list[Measured]] = {"before": [], "after": []}
        for _ in range(chosen.pairs):
            for side, measured in runs.items():
                command = [sys.executable, sys.argv[0], "--side", library, side, "--seconds", str(chosen.seconds)]
                measured.append(Measured(**figures_of(command)))
        rows.append(row_of(f"before and after: {library}", runs["after"], library, runs["before"]))
    left = [f"{name} left out: {NEEDS[name]} is not installed" for name in NEEDS if not installed(NEEDS[name])]
    print_table(rows, left)


if __name__ == "__main__":
    main()
