"""SameKind: what Python code gives keeps its structure, dtypes and ranks, inside a Block and from Block to Block."""

from __future__ import annotations

import threading

import numpy as np

from penstock.block.block import Block, Builder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import Origin
from penstock.errors import Context, InvalidTypeError


class SameKind:
    """Remembers the kind of the first Block built and refuses another. Thread-safe.

    `what` names the thing in errors: "The function's result".
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._expected: str | None = None

    def build(self, builder: Builder, origin: Origin | None) -> tuple[Block | None, InvalidTypeError | None]:
        """The elements before the first of another kind, and the error for that one, its row in `context.element`."""
        error: InvalidTypeError | None = None
        while len(builder):
            try:
                block = builder.build(origin)
                self._check(block)
            except InvalidTypeError as raised:
                error = raised
                rows = raised.context.element or 0
                builder.truncate(rows)
                origin = None if origin is None else origin.slice(0, rows)
            else:
                return block, error
        return None, error

    def _check(self, block: Block) -> None:
        found = block.structure.describe([_kind(column) for column in block.columns])
        expected = self._expected
        if expected is None:
            with self._lock:
                if self._expected is None:
                    self._expected = found
                expected = self._expected
        if found != expected:
            message = f"{self._what} changed: before it was {expected}, now it is {found}."
            hint = "Every element has the same nest, dtypes and ranks; np.float32(value) converts."
            raise InvalidTypeError(message, hint=hint, context=Context(element=0))


def _kind(column: Column) -> str:
    if isinstance(column, DenseColumn):
        return f"{column.array.dtype} of rank {column.array.ndim - 1}"
    if isinstance(column, BytesColumn):
        return f"bytes of rank {column.starts.ndim - 1}"
    assert isinstance(column, ListColumn)
    first = column.items[0]
    if isinstance(first, np.ndarray):
        return f"{'bytes' if first.dtype == object else first.dtype} of rank {first.ndim}"
    return type(first).__name__
