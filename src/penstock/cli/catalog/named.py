"""What the sub-commands of `penstock catalog` share: the builder that a name on the command line stands for."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

DATA_DIR = "where prepared data lives (default: $PENSTOCK_DATA_DIR, else ~/penstock_datasets)"


def add_name(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """The arguments that name a data set; `builder_of` reads them."""
    text = "the data set: name, name/config, name:version, or module:Class[/config] for a builder of your own"
    parser.add_argument("name", metavar="NAME", nargs=None if needed else "?", help=text)
    parser.add_argument("--data-dir", metavar="DIR", help=DATA_DIR)


def builder_of(chosen: argparse.Namespace, **arguments: Any) -> Any:
    """The builder of that name, or the one at module:Class; the current folder is looked in."""
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
    """The builder of a data set that is prepared: as its arguments made it, or, where there is one alone, as found.

    Raises FailedPreconditionError where nothing is prepared.
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
    if len(parts) == 1:  # the config is one of the builder's arguments, as with shapes, or the only one that is there
        version = chosen.name.partition(":")[2]
        found = find_folder(data_dirs(chosen.data_dir), builder.name, None, version if version[:1].isdigit() else None)
        if found is not None:
            return FolderBuilder(found)
    message = f"the data set {chosen.name!r} is not prepared in {redacted(str(builder.data_path))}."
    hint = f"`penstock catalog prepare {chosen.name}` writes it; `penstock catalog list` shows what is there."
    raise FailedPreconditionError(message, hint=hint)
