"""A Block: elements that travel together, stored as columns, with the structure that rebuilds the nested elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of, concat
from penstock.block.fixed import fix, fixed_values
from penstock.block.leaf import as_leaf, settle
from penstock.block.origin import Origin, concat_origins
from penstock.block.spec import LeafSpec
from penstock.block.structure import LEAF, Structure, flatten, refuse_none
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError

if TYPE_CHECKING:
    from penstock.block.call_arguments import CallArguments

_LITTLE = 1 << 16  # bytes


class Block:
    """`size` elements: one column per leaf of `structure`, and optionally the place from which each element was read.

    A Block must not be changed. The engine chooses the size, and results never depend on it.
    """

    __slots__ = ("_nbytes", "columns", "origin", "size", "structure")

    def __init__(
        self, structure: Structure, columns: Sequence[Column], size: int, origin: Origin | None = None
    ) -> None:
        self.structure = structure
        self.columns = tuple(columns)
        self.size = size
        self.origin = origin
        self._nbytes = -1  # not counted yet: counting may look at each value

    def __repr__(self) -> str:
        return f"Block({self.size} of {self.structure.describe([column.spec() for column in self.columns])})"

    @classmethod
    def single(cls, column: Column, origin: Origin | None = None) -> Block:
        """Return a Block whose elements are single leaves."""
        return cls(LEAF, (column,), len(column), origin)

    @classmethod
    def from_elements(cls, elements: Sequence[Any]) -> Block:
        """Return a Block of elements as the user's code returned them."""
        builder = BlockBuilder()
        for element in elements:
            builder.add(element)
        return builder.build()

    @property
    def nbytes(self) -> int:
        if self._nbytes < 0:
            self._nbytes = sum([column.nbytes for column in self.columns])
        return self._nbytes

    def elements(self) -> list[Any]:
        """Return the elements as a user's function receives them: their arrays are read-only.

        For elements that the consumer keeps, call `handover.handed_over` instead.
        """
        if not self.columns:
            return [self.structure.build(()) for _ in range(self.size)]
        return self.structure.rows([fixed_values(column) for column in self.columns])

    def specs(self) -> list[LeafSpec]:
        return [column.spec() for column in self.columns]

    def slice(self, start: int, stop: int) -> Block:
        if start == 0 and stop >= self.size:
            return self
        stop = min(stop, self.size)
        origin = None if self.origin is None else self.origin.slice(start, stop)
        return Block(self.structure, [c.slice(start, stop) for c in self.columns], stop - start, origin)

    def take(self, rows: np.ndarray) -> Block:
        origin = None if self.origin is None else self.origin.take(rows)
        return Block(self.structure, [column.take(rows) for column in self.columns], len(rows), origin)

    def origin_at(self, row: int) -> tuple[str | None, int | None]:
        """Return the file and the offset of element `row`, for a `Context`. An unknown part is None."""
        return (None, None) if self.origin is None else self.origin.at(row)

    def freeze(self) -> Block:
        """Make the arrays read-only, for Blocks that are stored and returned several times."""
        for column in self.columns:
            values = column.items if isinstance(column, ListColumn) else [getattr(column, "array", None)]
            for value in values:
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
                elif isinstance(value, (SparseTensor, RaggedTensor)):
                    value.with_arrays(fix)
        return self

    def with_columns(self, structure: Structure, columns: Sequence[Column]) -> Block:
        """Return a Block with the same origins and other columns."""
        return Block(structure, columns, self.size, self.origin)


def concat_blocks(blocks: Sequence[Block]) -> Block:
    """Join Blocks, one after the other; their structures must agree."""
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    for block in blocks[1:]:
        if block.structure is first.structure:
            continue
        if block.structure != first.structure and not block.structure.same_as(first.structure):
            raise InvalidTypeError(
                f"The structure of the element changed: expected {first.structure.describe()}, "
                f"got {block.structure.describe()}."
            )
    aligned = [in_order(block, first.structure) for block in blocks]
    columns = [concat([block.columns[i] for block in aligned]) for i in range(len(first.columns))]
    origin = concat_origins([block.origin for block in blocks])
    return Block(first.structure, columns, sum(block.size for block in blocks), origin)


def joins_freely(first: Block, second: Block) -> bool:
    """Return True if `concat_blocks` of the two always succeeds and copies little: strings are not copied.

    >>> names = Block.from_elements([b"a", b"b"])
    >>> joins_freely(names, names), joins_freely(names, Block.from_elements([1]))
    (True, False)
    """
    if first.structure is not second.structure and first.structure != second.structure:
        return False
    return all(map(_join_freely, first.columns, second.columns))


def _join_freely(first: Column, second: Column) -> bool:
    if type(first) is not type(second):
        return False
    if isinstance(first, BytesColumn) and isinstance(second, BytesColumn):
        return first.starts.shape[1:] == second.starts.shape[1:]
    if isinstance(first, DenseColumn) and isinstance(second, DenseColumn):
        a, b = first.array, second.array
        return a.nbytes + b.nbytes <= _LITTLE and a.dtype == b.dtype and a.shape[1:] == b.shape[1:]
    return False


def in_order(block: Block, structure: Structure) -> Block:
    """Return the same elements with the columns in the order of `structure`: dict keys may have another order."""
    if block.structure == structure:
        return block
    places = block.structure.build(list(range(len(block.columns))))
    order = structure.flatten(places)
    return Block(structure, [block.columns[i] for i in order], block.size, block.origin)


_LITERALS = frozenset({bool, int, float, bytes})
_SCALARS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefdFD")


class BlockBuilder:
    """Collects elements one by one and builds columns from them.

    When an element is added, its leaves are converted, and arrays that the caller may still write into are copied. If a
    function returns a row of a column that it was `given`, the whole column is used without a copy.
    """

    __slots__ = ("_given", "_leaves", "_size", "_structure")

    def __init__(self, structure: Structure | None = None, given: CallArguments | None = None) -> None:
        self._structure = structure
        self._given = given
        self._leaves: list[list[Any]] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, element: Any) -> None:
        if type(element) in _SCALARS and self._structure is LEAF and self._leaves is not None:
            self._leaves[0].append(element)  # the common case: nothing to flatten, convert or copy
            self._size += 1
            return
        if self._structure is LEAF and self._leaves is not None and type(element) in _LITERALS:
            self._leaves[0].append(as_leaf(element))
            self._size += 1
            return
        structure = self._structure
        if structure is None:
            leaves, structure = flatten(element)
            refuse_none(structure)
        else:
            leaves = structure.flatten(element)
        del element  # drop this reference, so that `settle` counts only those of the caller
        self.add_leaves(leaves, structure)

    def add_leaves(self, leaves: list[Any], structure: Structure) -> None:
        """Add an element by its list of leaves. The builder owns the list afterwards."""
        settle(leaves, self._given)
        self._structure = structure
        if self._leaves is None:
            self._leaves = [[leaf] for leaf in leaves]
        else:
            for column, leaf in zip(self._leaves, leaves, strict=True):
                column.append(leaf)
        self._size += 1

    def only(self) -> Any:
        """Remove the only element from the builder and return it, built from the converted leaves."""
        assert self._structure is not None
        leaves = [column.pop() for column in self._leaves or ()]
        return self._structure.build(leaves)

    def chosen(self, rows: Sequence[int]) -> BlockBuilder:
        """Return a builder that contains only the elements in these rows."""
        found = BlockBuilder(self._structure, self._given)
        found._leaves = [[leaves[row] for row in rows] for leaves in self._leaves or ()]
        found._size = len(rows)
        return found

    def build(self, origin: Origin | None = None, *, any_rank: bool = False) -> Block:
        if self._structure is None or self._leaves is None:
            raise ValueError("a Block holds at least one element")
        columns: list[Column] = []
        for place in range(len(self._leaves)):
            try:
                columns.append(self._column_at(place, any_rank=any_rank))
            except InvalidTypeError as error:
                path = self._structure.paths()[place]
                if path:
                    error.message = f"Component {path}: {error.message}"
                raise
        return Block(self._structure, columns, self._size, origin)

    def _column_at(self, place: int, *, any_rank: bool) -> Column:
        assert self._leaves is not None
        leaves = self._leaves[place]
        if self._given is None or type(leaves[0]) is not np.ndarray:
            return column_of(leaves, any_rank=any_rank)
        whole = self._given.column(leaves)
        return column_of(self._given.copied(leaves), any_rank=any_rank) if whole is None else whole
