"""Is the first process on a new machine at full speed?

Photographs are decoded for a few seconds in each of some processes, one after the other, beside an empty home and an
empty folder for caches. Printed is the rate of each process, from its first batch on, as a share of that of processes
that run before and after the series, in their usual place. CPU time is that of the process.

Goal: from the first process on ≥ 0.95.

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


def short(seconds: float, home: str | None = None) -> Short:
    """A process of so many seconds, at a home of its own."""
    command = [sys.executable, sys.argv[0], "--side", str(seconds)]
    variables = {} if home is None else {"HOME": home, "XDG_CACHE_HOME": home}
    return Short(*json.loads(output_of(command, variables).splitlines()[-1]))


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


def main() -> None:
    """A line for each series."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--series", type=int, default=3)
    parser.add_argument("--side", type=float, metavar="SECONDS", help="decode for so long and print the rate")
    chosen = parser.parse_args()
    if chosen.side is not None:
        work(chosen.side)
        return
    photographs()
    print("process by process: its rate as a share of the usual one (and CPU time of a picture, as a multiple)")
    short(chosen.seconds)
    for _ in range(chosen.series):
        usual = [short(chosen.seconds) for _ in range(2)]
        with tempfile.TemporaryDirectory() as empty:
            found = [short(chosen.seconds, empty) for _ in range(chosen.processes)]
        usual += [short(chosen.seconds) for _ in range(2)]
        rate, cpu = (statistics.median(column) for column in zip(*usual, strict=True))
        spread = max(each.rate for each in usual) / min(each.rate for each in usual)
        shares = "  ".join(f"{each.rate / rate:.2f} ({each.cpu / cpu:.1f})" for each in found)
        print(f"{shares}   four usual ones within {spread:.2f} of each other", flush=True)


if __name__ == "__main__":
    main()
