"""`penstock catalog prepare NAME`, or `penstock prepare NAME` for short."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.catalog.named import add_name, builder_of


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = (
        "Write a data set of the catalog to disk as sharded TFRecords, unless it is there already. What an interrupt "
        "leaves is gone on with. `penstock prepare` is short for `penstock catalog prepare`."
    )
    parser = commands.add_parser("prepare", help="prepare a data set of the catalog", description=text)
    add_name(parser, needed=False)
    parser.add_argument("--download-dir", metavar="DIR", help="default: downloads in the data dir")
    parser.add_argument("--manual-dir", metavar="DIR", help="where files lie that you downloaded yourself")
    parser.add_argument(
        "--examples", type=int, metavar="N", help="how many examples to draw, for data sets that are drawn"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Prepare the data set and print its folder."""
    from penstock import catalog
    from penstock.hints import redacted

    if chosen.name is None:
        print("\n".join(catalog.list_builders()))
        return 0
    arguments = {} if chosen.examples is None else {"num_examples": chosen.examples}
    builder = builder_of(chosen, **arguments)
    found = builder.is_prepared
    builder.download_and_prepare(download_dir=chosen.download_dir, manual_dir=chosen.manual_dir)
    for split in builder.info.splits.values():
        print(f"{builder.name} {split.name}: {split.summary}")
    for name, skipped in builder.info.metadata.get("skipped", {}).items():
        print(f"{builder.name} {name}: {skipped['count']} inputs skipped, listed in metadata.json")
    print(f"{'already there' if found else 'written'}: {redacted(str(builder.data_path))}")
    return 0
