"""No gap between epochs:  Repeat(k)·Shuffle(n)·x   →   ShuffleAndRepeat(n, k)·x

Equal because each epoch still is a shuffle of its own: no element of one waits in the buffer of another. What goes is
the wait while a new buffer fills. It fills as the old one empties, and both together hold no more than n elements.
"""

from __future__ import annotations

from penstock.plan.fused import ShuffleAndRepeat
from penstock.plan.node import Node
from penstock.plan.ops import Repeat, Shuffle
from penstock.rewrite.rule import rule


@rule(Repeat, "Fills the shuffle buffer of the next epoch while the last empties. Epochs never mix.", for_lint=False)
def fuse_shuffle_and_repeat(repeat: Repeat) -> Node | None:
    """Repeat(k)·Shuffle(n)·x becomes one step: the next epoch's buffer fills while the last one's empties."""
    shuffle = repeat.input
    if not isinstance(shuffle, Shuffle) or repeat.count in (0, 1):
        return None
    return ShuffleAndRepeat(input=shuffle.input, shuffle=shuffle, repeat=repeat, where=shuffle.where)
