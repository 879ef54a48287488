"""A Block: elements that travel together, as columns, with the structure that makes nests of them again."""

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
    from penstock.block.fixed import Given

_LITTLE = 1 << 16  # bytes


class Block:
    """`size` elements: one column per leaf of `structure`, and optionally where each was read.

    Immutable by contract. The engine chooses the size; results never depend on it.
    """

    __slots__ = ("_nbytes", "columns", "origin", "size", "structure")

    def __init__(
        self, structure: Structure, columns: Sequence[Column], size: int, origin: Origin | None = None
    ) -> None:
        self.structure = structure
        self.columns = tuple(columns)
        self.size = size
        self.origin = origin
        self._nbytes = -1  # not counted yet: the values of some columns have to be looked at one by one

    def __repr__(self) -> str:
        return f"Block({self.size} of {self.structure.describe([column.spec() for column in self.columns])})"

    @classmethod
    def single(cls, column: Column, origin: Origin | None = None) -> Block:
        """A Block whose elements are lone leaves."""
        return cls(LEAF, (column,), len(column), origin)

    @classmethod
    def from_elements(cls, elements: Sequence[Any]) -> Block:
        """Columns from elements as a user makes them."""
        builder = Builder()
        for element in elements:
            builder.add(element)
        return builder.build()

    @property
    def nbytes(self) -> int:
        if self._nbytes < 0:
            self._nbytes = sum([column.nbytes for column in self.columns])
        return self._nbytes

    def elements(self) -> list[Any]:
        """The elements as a user's function sees them: none of their arrays can be written to.

        Whoever takes them for good gets them by `handover.handed_over`.
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
        """The file and the offset that element `row` was read from, as far as they are known: for a `Context`."""
        return (None, None) if self.origin is None else self.origin.at(row)

    def freeze(self) -> Block:
        """Make the arrays read-only, for Blocks that are kept and served again."""
        for column in self.columns:
            values = column.items if isinstance(column, ListColumn) else [getattr(column, "array", None)]
            for value in values:
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False
                elif isinstance(value, (SparseTensor, RaggedTensor)):
                    value.with_arrays(fix)
        return self

    def with_columns(self, structure: Structure, columns: Sequence[Column]) -> Block:
        """Other values for the same elements."""
        return Block(structure, columns, self.size, self.origin)


def concat_blocks(blocks: Sequence[Block]) -> Block:
    """One Block after the other; their structures must agree."""
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    for block in blocks[1:]:
        if block.structure is first.structure:
            continue
        if block.structure != first.structure and not block.structure.same_as(first.structure):
            message = (
                f"The structure of the element changed: expected {first.structure.describe()}, "
                f"got {block.structure.describe()}."
            )
            raise InvalidTypeError(message)
    aligned = [in_order(block, first.structure) for block in blocks]
    columns = [concat([block.columns[i] for block in aligned]) for i in range(len(first.columns))]
    origin = concat_origins([block.origin for block in blocks])
    return Block(first.structure, columns, sum(block.size for block in blocks), origin)


def joins_freely(first: Block, second: Block) -> bool:
    """Whether `concat_blocks` of the two must succeed and copies little: strings stay where they are.

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
    """The same elements with their columns where `structure` has them: dict keys may come in another order."""
    if block.structure == structure:
        return block
    places = block.structure.build(list(range(len(block.columns))))
    order = structure.flatten(places)
    return Block(structure, [block.columns[i] for i in order], block.size, block.origin)


_LITERALS = frozenset({bool, int, float, bytes})
_SCALARS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefdFD")


class Builder:
    """Collects elements one by one and makes columns of them.

    Leaves are converted, and arrays the caller may write into again are copied, as each element is added; those that
    a function was `given` to keep become the column that they are rows of.
    """

    __slots__ = ("_given", "_leaves", "_size", "_structure")

    def __init__(self, structure: Structure | None = None, given: Given | None = None) -> None:
        self._structure = structure
        self._given = given
        self._leaves: list[list[Any]] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, element: Any) -> None:
        if type(element) in _SCALARS and self._structure is LEAF and self._leaves is not None:
            self._leaves[0].append(element)  # the common case has nothing to take apart, convert or copy
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
        del element  # so that `settle` sees who else holds the arrays
        self.add_leaves(leaves, structure)

    def add_leaves(self, leaves: list[Any], structure: Structure) -> None:
        """Add an element of which these are the leaves; the list is the builder's from now on."""
        settle(leaves, self._given)
        self._structure = structure
        if self._leaves is None:
            self._leaves = [[leaf] for leaf in leaves]
        else:
            for column, leaf in zip(self._leaves, leaves, strict=True):
                column.append(leaf)
        self._size += 1

    def only(self) -> Any:
        """The one element that was added, of the leaves that are kept of it; the builder keeps them no longer."""
        assert self._structure is not None
        leaves = [column.pop() for column in self._leaves or ()]
        return self._structure.build(leaves)

    def chosen(self, rows: Sequence[int]) -> Builder:
        """Another builder, of these elements only."""
        found = Builder(self._structure, self._given)
        found._leaves = [[leaves[row] for row in rows] for leaves in self._leaves or ()]
        found._size = len(rows)
        return found

    def build(self, origin: Origin | None = None, *, any_rank: bool = False) -> Block:
        if self._structure is None or self._leaves is None:
            msg = "a Block holds at least one element"
            raise ValueError(msg)
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
