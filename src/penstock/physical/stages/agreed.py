"""Agreed: streams joined into one, one behind the other or mixed, keep the kind of the first element."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.block.block import Block
from penstock.block.column import Column, ListColumn
from penstock.block.spec import LeafSpec, TensorSpec, dtype_name, spec_of
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidTypeError
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch


class Agreement:
    """Admits Blocks of the first one's structure, dtypes and ranks; of any rank, where signatures leave that open.

    `kind` is what the first element was, as text, and part of a state. Nothing is looked at where the kinds are
    `known` to agree.
    """

    def __init__(self, label: str, where: str | None, *, known: bool, any_rank: bool = False) -> None:
        self._label = label
        self._where = where
        self._known = known
        self._any_rank = any_rank
        self.kind: str | None = None

    def admits(self, block: Block) -> bool:
        if self._known:
            return True
        found = self._kind(block)
        self.kind = self.kind or found
        return found == self.kind

    def error(self, source: int, block: Block, number: int) -> InvalidTypeError:
        """Why element `number` of the joined stream, which is one of this Block's, is not admitted."""
        message = f"Data set {source} gives {self._kind(block)}; the elements before it were {self.kind}."
        hint = "All data sets that are joined have one nest, with the same dtypes and ranks: map them to it first."
        return InvalidTypeError(message, hint=hint, context=Context(self._label, self._where, number))

    def _kind(self, block: Block) -> str:
        leaves = [_leaf_text(column) for column in block.columns]
        if self._any_rank:
            leaves = [leaf.partition(" of rank ")[0] for leaf in leaves]
        return _text(block.structure, iter(leaves))


def _text(structure: Structure, leaves: Iterator[str]) -> str:
    """The nest as text; dict keys are sorted, since their order makes no difference."""
    if structure.is_leaf:
        return next(leaves)
    if not structure.children:
        return structure.describe()
    parts = [_text(child, leaves) for child in structure.children]
    if structure.kind is tuple:
        return f"({', '.join(parts)})"
    named = ", ".join(sorted(f"{name}: {part}" for name, part in zip(structure.names, parts, strict=True)))
    return f"{{{named}}}" if structure.kind is dict else f"{getattr(structure.kind, '__name__', '')}({named})"


def _leaf_text(column: Column) -> str:
    spec: LeafSpec = spec_of(column.items[0]) if isinstance(column, ListColumn) else column.spec()
    return f"{dtype_name(spec.dtype)} of rank {len(spec.shape)}" if isinstance(spec, TensorSpec) else repr(spec)


class Agreed(StretchStage):
    """Hands on what agrees with the first element. For streams whose specs are not known beforehand."""

    def __init__(self, upstream: Stage, label: str, where: str | None, *, any_rank: bool = False) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._agreement = Agreement(label, where, known=False, any_rank=any_rank)
        self._count = 0

    def make(self, want: int) -> Stretch | None:
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        if block is None:
            return None
        first = self._count
        self._count += block.size
        if self._agreement.admits(block):
            return Stretch(block)
        # the data sets agree with themselves: what differs is the second
        return Stretch(None, tuple((i, self._agreement.error(1, block, first + i)) for i in range(block.size)))

    def place(self) -> State:
        return [self._upstream.state(), self._count, self._agreement.kind]

    def go_to(self, place: State) -> None:
        below, self._count, self._agreement.kind = place
        self._upstream.restore(below)
