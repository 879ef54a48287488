"""`print_table` prints rows in the width of the terminal. Files get wide tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_WIDTH = 200  # columns of a table that goes to a file or another program


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print `rows` below the names of `columns`. The columns named in `right` are aligned right."""
    from rich.console import Console

    from penstock.viz.rows import Rows

    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print(Rows(columns, rows, [name in right for name in columns]))
