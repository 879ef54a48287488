"""Checks of shuffles: the range they mix, their position, and the size of the elements in their buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.hints import size_text
from penstock.physical.access import obstacle
from penstock.plan.batching import PaddedBatch
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, function_name
from penstock.plan.ops import Batch, Enumerate, Filter, FlatMap, Map, Prefetch, Repeat, Shuffle, Skip, Take
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Finding
from penstock.profiler.lint.calls import call, calls
from penstock.profiler.lint.inspection import Inspection, below, between, element_bytes, estimated_records
from penstock.profiler.lint.names import are_names
from penstock.profiler.lint.natures import decodes
from penstock.profiler.lint.splits import is_split, ordering, reshuffled, sorted_by_class
from penstock.sources.arrays import ArraysSource
from penstock.sources.parquet import ParquetSource
from penstock.sources.records import RecordsSource

_BEHIND_BATCH = (Map, Filter, Prefetch, Repeat, Cache)
_SHUFFLES = (Shuffle, GlobalShuffle)


def shuffle_batches(plan: Inspection) -> Iterator[Finding]:
    """Shuffle(n)·…·Batch(k), without a shuffle before the batch."""
    for shuffle, _ in plan.asked(Shuffle):
        for node in below(shuffle, _BEHIND_BATCH):
            if isinstance(node, (Batch, PaddedBatch)) and not _is_shuffled(node):
                elements = replace(shuffle, buffer_size=shuffle.buffer_size * node.batch_size)
                yield Finding(
                    shuffle,
                    f"{shuffle.label} shuffles whole batches: {node.label} has already grouped neighbours.",
                    calls([elements, node, *between(shuffle, node)]),
                    "Every batch is then a random selection, another one in every epoch. The buffer has the same size.",
                )


def _is_shuffled(batch: Batch | PaddedBatch) -> bool:
    return any(isinstance(node, _SHUFFLES) and not are_names(node) for node in below(batch))


_BEHIND_DECODING = (Map, Filter, Prefetch)
_TIMES = 4  # growth above this factor counts
_LEAST = 1 << 24  # bytes: advice reports only buffers of at least this size
_FEWEST = 64  # images of unknown size in a buffer that are worth a line
_PICTURE = 224 * 224 * 3 * 4  # bytes of a typical network input


def shuffle_decoded(plan: Inspection) -> Iterator[Finding]:
    """Shuffle(n)·…·Map(f), where f makes elements much larger and could run after the shuffle."""
    for shuffle, _ in plan.each(Shuffle):
        growing = [node for node in below(shuffle, _BEHIND_DECODING) if isinstance(node, Map) and _grows(node)]
        message = _message(shuffle) if growing else None
        if message is not None:
            first = growing[-1]
            yield Finding(
                shuffle,
                f"{message}, made by {first.label}.",
                calls([shuffle, first, *between(shuffle, first)]),
                "The buffer then contains elements that the map has not enlarged yet.",
            )


def _grows(mapped: Map) -> bool:
    before, after = element_bytes(mapped.input.spec), element_bytes(mapped.spec)
    if before is not None and after is not None:
        return after >= max(_TIMES * before, 1)
    return decodes(mapped.function) is not None


def _message(shuffle: Shuffle) -> str | None:
    count = shuffle.buffer_size
    if shuffle.input.cardinality >= 0:
        count = min(count, shuffle.input.cardinality)
    size = element_bytes(shuffle.spec)
    if size is None:
        if count < _FEWEST:
            return None
        typical = size_text(count * _PICTURE)
        return f"The buffer of {shuffle.label} contains decoded images, {typical} at 224×224×3 float32"
    if count * size < _LEAST:
        return None
    return f"The buffer of {shuffle.label} contains {size_text(count * size)}, {size_text(size)} per element"


_BEHIND_REPEAT = (Map, Filter, Enumerate, Prefetch, Cache)


def shuffle_epochs(plan: Inspection) -> Iterator[Finding]:
    """Shuffle·…·Repeat(n) with n above 1, or infinite."""
    for shuffle, _ in plan.asked(Shuffle):
        for node in below(shuffle, _BEHIND_REPEAT):
            if isinstance(node, Repeat) and node.count not in (0, 1):
                yield Finding(
                    shuffle,
                    f"{shuffle.label} after {node.label} mixes epochs: an element may come twice before another "
                    "came once.",
                    calls([*between(shuffle, node), shuffle, node]),
                    "Each epoch then contains every element once, in its own order. There is no wait between "
                    "epochs: the buffer of the next epoch fills while that of the current one empties.",
                )


_BEHIND_FILES = (Map, Filter, Enumerate, Prefetch)
_CYCLE = 16


def shuffle_small(plan: Inspection) -> Iterator[Finding]:
    """Shuffle(1)·x, and Shuffle(n)·…·x where x reads files of more than n records one after another."""
    for shuffle, _ in plan.asked(Shuffle):
        if shuffle.buffer_size == 1 and shuffle.input.cardinality not in (0, 1):
            yield Finding(
                shuffle,
                "shuffle(1) keeps the order: it picks from a buffer of one element.",
                ".shuffle(10_000)",
                "Use as many elements as memory allows, ideally all of them. To keep the order, leave the step out.",
            )
            continue
        files = _read_in_turn(shuffle)
        records = estimated_records(files[0]) if len(files) > 1 else None
        if records is not None and records > shuffle.buffer_size:
            cycle = min(_CYCLE, len(files))
            yield Finding(
                shuffle,
                f"{shuffle.label} mixes within a file: {len(files)} files are read one after another, and one contains "
                f"about {records} records.",
                f"ps.Dataset.list_files(...).interleave(ps.TFRecordDataset, cycle_length={cycle}, "
                f"num_parallel_calls=ps.AUTOTUNE){call(shuffle)}",
                "list_files shuffles the names in every epoch, and interleave reads from several files in turn, so the "
                "buffer mixes records of all these files.",
            )


def _read_in_turn(shuffle: Shuffle) -> tuple[str, ...]:
    """Return the TFRecord files before a shuffle, if they are read one after another."""
    for node in below(shuffle, _BEHIND_FILES):
        if isinstance(node, Scan):
            return node.source.files if isinstance(node.source, RecordsSource) and _is_plain(node.source) else ()
        if isinstance(node, FlatMap) and function_name(node.function) == RecordsSource.kind:
            source = getattr(node.function, "source", None)
            return _named(node.input) if source is None or _is_plain(source) else ()
    return ()


def _is_plain(source: RecordsSource) -> bool:
    return not source.compression_type


def _named(names: Node) -> tuple[str, ...]:
    for node in (names, *below(names)):
        if isinstance(node, Scan) and isinstance(node.source, ArraysSource):
            values = [value for column in node.source.columns for value in column.values()]
            return tuple(value.decode(errors="replace") for value in values if isinstance(value, bytes))
    return ()


def shuffle_split(plan: Inspection) -> Iterator[Finding]:
    """Skip(n)·Shuffle, or Take(n)·Shuffle with a skip elsewhere; only order-preserving steps are between them."""
    for cut in _cuts(plan):
        shuffle = reshuffled(cut.input)
        if shuffle is not None:
            fixed = replace(shuffle, seed=shuffle.seed or 0, reshuffle_each_iteration=False)
            yield Finding(
                cut,
                f"{cut.label} after {shuffle.label} selects other elements in every epoch: as a validation split, it "
                "leaks into training.",
                calls([cut, shuffle]),
                "Split first, with train, validation = ds.split((0.9, 0.1)), and shuffle the training part. If one "
                f"order is intended, use {call(fixed)}.",
            )


def sorted_split(plan: Inspection) -> Iterator[Finding]:
    """Skip(n)·Scan(s), and Take(n)·Scan(s) where s is also skipped, if the elements of s are sorted by class."""
    for cut in _cuts(plan):
        scan = sorted_by_class(cut.input)
        if scan is not None:
            yield Finding(
                cut,
                f"{cut.label} splits {scan.label}, which is sorted by class: the two parts have at most one class in "
                "common.",
                "train, validation = ds.split((0.9, 0.1))",
                "The elements of each part are then random. With stratify=, each part has its share of every class.",
            )


def _cuts(plan: Inspection) -> Iterator[Skip | Take]:
    """Yield each skip, and each take of a data set that is also skipped."""
    kinds: tuple[type[Skip | Take], ...] = (Skip, Take)
    for kind in kinds:
        for cut, _ in plan.asked(kind):
            if cut.count > 0 and (kind is Skip or is_split(ordering(cut.input))):
                yield cut


def global_shuffle(plan: Inspection) -> Iterator[Finding]:
    """Shuffle(n)·…·Scan(s), where s has an index and more than n elements."""
    for shuffle, _ in plan.asked(Shuffle):
        count = shuffle.input.cardinality
        if 1 < shuffle.buffer_size < count and _by_number(shuffle):
            exact = GlobalShuffle(
                input=shuffle.input,
                seed=shuffle.seed,
                reshuffle_each_iteration=shuffle.reshuffle_each_iteration,
                salt=shuffle.salt,
                where=shuffle.where,
            )
            yield Finding(
                shuffle,
                f"{shuffle.label} mixes only neighbours, although the {count} elements can be read in any order.",
                call(exact),
                "All orders are then possible, without a buffer.",
            )


def _by_number(shuffle: Shuffle) -> bool:
    """Return True if only maps are between the shuffle and a source with fast access by index."""
    if obstacle(shuffle.input) is not None:
        return False
    *_, node = below(shuffle, (Map, Prefetch))
    return isinstance(node, Scan) and not isinstance(node.source, ParquetSource)
