"""`penstock demo`."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

_TEXT = (
    "Prepare the data set shapes, train a small net on it twice, first fed naively, then through a pipeline; "
    "print where the time went and draw a figure of it."
)


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    parser = commands.add_parser("demo", help="see what a pipeline is good for", description=_TEXT)
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where prepared data lives (default: $PENSTOCK_DATA_DIR, else ~/penstock_datasets)",
    )
    parser.add_argument(
        "--epochs", type=int, default=5, metavar="N", help="iterations over the data (default: %(default)s)"
    )
    parser.add_argument(
        "--examples", type=int, default=2000, metavar="N", help="training images (default: %(default)s)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="images per step (default: %(default)s)"
    )
    parser.add_argument(
        "--step-ms",
        type=float,
        metavar="MS",
        help="in place of the net, steps of MS milliseconds that leave the CPU alone, as on an accelerator",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("timeline.png"), metavar="FILE", help="the figure (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the net and of shuffling (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Run the demo. Return status 1 if the two runs disagree."""
    from penstock.demo import Settings, run_demo

    settings = Settings(**{each.name: getattr(chosen, each.name) for each in fields(Settings)})
    return 0 if run_demo(settings) else 1
