"""`penstock info`."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli import version


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Print versions, what this process may use of the machine, and which compiled kernels serve."
    parser = commands.add_parser("info", help="versions, the machine, and its kernels", description=text)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print versions, machine and kernels, one line each."""
    from penstock.native.library import serving
    from penstock.runtime.machine.granted import available_memory, granted_cores, granted_memory

    version.run(chosen)
    print(f"cores: {granted_cores():g}; memory: {granted_memory() >> 20:,} MiB, {available_memory() >> 20:,} MiB free")
    print(f"kernels: {serving()}")
    return 0
