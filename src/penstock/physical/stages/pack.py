"""`PackStage` packs sequences into rows of one length.

`OpenRows` are the rows being filled. `Pieces` are the sequences of a Block, cut to the length of a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import le

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.spec import TensorSpec
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidArgumentError, PenstockError, as_failure
from penstock.physical.kernels.run import PackingTrial, assign, scatter
from penstock.physical.memory import UNCOUNTED, Memory, elements_for
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Past, Stretch, failure, join
from penstock.physical.token_batch import LeftOut
from penstock.plan.packing import Layout, Pack, open_spec


def sizes_of(block: Block) -> np.ndarray | None:
    """Return the size of each element in each component, or None unless all components are 1-D arrays."""
    sizes = np.empty((block.size, len(block.columns)), np.int64)
    for f, column in enumerate(block.columns):
        if isinstance(column, DenseColumn) and column.array.ndim == 2:
            sizes[:, f] = column.array.shape[1]
        elif isinstance(column, ListColumn) and all(getattr(item, "ndim", 0) == 1 for item in column.items):
            sizes[:, f] = [len(item) for item in column.items]
        else:
            return None
    return sizes


@dataclass(frozen=True, slots=True)
class Pieces:
    """Piece i belongs to element `elements[i]`.

    Its values in feature f are `sizes[i, f]` of `flat[f]`, from `offsets[i, f]`.
    """

    flat: tuple[np.ndarray, ...]
    elements: np.ndarray
    sizes: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, flat: Iterable[np.ndarray], sizes: np.ndarray) -> Pieces:
        """Return each element as one piece. Its components are 1-D arrays of these sizes."""
        return cls(tuple(flat), np.arange(len(sizes)), sizes, np.cumsum(sizes, axis=0) - sizes)

    def __len__(self) -> int:
        return len(self.elements)

    def chosen(self, keep: np.ndarray) -> Pieces:
        """Return the pieces at these positions, or where this mask is True."""
        return Pieces(self.flat, self.elements[keep], self.sizes[keep], self.offsets[keep])

    def too_long(self, lengths: np.ndarray) -> np.ndarray:
        """Return True for pieces that are longer than a row in any feature."""
        found: np.ndarray = np.any(self.sizes > lengths, axis=1)
        return found

    def truncated(self, lengths: np.ndarray) -> Pieces:
        """Return the beginnings of pieces that fit into a row."""
        return Pieces(self.flat, self.elements, np.minimum(self.sizes, lengths), self.offsets)

    def split(self, lengths: np.ndarray) -> Pieces:
        """Split longer pieces: each feature is cut into rows, and piece k contains the k-th row of each feature."""
        counts = np.maximum(-(-self.sizes // lengths), 1).max(axis=1)
        whole = self.chosen(np.repeat(np.arange(len(self)), counts))
        number = np.arange(len(whole)) - np.repeat(np.cumsum(counts) - counts, counts)
        before = np.minimum(number[:, None] * lengths, whole.sizes)
        return Pieces(whole.flat, whole.elements, np.minimum(whole.sizes - before, lengths), whole.offsets + before)


def _joined(column: Column) -> np.ndarray:
    """Return the concatenated values of 1-D arrays."""
    if isinstance(column, DenseColumn):
        return column.array.reshape(-1)
    assert isinstance(column, ListColumn)
    return np.concatenate(column.items)


class _FeatureRows:
    """Rows of one feature: values, segment numbers from 1, and positions in the segments. They are uninitialised."""

    def __init__(self, count: int, length: int, dtype: np.dtype, padding: object) -> None:
        self.kind = length, dtype, padding
        self.arrays = [ARENA.empty((count, length), each) for each in (dtype, np.int32, np.int32)]

    def clear(self, rows: np.ndarray) -> None:
        """Fill rows with padding."""
        for array, padding in zip(self.arrays, (self.kind[2], 0, 0), strict=True):
            array[rows] = padding

    def copy(self, rows: np.ndarray, source: _FeatureRows, source_rows: np.ndarray) -> None:
        for array, other in zip(self.arrays, source.arrays, strict=True):
            array[rows] = other[source_rows]

    def grown(self, count: int) -> _FeatureRows:
        """Return `count` rows that begin with these."""
        larger = _FeatureRows(count, *self.kind)
        every = np.arange(len(self.arrays[0]))
        larger.copy(every, self, every)
        return larger


class OpenRows:
    """The contents of open rows, and a table of how full each row is."""

    def __init__(self, layout: Layout, dtypes: list[np.dtype], rules: tuple[int, int, bool]) -> None:
        self.layout = layout
        self.lengths = np.array(layout.lengths, np.int64)
        self.opened = 0
        self.table = np.empty((0, len(layout.lengths) + 2), np.int64)
        self.firsts = np.empty(0, np.int64)  # position in the stream of the first element of each open row
        self._dtypes = dtypes
        self._rules = rules
        self._slots = np.empty(0, np.int64)  # slot of the content of each open row
        self._free: list[int] = []
        self._content = self._new(0)

    def trial(self) -> PackingTrial:
        """Return an object that counts the rows completed by further sequences."""
        return PackingTrial(self.table, self.opened, self.lengths, *self._rules)

    def _new(self, count: int) -> list[_FeatureRows]:
        layout = self.layout
        return [_FeatureRows(count, *kind) for kind in zip(layout.lengths, self._dtypes, layout.values, strict=True)]

    def add(self, pieces: Pieces, first: int) -> tuple[Block | None, np.ndarray]:
        """Place the pieces of a Block with elements from number `first` on.

        Return the completed rows, and for each the element that completed it.
        """
        known = len(self.table)
        found = assign(pieces.sizes, self.table, self.opened, self.lengths, *self._rules)
        rows, starts, segments, left, left_at, kept, self.table = found
        total = len(left) + len(kept)
        self.opened += total - known
        firsts = np.empty(total, np.int64)
        # a row may be assigned several times; the last assignment, of its first element, counts
        firsts[rows[::-1]] = pieces.elements[::-1] + first
        firsts[:known] = self.firsts
        self.firsts = firsts[kept]

        slots = np.concatenate([self._slots, np.empty(total - known, np.int64)])
        new = kept[kept >= known]
        slots[new] = self._taken(len(new))
        self._slots = slots[kept]
        out = self._new(len(left))
        fresh = left >= known  # rows opened in this call are written directly to the output
        chosen: slice | np.ndarray = slice(None)
        if fresh.any():
            place = np.full(total, -1, np.int64)
            place[left[fresh]] = np.flatnonzero(fresh)
            for part in out:
                part.clear(fresh)
            goes = place[rows] >= 0
            _scatter(pieces, goes, (place[rows], starts, segments), out)
            chosen = ~goes
        _scatter(pieces, chosen, (slots[rows], starts, segments), self._content)
        leaving = slots[left[~fresh]]
        for part, content in zip(out, self._content, strict=True):
            part.copy(~fresh, content, leaving)
        self._free += leaving.tolist()
        return self._block(out, len(left)), pieces.elements[left_at]

    def _taken(self, count: int) -> np.ndarray:
        """Return slots for new rows, filled with padding."""
        missing = count - len(self._free)
        if missing > 0:
            have = len(self._content[0].arrays[0])
            most = max(2 * have, have + missing)
            self._content = [content.grown(most) for content in self._content]
            self._free += range(most - 1, have - 1, -1)
        slots = np.array([self._free.pop() for _ in range(count)], np.int64)
        for content in self._content:
            content.clear(slots)
        return slots

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, including free ones."""
        return sum(array.nbytes for rows in self._content for array in rows.arrays)

    def remaining(self, start: int, stop: int) -> Block | None:
        """Return copies of open rows, counted in the order of opening."""
        slots = self._slots[start:stop]
        out = self._new(len(slots))
        for rows, content in zip(out, self._content, strict=True):
            rows.copy(np.arange(len(slots)), content, slots)
        return self._block(out, len(slots))

    def _block(self, rows: list[_FeatureRows], count: int) -> Block | None:
        if not count:
            return None
        arrays = [array for part in rows for array in part.arrays]
        return Block(self.layout.structure, [DenseColumn(arrays[i]) for i in self.layout.order], count)

    def set_table(self, table: list[list[int]], opened: int) -> None:
        """Restore open rows without content: the rows were completed since, or are filled again."""
        self.table = np.array(table, np.int64).reshape(len(table), self.table.shape[1])
        self.firsts = np.zeros(len(table), np.int64)
        self._slots = self._taken(len(table))
        self.opened = opened


def _scatter(
    pieces: Pieces,
    chosen: np.ndarray | slice,
    places: tuple[np.ndarray, np.ndarray, np.ndarray],
    target: list[_FeatureRows],
) -> None:
    """Write the chosen pieces to their places: row, start and segment number."""
    rows, starts, segments = (part[chosen] for part in places)
    offsets, sizes = pieces.offsets[chosen], pieces.sizes[chosen]
    for f, (flat, content) in enumerate(zip(pieces.flat, target, strict=True)):
        runs = [np.ascontiguousarray(part[:, f]) for part in (offsets, sizes, starts)]
        scatter(flat, runs[0], runs[1], rows, runs[2], segments, *content.arrays)


_NO_LIMIT = 1 << 62


class PackStage(StretchStage):
    """Yields rows in the order of completion, and failures of elements in their turn.

    The state contains no tokens. It contains the table of the rows that were open before a Block of the input. After a
    restore, the input is read again from there, and the same rules rebuild the open rows.
    """

    def __init__(self, upstream: Stage, node: Pack, *, memory: Memory = UNCOUNTED) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._account = memory.account("group", node.label, node.where)
        self._cursor = Cursor(upstream)
        self._node = node
        self._structure: Structure | None = None
        self._rows: OpenRows | None = None
        self._past = Past()  # states of the input, with the open rows and the number of rows opened before
        self._restored: tuple[list[list[int]], int] = ([], 0)  # used until the kind of the elements is known
        self._left_out = LeftOut(node.label)
        self._pulled = 0
        self._given = 0  # number of rows, to estimate how many elements fill one row
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
        """Return the rows that some further elements complete, or None at the end.

        In lock-step, elements are requested one by one: an element that completes a row must not wait for the next one.
        """
        self._note()
        ask = elements_for(want, self._pulled, self._given)
        values: list[list[np.ndarray]] = []
        sizes: list[list[int]] = []
        rest: list[Block | Stretch] = []
        trial = self._rows.trial() if self._rows is not None and self.seen else None
        try:
            while self._cursor.fill(1 if self.seen else ask):
                block = self._cursor.take_available(ask)
                arrays = None if trial is None else self._fits(block)
                if trial is None or arrays is None:
                    rest.append(block)
                    break
                values.append(arrays)
                sizes.append([*map(len, arrays)])
                if trial.leaving(sizes[-1]) >= want:
                    break
            else:
                self._ended = True
        except Exception as error:
            rest.append(failure(error))
        parts: list[Stretch] = []
        if values:
            assert self._rows is not None
            pieces = Pieces.of(map(np.concatenate, zip(*values, strict=True)), np.array(sizes, np.int64))
            parts.append(Stretch(self._rows.add(pieces, self._pulled)[0]))
            self._pulled += len(values)
        for each in rest:
            parts.append(self._packed(each) if isinstance(each, Block) else each)
            self._pulled += not isinstance(each, Block)
        if not parts:
            return None
        found = join(parts)
        self._given += found.size
        if self._rows is not None:
            self._account.hold(self._rows.nbytes)
        return found

    def _fits(self, block: Block) -> list[np.ndarray] | None:
        """Return the components of a single element if they fit into a row, which is the usual case."""
        assert self._rows is not None
        if block.size > 1 or (block.structure is not self._structure and block.structure != self._structure):
            return None
        values = [column.values()[0] for column in block.columns]
        fits = all(getattr(value, "ndim", 0) == 1 for value in values) and any(map(len, values))
        return values if fits and all(map(le, map(len, values), self._rows.layout.lengths)) else None

    def _note(self) -> None:
        if not self._past.ends_at(self._pulled):
            rows = self._rows
            table, opened = self._restored if rows is None else (rows.table, rows.opened)
            self._past.note(self._pulled, (self._cursor.state(), table, opened), self._firsts)

    def _firsts(self) -> np.ndarray:
        """Return the positions of the first elements of the open rows."""
        return np.empty(0, np.int64) if self._rows is None else self._rows.firsts

    def _packed(self, block: Block) -> Stretch:
        sizes = sizes_of(block)
        if sizes is None and block.size > 1:  # some elements can be packed, and some cannot
            return join([self._packed(block.slice(row, row + 1)) for row in range(block.size)])
        first = self._pulled
        self._pulled += block.size
        try:
            pieces = self._pieces(block, sizes)
        except PenstockError as error:
            kind, message, hint = type(error), error.message, error.hint
            same = [self._failed(kind(message, hint=hint), block, row, first) for row in range(block.size)]
            return Stretch(None, tuple(enumerate(same)))
        assert self._rows is not None
        pieces, failed = self._fitting(pieces, self._rows.lengths)
        errors = [(row, self._too_long(block, row, first)) for row in failed.tolist()]
        rows, left_at = self._rows.add(pieces, first) if len(pieces) else (None, np.empty(0, np.int64))
        before = np.searchsorted(left_at, failed)
        return Stretch(rows, tuple((int(before[i]) + i, error) for i, (_, error) in enumerate(errors)))

    def _pieces(self, block: Block, sizes: np.ndarray | None) -> Pieces:
        """Return each element as one piece, in the component order of the first one.

        Raise an error if it cannot be packed.
        """
        if self._structure is None or sizes is None:
            specs = [open_spec(column.slice(0, 1).spec()) for column in block.columns]
            layout = self._node.layout(block.structure, specs)
        if self._structure is None:
            self._structure = block.structure
            node = self._node
            rules = node.max_sequences or _NO_LIMIT, node.open_rows, node.strategy == "best_fit"
            self._rows = OpenRows(layout, [spec.dtype for spec in specs if isinstance(spec, TensorSpec)], rules)
            self._rows.set_table(*self._restored)
        assert sizes is not None
        if block.structure != self._structure:
            order = self._structure.flatten(block.structure.build(range(len(block.columns))))
            block = block.with_columns(self._structure, [block.columns[i] for i in order])
            sizes = sizes[:, order]
        return Pieces.of(map(_joined, block.columns), sizes)

    def _fitting(self, pieces: Pieces, lengths: np.ndarray) -> tuple[Pieces, np.ndarray]:
        """Return the pieces that go into rows, and the elements that fail."""
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
        hint = "Use longer rows, or pass too_long='truncate', 'split' or 'drop'."
        return self._failed(InvalidArgumentError(message, hint=hint), block, row, first)

    def _failed(self, error: Exception, block: Block, row: int, first: int) -> Exception:
        return as_failure(error, Context(self.label, self.where, first + row, *block.origin_at(row)))

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
        # in free order, this state grows
        self._past.note(number, (self._cursor.state(), table, opened), self._firsts)
        self._pulled = number
        for piece in self._cursor.pieces(pulled - self._pulled):
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
