"""`print_table` prints rows in the width of the terminal. Files get wide tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_WIDTH = 200  # columns of a table that goes to a file or another program


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print `rows` below the names of `columns`. The columns named in `right` are aligned right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False).print(table)
