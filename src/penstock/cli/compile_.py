"""`penstock compile`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = (
        "Compile all kernels now and keep them on disk, so that no pipeline compiles any: for an image of a container. "
        "They are kept beside penstock's files, or in NUMBA_CACHE_DIR, which has to be the same when pipelines run."
    )
    parser = commands.add_parser("compile", help="compile all kernels ahead", description=text)
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="processes that compile (one for each core)")
    into = (
        "compile for a level of processors (x86-64-v3, x86-64-v4; on ARM generic), below this folder, as wheels have it"
    )
    parser.add_argument("--into", metavar="FOLDER", help=into)
    parser.add_argument("--level", default="x86-64-v3", help="with --into (%(default)s)")
    parser.set_defaults(run=run)


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        message = f"at least 1, got {text}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Print the modules as they are done; the status is 1 if one could not be compiled."""
    from penstock.compiled.module import compile_ahead, compile_into

    began = time.perf_counter()
    count = 0

    def done(name: str) -> None:
        nonlocal count
        count += 1
        print(name, flush=True)

    if chosen.into:
        failed = compile_into(Path(chosen.into), chosen.level, chosen.jobs, done)
    else:
        failed = compile_ahead(chosen.jobs, done)
    print(f"{count} module{'' if count == 1 else 's'} of kernels: there after {time.perf_counter() - began:.1f} s")
    for name, reason in failed.items():
        print(f"penstock: {name} could not be compiled: {reason}", file=sys.stderr)
    return 1 if failed else 0
