"""`penstock top [PID]`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

_WIDTH = 80  # columns of output that does not go to a terminal
_LEAST_FIRST = 16


def add_to(commands: Any) -> None:
    """Add the sub-command to the parsers of `commands`."""
    text = "Look at the iterations of a process that called ps.monitor(), or was started with PENSTOCK_MONITOR=1."
    parser = commands.add_parser("top", help="look at the iterations of a running process", description=text)
    parser.add_argument("pid", metavar="PID", nargs="?", type=int, help="the process (default: the one there is)")
    parser.add_argument("--once", action="store_true", help="print one table and end")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="between two looks (default: 1)")
    parser.add_argument("--web", action="store_true", help="show a page on 127.0.0.1 instead")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the page (default: any that is free)")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Show the iterations until Ctrl-C or the end of the process."""
    from penstock.errors import InvalidArgumentError
    from penstock.profiler.live.monitor import ask, monitored

    if not 0.1 <= chosen.seconds <= 3600:
        message = f"--seconds must lie between 0.1 and 3600, got {chosen.seconds:g}."
        raise InvalidArgumentError(message, hint="Leave it out for one look a second.")
    pid = chosen.pid
    if pid is None:
        found = monitored()
        if len(found) > 1:
            _list(found)
            return 0
        if not found:
            print(
                "No process of yours is monitored. Call ps.monitor() in a program, or start it with PENSTOCK_MONITOR=1."
            )
            return 1
        pid = found[0]
    told = ask(pid)
    if chosen.web:
        return _web(pid, chosen.port)
    if chosen.once:
        _console().print(drawn(told, _console().width))
        return 0
    return _live(pid, told, chosen.seconds) if sys.stdout.isatty() else _lines(pid, told, chosen.seconds)


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)


def _list(found: list[int]) -> None:
    from penstock.cli.table import print_table
    from penstock.errors import PenstockError
    from penstock.profiler.analysis.figures import number
    from penstock.profiler.live.monitor import ask

    rows = []
    for pid in found:
        try:
            told = ask(pid)
        except PenstockError:
            continue  # the process has ended
        running = [each for each in told["pipelines"] if each["running"]]
        rate = sum(each["elements_per_second"] for each in running)
        rows.append([str(pid), str(len(running)), number(rate), told["program"]])
    print_table(["PID", "passes", "elements/s", "program"], rows, right=["PID", "passes", "elements/s"])
    print("Look at one with: penstock top PID")


def _live(pid: int, told: dict[str, Any], seconds: float) -> int:
    from rich.live import Live

    from penstock.errors import PenstockError
    from penstock.profiler.live.monitor import ask

    console = _console()
    try:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop", screen=True) as live:
            while True:
                live.update(drawn(told, console.width, console.height), refresh=True)
                time.sleep(seconds)
                told = ask(pid)
    except KeyboardInterrupt:
        console.print(drawn(told, console.width))
        return 0
    except PenstockError as error:
        console.print(drawn(told, console.width))
        print(f"This was the last look: {error}", file=sys.stderr)
        return 0


def _lines(pid: int, told: dict[str, Any], seconds: float) -> int:
    """Print one line per pipeline and sample, for a file or another program."""
    from penstock.errors import PenstockError
    from penstock.profiler.analysis.figures import number, percent
    from penstock.profiler.live.monitor import ask

    try:
        while True:
            for each in told["pipelines"]:
                if each["running"]:
                    rate, waited = number(each["elements_per_second"]), percent(each["waited_share"])
                    print(
                        f"{time.strftime('%H:%M:%S')} {each['name']} ({each['defined_at']}): {each['elements']:,} "
                        f"elements, {rate} a second, waited {waited}, {each['verdict']['step'] or 'the loop'}",
                        flush=True,
                    )
            time.sleep(seconds)
            told = ask(pid)
    except KeyboardInterrupt:
        return 0
    except PenstockError as error:
        print(f"This was the last look: {error}", file=sys.stderr)
        return 0


def drawn(told: dict[str, Any], width: int, height: int | None = None) -> Any:
    """Return the whole table. With a `height`, it has only the steps that fit."""
    from rich.console import Group
    from rich.text import Text

    from penstock.profiler.live import table

    parts: list[Any] = [Text(table.head(told), style="bold", no_wrap=True, overflow="ellipsis")]
    if not told["pipelines"]:
        parts.append(Text("No pass has begun since it is monitored."))
    shown = [each for each in told["pipelines"] if each["running"]] or told["pipelines"][:1]
    shown += [each for each in told["pipelines"] if each not in shown]
    room = None if height is None else max((height - 4) // max(min(len(shown), 3), 1) - 6, 4)
    for each in shown:
        parts += [Text(""), Text(table.title(each), style="cyan")]
        found = table.rows(each) if each["running"] else []
        if found:
            parts.append(_table(found if room is None else table.fitted(found, room), width))
        parts += [Text(text, style=_STYLES[each["verdict"]["input_bound"]]) for text in table.sentences(each)]
    parts.append(Text(f"\n{table.LEGEND}" if told["pipelines"] else "", style="dim"))
    return Group(*parts)


_STYLES = {"no": "green", "slightly": "yellow", "yes": "red"}


def _table(found: Any, width: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    from penstock.profiler.live.table import TITLES

    drawing = Table(box=None, pad_edge=False, expand=False)
    widest = [max(len(row.cells[i]) for row in found) for i in range(len(TITLES))]
    others = sum(max(wide, len(name)) + 1 for wide, name in zip(widest[1:], TITLES[1:], strict=True))
    room = max(width - others - 2, _LEAST_FIRST)
    for name in TITLES:
        right = name not in ("step", "runs on")
        most = room if name == "step" else None
        drawing.add_column(
            name, justify="right" if right else "left", no_wrap=True, overflow="ellipsis", max_width=most
        )
    for row in found:
        marked = "> " if row.bottleneck else "  "
        cells = [Text(marked + row.cells[0]), *map(Text, row.cells[1:])]
        drawing.add_row(*cells, style="bold red" if row.bottleneck else "")
    return drawing


def _web(pid: int, port: int) -> int:
    from penstock.profiler.live.web import Page

    with Page(pid, port) as page:
        print(f"{page.address}\nThe address is the key: who has it can look. Ctrl-C ends it.", flush=True)
        page.serve()
    return 0
