"""Frozen: the base class of nodes, which are frozen dataclasses without generated code per class.

`once` marks properties that depend on the inputs, so that a query computes each only once per node.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Iterator
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, dataclass_transform


@dataclass_transform(eq_default=True, frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Frozen:
    """Base of frozen dataclasses: annotations are fields, passed by keyword, and equality is by value.

    `dataclass(frozen=True)` generates and compiles six methods for each class. This takes a third of a millisecond of
    CPU time per class at each import of penstock, and for the sixty kinds of steps a fifth of the import time. This
    class defines the methods once.

    >>> class Point(Frozen):
    ...     x: int
    ...     y: int = 0
    >>> Point(x=1) == Point(x=1, y=0), Point(x=1)
    (True, Point(x=1, y=0))
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)

    if not TYPE_CHECKING:  # a type checker derives __init__ from the fields

        def __init__(self, **given: Any) -> None:
            facts, (defaults, factories, names) = vars(self), _defaults(type(self))
            facts.update(defaults)
            facts.update(given)
            for name, factory in factories:
                if name not in given:
                    facts[name] = factory()
            if facts.keys() != names:
                _refuse(type(self), facts)
            self.__post_init__()

    def __post_init__(self) -> None:
        """Check the fields."""

    def settle(self, **values: Any) -> None:
        """Set fields from within `__post_init__`."""
        vars(self).update(values)

    def over(self, **others: Any) -> Self:
        """Return a copy with other values in some fields, without calling `__post_init__`.

        `dataclasses.replace` takes 8 µs for the same, and a chain of steps calls it several times per step.
        """
        kind: Any = type(self)
        made, own = object.__new__(kind), vars(self)
        vars(made).update({name: own[name] for name in _defaults(kind)[2]}, **others)
        found: Self = made
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        message = f"cannot assign to field {name!r}"
        raise FrozenInstanceError(message)

    def __delattr__(self, name: str) -> None:
        message = f"cannot delete field {name!r}"
        raise FrozenInstanceError(message)

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in _fields(self) if each.compare)


@functools.cache
def _defaults(kind: Any) -> tuple[dict[str, Any], tuple[tuple[str, Any], ...], frozenset[str]]:
    """Return the defaults of a class, its default factories, and the names of all fields."""
    every = fields(kind)
    defaults = {each.name: each.default for each in every if each.default is not MISSING}
    factories = tuple((each.name, each.default_factory) for each in every if each.default_factory is not MISSING)
    return defaults, factories, frozenset(each.name for each in every)


def _refuse(kind: Any, given: dict[str, Any]) -> NoReturn:
    """Raise TypeError for an unknown or a missing field."""
    names = [each.name for each in fields(kind)]
    lacking = next((name for name in names if name not in given), None)
    if lacking is not None:
        message = f"{kind.__qualname__} needs {lacking}"
        raise TypeError(message)
    message = f"{kind.__qualname__} has no field {next(name for name in given if name not in names)!r}"
    raise TypeError(message)


def _fields(one: Frozen) -> tuple[Any, ...]:
    return fields(one)  # type: ignore[arg-type]  # every subclass is a dataclass


N = TypeVar("N")
A = TypeVar("A")


class _Question(threading.local):
    """The answers of the current query of this thread, with the nodes that they belong to."""

    found: dict[tuple[int, Any], tuple[Any, Any]] | None = None
    passed: dict[int, Any]  # nodes that `_from_below` has visited
    from_below = False  # True while `_from_below` evaluates steps


_QUESTION = _Question()


class Answers:
    """The answers of a query that is continued later on the same plan."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.passed: dict[int, Any] = {}


def asking() -> bool:
    """Return True if this thread is inside a query."""
    return _QUESTION.found is not None


@contextlib.contextmanager
def question(answers: Answers | None = None) -> Iterator[None]:
    """Treat all property accesses inside as one query, which may continue from earlier `answers`."""
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
    """Return `ask(node)`. During a query, it is called only once per node.

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


_STRIDE = 100  # steps in a row that may call each other recursively; longer plans are evaluated from below


def _from_below(plan: Any) -> None:
    """Evaluate some steps, the source's side first, so that no recursion becomes deep."""
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
                with contextlib.suppress(Exception):  # a caller that needs the value evaluates it again
                    getattr(node, name)
    finally:
        _QUESTION.from_below = False


def once(asked: property) -> property:
    """Return a property that each node computes once per query, and again in the next query.

    Specs contain sizes of batches, and `unbatch` derives its cardinality from specs. Without this cache, each such step
    would double the time.
    """
    answer = asked.fget
    assert answer is not None

    @functools.wraps(answer)
    def remembered(node: Any) -> Any:
        found = _QUESTION.found
        if found is not None:
            key = id(node), answer
            if key not in found:  # once per node
                if node.height > _STRIDE and not _QUESTION.from_below:
                    _from_below(node)
                found[key] = node, answer(node)
            return found[key][1]
        with question():
            return remembered(node)

    return property(remembered)
