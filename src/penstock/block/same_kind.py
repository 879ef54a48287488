"""SameKind: what Python code gives keeps its structure, dtypes and ranks, inside a Block and from Block to Block.

Ranks may differ where the signature of a generator below leaves them open.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from penstock.block.block import Block, Builder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import Origin
from penstock.block.structure import Structure, flatten
from penstock.errors import Context, InvalidTypeError

# The nest, dtype and rank of each leaf, and the ranks of the values of which a function made the element.
Kind = tuple[Structure, list[str], list[int | None] | None]
Kinds = tuple[tuple[int, Kind], ...]  # the place of each step in its row, and the kind of its results
Decided = Sequence[Kind | None]  # one entry for each step


def written(kind: Kind) -> str | None:
    """Return a kind as it stands in a state, or None for one that holds classes of the user's."""
    text = repr((kind[0].build(kind[1]), kind[2]))
    with suppress(ValueError, SyntaxError):
        return text if read(text) == kind else None
    return None


def read(text: str) -> Kind:
    """Return the kind that `written` has written."""
    nest, given = ast.literal_eval(text)
    leaves, structure = flatten(nest)
    return structure, leaves, given


class SameKind:
    """Remembers the kind of the first Block built and refuses another, or any but the `expected` kind if that is set.

    `what` names the thing in errors: "The function's result"; `hint` is what to do where only ranks differ. With
    `any_rank` they may. `given` becomes part of the kind.
    """

    def __init__(self, what: str, *, any_rank: bool = False, hint: str = "") -> None:
        self._what = what
        self._hint = hint
        self.any_rank = any_rank
        self.expected: Kind | None = None
        self.given: list[int | None] | None = None

    @property
    def structure(self) -> Structure | None:
        """The nest, if it is known."""
        return None if self.expected is None else self.expected[0]

    def build(self, builder: Builder, origin: Origin | None) -> tuple[Block | None, list[tuple[int, InvalidTypeError]]]:
        """The elements of one kind, and (row, error) for each of another."""
        try:
            block = builder.build(origin, any_rank=self.any_rank)
            self._check(block)
        except InvalidTypeError:
            return self._sorted_out(builder, origin)
        return block, []

    def pieces(self, builder: Builder, first: int | None = None) -> Iterator[Block | InvalidTypeError]:
        """Return the elements, from number `first` on, with an error in the place of each that is of another kind."""
        block, failures = self.build(builder, None) if len(builder) else (None, [])
        row = 0
        for number, (place, error) in enumerate(failures):
            if block is not None and place - number > row:
                yield block.slice(row, place - number)
            row = place - number
            if first is not None:
                error.context = Context(element=first + place)
            yield error
        if block is not None and row < block.size:
            yield block.slice(row, block.size)

    def admits(self, block: Block) -> bool:
        """Whether a Block is of the kind so far, which that of the first is."""
        return self.checked(block) is block

    def checked(self, piece: Block | Exception) -> Block | Exception:
        """Return a Block, or the error in its place if it is of another kind."""
        try:
            if isinstance(piece, Block):
                self._check(piece)
        except InvalidTypeError as error:
            return error.with_traceback(None)
        return piece

    def _sorted_out(
        self, builder: Builder, origin: Origin | None
    ) -> tuple[Block | None, list[tuple[int, InvalidTypeError]]]:
        """Check each element on its own, so that the error is the same wherever a Block ends."""
        failures: list[tuple[int, InvalidTypeError]] = []
        kept: list[int] = []
        for row in range(len(builder)):
            try:
                self._check(builder.chosen([row]).build(any_rank=self.any_rank))
            except InvalidTypeError as error:
                failures.append((row, error.with_traceback(None)))
            else:
                kept.append(row)
        if not kept:
            return None, failures
        rest = None if origin is None else origin.take(np.array(kept))
        return builder.chosen(kept).build(rest, any_rank=self.any_rank), failures

    def _check(self, block: Block) -> None:
        kinds = [kind_of(column) for column in block.columns]
        if self.expected is None:
            self.expected = block.structure, kinds, self.given
        structure, expected, _ = self.expected
        if _agree(block.structure, kinds, structure, expected):
            return
        but_rank = _agree(block.structure, _but_rank(kinds), structure, _but_rank(expected))
        if not (self.any_rank and but_rank):
            message = (
                f"{self._what} changed: before it was {structure.describe(expected)}, "
                f"now it is {block.structure.describe(kinds)}."
            )
            same = "nest and dtypes" if self.any_rank else "nest, dtypes and ranks"
            hint = f"Every element has the same {same}; np.float32(value) converts."
            if self._hint and but_rank:
                hint = f"Every element has the same {same}. {self._hint}"
            raise InvalidTypeError(message, hint=hint)


def _agree(found: Structure, kinds: list[str], structure: Structure, expected: list[str]) -> bool:
    """Whether two nests and the kinds in them are equal, whatever the order of dict keys."""
    if found == structure:
        return kinds == expected
    return found.same_as(structure) and structure.flatten(found.build(kinds)) == expected


def kind_of(column: Column) -> str:
    """Return dtype and rank of the elements of a column as text."""
    if isinstance(column, DenseColumn):
        return _named(column.array.dtype, column.array.ndim - 1)
    if isinstance(column, BytesColumn):
        return f"bytes of rank {column.starts.ndim - 1}"
    assert isinstance(column, ListColumn)
    first = column.items[0]
    if isinstance(first, (np.ndarray, np.generic)):
        return f"{'bytes' if first.dtype == object else first.dtype} of rank {first.ndim}"
    if type(first) is bytes:
        return "bytes of rank 0"
    dtype = getattr(first, "dtype", None)
    return type(first).__name__ if dtype is None else f"{type(first).__name__} of {dtype}"


def _but_rank(kinds: list[str]) -> list[str]:
    return [kind.partition(" of rank ")[0] for kind in kinds]


@functools.lru_cache(1000)
def _named(dtype: np.dtype, rank: int) -> str:
    """numpy takes longer to name a dtype than a small Block to be built."""
    return f"{dtype} of rank {rank}"
