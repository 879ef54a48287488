"""`penstock catalog verify NAME`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from penstock.cli.catalog.named import add_name, prepared_builder

_SHOWN = 5  # displayed problems of a shard


def add_to(actions: Any) -> None:
    """Add the action to the parsers of `actions`."""
    text = (
        "Read a prepared data set from end to end: every shard that the metadata names, the number of its records, "
        "their checksums, and with --decode every value. The status is 1 where something is wrong."
    )
    parser = actions.add_parser("verify", help="read a prepared data set and look for damage", description=text)
    add_name(parser)
    parser.add_argument("--decode", action="store_true", help="decode every example too, images included")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print a line for each split on stdout, and the damage on stderr."""
    from penstock.catalog.progress import Reporter

    builder = prepared_builder(chosen)
    info, problems = builder.info, 0
    progress = Reporter()
    for split in info.splits.values():
        wrong: list[str] = []
        count = 0
        with progress.step(f"{info.name}: reading {split.name}", split.num_examples) as step:
            for file, length in zip(split.filenames, split.shard_lengths, strict=True):
                good, found = _read(builder, file, length, decode=chosen.decode, step=step)
                count += good
                wrong += found
        print(f"{info.full_name} {split.name}: {count} of {split.num_examples} examples are whole")
        for text in wrong:
            print(f"penstock: {text}", file=sys.stderr)
        problems += len(wrong)
    return 1 if problems else 0


def _read(builder: Any, file: str, length: int, *, decode: bool, step: Any) -> tuple[int, list[str]]:
    """Return the number of intact examples of a shard, and messages about the others."""
    from penstock.catalog.read import DecodeExample
    from penstock.catalog.shards import ShardsSource, Stretch
    from penstock.dataset.dataset import Dataset
    from penstock.errors import PenstockError
    from penstock.plan.inputs import Scan

    source = ShardsSource((Stretch(str(builder.data_path / file), 0, length, length),), builder.info.file_format, 1)
    try:
        if length:
            source.check_shard(0)
    except (PenstockError, OSError) as error:  # one message for the shard, not one per example
        return 0, [_line(error, file)]
    examples = Dataset._of(Scan(source=source))
    if decode:
        examples = examples.map(DecodeExample(builder.info.features, None, None))
    good, failed = 0, 0
    wrong: list[str] = []
    with examples.iterator() as found:
        for _ in range(length):
            try:
                next(found)
            except Exception as error:  # a codec, or a feature of the user, may raise any error
                failed += 1
                if failed <= _SHOWN:
                    wrong.append(_line(error, file))
            else:
                good += 1
                step.advance()
    if failed > _SHOWN:
        wrong.append(f"{file}: {failed} of {length} examples cannot be read")
    return good, wrong


def _line(error: Exception, file: str) -> str:
    text = " ".join(str(error).split())
    return text if file in text else f"{file}: {text}"
