"""Reference and generated steps: sequences packed into rows, batches by tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.generated.batching import as_array, padded
from tests.reference import Context, call, elements, leaves_of, rebuilt

from penstock.keys import draw as draw_number
from penstock.keys import fold
from penstock.plan import packing

# -- the meaning of each step


class Row:
    def __init__(self, lengths: list[int], number: int) -> None:
        self.lengths = lengths
        self.number = number
        self.sequences: list[list[list[Any]]] = []

    def fills(self) -> list[int]:
        return [sum(len(s[f]) for s in self.sequences) for f in range(len(self.lengths))]

    def room(self) -> int:
        return sum(self.lengths) - sum(self.fills())

    def takes(self, sequence: list[list[Any]]) -> bool:
        return all(
            fill + len(s) <= length for fill, s, length in zip(self.fills(), sequence, self.lengths, strict=True)
        )

    def is_full(self, most: int | None) -> bool:
        return len(self.sequences) == most or any(f == n for f, n in zip(self.fills(), self.lengths, strict=True))


def _rows(node: packing.Pack, sequences: Iterator[list[list[Any]]], lengths: list[int]) -> Iterator[Row]:
    rows: list[Row] = []
    opened = 0
    for sequence in sequences:
        fitting = [row for row in rows if row.takes(sequence)]
        if not fitting:
            fitting = [Row(lengths, opened)]
            rows += fitting
            opened += 1
        row = fitting[0] if node.strategy == "first_fit" else min(fitting, key=Row.room)
        row.sequences.append(sequence)
        if row.is_full(node.max_sequences):
            rows.remove(row)
            yield row
        elif len(rows) > node.open_rows:
            leaving = rows[0] if opened - rows[0].number > 4 * node.open_rows else min(rows, key=Row.room)
            rows.remove(leaving)
            yield leaving
    if not node.drop_remainder:
        yield from rows


def _pieces(node: packing.Pack, sequence: list[Any], lengths: list[int]) -> Iterator[list[list[Any]]]:
    if any(len(s) > n for s, n in zip(sequence, lengths, strict=True)):
        if node.too_long == "drop":
            return
        assert node.too_long != "error", "the reference knows no failures"
    while any(len(s) for s in sequence):
        yield [list(s[:n]) for s, n in zip(sequence, lengths, strict=True)]
        if node.too_long == "truncate":
            return
        sequence = [s[n:] for s, n in zip(sequence, lengths, strict=True)]


@elements.register
def _(node: packing.Pack, context: Context) -> Iterator[Any]:
    below = list(elements(node.input, context))
    if not below:
        return
    like = below[0]
    leaves = leaves_of(like, like)
    lengths = [node.length] * len(leaves) if isinstance(node.length, int) else leaves_of(node.length, like)
    sequences = (piece for x in below for piece in _pieces(node, leaves_of(x, like), lengths))
    for row in _rows(node, sequences, lengths):
        filled = []
        for f, (length, leaf) in enumerate(zip(lengths, leaves, strict=True)):
            values = np.full(length, node.padding_values or 0, leaf.dtype)
            ids, positions = np.zeros(length, np.int32), np.zeros(length, np.int32)
            at = 0
            for number, sequence in enumerate(row.sequences, 1):
                for position, value in enumerate(sequence[f]):
                    values[at], ids[at], positions[at] = value, number, position
                    at += 1
            filled.append((values, ids, positions))
        yield named(like, filled)


def named(like: Any, filled: list[Any]) -> Any:
    """A lone array as a dict, the arrays of a tuple as dicts, those of a dict with neighbours."""
    words = "tokens", "segment_ids", "positions"
    if isinstance(like, np.ndarray):
        return dict(zip(words, filled[0], strict=True))
    if isinstance(like, tuple):
        return tuple(dict(zip(words, arrays, strict=True)) for arrays in filled)
    found = {}
    for name, arrays in zip(like, filled, strict=True):
        found |= {name: arrays[0], f"{name}_segment_ids": arrays[1], f"{name}_positions": arrays[2]}
    return found


def _counted(node: packing.BatchByTokens, element: Any) -> int:
    if node.length_func is not None:
        length = int(call(node.length_func, element))
    else:
        length = max(len(leaf) for leaf in leaves_of(element, element) if isinstance(leaf, np.ndarray))
    return -(-max(length, 1) // node.multiple_of) * node.multiple_of


def _cost(node: packing.BatchByTokens, lengths: list[int]) -> int:
    return sum(lengths) if node.cost == "sum" else len(lengths) * max(lengths)


def _groups(node: packing.BatchByTokens, found: list[tuple[int, Any]]) -> Iterator[list[Any]]:
    group: list[tuple[int, Any]] = []
    for length, element in found:
        too_many = len(group) == node.max_elements
        if group and (too_many or _cost(node, [*(n for n, _ in group), length]) > node.max_tokens):
            yield [x for _, x in group]
            group = []
        group.append((length, element))
    if group:
        yield [x for _, x in group]


@elements.register
def _(node: packing.BatchByTokens, context: Context) -> Iterator[Any]:
    found = [(_counted(node, x), x) for x in elements(node.input, context)]
    window = node.sort_window or len(found) or 1
    key = fold(context.options.seed, node.salt) if node.seed is None else fold(node.seed, 0)
    if node.reshuffle_each_iteration:
        key = fold(key, context.epoch)
    for number, start in enumerate(range(0, len(found), window)):
        part = [pair for pair in found[start : start + window] if node.too_long != "drop" or pair[0] <= node.max_tokens]
        if node.sort_window:
            part.sort(key=lambda pair: pair[0])
        groups = list(_groups(node, part))
        if node.sort_window and node.shuffle_batches:
            groups = _drawn(groups, fold(key, number))
        for group in groups:
            yield _padded(node, group)


def _drawn(groups: list[Any], key: int) -> list[Any]:
    left, found = list(groups), []
    for number in range(len(groups)):
        pick = draw_number(key, number, len(left))
        found.append(left[pick])
        left[pick] = left[-1]
        left.pop()
    return found


def _padded(node: packing.BatchByTokens, group: list[Any]) -> Any:
    columns = zip(*[leaves_of(x, group[0]) for x in group], strict=True)
    values = []
    for column in columns:
        arrays = [as_array(leaf) for leaf in column]
        shape: list[int | None] = [None] * arrays[0].ndim
        if shape:
            shape[0] = -(-max(len(array) for array in arrays) // node.multiple_of) * node.multiple_of
        values.append(padded(list(column), shape, node.padding_values))
    return rebuilt(group[0], iter(values))


# -- steps

WIDENED = {  # sequences of kinds that are none, as functions of their elements
    "ragged": lambda r: r,
    "vector": lambda v: v,
    "int": lambda x: np.arange(int(x) % 5, dtype=np.int16) + np.int16(1),
}
NESTS = {
    "alone": lambda s: s,
    "pair": lambda s: (s, s[1:].astype(np.float32)),
    "dict": lambda s: {"x": s, "y": np.repeat(s, 2)},
}


def _pack(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if deterministic is False or at.kind not in WIDENED or at.infinite:
        return at
    widen, nest = WIDENED[at.kind], draw(st.sampled_from(sorted(NESTS)))
    length: Any = draw(st.integers(3, 9))
    options = {
        "strategy": draw(st.sampled_from(packing.STRATEGIES)),
        "open_rows": draw(st.integers(1, 4)),
        "max_sequences": draw(st.sampled_from([None, None, 1, 2, 3])),
        "too_long": draw(st.sampled_from(["truncate", "split", "drop"])),
        "drop_remainder": draw(st.booleans()),
        "padding_values": draw(st.sampled_from([None, 1])) if at.kind != "vector" else None,
    }
    if nest == "dict" and draw(st.booleans()):
        length = {"x": length, "y": length + 2}
    make = NESTS[nest]
    dataset = at.dataset.map(lambda x: make(widen(x))).pack(length, **options)
    return at.then(f"map({nest}).pack({length}, {options})", dataset, "other")


def _batch_by_tokens(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if deterministic is False or at.infinite or at.kind not in ("ragged", "int", "bytes", "vector"):
        return at
    length_func = {"ragged": None, "vector": None, "bytes": len, "int": lambda x: int(x) % 4}[at.kind]
    window = draw(st.sampled_from([None, None, 1, 3, 7, 30]))
    options = {
        "cost": draw(st.sampled_from(packing.COSTS)),
        "max_elements": draw(st.sampled_from([None, None, 1, 3])),
        "multiple_of": draw(st.sampled_from([1, 1, 2, 3])),
        "sort_window": window,
        "shuffle_batches": draw(st.booleans()),
        "seed": draw(st.sampled_from([None, 5])),
        "reshuffle_each_iteration": draw(st.booleans()),
        "too_long": draw(st.sampled_from(["alone", "drop"])),
    }
    tokens = draw(st.integers(1, 12))
    text = f"batch_by_tokens({tokens}, {options})"
    return at.then(text, at.dataset.batch_by_tokens(tokens, length_func, **options), "other")


STEPS: list[Any] = [_pack, _batch_by_tokens]
