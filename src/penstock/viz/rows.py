"""The function `table` shows elements as rows, on a terminal and in a notebook."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from penstock.viz.parts import leaves, text_of


class Rows:
    """A table of elements. Its repr is text, rich prints it in the width of the terminal, and a notebook shows HTML.

    Example:
        >>> table([(1, b"one"), (2, b"two")])
        0  1
        1  one
        2  two
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
        self.columns, self.rows, self._right = tuple(columns), tuple(tuple(row) for row in rows), tuple(right)

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        made = Table(box=None, pad_edge=False)
        for name, right in zip(self.columns, self._right, strict=True):
            made.add_column(Text(name), justify="right" if right else "left", overflow="fold")
        for row in self.rows:
            made.add_row(*map(Text, row))
        return made

    def __repr__(self) -> str:
        from rich.console import Console

        out = io.StringIO()
        # The repr is text in a notebook too. Otherwise rich would display a second table there.
        Console(file=out, width=120, color_system=None, highlight=False, force_jupyter=False).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        lines = []
        for row in self.rows:
            sides = ("right" if right else "left" for right in self._right)
            cells = zip(sides, row, strict=True)
            lines.append("".join(f'<td style="text-align: {side}">{html.escape(text)}</td>' for side, text in cells))
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table(data: Any, n: int = 10) -> Rows:
    """Show the first elements as a table with a column for each of their values.

    Long strings are truncated. Arrays of more than six values are shown by dtype and shape, and binary strings by their
    length.

    Args:
        data: A data set, or any iterable of elements.
        n: Largest number of elements. Default: 10.

    Returns:
        The table.

    Example:
        >>> table([(1, b"one"), (2, b"two")])
        0  1
        1  one
        2  two
    """
    found = [dict(leaves(element)) for element in islice(iter(data), n)]
    names = list(dict.fromkeys(name for row in found for name in row))
    rows = [[text_of(row[name], 120) if name in row else "" for name in names] for row in found]
    right = [all(_is_number(row.get(name)) for row in found) for name in names]
    return Rows([name or "element" for name in names], rows, right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) or (
        isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "uif"
    )
