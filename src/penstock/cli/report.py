"""`penstock report RUN [OTHER]`."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Print the findings of a profiled run and write its report again; for two runs, print what changed."
    parser = commands.add_parser("report", help="say what a profile shows, or compare two", description=text)
    parser.add_argument("folder", metavar="RUN", help="the folder of a run: logs/20261124-101500-4711-…")
    parser.add_argument("other", metavar="OTHER", nargs="?", help="a later run, to compare with")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the verdict, or the comparison."""
    import textwrap

    from penstock.profiler.analysis.figures import place
    from penstock.profiler.verdict import compare

    folders = [folder for folder in (chosen.folder, chosen.other) if folder is not None]
    told = [_read(folder) for folder in folders]
    if len(told) == 2:
        for line in compare(*told):
            stands_in = " " * (len(line) - len(line.lstrip()) + 2)
            print(textwrap.fill(line, 80, subsequent_indent=stands_in, drop_whitespace=True))
        return 0
    for each in told[0]["pipelines"]:
        print(f"{each['name']} ({place(each['defined_at'])})")
        for sentence in (*each["verdict"]["sentences"], *each["verdict"]["changes"]):
            print(textwrap.fill(sentence, 80, initial_indent="  ", subsequent_indent="  "))
    if not told[0]["pipelines"]:
        print("No data set was iterated while this profile was on.")
    print(f"{folders[0]}/report.html")
    return 0


def _read(folder: str) -> Any:
    """Write the files of a run again and return its summary. Print a warning if the files cannot be written."""
    import sys

    from penstock.errors import NotFoundError
    from penstock.profiler.recording.store import Recorded
    from penstock.profiler.views.write import summary, write_views

    try:
        told = summary(Recorded(folder))
    except (FileNotFoundError, NotADirectoryError) as error:
        message = f"{folder} is no folder of a profiled run: {error}."
        raise NotFoundError(message, hint="Give the folder in which report.html is, logs/RUN.") from error
    try:
        return write_views(folder)
    except OSError as error:
        print(f"The report in {folder} could not be written: {error}.", file=sys.stderr)
        return told
