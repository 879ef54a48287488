"""Windows: bytes that a segment may hold ahead, from those who do not use them to those whom a slow element blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.autotune.proposal import Proposal
from penstock.runtime.autotune.view import View

_AHEAD = 2.0  # seconds of what a slow consumer takes, that it keeps ahead
_LEFT = 1 << 22  # bytes of a window that are not worth taking away
_UNUSED = 8  # a window is large if it is this many times what was ever held
_FULL_FOR = 2.0  # seconds without a change before a window that is always full shrinks
_UNUSED_FOR = 10.0  # the same for one that is hardly used
_BADLY = 0.3  # share of time blocked that asks for much more room


def wider(view: View, name: str) -> Iterator[Proposal]:
    """More room for a segment that had none while its consumer waited."""
    knobs, found = view.knobs[name], view.measures[name]
    factor = 4 if min(found.full, found.starved) >= _BADLY else 2
    spare = view.means.ram - sum(value.window for other, value in view.knobs.items() if other in view.flows)
    taken: dict[str, Knobs] = {}
    wanted = knobs.window * (factor - 1)
    for other in view.flows:
        if spare >= wanted:
            break
        use = _use(view, other)
        if other != name and use < view.knobs[other].window:
            spare += view.knobs[other].window - use
            taken[other] = replace(view.knobs[other], window=use)
    more = min(wanted, spare)
    if more >= knobs.window // 4 and more > 0:
        yield Proposal({name: replace(knobs, window=knobs.window + more), **taken})


def narrower(view: View) -> Iterator[Proposal]:
    """Less room where it is always full before a slow consumer, or never used."""
    for name, found in view.measures.items():
        window = view.knobs[name].window
        target, quiet = window, _UNUSED_FOR
        if view.content and 2 * found.held_least >= window:
            target, quiet = max(_use_by_rate(view, name), _LEFT), _FULL_FOR
        elif found.held_most * _UNUSED <= window:
            target = max(window // 4, _use(view, name), _LEFT)
        if 2 * target <= window:
            yield Proposal({name: replace(view.knobs[name], window=target)}, seconds=quiet)


def _use(view: View, name: str) -> int:
    """Bytes that a segment needs by what it held: twice that, and no less than a result for each worker."""
    found = view.measures[name]
    results = 2 * view.knobs[name].parallelism + 2
    return max(2 * found.held_most, int(results * found.result_bytes), 1)


def _use_by_rate(view: View, name: str) -> int:
    """Bytes that keep the consumer from waiting for some time."""
    found = view.measures[name]
    results = 2 * view.knobs[name].parallelism + 2
    per_second = found.rate * found.result_bytes / max(found.result_elements, 1e-9)
    return int(min(max(results * found.result_bytes, _AHEAD * per_second), 1e15))
