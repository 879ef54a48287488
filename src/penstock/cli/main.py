"""The function `main` finds the sub-command and runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from penstock.cli import cache, catalog, convert, demo, info, inspect, report, service, top, version
from penstock.cli.catalog import prepare
from penstock.errors import PenstockError

# To add a sub-command, write its file and add its name here.
_COMMANDS = (
    demo,
    catalog,
    prepare,  # short for `catalog prepare`
    inspect,
    convert,
    cache,
    info,
    report,
    service,
    top,
    version,
)
INTERRUPTED = 130  # exit status of a program that Ctrl-C ended, as shells report it: 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `penstock` with `arguments` and return the exit status. Default: the arguments of the process.

    >>> main(["version"])
    penstock ...
    0
    """
    parser = argparse.ArgumentParser(prog="penstock", description="Input pipelines for training.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        status: int = chosen.run(chosen)
    except KeyboardInterrupt:
        print("penstock: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output (head, less) has ended. Python would fail again when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    return status
