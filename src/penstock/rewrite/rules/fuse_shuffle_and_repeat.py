"""No gap between epochs:  Repeat(k)·Shuffle(n)·x   →   ShuffleAndRepeat(n, k)·x

The results are equal because each epoch has its own shuffle. No element of one epoch enters the buffer of another
epoch. The fused step saves the wait at the start of an epoch: the new buffer fills while the old one empties. Both
buffers together store at most n elements.
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
