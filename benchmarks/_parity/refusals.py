"""Wrong calls and wrong elements: the same kind of error at the same moment, or a listed difference."""

from __future__ import annotations

from dataclasses import dataclass

from _parity.check import Check, Comparer
from _parity.kit import OURS, THEIRS, Kit
from _parity.outcome import outcome_of


@dataclass(frozen=True)
class Refusal:
    """A pipeline that fails. If the libraries differ: the error of each, and the reason."""

    text: str
    ours: str = ""
    theirs: str = ""
    why: str = ""


RUNS = "functions are not traced: their results are known when they run"
EARLY = "arguments are checked at construction"
WRONG_TYPE = "a wrong type is a TypeError"
CLASS = "errors have penstock's classes, not AttributeError or IndexError"
NO_FILE = "a pattern that matches no file is a FileNotFoundError"
STRICT = "it would return no element, which is not useful"

CASES: tuple[Refusal, ...] = (
    Refusal("K.Dataset.range(5, 1, 0)"),
    Refusal("K.Dataset.range()", "TypeError at construction", "InvalidArgument at construction", WRONG_TYPE),
    Refusal("K.Dataset.range('a')"),
    Refusal("K.Dataset.range(3, output_type=bytes)"),
    Refusal("K.Dataset.from_tensor_slices(np.int64(3))"),
    Refusal("K.Dataset.from_tensor_slices((np.arange(3), np.arange(4)))"),
    Refusal(
        "K.Dataset.from_tensors(object())", "TypeError at construction", "InvalidArgument at construction", WRONG_TYPE
    ),
    Refusal("K.Dataset.from_generator(7)"),
    Refusal("K.Dataset.from_generator(lambda: [1, 'a'], output_signature=K.spec((), np.int64))"),
    Refusal("K.Dataset.from_generator(lambda: [[1], [2, 3]], output_signature=K.spec((1,), np.int64))"),
    Refusal("K.Dataset.from_generator(lambda: [(1, 2)], output_signature=K.spec((), np.int64))"),
    Refusal("K.Dataset.from_generator(lambda: [1], output_signature=7)"),
    Refusal(
        "K.Dataset.list_files('/nowhere/*.txt')", "NotFound at construction", "InvalidArgument at construction", NO_FILE
    ),
    Refusal("K.Dataset.zip()"),
    Refusal("K.Dataset.zip(K.Dataset.range(1), datasets=K.Dataset.range(1))"),
    Refusal("K.Dataset.zip((K.Dataset.range(1), 3))"),
    Refusal("K.Dataset.range(3).batch(0)"),
    Refusal("K.Dataset.range(3).batch(-1)"),
    Refusal("K.Dataset.range(3).batch('a')"),
    Refusal("K.Dataset.range(3).batch(1.5)"),
    Refusal("K.Dataset.range(3).map(lambda x: K.arange(x)).batch(2)"),
    Refusal("K.Dataset.range(3).map(7)", "TypeError at construction", "InvalidArgument at construction", WRONG_TYPE),
    Refusal("K.Dataset.range(3).map(lambda: 1)", "TypeError at iteration", "TypeError at construction", RUNS),
    Refusal("K.Dataset.range(3).map(lambda a, b: 1)", "TypeError at iteration", "TypeError at construction", RUNS),
    Refusal("K.Dataset.range(3).map(lambda x: object())", "TypeError at iteration", "TypeError at construction", RUNS),
    Refusal("K.Dataset.range(3).map(lambda x: x, num_parallel_calls=0)"),
    Refusal("K.Dataset.range(3).map(lambda x: x, num_parallel_calls=-2)"),
    Refusal("K.Dataset.range(3).map(lambda x: K.fail_if(x, x > 1))"),
    Refusal(
        "K.Dataset.range(3).filter(lambda x: x)", "TypeError at iteration", "InvalidArgument at construction", RUNS
    ),
    Refusal(
        "K.Dataset.range(3).filter(lambda x: (x > 1, x > 1))",
        "TypeError at iteration",
        "AttributeError at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(3).filter(lambda x: K.full(2, x) > 1)",
        "TypeError at iteration",
        "InvalidArgument at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(3).flat_map(lambda x: x)", "TypeError at iteration", "AttributeError at construction", RUNS
    ),
    Refusal(
        "K.Dataset.range(3).interleave(lambda x: x)", "TypeError at iteration", "AttributeError at construction", RUNS
    ),
    Refusal("K.Dataset.range(3).interleave(lambda x: K.Dataset.range(x), cycle_length=0)"),
    Refusal("K.Dataset.range(3).interleave(lambda x: K.Dataset.range(x), cycle_length=2, block_length=0)"),
    Refusal("K.Dataset.range(3).interleave(lambda x: K.Dataset.range(x), cycle_length=2, num_parallel_calls=-3)"),
    Refusal("K.Dataset.range(3).apply(lambda ds: 3)"),
    Refusal("K.Dataset.range(3).take('a')"),
    Refusal(
        "K.Dataset.range(3).skip(None)", "TypeError at construction", "InvalidArgument at construction", WRONG_TYPE
    ),
    Refusal("K.Dataset.range(3).repeat('a')"),
    Refusal("K.Dataset.range(3).shard(0, 0)"),
    Refusal("K.Dataset.range(3).shard(3, 3)"),
    Refusal("K.Dataset.range(3).shard(3, -1)"),
    Refusal("K.Dataset.range(3).shuffle(0)"),
    Refusal("K.Dataset.range(3).shuffle(-3)"),
    Refusal("K.Dataset.range(3).prefetch(-2)"),
    Refusal("K.Dataset.range(3).unbatch()"),
    Refusal("K.Dataset.range(3).rebatch(2)"),
    Refusal("K.Dataset.range(3).batch(2).rebatch(0)", "InvalidArgument at construction", "nothing", STRICT),
    Refusal(
        "K.Dataset.range(3).batch(2).rebatch([])",
        "InvalidArgument at construction",
        "IndexError at construction",
        CLASS,
    ),
    Refusal(
        "K.Dataset.range(3).concatenate(K.Dataset.range(3).map(lambda x: K.text(x)))",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal("K.Dataset.range(3).concatenate(K.Dataset.range(3).map(lambda x: (x, x)))"),
    Refusal(
        "K.Dataset.range(3).concatenate(3)", "TypeError at construction", "AttributeError at construction", WRONG_TYPE
    ),
    Refusal("K.Dataset.range(3).padded_batch(0)"),
    Refusal("K.Dataset.range(5).map(lambda x: K.arange(x)).padded_batch(5, padded_shapes=[2])"),
    Refusal(
        "K.Dataset.range(5).map(lambda x: K.arange(x)).padded_batch(2, padded_shapes=[None, None])",
        "InvalidArgument at iteration",
        "InvalidArgument at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(5).map(lambda x: K.arange(x)).padded_batch(2, padding_values=np.float32(1))",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(5).map(lambda x: K.arange(x)).padded_batch(2, padding_values='a')",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(3).sparse_batch(2, [3])",
        "InvalidArgument at construction",
        "InvalidArgument at iteration",
        EARLY,
    ),
    Refusal("K.Dataset.range(5).map(lambda x: K.arange(x)).sparse_batch(5, [2])"),
    Refusal("K.Dataset.range(3).map(lambda x: (x, x)).sparse_batch(2, [3])"),
    Refusal("K.Dataset.range(5).map(lambda x: K.arange(x)).ragged_batch(0)"),
    Refusal(
        "K.Dataset.range(5).map(lambda x: K.arange(x)).ragged_batch(2, row_splits_dtype=np.float32)",
        "InvalidArgument at construction",
        "InvalidArgument at iteration",
        EARLY,
    ),
    Refusal("K.Dataset.range(3).window(0)"),
    Refusal("K.Dataset.range(3).window(2, shift=0)"),
    Refusal("K.Dataset.range(3).window(2, stride=0)"),
    Refusal("K.Dataset.range(3).group_by_window(lambda x: x, lambda k, w: w.batch(2))"),
    Refusal("K.Dataset.range(3).group_by_window(lambda x: x, lambda k, w: w, 2, lambda k: 2)"),
    Refusal(
        "K.Dataset.range(3).group_by_window(lambda x: x, lambda k, w: w, 0)",
        "InvalidArgument at construction",
        "InvalidArgument at iteration",
        EARLY,
    ),
    Refusal(
        "K.Dataset.range(3).group_by_window(lambda x: x, lambda k, w: k, 2)",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(3).group_by_window(lambda x: K.text(x), lambda k, w: w, 2)",
        "TypeError at iteration",
        "InvalidArgument at construction",
        RUNS,
    ),
    Refusal("K.Dataset.range(3).bucket_by_sequence_length(lambda x: K.cast(x, 'int32'), [2], [2])"),
    Refusal(
        "K.Dataset.range(3).scan(np.int64(0), lambda s, x: x)",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(3).scan(np.int64(0), lambda s, x: (K.text(s), x))",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal(
        "K.Dataset.range(3).scan(np.int64(0), lambda s, x: ((s, s), x))",
        "TypeError at iteration",
        "InvalidArgument at iteration",
        WRONG_TYPE,
    ),
    Refusal("K.Dataset.from_tensors(K.Dataset.range(3).reduce(np.int64(0), lambda s, x: K.text(s)))"),
    Refusal(
        "K.Dataset.from_tensors(K.Dataset.range(3).reduce(np.int64(0), lambda s, x: (s, s)))",
        "TypeError at construction",
        "InvalidArgument at construction",
        WRONG_TYPE,
    ),
    Refusal("K.Dataset.from_tensors(K.Dataset.range(3).reduce(np.int64(0), lambda s, x: K.fail_if(s, x > 1)))"),
    Refusal(
        "K.Dataset.range(3).take_while(lambda x: x)", "TypeError at iteration", "InvalidArgument at construction", RUNS
    ),
    Refusal("K.Dataset.range(3).map(lambda x: (x, x)).unique()"),
    Refusal("K.Dataset.choose_from_datasets([], K.Dataset.range(3))"),
    Refusal("K.Dataset.choose_from_datasets([K.Dataset.range(3)], K.Dataset.range(3).map(lambda x: x + 1))"),
    Refusal(
        "K.Dataset.choose_from_datasets([K.Dataset.range(3)] * 2, K.Dataset.range(3).map(lambda x: K.text(x)))",
        "TypeError at iteration",
        "TypeError at construction",
        RUNS,
    ),
    Refusal("K.Dataset.choose_from_datasets([K.Dataset.range(3), K.Dataset.from_tensors('a')], K.Dataset.range(2))"),
    Refusal("K.Dataset.sample_from_datasets([])"),
    Refusal("K.Dataset.sample_from_datasets([K.Dataset.range(3)] * 2, [1.0])"),
    Refusal("K.Dataset.sample_from_datasets([K.Dataset.range(3)] * 2, [[1.0, 2.0]])"),
    Refusal("K.Dataset.sample_from_datasets([K.Dataset.range(3), K.Dataset.from_tensors('a')])"),
    Refusal("K.Dataset.from_tensors(K.Dataset.range(0).get_single_element())"),
    Refusal("K.Dataset.from_tensors(K.Dataset.range(2).get_single_element())"),
    Refusal("K.Dataset.range(3).apply(K.experimental.assert_cardinality(2))"),
    Refusal("K.Dataset.range(3).apply(K.experimental.assert_cardinality(4))"),
    Refusal(
        "K.Dataset.range(3).apply(K.experimental.pad_to_cardinality(4))",
        "TypeError at construction",
        "InvalidArgument at construction",
        WRONG_TYPE,
    ),
    Refusal("K.Dataset.from_tensor_slices({'a': np.arange(3)}).apply(K.experimental.pad_to_cardinality(2))"),
    Refusal(
        "K.Dataset.range(3).with_options(3)", "TypeError at construction", "AttributeError at construction", WRONG_TYPE
    ),
    Refusal("K.Dataset.range(3).with_options(K.options(deterministic='yes'))"),
    Refusal(
        "K.Dataset.range(3).with_options(K.options(no_such_option=True))",
        "InvalidArgument at construction",
        "AttributeError at construction",
        CLASS,
    ),
    Refusal("K.Dataset.range(3).with_options(K.options(autotune__cpu_budget='many'))"),
    Refusal("K.Dataset.from_tensors(len(K.Dataset.range(3).repeat()))"),
    Refusal("K.Dataset.from_tensors(len(K.Dataset.range(3).filter(lambda x: x > 1)))"),
    Refusal("K.Dataset.from_tensors(K.experimental.at(K.Dataset.range(3), 3))"),
    Refusal("K.Dataset.from_tensors(K.experimental.at(K.Dataset.range(3).filter(lambda x: x > 1), 0))"),
    Refusal("K.Dataset.random(seed='a').take(1)"),
    Refusal("K.Dataset.counter('a')"),
    Refusal("K.experimental.from_list([])"),
    Refusal("K.experimental.from_list(7)", "TypeError at construction", "InvalidArgument at construction", WRONG_TYPE),
    Refusal(
        "K.experimental.from_list([np.int64(1), (np.int64(1), np.int64(2))])",
        "TypeError at construction",
        "InvalidArgument at construction",
        WRONG_TYPE,
    ),
    Refusal("K.data.TFRecordDataset('/nowhere/file')"),
    Refusal("K.data.TextLineDataset('/nowhere/file')"),
    Refusal("K.data.FixedLengthRecordDataset('/nowhere/file', 3)"),
    Refusal(
        "K.data.FixedLengthRecordDataset('/nowhere/file', 0)",
        "InvalidArgument at construction",
        "InvalidArgument at iteration",
        EARLY,
    ),
    Refusal(
        "K.data.TextLineDataset('/nowhere/file', compression_type='LZ4')",
        "InvalidArgument at construction",
        "InvalidArgument at iteration",
        EARLY,
    ),
    Refusal("K.data.TextLineDataset(7)"),
    Refusal("K.experimental.CsvDataset('/nowhere/file', [np.int64(0)])"),
    Refusal("K.experimental.CsvDataset('/nowhere/file', [])"),
    Refusal(
        "K.experimental.CsvDataset('/nowhere/file', [np.int8(0)])",
        "TypeError at construction",
        "InvalidArgument at construction",
        WRONG_TYPE,
    ),
    Refusal("K.experimental.CsvDataset('/nowhere/file', [np.int64(0)], field_delim='ab')"),
    Refusal("K.experimental.CsvDataset('/nowhere/file', [np.int64(0)], select_cols=[0, 1])"),
    Refusal("K.experimental.CsvDataset('/nowhere/file', [np.int64(0)] * 2, select_cols=[1, 0])"),
    Refusal("K.experimental.CsvDataset('/nowhere/file', [np.int64(0)], select_cols=[0], exclude_cols=[1])"),
    Refusal(
        "K.experimental.make_csv_dataset('/nowhere/*.csv', 2)",
        "NotFound at construction",
        "InvalidArgument at construction",
        NO_FILE,
    ),
    Refusal("K.experimental.SqlDataset('mysql', '/nowhere/file', 'select 1', (np.int64,))"),
)


def refusals(compare: Comparer) -> None:
    for case in CASES:
        compare.count += 1
        ours, theirs = how(OURS, case.text), how(THEIRS, case.text)
        if case.why:
            if (ours, theirs) != (case.ours, case.theirs):
                listed = f"listed are {case.ours!r} and {case.theirs!r}"
                compare.differs(f"{case.text}\n    {listed}, got {ours!r} and {theirs!r}")
        elif ours != theirs:
            compare.differs(f"{case.text}\n    penstock:   {ours}\n    tensorflow: {theirs}")


def how(kit: Kit, text: str) -> str:
    """Return the kind of the error and its moment, or "nothing" if there is no error."""
    found = outcome_of(kit, text)
    return f"{found.kind} at {found.moment}" if found.error is not None else "nothing"


CHECKS = (Check("wrong calls and wrong elements", refusals),)
