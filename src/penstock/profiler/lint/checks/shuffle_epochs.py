"""A shuffle behind a repeat: elements of neighbouring epochs mix."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.ops import Enumerate, Filter, Map, Prefetch, Repeat, Shuffle
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between

_ALIKE = (Map, Filter, Enumerate, Prefetch, Cache)


def shuffle_epochs(plan: Inspection) -> Iterator[Advice]:
    """Shuffle·…·Repeat(n) with n above 1, or for ever."""
    for shuffle, _ in plan.asked(Shuffle):
        for node in below(shuffle):
            if isinstance(node, Repeat) and node.count not in (0, 1):
                yield Advice.on(
                    shuffle,
                    "shuffle-epochs",
                    "data",
                    f"{shuffle.label} behind {node.label} mixes epochs: an element may come twice before another "
                    "came once.",
                    calls([*between(shuffle, node), shuffle, node]),
                    "Each epoch then gives every element once, in an order of its own. There is no wait between "
                    "epochs: the buffer of the next fills while this one's empties.",
                )
            if not isinstance(node, _ALIKE):
                break
