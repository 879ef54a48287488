"""`penstock catalog remove NAME`."""

from __future__ import annotations

import argparse
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

from penstock.cli.catalog.named import add_name, prepared_builder


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = "Remove a prepared data set from the disk. Its downloads stay, so that it can be prepared again."
    parser = actions.add_parser("remove", help="remove a prepared data set", description=text)
    add_name(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Remove the data set and print its size. Return status 1 if the user answers no."""
    from penstock.catalog.info import FILE_NAME
    from penstock.errors import FailedPreconditionError
    from penstock.hints import redacted, size_text
    from penstock.io import storage
    from penstock.store.entry import remove_remote

    builder = prepared_builder(chosen)
    folder: Path = builder.data_path
    parts = builder.info.full_name.split("/")  # read before the folder is removed
    size = size_text(sum(nbytes for nbytes, _ in storage.states_below(folder)))
    named = redacted(str(folder))
    if not chosen.yes and not _agreed(named, size):
        print("nothing was removed")
        return 1
    if storage.is_url(folder):
        if not remove_remote(str(folder), FILE_NAME):
            message = f"{named} is being removed, or prepared, by another process."
            raise FailedPreconditionError(message, hint="Try again when they have done it.")
        print(f"removed {named}, {size}")
        return 0
    # The folder is renamed first, so that no process finds an incomplete data set.
    away = folder.with_name(f"incomplete.removed-{uuid.uuid4().hex[:8]}")
    try:
        folder.rename(away)
        shutil.rmtree(away)
    except OSError as error:
        message = f"{folder} cannot be removed: {error.strerror}."
        raise FailedPreconditionError(message, file=str(error.filename or folder)) from error
    for above in (folder.parent, folder.parent.parent):
        if above.name in parts and not any(above.iterdir()):
            above.rmdir()
    print(f"removed {folder}, {size}")
    return 0


def _agreed(folder: str, size: str) -> bool:
    from penstock.errors import FailedPreconditionError

    if not sys.stdin.isatty():
        message = f"remove asks before it removes {folder} ({size}), and there is no terminal to answer."
        raise FailedPreconditionError(message, hint="Give --yes.")
    return input(f"Remove {folder} ({size})? [y/N] ").strip().lower() in ("y", "yes")
