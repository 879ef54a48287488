"""Node: one step of a plan. It is frozen, checked when created, and equal by value. It does not run anything.

This module also prints plans, for reprs, documentation and tests.
"""

from __future__ import annotations

import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, replace
from pathlib import PurePath
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure, flatten
from penstock.errors import InvalidArgumentError, InvalidTypeError, user_location
from penstock.keys import fold
from penstock.plan.node_base import Frozen, once

AUTOTUNE = -1
"""Value of an argument that lets penstock choose the number."""
INFINITE_CARDINALITY = -1
"""Result of `Dataset.cardinality` for an infinite data set."""
UNKNOWN_CARDINALITY = -2
"""Result of `Dataset.cardinality` if only an iteration can count the elements."""
DEEP = 300  # height from which checks of specs are left to the iteration, because they would ask each step below
EXECUTORS = ("auto", "thread", "process", "inline")  # allowed values of `executor`


class NamedStep(Protocol):
    """A node, or anything else with the name of a step and the line of user code that created it, for errors."""

    @property
    def label(self) -> str: ...
    @property
    def where(self) -> str | None: ...


class StepName(NamedTuple):
    """A step that has no node."""

    label: str
    where: str | None = None


class Node(Frozen, ABC):
    """One step of a plan.

    `where` is the line of the user's code that created the step. It does not count for equality.
    """

    where: str | None = field(default_factory=user_location, compare=False, repr=False)

    name: ClassVar[str]
    shown: ClassVar[str] = ""  # the parameter in the label
    makes_data_sets: ClassVar[bool] = False  # True if a function creates data sets, unknown before the iteration
    changes_elements: ClassVar[bool] = True  # False for a step that only computes ahead
    deep: ClassVar[int] = 1  # 0 for a step that `depth` skips: random steps after it have the same salt as without it

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in vars(cls).keys() & {"spec", "cardinality"}:
            setattr(cls, name, once(vars(cls)[name]))

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The plans that this step reads from; none for a source."""
        return ()

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        """Return the same step over other inputs."""
        assert not inputs
        return self

    @property
    def label(self) -> str:
        """Name of this step in errors, statistics and `explain`."""
        if not self.shown:
            return self.name
        value = getattr(self, self.shown)
        return f"{self.name}({function_name(value) if callable(value) else value})"

    @property
    @abstractmethod
    def spec(self) -> Any:
        """The nest of specs of an element, or None if only an iteration can determine it."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, the consumer's side first."""
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.inputs)

    @property
    def depth(self) -> int:
        """Number of nodes below this one. It distinguishes two random steps of one plan."""
        return below(self, _DEPTH, _depth_of)

    @property
    def height(self) -> int:
        """Number of nodes on the longest path from this one to a source."""
        return below(self, _HEIGHT, _height_of)

    @property
    def shares(self) -> tuple[int, ...]:
        """The `share` of this step and of all below it, the consumer's side first."""
        return below(self, _SHARES, _shares_of)

    @property
    def gives_any_rank(self) -> bool:
        """True if the signature of a generator in this step leaves the rank of elements open."""
        return False

    @property
    def may_be_unordered(self) -> bool:
        """True if this step or one below it may yield elements in free order, or creates data sets that may."""
        return below(self, _UNORDERED, _unordered_of)

    @property
    def any_rank(self) -> bool:
        """True if elements may differ in rank, because this step or one below it has `gives_any_rank`."""
        return below(self, _ANY_RANK, _any_rank_of)

    @property
    def share(self) -> tuple[int, ...]:
        """The shard that this step reads, if each consumer reads another one; else an empty tuple."""
        return ()


_DEPTH, _SHARES, _HEIGHT, _ANY_RANK, _UNORDERED = "_depth", "_shares", "_height", "_any_rank", "_unordered"
T = TypeVar("T")


def _depth_of(node: Node, found: list[int]) -> int:
    return sum(found) + node.deep * len(found)


def _height_of(node: Node, found: list[int]) -> int:
    return 1 + max(found, default=0)


def _shares_of(node: Node, found: list[tuple[int, ...]]) -> tuple[int, ...]:
    return sum(found, node.share)


def _any_rank_of(node: Node, found: list[bool]) -> bool:
    return node.gives_any_rank or any(found)


def _unordered_of(node: Node, found: list[bool]) -> bool:
    return node.makes_data_sets or getattr(node, "deterministic", None) is False or any(found)


def below(plan: Node, name: str, answer: Callable[[Node, list[T]], T]) -> T:
    """Return a value computed from a node and the values of its inputs. Nodes are frozen, so they cache it."""
    known = vars(plan)
    if name in known:
        said: T = known[name]
        return said
    waiting = [plan]
    while waiting:
        node = waiting[-1]
        inputs = node.inputs
        unknown = [node for node in inputs if name not in vars(node)]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        if name not in vars(node):
            vars(node)[name] = answer(node, [vars(below)[name] for below in inputs])
    found: T = vars(plan)[name]
    return found


def rebuilt(plan: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return the plan with nodes replaced by the results of `change`, the consumer's side first.

    If `change` returns None for all nodes, the result is the same object.
    """
    made: dict[int, Node] = {}
    waiting = [(plan, False)]
    while waiting:
        node, ready = waiting.pop()
        if id(node) in made:
            continue
        if ready:
            inputs = tuple(made[id(below)] for below in node.inputs)
            same = all(now is before for now, before in zip(inputs, node.inputs, strict=True))
            made[id(node)] = node if same else node.with_inputs(inputs)
            continue
        found = change(node)
        if found is not None:
            made[id(node)] = found
            continue
        waiting.append((node, True))
        waiting += [(below, False) for below in node.inputs]
    return made[id(plan)]


class UnaryNode(Node):
    """A step with one input. By default, it keeps the spec and the number of elements."""

    input: Node

    @property
    def spec(self) -> Any:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, input=inputs[0])

    def known(self) -> tuple[list[LeafSpec], Structure] | None:
        """Return leaves and structure of the spec of the input, or None if it is unknown."""
        return None if self.input.spec is None else flatten(self.input.spec)


class UncountedNode(UnaryNode):
    """A step that yields some elements, whose number is unknown."""

    @property
    def cardinality(self) -> int:
        return 0 if self.input.cardinality == 0 else UNKNOWN_CARDINALITY


class LeafwiseNode(UnaryNode):
    """A step whose results have specs that follow from the components of its input."""

    @abstractmethod
    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        """Return the spec of a result, for elements with these components."""

    @property
    def spec(self) -> Any:
        known = self.known()
        return None if known is None else self.specs(*known)


class JoinedNode(Node):
    """A step with several inputs."""

    parts: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, parts=inputs)


def inputs_first(plan: Node) -> list[Node]:
    """Return every node once, after its inputs. Pickled in this order, a long plan needs no deep recursion."""
    found: dict[int, Node] = {}
    waiting = [(plan, False)]
    while waiting:
        node, below = waiting.pop()
        if below:
            found.setdefault(id(node), node)
        elif id(node) not in found:
            waiting.append((node, True))
            waiting += [(part, False) for part in reversed(node.inputs)]
    return list(found.values())


def parameters(node: Node) -> dict[str, Any]:
    """Return the fields of a node that determine its results: all but inputs, line and executor."""
    return {name: getattr(node, name) for name in parameter_names(type(node))}


@functools.cache
def parameter_names(kind: type[Node]) -> tuple[str, ...]:
    """Return the names of these fields."""
    skipped = {"where", "input", "parts", "executor"}
    return tuple(f.name for f in fields(kind) if f.name not in skipped)


def function_name(function: Callable[..., Any]) -> str:
    """Return a short name for a user's callable."""
    try:
        return str(getattr(function, "__name__", type(function).__name__))
    except Exception:  # an object of the user may raise any exception on attribute access
        return type(function).__name__


def check_ends(asked_by: str, cardinality: int) -> None:
    """Raise InvalidArgumentError for an infinite data set."""
    if cardinality == INFINITE_CARDINALITY:
        message = f"{asked_by} needs a data set that ends; this one is infinite."
        raise InvalidArgumentError(message, hint="Bound it with take().")


def check_int(name: str, value: Any, *, least: int, hint: str, also: tuple[int, ...] = ()) -> int:
    """Return an integer argument as a Python int. numpy integers are accepted, bool and float are not."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        message = f"{name} must be an integer, got {name}={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message, hint=hint)
    number = value.__index__()
    if number < least and number not in also:
        special = "".join(f", or {extra}" for extra in also)
        message = f"{name} must be at least {least}{special}, got {name}={number}."
        raise InvalidArgumentError(message, hint=hint)
    return int(number)


def check_ints(node: Any, *names: str, least: int, hint: str, also: tuple[int, ...] = ()) -> None:
    """Check integer arguments of a step, and convert them to Python ints."""
    node.settle(**{name: check_int(name, getattr(node, name), least=least, hint=hint, also=also) for name in names})


def check_count(node: Any, hint: str) -> None:
    """Convert the `count` of a step to a Python int; every negative count means -1, as in tf.data."""
    node.settle(count=max(check_int("count", node.count, least=-sys.maxsize, hint=hint), -1))


def check_parallel(node: Any) -> None:
    """Check the `num_parallel_calls` of a step: None, AUTOTUNE, or a count of at least 1."""
    if node.num_parallel_calls is not None:
        hint = "Leave it out for one call at a time, or give penstock.AUTOTUNE to let the engine choose."
        check_ints(node, "num_parallel_calls", least=1, also=(AUTOTUNE,), hint=hint)


def check_executor(value: Any) -> str:
    """Return `executor`, or raise an error if it is not one of EXECUTORS."""
    if isinstance(value, str) and value in EXECUTORS:
        return value
    listed = ", ".join(map(repr, EXECUTORS))
    if not isinstance(value, str):
        message = f"executor must be one of {listed}, got executor={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message)
    import difflib

    near = difflib.get_close_matches(value.lower(), EXECUTORS, 1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else "Leave it out to let the engine choose."
    message = f"executor must be one of {listed}, got executor={value!r}."
    raise InvalidArgumentError(message, hint=hint)


def check_seed(node: Any) -> None:
    """Convert the seed of a random step to a Python int. If the step has no salt, set its position in the plan.

    Rewrites move steps and keep the salt, so they never change random numbers.
    """
    if node.seed is not None:
        check_ints(node, "seed", least=-(2**63), hint="Any int64 will do.")
    if hasattr(node, "salt"):
        settle_salt(node)


def settle_salt(node: Any) -> None:
    """Set the salt, which distinguishes the random steps of a plan, to the position in the plan, if it is not set."""
    if node.salt < 0:
        node.settle(salt=node.depth)


def settle_salt_of_function(node: Any) -> None:
    """Like `settle_salt`, for a step whose function may use random numbers: each shard gets other random numbers."""
    if node.salt < 0:
        shares = node.shares
        node.settle(salt=fold(node.depth, *shares) if shares else node.depth)


def check_function(name: str, value: Any, step: str) -> Callable[..., Any]:
    if not callable(value):
        message = f"{step} needs a function as {name}, got {value!r} ({type(value).__name__})."
        raise InvalidTypeError(message, hint="Give the function itself, without calling it: f, not f(x).")
    function: Callable[..., Any] = value
    return function


def limit(cardinality: int, count: int) -> int:
    """Return the cardinality of the first `count` elements."""
    if cardinality == UNKNOWN_CARDINALITY:
        return UNKNOWN_CARDINALITY
    return count if cardinality == INFINITE_CARDINALITY else min(cardinality, count)


def total(cardinalities: Sequence[int]) -> int:
    """Return the cardinality of several streams together."""
    if INFINITE_CARDINALITY in cardinalities:
        return INFINITE_CARDINALITY
    return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in cardinalities else sum(cardinalities)


def in_batches(cardinality: int, size: int, *, drop_remainder: bool) -> int:
    """Return the cardinality of batches of so many elements."""
    if cardinality < 0:
        return cardinality
    return cardinality // size if drop_remainder else -(-cardinality // size)


def of_some(cardinality: int) -> int:
    """Return the cardinality of a step that drops or joins elements depending on their values.

    It is known only for an empty or infinite input.
    """
    return cardinality if cardinality in (0, INFINITE_CARDINALITY) else UNKNOWN_CARDINALITY


_WIDEST = 80  # columns up to which the tree is indented


def tree(plan: Node) -> str:
    """Return one line per step, the consumer's side first, with the line of user code that created it."""
    rows = list(_rows(plan))
    width = max(len(text) for text, _ in rows)
    return "\n".join(f"{text:<{width}}  {where}".rstrip() for text, where in rows)


def _rows(plan: Node) -> Iterator[tuple[str, str]]:
    waiting = [(plan, "", "")]
    while waiting:
        node, lead, below = waiting.pop()
        yield lead + node.label, short_location(node.where)
        if len(below) > _WIDEST:  # do not indent further
            lead, below = below[:-2] + "└ ", below[:-2]
            waiting += [(part, lead, below + "  ") for part in reversed(node.inputs)]
            continue
        for i, part in reversed(list(enumerate(node.inputs))):
            last = i == len(node.inputs) - 1
            waiting.append((part, below + ("└ " if last else "├ "), below + ("  " if last else "│ ")))


def short_location(where: str | None) -> str:
    """Return `train.py:12` for a full path."""
    if where is None:
        return ""
    path, _, line = where.rpartition(":")
    return f"{PurePath(path).name}:{line}"
