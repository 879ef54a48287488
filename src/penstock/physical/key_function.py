"""Results of users' functions for all elements of a Block: one integer each, or one bool each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, as_failure
from penstock.physical.vectorise import Vectoriser
from penstock.plan.node import NamedStep
from penstock.trace.drawing import UNNUMBERED, Draws

_LEAST, _MOST = -(2**63), 2**63 - 1


class KeyFunction:
    """Calls `function(element)` and returns int64, on a whole Block where the result is known to be equal.

    `argument` is the function's name in errors, such as `key_func`.
    """

    def __init__(self, function: Callable[..., Any], argument: str, step: NamedStep, *, vectorise: bool) -> None:
        self._function = function
        self._argument = argument
        self._step = step
        self._vectoriser = Vectoriser(function) if vectorise else None

    def __call__(self, block: Block, first: int) -> tuple[np.ndarray, dict[int, Exception]]:
        """Return the keys, and the errors by row. The Block's elements have the numbers `first` and following."""
        keys = self._vectorised(block)
        return self._per_element(block, first) if keys is None else (keys, {})

    def _vectorised(self, block: Block) -> np.ndarray | None:
        found = None if self._vectoriser is None else self._vectoriser.run(block, None)
        if found is None or not found.structure.is_leaf:
            return None
        column = found.columns[0]
        if not isinstance(column, DenseColumn) or column.array.ndim != 1 or column.array.dtype.kind not in "iu":
            return None
        if column.array.dtype == np.uint64 and column.array.max() > _MOST:
            return None
        return column.array.astype(np.int64, copy=False)

    def _per_element(self, block: Block, first: int) -> tuple[np.ndarray, dict[int, Exception]]:
        function = self._function
        unpacks = block.structure.unpacks
        keys: list[int] = []
        errors: dict[int, Exception] = {}
        for element in block.elements():
            try:
                key = function(*element) if unpacks else function(element)
                keys.append(int(key) if type(key) is np.int64 else whole_number(key, self._argument))
            except Exception as raised:
                row = len(keys)
                context = Context(self._step.label, self._step.where, first + row, *block.origin_at(row))
                errors[row] = as_failure(raised, context, element)
                keys.append(0)
        return np.array(keys, np.int64), errors


def whole_number(value: Any, argument: str) -> int:
    """Return the result of a user's function as an int that fits int64."""
    if type(value) is int and _LEAST <= value <= _MOST:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        kind = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        message = f"{argument} must return one integer, got {value!r:.60} ({kind})."
        raise InvalidTypeError(message, hint="Convert in the function, for example int(value).")
    if not _LEAST <= value <= _MOST:
        message = f"{argument} must return an integer that fits int64, got {value}."
        raise InvalidArgumentError(message)
    return int(value)


def truth(verdict: Any) -> bool:
    """Return the result of a predicate as a bool. Raise InvalidTypeError for any other type."""
    if isinstance(verdict, (bool, np.bool_)):
        return bool(verdict)
    if isinstance(verdict, np.ndarray) and verdict.shape == () and verdict.dtype == bool:
        return bool(verdict)
    message = f"A predicate returns one bool, got {verdict!r:.60} ({type(verdict).__name__})."
    raise InvalidTypeError(message, hint="Compare, for example `x % 2 == 0`; for arrays use .any() or .all().")


def verdicts(vectoriser: Vectoriser, block: Block, draws: Draws = UNNUMBERED) -> np.ndarray | None:
    """Return one bool for every element of a Block, or None if the predicate has to be called per element."""
    found = vectoriser.run(block, None, draws)
    if found is None or not found.structure.is_leaf:
        return None
    column = found.columns[0]
    if isinstance(column, DenseColumn) and column.array.dtype == bool and column.array.ndim == 1:
        return column.array
    return None
