"""Pack: sequences side by side in rows of one length."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import TensorSpec
from penstock.block.structure import Structure
from penstock.compiled import Compiled
from penstock.errors import Context, InvalidArgumentError, PenstockError, as_failure
from penstock.physical.kernels import reference
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.open_rows import OpenRows, Pieces, fits_rows
from penstock.physical.stacking import ranks_of
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Past, Stretch, failure, join
from penstock.physical.token_batch import LeftOut
from penstock.plan.packing import Pack as PackNode
from penstock.plan.packing import open_spec

_NATIVE = Compiled("penstock.physical.kernels.packing_native")
_WORTH_COMPILING = 1 << 13  # sequences from which loading numba (0.3 s once per process) pays
_MOST = 4096  # elements to ask for at a time
_NO_LIMIT = 1 << 62


class Pack(StretchStage):
    """Rows in the order in which they leave, and failures of elements in their turn.

    The state holds no tokens, but the table of the rows that were open in front of a Block of the input from which on
    all that is in open rows now is read again; passed through the same rules, it comes to stand where it stood.
    """

    def __init__(self, upstream: Stage, node: PackNode, *, memory: Memory = UNCOUNTED) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._account = memory.account("group", node.label, node.where)
        self._cursor = Cursor(upstream)
        self._node = node
        self._structure: Structure | None = None
        self._dtypes: list[np.dtype] = []
        self._rows: OpenRows | None = None
        self._past = Past()  # states of the input, with the open rows and the number of rows opened before
        self._restored: tuple[list[list[int]], int] = ([], 0)  # for rows whose kind is not known yet
        self._left_out = LeftOut(node.label)
        self._pulled = 0
        self._given = 0  # rows, to guess how many elements make one
        self._drained = 0
        self._ended = False

    def make(self, want: int) -> Stretch | None:
        while not self._ended:
            found = self._advance(want)
            if found is not None and found.size:
                return found
        rows = None
        if self._rows is not None and not self._node.drop_remainder:
            rows = self._rows.remaining(self._drained, self._drained + want)
        if rows is None:
            self._left_out.tell(self._pulled)
            return None
        self._drained += rows.size
        return Stretch(rows)

    def _advance(self, want: int) -> Stretch | None:
        """What comes of some further elements."""
        self._note()
        ask = 1 if self.seen else max(1, min(want * (self._pulled + 8) // (self._given + 1), _MOST))
        try:
            if not self._cursor.fill(ask):
                self._ended = True
                return None
        except Exception as error:
            self._pulled += 1
            return failure(error)
        found = self._packed(self._cursor.take_available(ask))
        self._given += found.size
        if self._rows is not None:
            self._account.hold(self._rows.nbytes)
        return found

    def _note(self) -> None:
        if not self._past.ends_at(self._pulled):
            rows = self._rows
            table, opened = self._restored if rows is None else (rows.table, rows.opened)
            self._past.note(self._pulled, (self._cursor.state(), table, opened), self._firsts())

    def _firsts(self) -> np.ndarray:
        """Positions of the first elements of the open rows."""
        return np.empty(0, np.int64) if self._rows is None else self._rows.firsts

    def _packed(self, block: Block) -> Stretch:
        if None in ranks_of(block):  # some can be packed, and some not
            return join([self._packed(block.slice(row, row + 1)) for row in range(block.size)])
        first = self._pulled
        self._pulled += block.size
        try:
            block = self._of_one_kind(block)
        except PenstockError as error:
            kind, message, hint = type(error), error.message, error.hint
            same = [self._failed(kind(message, hint=hint), block, row, first) for row in range(block.size)]
            return Stretch(None, tuple(enumerate(same)))
        assert self._rows is not None
        pieces, failed = self._fitting(Pieces.of(block), self._rows.lengths)
        errors = [(row, self._too_long(block, row, first)) for row in failed.tolist()]
        rows, left_at = self._rows.add(pieces, first, self._kernels()) if len(pieces) else (None, np.empty(0, np.int64))
        before = np.searchsorted(left_at, failed)
        return Stretch(rows, tuple((int(before[i]) + i, error) for i, (_, error) in enumerate(errors)))

    def _of_one_kind(self, block: Block) -> Block:
        """The Block with its components in the order of the first one's; raises unless it can be packed."""
        if self._structure is None:
            specs = [open_spec(column.slice(0, 1).spec()) for column in block.columns]
            layout = self._node.layout(block.structure, specs)
            self._structure = block.structure
            self._dtypes = [spec.dtype for spec in specs if isinstance(spec, TensorSpec)]
            node = self._node
            most = node.max_sequences or _NO_LIMIT
            self._rows = OpenRows(layout, self._dtypes, most, node.open_rows, node.strategy == "best_fit")
            self._rows.set_table(*self._restored)
        elif block.structure != self._structure:
            order = self._structure.flatten(block.structure.build(range(len(block.columns))))
            block = block.with_columns(self._structure, [block.columns[i] for i in order])
        if not fits_rows(block, self._dtypes):
            self._node.layout(block.structure, block.specs())
        return block

    def _fitting(self, pieces: Pieces, lengths: np.ndarray) -> tuple[Pieces, np.ndarray]:
        """What goes into rows, and the elements that fail."""
        failed = np.empty(0, np.int64)
        long = pieces.too_long(lengths)
        if long.any():
            how = self._node.too_long
            if how == "truncate":
                pieces = pieces.truncated(lengths)
            elif how == "split":
                pieces = pieces.split(lengths)
            else:
                if how == "error":
                    failed = pieces.elements[long]
                else:
                    self._left_out.count += int(long.sum())
                pieces = pieces.chosen(~long)
        holds: np.ndarray = np.any(pieces.sizes, axis=1)
        return (pieces if holds.all() else pieces.chosen(holds)), failed

    def _too_long(self, block: Block, row: int, first: int) -> Exception:
        assert self._structure is not None
        assert self._rows is not None
        found = []
        for column, length, path in zip(block.columns, self._rows.layout.lengths, self._structure.paths(), strict=True):
            size = len(column.slice(row, row + 1).values()[0])
            if size > length:
                found.append(f"{size} tokens{f' in component {path}' if path else ''}, a row holds {length}")
        message = f"A sequence has {' and '.join(found)}."
        hint = "Give longer rows, or say too_long='truncate', 'split' or 'drop'."
        return self._failed(InvalidArgumentError(message, hint=hint), block, row, first)

    def _failed(self, error: Exception, block: Block, row: int, first: int) -> Exception:
        file, offset = (None, None) if block.origin is None else block.origin.at(row)
        return as_failure(error, Context(self.label, self.where, first + row, file, offset))

    def _kernels(self) -> ModuleType:
        native = _NATIVE.ready() if "numba" in sys.modules or self._pulled > _WORTH_COMPILING else None
        return reference if native is None else native

    def place(self) -> State:
        self._note()
        firsts = self._firsts()
        number, (below, table, opened) = self._past.before(int(firsts.min()) if len(firsts) else self._pulled)
        table = table.tolist() if isinstance(table, np.ndarray) else table
        return [below, number, self._pulled, table, opened, self._given, self._drained, self._left_out.count]

    def go_to(self, place: State) -> None:
        below, number, pulled, table, opened, self._given, self._drained, left_out = place
        self._cursor.restore(below)
        self._restored = table, opened
        self._past.note(number, (below, table, opened), self._firsts())
        self._pulled = number
        while self._pulled < pulled:
            stretch = self._cursor.take(min(pulled - self._pulled, _MOST))
            if stretch is None:
                break
            for piece in stretch.pieces():
                if isinstance(piece, Block):
                    self._packed(piece)
                else:
                    self._pulled += 1
        self._left_out.count = left_out

    def close(self) -> None:
        self._rows = None
        self._ended = True
        self._account.close()
        self._cursor.close()
