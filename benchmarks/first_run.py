"""Are short processes in a row at full speed on a new machine?

Photographs are decoded for a few seconds in each of some processes, one after the other, with no compiled kernel at
first. What an earlier process had compiled is in NUMBA_CACHE_DIR, and a compiler that it left goes on beside the next
one. Printed is the rate of each process, from its first batch on, as a share of that of a process which finds all
kernels: the median of those that run before and after the series. CPU time is that of the process, not the compiler's.

Goal: from the second process on ≥ 0.9; where penstock was installed from a wheel with kernels, from the first.

    python benchmarks/first_run.py [--processes 8] [--seconds 4] [--series 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from typing import NamedTuple

from _common import jpeg_pipelines
from _common.duel import output_of
from _common.photographs import photographs


class Short(NamedTuple):
    """What a short process did: pictures a second from its first batch on, and CPU microseconds for each."""

    rate: float
    cpu: float


def short(seconds: float, kernels: str) -> Short:
    """A process of so many seconds; what it compiles is kept in the folder."""
    command = [sys.executable, sys.argv[0], "--side", str(seconds)]
    return Short(*json.loads(output_of(command, {"NUMBA_CACHE_DIR": kernels}).splitlines()[-1]))


def work(seconds: float) -> None:
    """Decode for some seconds of the process, epoch after epoch, and print what `short` returns."""
    until = time.monotonic() + seconds
    pictures, began, worked = 0, 0.0, 0.0
    elements = iter(jpeg_pipelines.penstock().repeat())
    next(elements)
    began, worked = time.monotonic(), time.process_time()
    while time.monotonic() < until:
        pictures += len(next(elements)[0])
    print(json.dumps([pictures / (time.monotonic() - began), (time.process_time() - worked) / pictures * 1e6]))


def wait_for_compilers(kernels: str) -> None:
    """Until nothing is compiled any more for the folder: what is measured next has the machine for itself."""
    output_of([sys.executable, sys.argv[0], "--compile"], {"NUMBA_CACHE_DIR": kernels})


def compile_photographs() -> None:
    from penstock.compiled import wait_for_kernels

    next(iter(jpeg_pipelines.penstock()))
    wait_for_kernels()


def main() -> None:
    """A line for each series."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--series", type=int, default=3)
    parser.add_argument("--side", type=float, metavar="SECONDS", help="decode for so long and print the rate")
    parser.add_argument("--compile", action="store_true", help="compile the kernels that photographs take")
    chosen = parser.parse_args()
    if chosen.side is not None:
        work(chosen.side)
        return
    if chosen.compile:
        compile_photographs()
        return
    photographs()
    print("process by process: its rate as a share of that with kernels (and CPU time of a picture, as a multiple)")
    with tempfile.TemporaryDirectory() as full:
        wait_for_compilers(full)
        short(chosen.seconds, full)
        for _ in range(chosen.series):
            warm = [short(chosen.seconds, full) for _ in range(2)]
            with tempfile.TemporaryDirectory() as empty:
                found = [short(chosen.seconds, empty) for _ in range(chosen.processes)]
                wait_for_compilers(empty)
            warm += [short(chosen.seconds, full) for _ in range(2)]
            rate, cpu = (statistics.median(column) for column in zip(*warm, strict=True))
            spread = max(each.rate for each in warm) / min(each.rate for each in warm)
            shares = "  ".join(f"{each.rate / rate:.2f} ({each.cpu / cpu:.1f})" for each in found)
            print(f"{shares}   four with kernels within {spread:.2f} of each other", flush=True)


if __name__ == "__main__":
    main()
