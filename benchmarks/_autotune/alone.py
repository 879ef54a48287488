"""Run the sides of a benchmark in separate processes, in turn.

A script names its sides and their functions. Called with `--side NAME` it runs one side and prints the figures as JSON.
Remembered settings are off, so that each run tunes from the start.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from _common.duel import QUIET
from _common.table import Row, print_table

from _autotune.drive import Figures, Timing

Sides = Mapping[str, Callable[[Timing], Any]]

PATIENCE = 120.0  # seconds after the requested time until a side counts as hung


class SideFailed(Exception):
    """A side ended with an error, or did not end."""


def arguments(question: str, *, rounds: int = 5, seconds: float = 3.0, run_in: float = 3.0) -> argparse.ArgumentParser:
    """Return a parser with the options of all scripts. A script may add options."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--rounds", type=int, default=rounds, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=seconds, metavar="S", help="measured seconds per run (%(default)s)"
    )
    parser.add_argument("--run-in", type=float, default=run_in, metavar="S", help="warm-up before it (%(default)s)")
    parser.add_argument("--side", metavar="NAME", help="run this side alone, in this process, and print its figures")
    return parser


def timing_of(chosen: argparse.Namespace) -> Timing:
    return Timing(chosen.run_in, chosen.seconds)


def show(sides: Sides, chosen: argparse.Namespace) -> None:
    """Run the side of `--side`."""
    print(json.dumps(asdict(sides[chosen.side](timing_of(chosen)))))


def alone(side: str, timing: Timing, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a side of the calling script once and return its figures. Raises SideFailed."""
    command = [sys.executable, sys.argv[0], "--side", side]
    command += ["--seconds", str(timing.seconds), "--run-in", str(timing.run_in)]
    variables = {**os.environ, **QUIET, "PENSTOCK_REMEMBER": "0", **(environment or {})}
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=timing.run_in + timing.seconds + PATIENCE)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # also kills its worker processes
            if isinstance(error, subprocess.TimeoutExpired):
                raise SideFailed(f"{side}: still running {PATIENCE:g} s after its time") from None
            raise
    if process.returncode:
        raise SideFailed(f"{side}: status {process.returncode}\n{errors}")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def figures(side: str, timing: Timing) -> Figures:
    return Figures(**alone(side, timing))


def in_turn(sides: Iterable[str], timing: Timing, rounds: int) -> list[dict[str, Figures]]:
    """Run each side once per round. Every other round has the opposite order, because machines slow down."""
    names = list(sides)
    return [{name: figures(name, timing) for name in names[:: 1 if turn % 2 else -1]} for turn in range(rounds)]


def answer(questions: Iterable[Callable[[], list[Row]]]) -> int:
    """Run all questions and print their rows. A failed side ends its own question only. Return 1 if a side failed."""
    rows, failures = [], []
    for ask in questions:
        try:
            rows += ask()
        except SideFailed as failed:
            failures.append(str(failed))
            print(str(failed).splitlines()[0], flush=True)
    print_table(rows, failures)
    return 1 if failures else 0
