"""`penstock cache ls PATH`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from penstock.cli.cache.found import SHOWN, FoundEntry, entries_in
from penstock.cli.table import print_table
from penstock.hints import redacted


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = "List the entries in a folder, the newest first: how much they hold, whether they are complete, of what."
    parser = actions.add_parser("ls", help="list the entries of a folder", description=text)
    parser.add_argument("path", metavar="PATH", help="the path or URL that was given to snapshot() or cache()")
    parser.add_argument("--json", action="store_true", help="print JSON, with all that entries are made of")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the entries."""
    entries = entries_in(arguments.path)
    if arguments.json:
        print(json.dumps([_as_json(entry) for entry in entries], indent=1))
    elif entries:
        _print_table(entries)
    else:
        print("no entries")
    return 0


def _as_json(entry: FoundEntry) -> dict[str, Any]:
    manifest = entry.manifest
    return {
        "key": entry.key,
        "folder": redacted(str(entry.folder)),
        "created": entry.created or None,
        "penstock": None if manifest is None else manifest.penstock,
        "elements": entry.elements,
        "bytes": entry.bytes,
        "complete": entry.complete,
        "writer": entry.writer,
        "problem": entry.problem,
        "made_of": [] if manifest is None else [list(part) for part in manifest.made_of],
        "sources": [] if manifest is None else [list(source) for source in manifest.sources],
    }


def _print_table(entries: list[FoundEntry]) -> None:
    from penstock.hints import size_text

    rows = [
        (
            entry.key[:SHOWN],
            entry.created.removesuffix("+00:00"),
            str(entry.elements),
            size_text(entry.bytes),
            _state(entry),
            _steps(entry),
        )
        for entry in entries
    ]
    print_table(("key", "created", "elements", "bytes", "state", "made of"), rows, right=("elements", "bytes"))


def _state(entry: FoundEntry) -> str:
    state = "complete" if entry.complete else entry.problem or "so far"
    return state if entry.writer is None else f"{state}, written by {entry.written_by}"


def _steps(entry: FoundEntry) -> str:
    """Return the steps of an entry, such as `range(0, 6, 1) · map(decode) · batch(2)`."""
    if entry.manifest is None:
        return ""
    heads = [part.text for part in entry.made.parts if part.path == part.step and "#" in part.path]
    return " · ".join(_unplaced(text) for text in heads)


def _unplaced(text: str) -> str:
    label, _, line = text.rpartition(", ")
    return label if label and line.rpartition(":")[2].isdigit() else text
