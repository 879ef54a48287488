"""`penstock catalog list|info|prepare|verify|remove`."""

from __future__ import annotations

from typing import Any

from penstock.cli.catalog import info, listing, prepare, remove, verify


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "List, prepare, check and remove named data sets."
    parser = commands.add_parser("catalog", help="look after named data sets", description=text)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in (listing, info, prepare, verify, remove):
        action.add_to(actions)
