"""What a predicate says of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import InvalidTypeError
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import UNNUMBERED, Draws


def truth(verdict: Any) -> bool:
    """The verdict as a bool; raises InvalidTypeError for anything that is not one."""
    if isinstance(verdict, (bool, np.bool_)):
        return bool(verdict)
    if isinstance(verdict, np.ndarray) and verdict.shape == () and verdict.dtype == bool:
        return bool(verdict)
    message = f"A predicate returns one bool, got {verdict!r:.60} ({type(verdict).__name__})."
    raise InvalidTypeError(message, hint="Compare, for example `x % 2 == 0`; for arrays use .any() or .all().")


def verdicts(vectoriser: Vectoriser, block: Block, draws: Draws = UNNUMBERED) -> np.ndarray | None:
    """One bool for every element of a Block, or None where the predicate has to be called per element."""
    found = vectoriser.run(block, None, draws)
    if found is None or not found.structure.is_leaf:
        return None
    column = found.columns[0]
    if isinstance(column, DenseColumn) and column.array.dtype == bool and column.array.ndim == 1:
        return column.array
    return None
