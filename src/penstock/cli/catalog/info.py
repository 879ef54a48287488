"""`penstock catalog info NAME`."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from penstock.cli.catalog.named import add_name, builder_of, prepared_builder
from penstock.cli.table import print_table


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = (
        "Say what is known of a data set: what its examples hold, how many there are, where they lie, whose they are."
    )
    parser = actions.add_parser("info", help="print the description of a data set", description=text)
    add_name(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: dataset_info.json, and the features")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the description of a data set."""
    from penstock.errors import FailedPreconditionError
    from penstock.hints import redacted, size_text

    try:
        builder = prepared_builder(chosen)
    except FailedPreconditionError:
        builder = builder_of(chosen)
    info, folder = builder.info, redacted(str(builder.data_path))
    if chosen.json:
        known = {"prepared": builder.is_prepared, "folder": folder, "features": info.features.entry()}
        if not builder.is_prepared:
            known["expectedExamples"] = dict(getattr(builder, "expected_examples", {}))
        print(json.dumps({**info.to_json(), **known}, indent=1, default=str))
        return 0
    print(info.full_name)
    if info.description:
        print(textwrap.indent(textwrap.fill(" ".join(info.description.split()), 110), "  "))
    download = "" if builder.is_prepared or not info.download_size else size_text(info.download_size)
    facts = {
        "folder": folder if builder.is_prepared else "not prepared",
        "download": download,
        "configs": ", ".join(one.name for one in getattr(builder, "BUILDER_CONFIGS", ())),
        "homepage": info.homepage,
        "licence": info.license,
        "supervised": "" if info.supervised_keys is None else str(info.supervised_keys),
    }
    print("\n".join(f"  {name}: {fact}" for name, fact in facts.items() if fact))
    print("\nfeatures")
    for name, feature in info.features.items():
        print(textwrap.indent(f"{name}: {_feature(feature)}", "  "))
    expected = getattr(builder, "expected_examples", {})
    if info.splits:
        _print_splits(info)
    elif expected:
        print()
        rows = [(split, f"{count:,}") for split, count in expected.items()]
        print_table(("split", "examples"), rows, right=("examples",))
    for name, skipped in info.metadata.get("skipped", {}).items():
        print(f"\n{name}: {skipped['count']} inputs skipped, listed in metadata.json")
    if info.citation:
        print("\ncitation\n" + textwrap.indent(info.citation.strip(), "  "))
    return 0


def _feature(feature: Any) -> str:
    names = feature.names if getattr(feature, "has_names", False) else []
    shown = ", ".join(map(str, names[:8]))
    return f"{feature.repr_inside()}" + (f": {shown}{', …' if len(names) > 8 else ''}" if names else "")


def _print_splits(info: Any) -> None:
    from penstock.hints import size_text

    rows = [
        (split.name, f"{split.num_examples:,}", size_text(split.num_bytes), str(split.num_shards))
        for split in info.splits.values()
    ]
    print()
    print_table(("split", "examples", "size", "shards"), rows, right=("examples", "size", "shards"))
