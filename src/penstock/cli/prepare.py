"""`penstock prepare NAME`."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Write a data set of the catalog to disk as sharded TFRecords, unless it is there already."
    parser = commands.add_parser("prepare", help="prepare a data set of the catalog", description=text)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the data set; without it the catalog is listed")
    parser.add_argument("--data-dir", metavar="DIR", help="default: $PENSTOCK_DATA_DIR, else ~/penstock_datasets")
    parser.add_argument(
        "--examples", type=int, metavar="N", help="how many examples to draw, for data sets that are drawn"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Prepare the data set and say where it is."""
    from penstock import catalog

    if chosen.name is None:
        print("\n".join(catalog.list_builders()))
        return 0
    arguments = {} if chosen.examples is None else {"num_examples": chosen.examples}
    builder = catalog.builder(chosen.name, data_dir=chosen.data_dir, **arguments)
    found = builder.is_prepared
    builder.download_and_prepare()
    for split in builder.info.splits.values():
        size = f"{split.num_examples} examples, {split.num_bytes / 1e6:.1f} MB, {split.num_shards} shards"
        print(f"{builder.name} {split.name}: {size}")
    print(f"{'already there' if found else 'written'}: {builder.data_path}")
    return 0
