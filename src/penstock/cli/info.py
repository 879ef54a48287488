"""`penstock info`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from penstock.cli import version


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Print versions, what this process may use of the machine, and which kernels are compiled or being compiled."
    parser = commands.add_parser("info", help="versions, the machine, and its kernels", description=text)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print a line for each."""
    from penstock.compiled.child import at_work
    from penstock.compiled.kernel_files import folder, is_compiled, root
    from penstock.compiled.module import modules_of_kernels
    from penstock.runtime.machine.granted import available_memory, granted_cores, granted_memory

    version.run(chosen)
    print(f"cores: {granted_cores():g}; memory: {granted_memory() >> 20:,} MiB, {available_memory() >> 20:,} MiB free")
    names = modules_of_kernels()
    there = sum(map(is_compiled, names))
    print(f"kernels: {there} of {len(names)} modules are compiled for this processor, {_kept(root(), folder())}")
    compiler = at_work()
    if compiler is not None:
        since, left = time.time() - compiler["begun"], [m for m in compiler["modules"] if not is_compiled(m)]
        print(f"compiling: process {compiler['pid']}, for {since:.0f} s, {', '.join(left) or 'nothing more'}")
    elif there < len(names):
        print("compiling: nothing; kernels are compiled when they are first asked for, or by `penstock compile`")
    return 0


def _kept(kept: Path, came: Path | None) -> str:
    where = "beside penstock's files" if kept.name == "__pycache__" else f"in {kept}"
    return where if came is None else f"{where}; kernels for {came.name} came with penstock"
