"""`penstock catalog list`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from penstock.cli.catalog.named import DATA_DIR
from penstock.cli.table import print_table


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = "List the data sets that the catalog can prepare and those that are prepared, of penstock or tfds."
    parser = actions.add_parser("list", help="list data sets", description=text)
    parser.add_argument("--data-dir", metavar="DIR", action="append", help=f"{DATA_DIR}; may be given several times")
    parser.add_argument("--prepared", action="store_true", help="only what is on disk")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print a line for each prepared version, and one for each data set without a prepared version."""
    from penstock import catalog
    from penstock.hints import size_text

    rows = _prepared(chosen.data_dir)
    there = {row["name"] for row in rows}
    if not chosen.prepared:
        rows += [_preparable(name) for name in catalog.list_builders() if name not in there]
    rows.sort(key=lambda row: (row["name"], row.get("folder", "")))
    if chosen.json:
        print(json.dumps(rows, indent=1))
    elif rows:
        lines = [
            (
                "/".join(part for part in (row["name"], row.get("config"), row.get("version")) if part),
                "" if row.get("examples") is None else f"{row['examples']:,}",
                "" if row.get("bytes") is None else size_text(row["bytes"]),
                row.get("problem") or row.get("folder") or _to_do(row),
            )
            for row in rows
        ]
        print_table(("data set", "examples", "size", "folder"), lines, right=("examples", "size"))
    else:
        print("nothing is prepared")
    return 0


def _preparable(name: str) -> dict[str, Any]:
    from penstock.catalog.registry import builder_class

    row = {"name": name, "prepared": False}
    try:
        kind = builder_class(name)
        size = kind().expected_download_size if kind is not None else None
    except ImportError as error:  # of the package that provides the builder
        return {**row, "problem": f"not prepared, and its builder cannot be imported: {error}"}
    except Exception:  # the builder needs arguments
        return row
    return row if size is None else {**row, "download_bytes": size}


def _to_do(row: dict[str, Any]) -> str:
    from penstock.hints import size_text

    size = row.get("download_bytes")
    return "not prepared" if size is None else f"not prepared; {size_text(size)} to download"


def _prepared(given: Any) -> list[dict[str, Any]]:
    """Return the description of each folder of a version, including damaged ones."""
    from penstock.catalog.data_dir import data_dirs, entries
    from penstock.catalog.info import FILE_NAME

    found: dict[Path, dict[str, Any]] = {}
    for data_dir in data_dirs(given):
        entries(data_dir)  # raises an error for a folder without permission
        for pattern in (f"*/*/{FILE_NAME}", f"*/*/*/{FILE_NAME}"):
            for file in sorted(data_dir.glob(pattern)):
                if not any(part.startswith("incomplete.") for part in file.relative_to(data_dir).parts):
                    found.setdefault(file.parent.resolve(), _described(data_dir, file.parent))
    return list(found.values())


def _described(data_dir: Path, folder: Path) -> dict[str, Any]:
    from penstock.catalog.info import read_info
    from penstock.errors import PenstockError
    from penstock.hints import redacted

    name, *config, version = folder.relative_to(data_dir).parts
    named = redacted(str(folder))
    row = {"name": name, "config": "/".join(config), "version": version, "prepared": True, "folder": named}
    try:
        info = read_info(folder)
    except PenstockError as error:
        return {**row, "problem": f"{named}: {error.message}"}
    return {
        **row,
        "examples": sum(split.num_examples for split in info.splits.values()),
        "bytes": info.dataset_size,
        "splits": {split.name: split.num_examples for split in info.splits.values()},
        "format": info.file_format,
    }
