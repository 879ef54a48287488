"""`print_table`: rows for people, on a terminal as wide as it is, elsewhere without a limit."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_WIDTH = 200  # of a table that goes to a file or another program


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print `rows` below the names of `columns`; those that `right` names hold numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False).print(table)
