"""Inputs of no element, one, and endlessly many, through each step, and their cardinality before an iteration."""

from __future__ import annotations

from _parity.check import Check, Comparer, outcome
from _parity.difference import difference
from _parity.kit import OURS, THEIRS

SOURCES = {
    "none": "K.Dataset.range(0)",
    "one": "K.Dataset.range(1)",
    "no end": "K.Dataset.counter(np.int64(0), np.int64(1))",
}
SEQUENTIAL = ".interleave(lambda x: K.Dataset.range(x, x + 2), cycle_length=2)"
PARALLEL = ".interleave(lambda x: K.Dataset.range(x, x + 2), cycle_length=2, num_parallel_calls=2)"
CHOSEN = (
    ".apply(lambda ds: K.Dataset.choose_from_datasets([ds, K.Dataset.range(9)], K.Dataset.range(2).repeat(3), False))"
)
STEPS = (
    ".map(lambda x: x * 2)",
    ".map(lambda x: (x, x), num_parallel_calls=2)",
    ".filter(lambda x: x % 2 == 0)",
    ".filter(lambda x: x < 0)",
    ".take_while(lambda x: x < 3)",
    ".take(0)",
    ".take(2)",
    ".take(-1)",
    ".skip(0)",
    ".skip(1)",
    ".skip(-1)",
    ".repeat(0)",
    ".repeat(1)",
    ".repeat(2)",
    ".repeat()",
    ".shard(2, 0)",
    ".shard(2, 1)",
    ".enumerate(4)",
    ".batch(2)",
    ".batch(2, drop_remainder=True)",
    ".batch(2).unbatch()",
    ".batch(2).rebatch(3)",
    ".batch(2).rebatch([1, 2], drop_remainder=True)",
    ".map(lambda x: K.arange(x % 3)).padded_batch(2)",
    ".map(lambda x: K.arange(x % 3)).padded_batch(2, padded_shapes=[4], drop_remainder=True)",
    ".map(lambda x: K.arange(x % 3)).ragged_batch(2)",
    ".map(lambda x: K.arange(x % 3)).sparse_batch(2, [4])",
    ".window(2).flat_map(lambda w: w.batch(2))",
    ".window(2, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(2))",
    ".window(2, shift=3, stride=2).flat_map(lambda w: w.batch(2))",
    ".group_by_window(lambda x: x % 2, lambda key, w: w.batch(2), 2)",
    ".map(lambda x: K.arange(x % 3)).bucket_by_sequence_length(lambda x: K.cast(K.size(x), 'int32'), [2], [2, 2])",
    ".scan(np.int64(0), lambda s, x: (s + x, s))",
    ".unique()",
    ".flat_map(lambda x: K.Dataset.range(x % 3))",
    SEQUENTIAL,
    PARALLEL,
    ".concatenate(K.Dataset.range(5, 7))",
    ".apply(lambda ds: K.Dataset.range(5, 7).concatenate(ds))",
    ".apply(lambda ds: K.Dataset.zip(ds, ds))",
    ".apply(lambda ds: K.Dataset.zip(ds, K.Dataset.range(3)))",
    ".apply(lambda ds: K.Dataset.choose_from_datasets([ds, ds], K.Dataset.range(2).repeat()))",
    CHOSEN,
    ".apply(lambda ds: K.Dataset.sample_from_datasets([ds, ds], [0.0, 1.0]))",
    ".prefetch(2)",
    ".shuffle(1)",
    ".shuffle(3).map(lambda x: x * 0)",
    ".ignore_errors()",
    ".map(lambda x: K.fail_if(x, x % 2 == 0)).ignore_errors()",
    ".map(lambda x: K.fail_if(x, x % 2 == 0))",
    ".with_options(K.options(deterministic=False))",
    ".cache()",
    ".apply(K.experimental.assert_cardinality(1))",
)
ENDING = (  # steps that need the end of their input
    ".apply(K.experimental.group_by_reducer(lambda x: x % 2, K.experimental.Reducer("
    "lambda key: key * 0, lambda s, x: s + x, lambda s: s)))",
    ".apply(lambda ds: K.Dataset.from_tensors(ds.reduce(np.int64(7), lambda s, x: s + x)))",
    ".map(lambda x: {'a': x}).apply(K.experimental.pad_to_cardinality(3))",
)
SINGLE = ".apply(lambda ds: K.Dataset.from_tensors(ds.get_single_element()))"
NEVER = (".filter(lambda x: x < 0)",)  # with an endless input, this step never returns
ENDLESS = SOURCES["no end"]
LISTED = {  # differences in the cardinality before an iteration
    f"{ENDLESS}.skip(-1)": "skip(-1) returns no element, also of an endless input",
    f"{ENDLESS}.batch(2).rebatch(3)": "the cardinality of a rebatch is known if its input's cardinality is known",
    f"{ENDLESS}.batch(2).rebatch([1, 2], drop_remainder=True)": "as above",
    f"{ENDLESS}{SEQUENTIAL}": "as with parallel calls: an interleave of an endless input is endless",
    f"{ENDLESS}{CHOSEN}": "six choices return at most six elements",
}


def edges(compare: Comparer) -> None:
    for name, source in SOURCES.items():
        endless = name == "no end"
        for step in (*STEPS, SINGLE, *(() if endless else ENDING)):
            if endless and step in NEVER:
                continue
            text = f"{source}{step}"
            if endless or "repeat" in step:
                compare_cardinality(compare, text)
                text = f"{text}.take(5)"
            compare.count += 1
            found = difference(text)
            if found is not None and text.removesuffix(".take(5)") not in LISTED:
                compare.differs(f"{text}: {found}")


def compare_cardinality(compare: Comparer, text: str) -> None:
    """Compare the cardinality of a pipeline that may be endless."""
    ours, refusal = outcome(lambda: int(OURS.build(text).cardinality()))
    theirs, other = outcome(lambda: int(THEIRS.build(text).cardinality()))
    if text in LISTED:
        compare.listed(f"cardinality of {text}", ours, theirs)
    else:
        compare.same(f"cardinality of {text}", (ours, refusal is None), (theirs, other is None))


CHECKS = (Check("none, one, no end", edges),)
