"""Compare the phrasings of public tf.data guides in TensorFlow and in `penstock.compat`.

Both libraries run the same source text (`_common/guide_programs.py`), each in its own process, in turn. The ratio is
TensorFlow's CPU time per element divided by penstock's. The table also has the rates. The table `plain` has the same
work in plain penstock: each phrasing is compared with the best one, with a goal of at most 1.1 times its CPU time.

Goals: 2 times for the four usual ways to decode and resize, 1.5 times for the phrasings that several guides use, and at
least equal for the others.

    python benchmarks/guides.py [--pairs N] [--seconds S] [--only TEXT] [--tables compat,plain]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from _common.duel import PAIRS, SECONDS, Measured, Pass, drain, figures_of, installed, measure
from _common.photographs import photographs
from _common.table import Row, print_table, row_of

GOALS = {
    "decode, cast, resize, / 255": 2.0,
    "decode, convert_image_dtype, resize": 2.0,
    "decode, resize, /= 255": 2.0,
    "crop, flip, resize, cast / 255, normalize": 2.0,
    "decode, resize, / 255": 1.5,
    "six augmentations, resize, / 255": 1.5,
    "Criteo: loop over names, log(maximum)": 1.5,
    "gather(series, range(i, i + 24))": 1.5,
    "lower, regex_replace, split, [:16], padded_batch": 1.5,
    "window(24, shift=1).flat_map(batch), (w[:-1], w[-1])": 1.5,
    "if uniform > 0.5, cast, resize": 1.0,
    "rotation by an affine grid": 1.0,
    "RandAugment by switch_case": 1.0,
    "parse_image: split path, read, decode, convert, resize": 1.0,
    "decode_csv per line": 1.0,
    "to_hash_bucket_fast on batches": 1.0,
    "text vectorising on batches": 1.0,
    "BERT records, global dict of features": 1.0,
}
PLAIN_GOAL = 1.1


def build(table: str, name: str) -> Pass:
    """Return a function that iterates once over the data set of a program and returns its number of elements."""
    if table == "compat":
        from _common.guide_programs import PROGRAMS
    else:
        from _common.plain_programs import PROGRAMS
    data_set, count = PROGRAMS[name]()

    def one_pass() -> int:
        drain(data_set)
        return count

    return one_pass


def run(table: str, engine: str, name: str, seconds: float) -> Measured:
    """Measure one program in a process of its own."""
    command = [sys.executable, sys.argv[0], "--side", name, "--tables", table, "--seconds", str(seconds)]
    return Measured(**figures_of(command, {"GUIDES_ENGINE": engine}))


def compat_rows(only: str, pairs: int, seconds: float) -> list[Row]:
    """Return a row for each program: TensorFlow's CPU time over penstock's."""
    rows = []
    for name, goal in GOALS.items():
        if only not in name:
            continue
        found = [[run("compat", side, name, seconds) for side in ("penstock", "tensorflow")] for _ in range(pairs)]
        rows.append(_row(name, "tf.data", found, goal))
    return rows


def plain_rows(only: str, pairs: int, seconds: float) -> list[Row]:
    """Return a row for each phrasing in plain penstock: its CPU time over that of the best phrasing."""
    from _common.plain_programs import BEST

    rows = []
    for name, best in BEST.items():
        if only not in name:
            continue
        found = [[run("plain", "penstock", side, seconds) for side in (best, name)] for _ in range(pairs)]
        rows.append(_row(f"{name} (plain)", best, [pair[::-1] for pair in found], PLAIN_GOAL, at_most=True))
    return rows


def _row(name: str, peer: str, found: Sequence[Sequence[Measured]], goal: float, *, at_most: bool = False) -> Row:
    def ratio(ours: Measured, theirs: Measured) -> float:
        return ours.cpu_us / theirs.cpu_us if at_most else theirs.cpu_us / ours.cpu_us

    ours, theirs = zip(*found, strict=True)
    return row_of(name, ours, peer, theirs, ratio=ratio, goal=goal, at_most=at_most)


def main() -> None:
    """Run the chosen tables and print them."""
    parser = argparse.ArgumentParser(description="phrasings of public guides in TensorFlow and in penstock")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="", help="programs whose name contains this text")
    parser.add_argument("--tables", default="compat,plain")
    parser.add_argument("--side", help="measure this program in this process and print its figures")
    chosen = parser.parse_args()
    if chosen.side:
        print(json.dumps(measure(lambda: build(chosen.tables, chosen.side), chosen.seconds)))
        return
    photographs()
    os.environ.setdefault("AUTOGRAPH_VERBOSITY", "0")
    notes, rows = [], []
    if "compat" in chosen.tables:
        if installed("tensorflow"):
            rows += compat_rows(chosen.only, chosen.pairs, chosen.seconds)
        else:
            notes.append("tf.data left out: tensorflow is not installed")
    if "plain" in chosen.tables:
        rows += plain_rows(chosen.only, chosen.pairs, chosen.seconds)
    print_table(rows, [*notes, "ratio: CPU time per element; rates: elements per second"])


if __name__ == "__main__":
    main()
