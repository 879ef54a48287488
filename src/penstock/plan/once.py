"""Properties of nodes that ask their inputs, some of them more than once."""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

N = TypeVar("N")
A = TypeVar("A")


class _Question(threading.local):
    """The answers found so far to the question that this thread asks of a plan, with the nodes that gave them."""

    found: dict[tuple[int, Any], tuple[Any, Any]] | None = None
    passed: dict[int, Any]  # nodes that `_from_below` has seen
    from_below = False  # whether some steps are asked now, for those above


_QUESTION = _Question()


class Answers:
    """The answers to a question that is asked in several parts, of a plan that is the same all the while."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.passed: dict[int, Any] = {}


def asking() -> bool:
    """Whether this thread is asking a question."""
    return _QUESTION.found is not None


@contextlib.contextmanager
def question(answers: Answers | None = None) -> Iterator[None]:
    """All that is asked inside is one question, which may go on with what was answered before."""
    if _QUESTION.found is not None:
        yield
        return
    answers = answers or Answers()
    _QUESTION.found, _QUESTION.passed = answers.found, answers.passed
    try:
        yield
    finally:
        _QUESTION.found, _QUESTION.passed = None, {}


def answered(node: N, ask: Callable[[N], A]) -> A:
    """What `ask` says of a node, which it says once while a question is answered.

    >>> asked = []
    >>> with question():
    ...     for _ in range(3):
    ...         answered("a node", asked.append)
    >>> asked
    ['a node']
    """
    found = _QUESTION.found
    if found is None:
        return ask(node)
    key = id(node), ask
    if key not in found:
        found[key] = node, ask(node)
    said: A = found[key][1]
    return said


_STRIDE = 100  # steps in a row that may ask each other; a plan of more is asked from below


def _from_below(plan: Any) -> None:
    """Ask some steps, the source's side first, so that none asks many below it: their calls stand on the stack."""
    waiting, some = [plan], []
    while waiting:
        node = waiting.pop()
        if id(node) not in _QUESTION.passed:
            _QUESTION.passed[id(node)] = node
            waiting += node.inputs
            if node.height % _STRIDE == 0:
                some.append(node)
    _QUESTION.from_below = True
    try:
        for node in sorted(some, key=operator.attrgetter("height")):
            for name in ("cardinality", "spec"):
                with contextlib.suppress(Exception):  # whoever needs to know asks again
                    getattr(node, name)
    finally:
        _QUESTION.from_below = False


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
            if key not in found:  # each node once
                if node.height > _STRIDE and not _QUESTION.from_below:
                    _from_below(node)
                found[key] = node, answer(node)
            return found[key][1]
        with question():
            return remembered(node)

    return property(remembered)
