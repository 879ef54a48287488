"""Choosing: the elements of a data set are the numbers of the sources."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError
from penstock.physical.held import held
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.mix import FAILED, NOTHING, Choices, Chooser


class Chosen(Choices):
    """Steps as the data set says; a choice of a source that has run dry is passed over."""

    def __init__(self, picks: np.ndarray, errors: dict[int, Exception], dry: Collection[int]) -> None:
        self.picks = picks
        self.errors = errors
        for source in dry:
            self.ran_dry(source, 0)

    def ran_dry(self, source: int, at: int) -> None:
        behind = self.picks[at:]
        behind[behind == source] = NOTHING


class Choosing(Chooser):
    """One choice for every step; one that is no number of a source is a failure in its place."""

    def __init__(self, choices: Stage, count: int, label: str, where: str | None) -> None:
        self.inputs = (choices,)
        self._cursor = Cursor(choices)
        self._count = count
        self._label = label
        self._where = where
        self._taken = 0

    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        found = self._cursor.take(want)
        if found is None:
            return None
        errors = dict(found.failures)
        picks = np.full(found.size, FAILED)
        if found.block is not None:
            given = held(found)
            numbers = _integers(found.block)
            if numbers is None:
                errors |= {at: self._no_integer(found.block, at) for at in given.tolist()}
            else:
                wrong = (numbers < 0) | (numbers >= self._count)
                for at, number in zip(given[wrong].tolist(), numbers[wrong].tolist(), strict=True):
                    errors[at] = self._no_source(number, at)
                picks[given[~wrong]] = numbers[~wrong]
        self._taken += found.size
        return Chosen(picks, errors, dry)

    def _no_source(self, number: int, row: int) -> Exception:
        message = f"A choice must be the number of a data set, from 0 to {self._count - 1}, got {number}."
        return InvalidArgumentError(message, context=self._at(row))

    def _no_integer(self, block: Block, row: int) -> Exception:
        specs = block.structure.build(block.specs())
        message = f"choice_dataset must give single integers, got an element of {specs}."
        return InvalidTypeError(message, hint="int(x) converts.", context=self._at(row))

    def _at(self, row: int) -> Context:
        return Context(self._label, self._where, self._taken + row)

    def state(self) -> State:
        return [self._cursor.state(), self._taken]

    def restore(self, state: State) -> None:
        below, self._taken = state
        self._cursor.restore(below)

    def close(self) -> None:
        self._cursor.close()


def _integers(block: Block) -> np.ndarray | None:
    column = block.columns[0] if block.structure.is_leaf else None
    if isinstance(column, DenseColumn) and column.array.ndim == 1 and column.array.dtype.kind in "iu":
        return column.array
    return None
