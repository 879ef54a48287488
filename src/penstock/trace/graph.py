"""Graph: what a function does to one element, as primitives in order; run over the columns of a whole Block.

The shape is that of JAX's autodidax: a primitive, `bind`, a stand-in value, a list of equations, an evaluator.
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

_MOST = 1000  # operations of a function: a loop over the rows of an array is no gain as a graph


class NotTraceable(BaseException):
    """The function did something a stand-in value cannot follow; the text says what."""


class Forked(NotTraceable):
    """The function asked whether a value is true, and it is not decided which way to go."""


class Allocate(Protocol):
    """Gives memory for the rows of one output, already in their final place; None where there is none."""

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None: ...


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in a graph: input number `index` (equation -1), or output `index` of an equation."""

    equation: int
    index: int


@dataclass(frozen=True, slots=True)
class Const:
    """A value that is the same for every element."""

    value: Any


@dataclass(frozen=True, slots=True)
class Keys:
    """What the elements draw from: key number `ordinal` of each, or the one that `seed` gives it.

    Several ordinals, an array, are as many keys of each.
    """

    ordinal: int | np.ndarray
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class KeysFrom:
    """What gives the keys of the elements from number `ordinal` on, for a primitive that runs a graph of its own."""

    ordinal: int

    def of(self, keys: DrawKeys) -> DrawKeys:
        return lambda wanted: keys(Keys(self.ordinal + wanted.ordinal, wanted.seed))


Operand = Ref | Const | Keys | KeysFrom

DrawKeys = Callable[[Keys], np.ndarray]  # the keys of all rows, uint64; of several ordinals (rows, ordinals)

Rule = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[LeafSpec]]
Run = Callable[[Sequence[Any], Mapping[str, Any], int, Allocate | None], Sequence[Column]]


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """A named operation on elements that is also known on Blocks.

    `rule(specs, params)` gives the specs of the results from those of the operands (a `Const` stands for itself), and
    may raise NotTraceable. `run(operands, params, rows, allocate)` computes them for all rows: operands are Columns or
    Consts, or arrays of keys, or what gives them; `allocate` offers memory for the first result and need not be used.
    The results of one run share no memory with one another, those of a `fresh` primitive with nothing else either, and
    those of a `view` with the operands only.
    `presumes(params)` says whether the specs are those of usual elements only: for others `run` raises. One that goes
    `by_row` is a call for each element.
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
    errors: Mapping[str, Any] | None = None  # of `np.errstate`, if they are others than outside of the function


class _Computed:
    """Inputs, and what is computed of them: what operands refer to."""

    __slots__ = ()

    inputs: tuple[LeafSpec, ...]
    equations: Sequence[Equation]

    def spec_of(self, operand: Operand) -> Any:
        if not isinstance(operand, Ref):
            return operand
        given = self.inputs if operand.equation < 0 else self.equations[operand.equation].specs
        return given[operand.index]


def _given(operand: Operand, keys: DrawKeys | None) -> Any:
    """An operand that is not computed."""
    if isinstance(operand, Const):
        return operand
    assert keys is not None
    assert not isinstance(operand, Ref)
    return operand.of(keys) if isinstance(operand, KeysFrom) else keys(operand)


@dataclass(frozen=True, slots=True)
class Graph(_Computed):
    """A function of one element: `structure.build(outputs)` from the leaves of the input."""

    inputs: tuple[LeafSpec, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Operand, ...]
    structure: Structure
    draws: int | None = 0  # keys that an element takes, in order, but those of a seed; None if its ways differ
    _unneeded: Mapping[int, Sequence[int]] = field(init=False, repr=False, compare=False)  # after which equation, which

    def __post_init__(self) -> None:
        object.__setattr__(self, "_unneeded", self._last_uses())

    def run(
        self,
        columns: Sequence[Column],
        rows: int,
        allocate: Callable[[int], Allocate] | None = None,
        keys: DrawKeys | None = None,
    ) -> list[Column]:
        """The output columns for `rows` elements; `allocate(k)` offers memory for output k, `keys` what they draw."""
        places: dict[int, Allocate] = {}
        if allocate is not None:
            for k, output in enumerate(self.outputs):
                if isinstance(output, Ref) and output.index == 0:
                    places.setdefault(output.equation, allocate(k))
        results: list[Any] = [None] * len(self.equations)
        results.append(columns)  # where equation -1 is looked up
        for i, equation in enumerate(self.equations):
            operands = [
                results[operand.equation][operand.index] if type(operand) is Ref else _given(operand, keys)
                for operand in equation.operands
            ]
            with nullcontext() if equation.errors is None else np.errstate(**equation.errors):
                results[i] = equation.primitive.run(operands, equation.params, rows, places.get(i))
            for done in self._unneeded.get(i, ()):
                results[done] = None  # large intermediates go as soon as nobody needs them
        return [
            results[output.equation][output.index] if type(output) is Ref else _given(output, keys)
            for output in self.outputs
        ]

    def followed_by(self, other: Graph) -> Graph:
        """The graph of both functions, of which `other` is given what this one returns. At most one of them draws."""

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
        """Return the pairs of outputs that may share memory: views of one value, or what may be a view of anything."""
        viewed: dict[Ref, Ref] = {}  # by a view, or a view of a view
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
        """Whether an output may share memory with an input, or with another output."""
        ref = self.outputs[output]
        return isinstance(ref, Ref) and self._may_be_a_view(ref)

    def _may_be_a_view(self, ref: Ref) -> bool:
        return ref.equation >= 0 and not self.equations[ref.equation].primitive.fresh

    def output_spec(self, output: int) -> LeafSpec:
        """The spec of an output, which may be a constant."""
        spec = self.spec_of(self.outputs[output])
        found: LeafSpec = spec_of(spec.value) if isinstance(spec, Const) else spec
        return found

    def used(self, outputs: Iterable[int]) -> frozenset[int]:
        """The numbers of the inputs that something is computed of, or that are some of these outputs themselves."""
        operands = [operand for equation in self.equations for operand in equation.operands]
        operands += [self.outputs[output] for output in outputs]
        return frozenset(ref.index for ref in operands if isinstance(ref, Ref) and ref.equation < 0)

    @property
    def random(self) -> bool:
        """Whether it draws."""
        kinds = Keys, KeysFrom
        return any(isinstance(operand, kinds) for equation in self.equations for operand in equation.operands)

    @property
    def presumes(self) -> bool:
        """Whether the specs of its outputs are presumed: those of elements that are as usual."""
        known = [(equation.primitive.presumes, equation.params) for equation in self.equations]
        return any(presumes is not None and presumes(params) for presumes, params in known)

    def describe(self) -> str:
        """The primitives in order, for `explain`."""
        primitives = [equation.primitive for equation in self.equations]
        return " → ".join(one.name + " (row by row)" * one.by_row for one in primitives) or "identity"


@dataclass(slots=True)
class GraphBuilder(_Computed):
    """Collects equations while a function runs on stand-in values."""

    inputs: tuple[LeafSpec, ...]
    equations: list[Equation] = field(default_factory=list)
    draws: int = 0
    written: set[Ref] = field(default_factory=set)  # what was in memory that has been written into since
    decided: tuple[bool, ...] | None = None  # for the first values that are asked; None if none may be asked
    conditions: list[Ref] = field(default_factory=list)  # that were asked
    errors: Mapping[str, Any] = field(default_factory=np.geterr)

    def sharing(self, ref: Ref) -> set[Ref]:
        """The values that may share memory with one, itself included; an input also stands for what is not known."""
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
        """Raise NotTraceable for a value whose memory has been written into under another name."""
        if any(isinstance(operand, Ref) and operand in self.written for operand in operands):
            message = "it reads an array after writing into it under another name"
            raise NotTraceable(message)

    def chosen(self, condition: Ref) -> bool:
        """Which way the function goes on from here."""
        if self.decided is None:
            message = "it branches on a value: an if, a while, and, or, not, assert"
            raise NotTraceable(message)
        if condition not in self.conditions:
            self.conditions.append(condition)
        at = self.conditions.index(condition)
        if at >= len(self.decided):
            raise Forked
        return self.decided[at]

    def next_draw(self, count: int = 1) -> int:
        """The ordinal of the next key; `count` are taken."""
        self.draws += count
        return self.draws - count

    def bind(self, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Ref]:
        if len(self.equations) >= _MOST:
            message = f"it does more than {_MOST} operations"
            raise NotTraceable(message)
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
    """The equations of a builder as two graphs: those of its first inputs alone, and the late ones.

    The first graph gives `outputs`, to which is added what the second one takes of it, those at the places `crossing`.
    That one also takes the builder's inputs from number `elements` on, which are not known before.
    """

    def __init__(self, builder: GraphBuilder, elements: int, outputs: list[Operand]) -> None:
        self._builder = builder
        self._elements = elements
        self._outputs = outputs
        self._places = {output: place for place, output in enumerate(outputs)}
        self._results: list[Ref] = []  # of the second
        self.crossing: list[int] = []
        self.late = _late(builder.equations, elements)
        self._numbers: dict[bool, dict[int, int]] = {False: {}, True: {}}  # of equations in their graph
        for i in range(len(builder.equations)):
            numbers = self._numbers[i in self.late]
            numbers[i] = len(numbers)
        self._after = [changed(builder.equations[i], self._moved) for i in sorted(self.late)]

    def is_late(self, ref: Ref) -> bool:
        return ref.equation in self.late if ref.equation >= 0 else ref.index >= self._elements

    def place(self, ref: Ref) -> int:
        """The place of a value among the outputs of the first graph."""
        place = self._places.setdefault(ref, len(self._outputs))
        if place == len(self._outputs):
            self._outputs.append(ref)
        return place

    def result(self, ref: Ref) -> int:
        """The place of a value among the outputs of the second graph."""
        moved = self._moved(ref)
        assert isinstance(moved, Ref)
        if moved not in self._results:
            self._results.append(moved)
        return self._results.index(moved)

    def _moved(self, operand: Operand) -> Operand:
        """As the second graph has it; its own inputs are numbered when all that crosses is known."""
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
        """As the first graph has it."""
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


_BEHIND = -2  # stands for an equation in operands that are such inputs


def changed(equation: Equation, change: Callable[[Operand], Operand]) -> Equation:
    return replace(equation, operands=tuple(map(change, equation.operands)))


def _several(values: Sequence[Operand]) -> Structure:
    return Structure(tuple, (), (), len(values))


def _is_made(operand: Operand) -> TypeGuard[Ref]:
    return isinstance(operand, Ref) and operand.equation >= 0


def _late(equations: Sequence[Equation], elements: int) -> set[int]:
    """The equations that need something of the inputs from that number on."""
    found: set[int] = set()
    for i, equation in enumerate(equations):
        refs = [operand for operand in equation.operands if isinstance(operand, Ref)]
        if any(ref.equation in found or (ref.equation < 0 and ref.index >= elements) for ref in refs):
            found.add(i)
    return found
