"""Graph: the operations of a function on one element, as primitives in order. It runs on the columns of a Block.

The design is that of JAX's autodidax: a primitive, `bind`, a tracer, a list of equations, an evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Protocol, TypeGuard

import numpy as np

from penstock.block.column import Column
from penstock.block.spec import LeafSpec, spec_of
from penstock.block.structure import Structure

_MOST = 1000  # operations of a function; a longer loop gains nothing as a graph


class NotTraceable(BaseException):
    """The function did something that a tracer does not support. The text names it."""


class Forked(NotTraceable):
    """The function branches on a value, and `decided` has no entry for this branch."""


class Allocate(Protocol):
    """A function that returns memory for the rows of one output in their final place, or None."""

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None: ...


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in a graph: output `index` of an equation, or input `index` if `equation` is -1."""

    equation: int
    index: int


@dataclass(frozen=True, slots=True)
class Const:
    """A value that is the same for every element."""

    value: Any


@dataclass(frozen=True, slots=True)
class Keys:
    """The random keys of the elements: key number `ordinal` of each element, or the key that follows from `seed`.

    An array of ordinals stands for several keys of each element.
    """

    ordinal: int | np.ndarray
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class KeysFrom:
    """A function that returns the elements' keys from number `ordinal` on, for a primitive with an inner graph."""

    ordinal: int

    def of(self, keys: DrawKeys) -> DrawKeys:
        return lambda wanted: keys(Keys(self.ordinal + wanted.ordinal, wanted.seed))


Operand = Ref | Const | Keys | KeysFrom

DrawKeys = Callable[[Keys], np.ndarray]  # returns uint64 of shape (rows,) or (rows, ordinals)

Rule = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[LeafSpec]]
Run = Callable[[Sequence[Any], Mapping[str, Any], int, Allocate | None], Sequence[Column]]


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A named operation on elements, with a form for whole Blocks.

    `rule(specs, params)` returns the specs of the results from those of the operands, and may raise NotTraceable. A
    `Const` is its own spec. `run(operands, params, rows, allocate)` computes the results for all rows. Its operands are
    Columns, Consts, arrays of keys, or functions that return keys. `allocate` offers memory for the first result. The
    primitive may ignore the offer.

    The results of one run share no memory with each other. The results of a `fresh` primitive share no memory with any
    other value, and those of a `view` only with the operands.

    `presumes(params)` is True if the specs apply to usual elements only: `run` raises for other elements. A `by_row`
    primitive calls a function for each element.
    """

    name: str
    rule: Rule
    run: Run
    fresh: bool = False
    view: bool = False
    presumes: Callable[[Mapping[str, Any]], bool] | None = None
    by_row: bool = False

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Equation:
    primitive: Primitive
    operands: tuple[Operand, ...]
    params: Mapping[str, Any]
    specs: tuple[LeafSpec, ...]
    errors: Mapping[str, Any] | None = None  # settings of `np.errstate`, if the function changed them


class _Computed:
    """The inputs and equations to which operands refer."""

    __slots__ = ()

    inputs: tuple[LeafSpec, ...]
    equations: Sequence[Equation]

    def spec_of(self, operand: Operand) -> Any:
        if not isinstance(operand, Ref):
            return operand
        given = self.inputs if operand.equation < 0 else self.equations[operand.equation].specs
        return given[operand.index]


def _given(operand: Operand, keys: DrawKeys | None) -> Any:
    """Return the value of an operand that no equation computes."""
    if isinstance(operand, Const):
        return operand
    assert keys is not None
    assert not isinstance(operand, Ref)
    return operand.of(keys) if isinstance(operand, KeysFrom) else keys(operand)


@dataclass(frozen=True, slots=True)
class Graph(_Computed):
    """A function from the leaves of one element to the result `structure.build(outputs)`."""

    inputs: tuple[LeafSpec, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Operand, ...]
    structure: Structure
    draws: int | None = 0  # keys that an element uses, without those of seeds; None if branches differ
    _unneeded: Mapping[int, Sequence[int]] = field(init=False, repr=False, compare=False)  # values to free, by equation

    def __post_init__(self) -> None:
        object.__setattr__(self, "_unneeded", self._last_uses())

    def run(
        self,
        columns: Sequence[Column],
        rows: int,
        allocate: Callable[[int], Allocate] | None = None,
        keys: DrawKeys | None = None,
    ) -> list[Column]:
        """Return the output columns for `rows` elements.

        `allocate(k)` offers memory for output k. `keys` returns the random keys of the elements.
        """
        places: dict[int, Allocate] = {}
        if allocate is not None:
            for k, output in enumerate(self.outputs):
                if isinstance(output, Ref) and output.index == 0:
                    places.setdefault(output.equation, allocate(k))
        results: list[Any] = [None] * len(self.equations)
        results.append(columns)  # the inputs are the last item, which index -1 finds
        for i, equation in enumerate(self.equations):
            operands = [
                results[operand.equation][operand.index] if type(operand) is Ref else _given(operand, keys)
                for operand in equation.operands
            ]
            with nullcontext() if equation.errors is None else np.errstate(**equation.errors):
                results[i] = equation.primitive.run(operands, equation.params, rows, places.get(i))
            for done in self._unneeded.get(i, ()):
                results[done] = None  # free large intermediate values early
        return [
            results[output.equation][output.index] if type(output) is Ref else _given(output, keys)
            for output in self.outputs
        ]

    def followed_by(self, other: Graph) -> Graph:
        """Return the graph that passes the results of this graph to `other`. At most one of the two may be random."""

        def moved(operand: Operand) -> Operand:
            if not isinstance(operand, Ref):
                return operand
            if operand.equation < 0:
                return self.outputs[operand.index]
            return Ref(operand.equation + len(self.equations), operand.index)

        behind = (replace(one, operands=tuple(map(moved, one.operands))) for one in other.equations)
        draws = self.draws if self.random else other.draws
        return Graph(self.inputs, (*self.equations, *behind), tuple(map(moved, other.outputs)), other.structure, draws)

    def _last_uses(self) -> dict[int, list[int]]:
        kept = {output.equation for output in self.outputs if isinstance(output, Ref)}
        last: dict[int, int] = {}
        for i, equation in enumerate(self.equations):
            for operand in equation.operands:
                if isinstance(operand, Ref) and operand.equation >= 0 and operand.equation not in kept:
                    last[operand.equation] = i
        found: dict[int, list[int]] = {}
        for equation_index, at in last.items():
            found.setdefault(at, []).append(equation_index)
        return found

    def sharing(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs of outputs that may share memory: views of one value, or one output of unknown memory."""
        viewed: dict[Ref, Ref] = {}  # the original value of each view
        for i, equation in enumerate(self.equations):
            match equation.operands:
                case (Ref() as operand,) if equation.primitive.view:
                    viewed[Ref(i, 0)] = viewed.get(operand, operand)
        same: dict[Ref, list[int]] = {}
        for k, output in enumerate(self.outputs):
            if isinstance(output, Ref):
                same.setdefault(viewed.get(output, output), []).append(k)
        found = {pair for outputs in same.values() for pair in combinations(outputs, 2)}
        for made_by in {memory.equation for memory in same if self._may_be_a_view(memory)}:
            outputs = [k for memory, at in same.items() if memory.equation == made_by for k in at]
            others = [k for memory, at in same.items() if memory.equation != made_by for k in at]
            found.update((min(i, j), max(i, j)) for i in outputs for j in others)
        return tuple(sorted(found))

    def may_be_a_view(self, output: int) -> bool:
        """Return True if an output may share memory with an input, or with another output."""
        ref = self.outputs[output]
        return isinstance(ref, Ref) and self._may_be_a_view(ref)

    def _may_be_a_view(self, ref: Ref) -> bool:
        return ref.equation >= 0 and not self.equations[ref.equation].primitive.fresh

    def output_spec(self, output: int) -> LeafSpec:
        """Return the spec of an output. The output may be a constant."""
        spec = self.spec_of(self.outputs[output])
        return spec_of(spec.value) if isinstance(spec, Const) else spec

    def used(self, outputs: Iterable[int]) -> frozenset[int]:
        """Return the numbers of the inputs that an equation reads, or that are among these outputs."""
        operands = [operand for equation in self.equations for operand in equation.operands]
        operands += [self.outputs[output] for output in outputs]
        return frozenset(ref.index for ref in operands if isinstance(ref, Ref) and ref.equation < 0)

    @property
    def random(self) -> bool:
        """True if the graph uses random keys."""
        kinds = Keys, KeysFrom
        return any(isinstance(operand, kinds) for equation in self.equations for operand in equation.operands)

    @property
    def presumes(self) -> bool:
        """True if the specs of the outputs apply to usual elements only."""
        known = [(equation.primitive.presumes, equation.params) for equation in self.equations]
        return any(presumes is not None and presumes(params) for presumes, params in known)

    def describe(self) -> str:
        """Return the names of the primitives in order, for `explain`."""
        primitives = [equation.primitive for equation in self.equations]
        return " → ".join(one.name + " (row by row)" * one.by_row for one in primitives) or "identity"


@dataclass(slots=True)
class GraphBuilder(_Computed):
    """Collects equations while a function runs on tracers."""

    inputs: tuple[LeafSpec, ...]
    equations: list[Equation] = field(default_factory=list)
    draws: int = 0
    written: set[Ref] = field(default_factory=set)  # values whose memory was overwritten later
    decided: tuple[bool, ...] | None = None  # results of the first branches; None if no branch is allowed
    conditions: list[Ref] = field(default_factory=list)  # values that the function branched on
    errors: Mapping[str, Any] = field(default_factory=np.geterr)

    def sharing(self, ref: Ref) -> set[Ref]:
        """Return a value and all values that may share memory with it. Input 0 stands for unknown memory."""
        found, more = set[Ref](), {ref}
        while more - found:
            found |= more
            for i, equation in enumerate(self.equations):
                together = {operand for operand in equation.operands if isinstance(operand, Ref)}
                together.update(Ref(i, k) for k in range(len(equation.specs)))
                if not equation.primitive.fresh and together & found:
                    more |= together if equation.primitive.view else {Ref(-1, 0)}
        return found

    def check_unwritten(self, operands: Sequence[Operand]) -> None:
        """Raise NotTraceable for a value whose memory was overwritten under another name."""
        if any(isinstance(operand, Ref) and operand in self.written for operand in operands):
            raise NotTraceable("it reads an array after writing into it under another name")

    def chosen(self, condition: Ref) -> bool:
        """Return the truth that `decided` has for a condition. Raise Forked if it has none."""
        if self.decided is None:
            raise NotTraceable("it branches on a value: an if, a while, and, or, not, assert")
        if condition not in self.conditions:
            self.conditions.append(condition)
        at = self.conditions.index(condition)
        if at >= len(self.decided):
            raise Forked
        return self.decided[at]

    def next_draw(self, count: int = 1) -> int:
        """Return the ordinal of the next key, and reserve `count` keys."""
        self.draws += count
        return self.draws - count

    def bind(self, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Ref]:
        if len(self.equations) >= _MOST:
            raise NotTraceable(f"it does more than {_MOST} operations")
        self.check_unwritten(operands)
        specs = [self.spec_of(operand) for operand in operands]
        found = tuple(primitive.rule(specs, params))
        errors = None if (now := np.geterr()) == self.errors else now
        self.equations.append(Equation(primitive, tuple(operands), params, found, errors))
        return [Ref(len(self.equations) - 1, k) for k in range(len(found))]

    def finish(self, outputs: Sequence[Operand], structure: Structure) -> Graph:
        self.check_unwritten(outputs)
        return Graph(self.inputs, tuple(self.equations), tuple(outputs), structure, self.draws)


class Halves:
    """The equations of a builder as two graphs: those that need the first inputs only, and the late ones.

    The first graph returns `outputs`. Values that the second graph reads are added to them, and `crossing` lists their
    positions. The second graph also reads the builder's inputs from number `elements` on, which are known later.
    """

    def __init__(self, builder: GraphBuilder, elements: int, outputs: list[Operand]) -> None:
        self._builder = builder
        self._elements = elements
        self._outputs = outputs
        self._places = {output: place for place, output in enumerate(outputs)}
        self._results: list[Ref] = []  # results of the second graph
        self.crossing: list[int] = []
        self.late = _late(builder.equations, elements)
        self._numbers: dict[bool, dict[int, int]] = {False: {}, True: {}}  # numbers of the equations in their graph
        for i in range(len(builder.equations)):
            numbers = self._numbers[i in self.late]
            numbers[i] = len(numbers)
        self._after = [changed(builder.equations[i], self._moved) for i in sorted(self.late)]

    def is_late(self, ref: Ref) -> bool:
        return ref.equation in self.late if ref.equation >= 0 else ref.index >= self._elements

    def place(self, ref: Ref) -> int:
        """Return the position of a value among the outputs of the first graph. Add it if needed."""
        place = self._places.setdefault(ref, len(self._outputs))
        if place == len(self._outputs):
            self._outputs.append(ref)
        return place

    def result(self, ref: Ref) -> int:
        """Return the position of a value among the results of the second graph. Add it if needed."""
        moved = self._moved(ref)
        assert isinstance(moved, Ref)
        if moved not in self._results:
            self._results.append(moved)
        return self._results.index(moved)

    def _moved(self, operand: Operand) -> Operand:
        """Return an operand for the second graph. Its late inputs are numbered after all crossing values are known."""
        if not isinstance(operand, Ref):
            return operand
        if operand.equation in self.late:
            return Ref(self._numbers[True][operand.equation], operand.index)
        if self.is_late(operand):
            return Ref(_BEHIND, operand.index - self._elements)
        place = self.place(operand)
        if place not in self.crossing:
            self.crossing.append(place)
        return Ref(-1, self.crossing.index(place))

    def _numbered(self, operand: Operand) -> Operand:
        if isinstance(operand, Ref) and operand.equation == _BEHIND:
            return Ref(-1, len(self.crossing) + operand.index)
        return operand

    def _early(self, operand: Operand) -> Operand:
        """Return an operand for the first graph."""
        return Ref(self._numbers[False][operand.equation], operand.index) if _is_made(operand) else operand

    def before(self) -> Graph:
        builder = self._builder
        early = [equation for i, equation in enumerate(builder.equations) if i not in self.late]
        equations = tuple(changed(equation, self._early) for equation in early)
        outputs = tuple(map(self._early, self._outputs))
        return Graph(builder.inputs[: self._elements], equations, outputs, _several(outputs), builder.draws)

    def after(self) -> Graph:
        builder, results = self._builder, tuple(self._results)
        specs = [builder.spec_of(self._outputs[place]) for place in self.crossing]
        equations = tuple(changed(equation, self._numbered) for equation in self._after)
        inputs = (*specs, *builder.inputs[self._elements :])
        return Graph(inputs, equations, results, _several(results), builder.draws)


_BEHIND = -2  # marks operands that are late inputs


def changed(equation: Equation, change: Callable[[Operand], Operand]) -> Equation:
    return replace(equation, operands=tuple(map(change, equation.operands)))


def _several(values: Sequence[Operand]) -> Structure:
    return Structure(tuple, (), (), len(values))


def _is_made(operand: Operand) -> TypeGuard[Ref]:
    return isinstance(operand, Ref) and operand.equation >= 0


def _late(equations: Sequence[Equation], elements: int) -> set[int]:
    """Return the equations that depend on inputs from number `elements` on."""
    found: set[int] = set()
    for i, equation in enumerate(equations):
        refs = [operand for operand in equation.operands if isinstance(operand, Ref)]
        if any(ref.equation in found or (ref.equation < 0 and ref.index >= elements) for ref in refs):
            found.add(i)
    return found
