"""Singly: maps and filters whose functions are called per element, when the consumer requests the element.

The functions receive the same values as from a Block, and the consumer the same results. A Block of one element would
cost twenty times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.handover import handed_over
from penstock.block.leaf import as_leaf, settle
from penstock.block.numbers import Numbers
from penstock.block.structure import Structure
from penstock.errors import as_failure
from penstock.physical.key_function import truth
from penstock.physical.transform import FunctionTransform, MapTransform, Transforms
from penstock.trace.drawing import UNNUMBERED, Draws, drawing
from penstock.trace.purity import why_impure

_LEFT_OUT = object()  # marks an element that a filter drops
_LITERALS = frozenset([bool, int, float, str])
# types that describe a value completely
_SURE = frozenset([bytes, *(np.dtype(code).type for code in "?bhilqBHILQefdFD")])


class Singly:
    """Calls the functions of some transforms for each element of one Block after another.

    `done` is the number of elements of the Block for which functions were called, with any result.
    """

    def __init__(self, transforms: Sequence[FunctionTransform]) -> None:
        self._steps = [_SingleStep(each, last=each is transforms[-1]) for each in transforms]
        self.done = 0

    @classmethod
    def of(cls, transforms: Transforms) -> Singly | None:
        """Return a Singly, or None if no transform is certain to call its function per element."""
        functions = [each for each in transforms if isinstance(each, FunctionTransform) and not each.generators]
        if len(functions) < len(transforms) or all(why_impure(each.function) is None for each in functions):
            return None
        return cls(functions)

    def suits(self, block: Block, numbers: Numbers) -> bool:
        """Check the first elements; return True if Blocks would not be faster."""
        return self._steps[0].suits(block, numbers)

    def elements(self, block: Block, numbers: Numbers, raised: list[BaseException]) -> Iterator[Any]:
        """Yield the results for the elements of a Block. An exception ends the iterator and is appended to `raised`."""
        steps = self._steps
        while len(steps) > 1 and (whole := steps[0].by_block(block, numbers)) is not None:
            block, steps = whole, steps[1:]
        elements = block.elements()
        for step in steps:
            step.begin(block, numbers, first=step is steps[0])
            numbers = numbers if step.is_map else numbers.lost()
        drawn = drawing(UNNUMBERED)
        for row in range(block.size):
            made = _made(steps, row, elements[row], drawn, raised)
            if raised:
                self.done += isinstance(raised[0], Exception)  # an exception that ends the run takes no element's place
                return
            self.done += 1
            if made is not _LEFT_OUT:
                yield made
            del made


def _made(steps: Sequence[_SingleStep], row: int, element: Any, drawn: drawing, raised: list[BaseException]) -> Any:
    """Return the result of all steps for one element, or the mark of a dropped element."""
    with drawn as now:
        for step in steps:
            now.draws, now.row, now.ordinal = step.draws, row, 0
            try:
                element = step(row, element)
            except Exception as error:
                raised.append(step.failure(error, row, element))
                break
            except BaseException as error:
                raised.append(error)
                break
            if element is _LEFT_OUT:
                break
    return element


class _SingleStep:
    """One transform, called for the elements of a Block or for the results of the step before."""

    draws: Draws

    def __init__(self, transform: FunctionTransform, *, last: bool) -> None:
        self._transform = transform
        self._function = transform.called
        self.is_map = isinstance(transform, MapTransform)
        self._last = last
        self._acts = why_impure(transform.function) is not None
        self._structure: Structure | None = None  # structure of the latest built result
        self._kinds: list[Any] = []
        self._looked = False  # True after the first elements were checked for text
        self._only: Any = None  # type of results that are a single number or byte string

    def suits(self, block: Block, numbers: Numbers) -> bool:
        """Return the answer to `Singly.suits` for the first step."""
        self._looked = True
        return not self._acts or self._transform.goes_singly(block, self._transform.draws(numbers))

    def by_block(self, block: Block, numbers: Numbers) -> Block | None:
        """Return the results of a map that runs on Blocks, or None."""
        if self._acts or not isinstance(self._transform, MapTransform):
            return None
        made = self._transform.by_block(block, numbers)
        return None if made is None else made.block

    def begin(self, block: Block, numbers: Numbers, *, first: bool) -> None:
        """Begin a Block. The beginning of the `first` function may run on the whole Block."""
        self._block, self._numbers = block, numbers
        self.draws = self._transform.draws(numbers)
        self._calls = self._transform.rest(block, self.draws) if first and self.is_map and block.size > 1 else None

    def __call__(self, row: int, element: Any) -> Any:
        """Return the result for an element, which a filter may drop."""
        if not self.is_map:
            return self._filtered(element)
        if self._calls is not None:
            result = self._calls(row)
        else:
            result = self._function(*element) if type(element) is tuple else self._function(element)
        kind = type(result)
        if kind is self._only:
            return result
        if kind in _LITERALS and type(leaf := as_leaf(result)) is self._only:
            return leaf
        held = [result]
        del result  # drop this reference, so that `settle` counts only those of other code
        return self._settled(held, element)

    def _filtered(self, element: Any) -> Any:
        """Return an element that the filter keeps. The predicate gets a copy, because it may change its argument."""
        if type(element) in _SURE:
            return element if truth(self._function(element)) else _LEFT_OUT
        held = Block.from_elements([element])
        given = held.elements()[0]
        if not truth(self._function(*given) if type(given) is tuple else self._function(given)):
            return _LEFT_OUT
        return (handed_over(held) if self._last else held.elements())[0]

    def _settled(self, held: list[Any], element: Any) -> Any:
        """Return the result in `held` as the consumer or the next function receives it."""
        transform, structure = self._transform, self._structure
        assert isinstance(transform, MapTransform)
        if structure is not None and type(held[0]) is not list:
            leaves = settle(structure.flatten(held.pop()))
            if [*map(_kind, leaves)] == self._kinds:
                for leaf in () if self._last else leaves:
                    if type(leaf) is np.ndarray:
                        leaf.flags.writeable = False
                return structure.build(leaves)
            held.append(structure.build(leaves))
            del leaves
        given = Block.from_elements([element])
        same = transform.same_kind(given)
        builder = BlockBuilder(structure or same.structure)
        builder.add(transform.result(held.pop()))
        if not self._looked:
            self.suits(given, self._numbers)
        built, mixed = same.build(builder, None)
        if mixed and transform.relaxed(same, given):
            built, mixed = same.build(builder, None)
        if built is None:
            raise mixed[0][1]
        transform.decided = same.expected
        self._structure = built.structure
        found = (handed_over(built) if self._last else built.elements())[0]
        self._kinds = [*map(_kind, built.structure.flatten(found))]
        self._only = self._kinds[0] if built.structure.is_leaf and self._kinds[0] in _SURE else None
        return found

    def failure(self, error: Exception, row: int, element: Any) -> Exception:
        """Return an exception as the consumer receives it."""
        if isinstance(self._transform, MapTransform):
            self._transform.explain(error)
        return as_failure(error, self._transform.context(self._block, row, self._numbers), element)


def _kind(leaf: Any) -> Any:
    """Return a key that is equal for two leaves of one kind. Leaves of rare types get unique keys."""
    kind = type(leaf)
    if kind is np.ndarray:
        return leaf.dtype, leaf.ndim, leaf.flags.writeable
    return kind if kind in _SURE else object()
