"""Frozen: the base of nodes, classes of constants without code made for each.

`once`: properties that ask their inputs, found once for each node while a question is answered.
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
    """A subclass is a frozen dataclass: its annotations are fields, given by keyword, and it is equal by value.

    `dataclass(frozen=True)` writes six methods anew for each class and compiles them: a third of a millisecond of CPU
    time whenever penstock is imported, and for some sixty kinds of steps a fifth of the import. Here they stand once.

    >>> class Point(Frozen):
    ...     x: int
    ...     y: int = 0
    >>> Point(x=1) == Point(x=1, y=0), Point(x=1)
    (True, Point(x=1, y=0))
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)

    if not TYPE_CHECKING:  # a type checker makes one of the fields

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
        """What `__post_init__` makes of fields."""
        vars(self).update(values)

    def over(self, **others: Any) -> Self:
        """The same with other values in some fields, which are right whatever they are: nothing is checked again.

        `dataclasses.replace` takes 8 µs for it, which a chain of steps takes several times for each.
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
    """The fields of a class: defaults, what makes others, and the names of all."""
    every = fields(kind)
    defaults = {each.name: each.default for each in every if each.default is not MISSING}
    factories = tuple((each.name, each.default_factory) for each in every if each.default_factory is not MISSING)
    return defaults, factories, frozenset(each.name for each in every)


def _refuse(kind: Any, given: dict[str, Any]) -> NoReturn:
    """Say which field there is not, or which was not given."""
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
