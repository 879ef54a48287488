"""`penstock convert SOURCE TARGET`."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = (
        "Convert a file or folder to another format. Sources: CSV, JSON Lines, Parquet, Arrow, TFRecord, WebDataset, "
        "MDS, LitData, ArrayRecord, LMDB, lines of text, folders of images or of Hugging Face's save_to_disk. Targets: "
        "TFRecord, Arrow, Parquet, WebDataset, CSV, JSON Lines, MDS, LitData, folders of images by class or for "
        "Hugging Face's load_from_disk. Names and values stay the same. TARGET is replaced after everything is written."
    )
    parser = commands.add_parser("convert", help="turn files of one format into another", description=text)
    parser.add_argument("source", metavar="SOURCE", help="a file or folder")
    parser.add_argument("target", metavar="TARGET", help="a file named after its format, or a folder")
    parser.add_argument("--from", dest="source_format", metavar="FORMAT", help="the format of SOURCE")
    parser.add_argument(
        "--to",
        dest="target_format",
        metavar="FORMAT",
        help="for folders: tfrecord, arrow, parquet, webdataset, csv, jsonl, image_folder, huggingface, mds, litdata",
    )
    parser.add_argument("--columns", metavar="NAMES", help="only these, with commas between them")
    parser.add_argument("--shards", type=int, metavar="N", help="write a folder of so many files")
    parser.add_argument("--compression", metavar="NAME", help="of the files, none included; parquet: snappy by default")
    parser.add_argument("--float32", action="store_true", help="round float64, which TFRecord cannot hold, to float32")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a file at TARGET, or a folder of shards that convert has written",
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Convert, and print the number and size of the written rows."""
    from penstock.formats import convert
    from penstock.hints import size_text

    done = convert(
        chosen.source,
        chosen.target,
        source_format=chosen.source_format,
        target_format=chosen.target_format,
        columns=chosen.columns.split(",") if chosen.columns else None,
        shards=chosen.shards,
        compression=chosen.compression,
        overwrite=chosen.overwrite,
        float32=chosen.float32,
    )
    files = f"{len(done.files)} file{'' if len(done.files) == 1 else 's'}"
    print(f"{chosen.target}: {done.rows:,} rows in {files}, {size_text(done.bytes)}")
    return 0
