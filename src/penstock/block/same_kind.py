"""SameKind: checks that all values of user code have one structure, and the same dtypes and ranks.

Ranks may differ if the signature of a generator leaves them open.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import Origin
from penstock.block.structure import Structure, flatten
from penstock.errors import Context, InvalidTypeError

# (nest, dtype and rank of each leaf, ranks of the values from which a function made the element)
Kind = tuple[Structure, list[str], list[int | None] | None]
Kinds = tuple[tuple[int, Kind], ...]  # the index of each step in its row, and the kind of its results
Decided = Sequence[Kind | None]  # one entry for each step
Sorted = tuple[Block | None, list[tuple[int, InvalidTypeError]]]  # elements of one kind; (row, error) for each other


def written(kind: Kind) -> str | None:
    """Return a kind as a string for a state, or None if it contains user classes."""
    text = repr((kind[0].build(kind[1]), kind[2]))
    with suppress(ValueError, SyntaxError):
        return text if read(text) == kind else None
    return None


def read(text: str) -> Kind:
    """Return the kind for a string that `written` returned."""
    nest, given = ast.literal_eval(text)
    leaves, structure = flatten(nest)
    return structure, leaves, given


class SameKind:
    """Remembers the kind of the first Block and rejects elements of another kind.

    If `expected` is set, it is the only valid kind. `what` is the subject of error messages, such as "The function's
    result"; `hint` is the advice if only ranks differ. With `any_rank`, ranks may differ. `given` becomes part of the
    kind.
    """

    def __init__(self, what: str, *, any_rank: bool = False, hint: str = "") -> None:
        self._what = what
        self._hint = hint
        self.any_rank = any_rank
        self.expected: Kind | None = None
        self.given: list[int | None] | None = None

    @property
    def structure(self) -> Structure | None:
        """Nest of the elements, or None if it is not known yet."""
        return None if self.expected is None else self.expected[0]

    def build(self, builder: BlockBuilder, origin: Origin | None) -> Sorted:
        """Return a Block of the elements of one kind, and (row, error) for each element of another kind."""
        try:
            block = builder.build(origin, any_rank=self.any_rank)
            self._check(block)
        except InvalidTypeError:
            return self._sorted_out(builder, origin)
        return block, []

    def pieces(self, builder: BlockBuilder, first: int | None = None) -> Iterator[Block | InvalidTypeError]:
        """Yield the elements, from number `first` on, with an error in place of each element of another kind."""
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
        """Return True if a Block has the kind of the first Block."""
        return self.checked(block) is block

    def checked(self, piece: Block | Exception) -> Block | Exception:
        """Return a Block, or the error that replaces it if it is of another kind."""
        try:
            if isinstance(piece, Block):
                self._check(piece)
        except InvalidTypeError as error:
            return error.with_traceback(None)
        return piece

    def _sorted_out(self, builder: BlockBuilder, origin: Origin | None) -> Sorted:
        """Check each element on its own, so that errors do not depend on the Block boundaries."""
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
    """Return True if two nests and their kinds are equal, in any order of dict keys."""
    if found == structure:
        return kinds == expected
    return found.same_as(structure) and structure.flatten(found.build(kinds)) == expected


def kind_of(column: Column) -> str:
    """Return dtype and rank of the elements of a column as a string."""
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
    """Return "dtype of rank n". Cached, because numpy takes longer to name a dtype than to build a small Block."""
    return f"{dtype} of rank {rank}"
