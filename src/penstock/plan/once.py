"""Properties of nodes that ask their inputs, some of them more than once."""

from __future__ import annotations

import functools
import threading
from typing import Any


class _Question(threading.local):
    """The answers found so far to the question that this thread asks of a plan, with the nodes that gave them."""

    found: dict[tuple[int, Any], tuple[Any, Any]] | None = None


_QUESTION = _Question()


def once(asked: property) -> property:
    """A property that each node works out once while a question is answered, and anew for the next question.

    Sizes of batches are in specs, and specs tell how many elements `unbatch` gives: without this, each such step would
    double the time.
    """
    answer = asked.fget
    assert answer is not None

    @functools.wraps(answer)
    def remembered(node: Any) -> Any:
        found = _QUESTION.found
        if found is not None:
            key = id(node), answer
            if key not in found:
                found[key] = node, answer(node)
            return found[key][1]
        _QUESTION.found = {}
        try:
            return answer(node)
        finally:
            _QUESTION.found = None

    return property(remembered)
