"""`penstock version`."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    parser = commands.add_parser("version", help="print the version", description="Print the version of penstock.")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print the versions of penstock, Python and numpy."""
    print(f"penstock {_version('penstock')}, Python {platform.python_version()}, numpy {_version('numpy')}")
    return 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
