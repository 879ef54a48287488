"""`penstock inspect PATH`."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

_DAMAGES = 5  # displayed damages


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = (
        "Print the format of a file or folder, the type of its elements, their number, and the first elements. If the "
        "files do not store the number, all elements are read. Damaged elements are reported with their position, and "
        "the status is then 1."
    )
    parser = commands.add_parser(
        "inspect", help="print the format, the elements and the damage of files", description=text
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a file or folder in a format that penstock reads")
    parser.add_argument("--format", metavar="NAME", help="the format, if the content does not identify it")
    parser.add_argument("--record-bytes", type=int, metavar="N", help="length of a record, for fixed-length records")
    parser.add_argument("--part", metavar="NAME", help="name of a tfds split, a table, a JSON list or a snapshot")
    parser.add_argument(
        "-n", type=int, default=3, metavar="N", help="number of elements to print (default: %(default)s)"
    )
    parser.add_argument("--check", action="store_true", help="read every element, even if the number is known")
    parser.add_argument("--sheet", metavar="FILE", help="write a PNG of images of all classes with their labels")
    parser.add_argument(
        "--pictures", type=int, default=25, metavar="N", help="number of images in the sheet (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with one object per path")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the content of each path. Return status 1 if something is damaged."""
    from penstock.errors import InvalidArgumentError

    if chosen.sheet and len(chosen.paths) > 1:
        raise InvalidArgumentError(f"--sheet draws the images of one path, got {len(chosen.paths)}.")
    if chosen.n < 0:
        raise InvalidArgumentError(f"-n must be at least 0, got {chosen.n}.")
    told = [_described(path, chosen) for path in chosen.paths]
    if chosen.json:
        print(json.dumps(told if len(told) > 1 else told[0], indent=1, default=str))
    return 1 if any(entry["damages"] for entry in told) else 0


def _described(path: str, chosen: argparse.Namespace) -> dict[str, Any]:
    from penstock.formats import FORMATS, open_dataset
    from penstock.hints import size_text
    from penstock.viz import table

    opened = open_dataset(path, chosen.format, part=chosen.part, record_bytes=chosen.record_bytes)
    found = opened.found
    count = opened.dataset.cardinality()
    whole = count < 0 or chosen.check
    first, good, damages = _read(opened.dataset, path, chosen.n, whole=whole)
    count = good if whole else count
    spec = _spec(opened)
    if not chosen.json:
        files = f"{len(found.files)} file{'' if len(found.files) == 1 else 's'}, {size_text(found.bytes)}"
        packed = f", {found.compression}" if found.compression else ""
        print(f"{path}: {found.format} ({FORMATS[found.format]}){packed}")
        print(
            f"  {files}, {count:,} element{'' if count == 1 else 's'}"
            + (f", {len(damages)} that cannot be read" if damages else "")
        )
        if opened.parts:
            print(f"  part {chosen.part or opened.parts[0]} of {', '.join(opened.parts)}")
        print("  element:")
        print("\n".join(f"    {line}" for line in spec))
        for name, names in opened.names.items():
            print(f"  classes of {name}: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}")
        if first:
            print("\n".join(f"  {line}" for line in repr(table(first, chosen.n)).splitlines()))
    for damage in damages[:_DAMAGES]:
        print(f"penstock: {damage}", file=sys.stderr)
    if len(damages) > _DAMAGES:
        print(f"penstock: and {len(damages) - _DAMAGES} more", file=sys.stderr)
    if chosen.sheet:
        _draw(opened, chosen)
    return {
        "path": path,
        "format": found.format,
        "compression": found.compression,
        "files": list(found.files),
        "bytes": found.bytes,
        "elements": count,
        "parts": list(opened.parts),
        "schema": spec,
        "names": {name: list(names) for name, names in opened.names.items()},
        "damages": damages,
    }


def _read(dataset: Any, path: str, n: int, *, whole: bool) -> tuple[list[Any], int, list[str]]:
    """Return the first `n` readable elements, the number of readable elements, and messages about the others.

    Without `whole`, stop after these elements, or after the damages that are displayed.
    """
    from penstock.catalog.progress import Reporter

    first: list[Any] = []
    damages: list[str] = []
    good = 0
    bar = Reporter().step(f"reading {Path(path).name}", None, "elements") if whole else nullcontext()
    with bar as step, dataset.iterator() as elements:
        while whole or (good < n and len(damages) <= _DAMAGES):
            try:
                element = next(elements)
            except StopIteration:
                break
            except Exception as error:
                damages.append(_line(error))
                continue
            good += 1
            if good <= n:
                first.append(element)
            if step is not None:
                step.advance()
    return first, good, damages


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _spec(opened: Any) -> list[str]:
    """Return a line for each value of an element."""
    from penstock.errors import PenstockError
    from penstock.viz.parts import leaves

    if opened.examples is not None:
        records = opened.examples.records
        return [*opened.examples.lines, f"(features of the first {records} tf.train.Examples)"]
    try:
        spec = opened.dataset.element_spec
    except PenstockError as error:
        return [f"unknown: {error.message}"]
    return [f"{name}: {leaf}" if name else str(leaf) for name, leaf in leaves(spec)]


def _draw(opened: Any, chosen: argparse.Namespace) -> None:
    made = opened.dataset.ignore_errors().show(chosen.pictures, path=chosen.sheet, label_names=opened.label_names)
    print(f"{made.count} images: {chosen.sheet}", file=sys.stderr if chosen.json else sys.stdout)
