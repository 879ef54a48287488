"""`penstock cache ls|why|rm PATH`."""

from __future__ import annotations

from typing import Any

from penstock.cli.cache import ls, rm, why


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "List, compare and remove what snapshot(PATH) and cache(PATH) have kept in a folder."
    parser = commands.add_parser("cache", help="look after snapshots and caches", description=text)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in (ls, why, rm):
        action.add_to(actions)
