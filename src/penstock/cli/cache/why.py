"""`penstock cache why PATH [KEY [KEY]]`."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.cache.found import SHOWN, FoundEntry, chosen, entries_in
from penstock.errors import FailedPreconditionError


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = (
        "Say what differs between two entries. Without keys these are the two newest; with one key, it and the entry "
        "that is nearest to it."
    )
    parser = actions.add_parser("why", help="explain why one entry was not used instead of another", description=text)
    parser.add_argument("path", metavar="PATH", help="the path or URL that was given to snapshot() or cache()")
    parser.add_argument("keys", metavar="KEY", nargs="*", help="the first digits of a key, at most two")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the differences, one per line."""
    from penstock.store.content_key.difference import differences

    new, old = _pair(entries_in(arguments.path), arguments.keys)
    print(f"{_named(new)} differs from {_named(old)}:")
    for text in differences(new.made, old.made):
        print(f"  {text}")
    return 0


def _named(entry: FoundEntry) -> str:
    return f"{entry.key[:SHOWN]} of {entry.created.removesuffix('+00:00')}"


def _pair(entries: list[FoundEntry], keys: list[str]) -> tuple[FoundEntry, FoundEntry]:
    """Return two entries, the newer first."""
    if len(keys) > 2:
        message = f"Two entries are compared, and {len(keys)} keys were given."
        raise FailedPreconditionError(message, hint="Give at most two.")
    picked = [chosen(entries, key) for key in keys]
    if len(picked) == 2 and picked[0] is picked[1]:
        raise FailedPreconditionError(f"{keys[0]!r} and {keys[1]!r} are the same entry.")
    others = [entry for entry in entries if entry not in picked and entry.manifest is not None]
    if len(picked) + len(others) < 2:
        raise FailedPreconditionError("Two entries are compared, and there is no second one that can be read.")
    if len(picked) == 1:
        picked.append(_nearest(picked[0], others))
    new, old = sorted(picked or others[:2], key=entries.index)
    return new, old


def _nearest(entry: FoundEntry, others: list[FoundEntry]) -> FoundEntry:
    from penstock.store.content_key.difference import differences

    return min(others, key=lambda other: len(differences(entry.made, other.made)))
