"""Python values as elements: lists from sources and from functions, None, ranges, data sets, signatures."""

from __future__ import annotations

from _parity.check import Check, Comparer
from _parity.difference import difference
from _parity.kit import OURS, THEIRS
from _parity.outcome import outcome_of

ONE = "np.int64(1)"
PAIRS = ".map(lambda x: (x, None))"
MANY = "[K.Dataset.range(3), K.Dataset.range(2)]"
INT, TEXT = "K.dtype(np.int64)", "K.dtype(bytes)"


def _generated(values: str, how: str) -> str:
    return f"K.Dataset.from_generator(lambda: iter({values}), {how})"


def _signed(values: str, signature: str) -> str:
    return _generated(values, f"output_signature={signature}")


SAME = (
    # text in lists
    "K.Dataset.from_tensor_slices([b'a\\0', b'b', b'\\0'])",
    "K.Dataset.from_tensors([b'a\\0', 'b'])",
    "K.Dataset.from_tensor_slices([[b'a\\0'], [b'b']])",
    "K.Dataset.from_tensor_slices((['a\\0'], [b'\\0\\0']))",
    "K.Dataset.range(2).map(lambda x: (x, [b'a\\0', b'b']))",
    "K.Dataset.range(2).scan(np.int64(0), lambda s, x: (s, [b'a\\0', b'b']))",
    _generated("[[b'a\\0', b'b']]", f"output_types={TEXT}"),
    # lists that functions return
    f"K.Dataset.range(2).map(lambda x: [{ONE}, b'hello', np.float32(3)])",
    "K.Dataset.range(2).map(lambda x: [x, x + 1])",
    "K.Dataset.range(2).map(lambda x: [x])",
    "K.Dataset.range(2).map(lambda x: [[x, x], [x]])",
    "K.Dataset.range(2).map(lambda x: [{'a': x}, x])",
    "K.Dataset.range(2).map(lambda x: [(x, x), (x, x + 1)])",
    "K.Dataset.range(2).map(lambda x: (x, [x, x + 1]))",
    "K.Dataset.range(2).map(lambda x: {'a': [x, x + 1]})",
    "K.Dataset.range(2).map(lambda x: (x, [(x, x), (x, x + 1)]))",
    "K.Dataset.range(2).map(lambda x: [x, x], num_parallel_calls=2).map(lambda a, b: a + b)",
    "K.Dataset.range(3).scan(np.int64(0), lambda s, x: (s + x, [x, s]))",
    "K.Dataset.range(3).scan(np.int64(0), lambda s, x: [s + x, x])",
    "K.Dataset.from_tensors(K.Dataset.range(3).reduce((np.int64(0), np.int64(1)), lambda s, x: [s[0] + x, s[1]]))",
    "K.Dataset.range(3).apply(K.experimental.group_by_reducer(lambda x: x % 2, K.experimental.Reducer("
    "lambda key: [np.int64(0), np.int64(1)], lambda s, x: (s[0] + x, s[1]), lambda *s: list(s))))",
    # lists of sources
    "K.Dataset.from_tensor_slices([np.float32(1), np.float32(2)])",
    "K.Dataset.from_tensor_slices([(np.float32(1), 2.0), (3.0, 4.0)])",
    "K.Dataset.from_tensors([[], []])",
    "K.Dataset.from_tensors([1.5, 2])",
    # None
    f"K.Dataset.range(3){PAIRS}",
    "K.Dataset.range(3).map(lambda x: [x, None])",
    "K.Dataset.range(3).map(lambda x: {'a': x, 'b': None}).batch(2)",
    *(
        f"K.Dataset.range(3){PAIRS}{step}"
        for step in (
            ".batch(2)",
            ".batch(2).unbatch()",
            ".ragged_batch(2)",
            ".cache()",
            ".shuffle(1)",
            ".repeat(2)",
            ".filter(lambda x, n: n is None)",
            ".map(lambda x, n: (x + 1, n))",
            ".apply(lambda ds: K.Dataset.zip(ds, ds))",
            ".apply(lambda ds: ds.concatenate(ds))",
            ".flat_map(lambda x, n: K.Dataset.from_tensors((x, None)))",
        )
    ),
    f"K.Dataset.from_tensors(({ONE}, None))",
    "K.Dataset.from_tensor_slices((np.arange(1, 3), None))",
    "K.Dataset.range(3).scan(np.int64(0), lambda s, x: (s + x, (x, None)))",
    # data sets as elements
    f"K.Dataset.from_tensor_slices({MANY}).flat_map(lambda ds: ds)",
    f"K.Dataset.from_tensor_slices({MANY}).interleave(lambda ds: ds, cycle_length=2)",
    f"K.Dataset.from_tensor_slices(({MANY}, np.arange(1, 3))).flat_map(lambda ds, n: ds.map(lambda x: x + n))",
    f"K.Dataset.from_tensor_slices({{'a': {MANY}}}).flat_map(lambda e: e['a'])",
    "K.Dataset.from_tensors(K.Dataset.range(3)).flat_map(lambda ds: ds)",
    "K.Dataset.range(2).map(lambda x: [K.Dataset.range(x), K.Dataset.range(2)])"
    ".flat_map(lambda one, other: one.concatenate(other))",
    # signatures of generators
    _signed("[(1, 2, 3)]", "K.spec([3], np.int64)"),
    _signed("[[1, 2, 3]]", "K.spec([3], np.int64)"),
    _signed("[range(3)]", "K.spec([3], np.int64)"),
    _signed("[(1, 2, 3), (1,)]", "K.spec([None], np.int64)"),
    _signed("[((1, 2), (3, 4))]", "K.spec([2, 2], np.float32)"),
    _signed("[((1, 2), 3)]", "(K.spec([2], np.int64), K.spec([], np.int64))"),
    _signed("[{'a': (1, 2)}]", "{'a': K.spec([2], np.int64)}"),
    _generated("[1, 2]", f"output_types={INT}"),
    _generated("[[1, 2], [3]]", f"output_types={INT}"),
    _generated("[(1, 'a'), (2, 'b')]", f"output_types=({INT}, {TEXT})"),
    _generated("[([1, 2], 'a')]", f"output_types=({INT}, {TEXT}), output_shapes=(None, [])"),
    _generated("[[1, 2], [3]]", f"output_types={INT}, output_shapes=[None]"),
    _generated("[[1, 2], [3, 4]]", f"output_types={INT}") + ".batch(2)",
)
REFUSED = (
    "K.Dataset.from_tensor_slices([1, 'a'])",
    "K.Dataset.from_tensors([1, 'a'])",
    "K.Dataset.from_tensors([[1, 2], [3]])",
    "K.Dataset.from_tensors([b'', [b'']])",
    "K.Dataset.from_tensor_slices([(1, 'a'), (2, 'b')])",
    "K.Dataset.from_tensor_slices([{'a': 1}])",
    "K.Dataset.from_tensors([1, None])",
    "K.Dataset.from_tensors(None)",
    "K.Dataset.from_tensor_slices(None)",
    "K.Dataset.from_tensor_slices(K.Dataset.range(3))",
    "K.Dataset.range(2).map(lambda x: None)",
    "K.Dataset.range(2).map(lambda x: [])",
    "K.Dataset.range(2).map(lambda x: (x, [x, b'a']))",
    "K.Dataset.range(2).map(lambda x: (x, [x, None]))",
    "K.Dataset.range(2).map(lambda x: {1, 2})",
    f"K.Dataset.range(2){PAIRS}.concatenate(K.Dataset.range(2).map(lambda x: (x, x)))",
    "K.Dataset.range(2).flat_map(lambda x: [K.Dataset.range(2)])",
    "K.Dataset.range(2).scan([np.int64(0), np.int64(1)], lambda s, x: ((s[0], s[1]), x))",
    _signed("[[1, 2]]", "(K.spec([], np.int64), K.spec([], np.int64))"),
    _signed("[(1, 2)]", "{'a': K.spec([], np.int64), 'b': K.spec([], np.int64)}"),
    _signed("[(1, 2)]", "K.spec([3], np.int64)"),
    _generated("[1.5]", f"output_types={INT}"),
    _generated("[[1, 'a']]", f"output_types={INT}"),
)


def same(compare: Comparer) -> None:
    for text in SAME:
        compare.count += 1
        found = difference(text)
        if found is not None:
            compare.differs(f"{text}: {found}")


def refused(compare: Comparer) -> None:
    for text in REFUSED:
        compare.count += 1
        ours, theirs = outcome_of(OURS, text), outcome_of(THEIRS, text)
        if ours.error is None or theirs.error is None:
            compare.differs(f"{text}: not refused by both\n    penstock:   {ours!r}\n    tensorflow: {theirs!r}")


CHECKS = (Check("values", same), Check("refused values", refused))
