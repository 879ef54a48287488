"""`penstock cache rm PATH KEY`."""

from __future__ import annotations

import argparse
import time
from typing import Any

from penstock.cli.cache.found import SHOWN, FoundEntry, chosen, entries_in
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.hints import redacted

_DAY = 86400 * 10**9  # nanoseconds


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = "Remove the entries with these keys, or those that an option names. One that is being written stays."
    parser = actions.add_parser("rm", help="remove entries", description=text)
    parser.add_argument("path", metavar="PATH", help="the path or URL that was given to snapshot() or cache()")
    parser.add_argument("keys", metavar="KEY", nargs="*", help="the first digits of a key")
    parser.add_argument("--all", action="store_true", help="all entries")
    parser.add_argument("--incomplete", action="store_true", help="those that no pass has completed")
    parser.add_argument("--older-than", type=float, metavar="DAYS", help="those that were not written to since then")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Remove the entries and print them. Return status 1 if an entry could not be removed."""
    from penstock.hints import size_text

    entries = _wanted(arguments)
    removed = [entry for entry in entries if _remove(entry)]
    for entry in entries:
        done = f"removed {entry.key[:SHOWN]}, {size_text(entry.bytes)}"
        print(done if entry in removed else f"left {entry.key[:SHOWN]}: it is being written")
    count = f"{len(removed)} entr{'y' if len(removed) == 1 else 'ies'}"
    print(f"{count} removed, {size_text(sum(entry.bytes for entry in removed))}")
    return 0 if len(removed) == len(entries) else 1


def _wanted(arguments: argparse.Namespace) -> list[FoundEntry]:
    ways = [arguments.keys != [], arguments.all, arguments.incomplete, arguments.older_than is not None]
    if sum(ways) != 1:
        message = f"rm wants to be told what to remove in one way, and was told in {sum(ways)}."
        raise InvalidArgumentError(message, hint="Give keys, --all, --incomplete or --older-than DAYS.")
    entries = entries_in(arguments.path)
    if arguments.keys:
        return _writable([chosen(entries, key) for key in dict.fromkeys(arguments.keys)])
    if arguments.incomplete:
        return [entry for entry in entries if not entry.complete]
    if arguments.all:
        return entries
    if not arguments.older_than >= 0:
        raise InvalidArgumentError(f"--older-than counts days, got {arguments.older_than:g}.")
    found = []
    for entry in entries:
        if entry.changed is None:
            message = f"{redacted(str(entry.folder))} lies in a place that does not tell when a file was written."
            raise FailedPreconditionError(message, hint="Give keys: `penstock cache ls` says when each was created.")
        if time.time_ns() - entry.changed > arguments.older_than * _DAY:
            found.append(entry)
    return found


def _writable(entries: list[FoundEntry]) -> list[FoundEntry]:
    """Return the entries without duplicates. Raises FailedPreconditionError if a process writes to one."""
    for entry in entries:
        if entry.writer is not None:
            message = f"{entry.key[:SHOWN]} is being written by {entry.written_by}. Nothing was removed."
            raise FailedPreconditionError(message, hint="Wait until that pass has ended, or end that process.")
    return list(dict.fromkeys(entries))


def _remove(entry: FoundEntry) -> bool:
    """Remove an entry. Return False if a process writes to it."""
    from penstock.store.entry import remove

    try:
        return remove(str(entry.folder))
    except OSError as error:
        message = f"{entry.key[:SHOWN]} cannot be removed: {error.strerror}."
        raise FailedPreconditionError(message, file=str(error.filename or entry.folder)) from error
