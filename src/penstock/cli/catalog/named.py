"""The common part of `penstock catalog`: finds the builder of a name on the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

DATA_DIR = "where prepared data lives (default: $PENSTOCK_DATA_DIR, else ~/penstock_datasets)"


def add_name(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Add the arguments that name a data set for `builder_of`."""
    text = "the data set: name, name/config, name:version, or module:Class[/config] for a builder of your own"
    parser.add_argument("name", metavar="NAME", nargs=None if needed else "?", help=text)
    parser.add_argument("--data-dir", metavar="DIR", help=DATA_DIR)


def builder_of(chosen: argparse.Namespace, **arguments: Any) -> Any:
    """Return the builder with that name, or the class at module:Class. The current folder is on the import path."""
    from penstock import catalog
    from penstock.catalog.registry import class_at

    name: str = chosen.name
    path, _, config = name.partition("/")
    module, _, class_name = path.partition(":")
    if not class_name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        return catalog.builder(name, data_dir=chosen.data_dir, **arguments)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    if config:
        arguments["config"] = config
    return class_at(path)(data_dir=chosen.data_dir, **arguments)


def prepared_builder(chosen: argparse.Namespace) -> Any:
    """Return the builder of a prepared data set.

    If no data set with exactly these arguments is prepared, but a single prepared version matches the name, that
    version is returned.

    Raises:
        FailedPreconditionError: If nothing is prepared.
    """
    from penstock.catalog.data_dir import data_dirs
    from penstock.catalog.folder import FolderBuilder, find_folder
    from penstock.catalog.in_place import InPlace
    from penstock.errors import FailedPreconditionError
    from penstock.hints import redacted

    builder = builder_of(chosen)
    if isinstance(builder, InPlace):
        message = f"{chosen.name!r} reads your own files in {builder.data_path}; nothing of it is prepared."
        raise FailedPreconditionError(message, hint="Look after these files yourself; `penstock inspect` shows them.")
    if builder.is_prepared:
        return builder
    parts = chosen.name.partition(":")[0].split("/")
    if len(parts) == 1:  # the config comes from the builder's arguments, as with shapes, or only one config is prepared
        version = chosen.name.partition(":")[2]
        found = find_folder(data_dirs(chosen.data_dir), builder.name, None, version if version[:1].isdigit() else None)
        if found is not None:
            return FolderBuilder(found)
    message = f"the data set {chosen.name!r} is not prepared in {redacted(str(builder.data_path))}."
    hint = f"`penstock catalog prepare {chosen.name}` writes it; `penstock catalog list` shows what is there."
    raise FailedPreconditionError(message, hint=hint)
