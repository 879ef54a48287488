"""Fitting: every element that a stage gives is looked at, whether it fits into the budget."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.block.block import Block
from penstock.errors import PenstockError
from penstock.physical.memory import Overspent
from penstock.physical.stage import Stage

if TYPE_CHECKING:
    from penstock.runtime.memory.budget import Budget

Next = Callable[[Stage, int], Block | None]


def fitting(stage: Stage, budget: Budget) -> None:
    """Have `stage.next` raise Overspent for a Block whose elements do not fit; once, though it stand for two steps."""
    own: dict[str, Any] = vars(stage)
    before = own.get("next")
    if isinstance(before, _Fitting):
        return
    own["next"] = _Fitting(_next, weakref.ref(stage), before, budget)


class _Fitting(partial[Block | None]):
    """`next` of a stage that is looked at. The stage does not hold itself by it: it goes with its last user."""


def _next(
    ref: weakref.ref[Stage], metered: Callable[[int], Block | None] | None, budget: Budget, want: int
) -> Block | None:
    stage = ref()
    assert stage is not None
    block = type(stage).next(stage, want) if metered is None else metered(want)
    if block is not None and block.nbytes > budget.total:
        try:
            budget.check_fits(block.nbytes, stage.label, stage.where, elements=block.size)
        except PenstockError as error:
            raise Overspent(error) from None
    return block
