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
    """Remove it and say how much that was; the status is 1 where the answer is no."""
    from penstock.block.size_text import size_text
    from penstock.errors import FailedPreconditionError, InvalidArgumentError
    from penstock.io.storage import is_url
    from penstock.redacted import redacted

    builder = prepared_builder(chosen)
    folder: Path = builder.data_path
    if is_url(folder):
        message = f"What lies behind a URL is only read, got {redacted(str(folder))!r}."
        raise InvalidArgumentError(message, hint="Remove it with the service's own tools.")
    parts = builder.info.full_name.split("/")  # asked while the folder is there
    size = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() or file.is_symlink())
    if not chosen.yes and not _agreed(folder, size_text(size)):
        print("nothing was removed")
        return 1
    # Under another name first: nobody finds a data set of which a part is gone.
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
    print(f"removed {folder}, {size_text(size)}")
    return 0


def _agreed(folder: Path, size: str) -> bool:
    from penstock.errors import FailedPreconditionError

    if not sys.stdin.isatty():
        message = f"remove asks before it removes {folder} ({size}), and nobody can answer here."
        raise FailedPreconditionError(message, hint="Give --yes.")
    return input(f"Remove {folder} ({size})? [y/N] ").strip().lower() in ("y", "yes")
