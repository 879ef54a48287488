"""A shuffle whose buffer is too small to mix anything: one element, or less than a file that is read to its end."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import Node, function_name
from penstock.plan.ops import Enumerate, Filter, FlatMap, Map, Prefetch, Shuffle
from penstock.plan.scan import Scan
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call
from penstock.profiler.lint.inspection import Inspection, below
from penstock.profiler.lint.records import estimated_records
from penstock.sources.arrays import ArraysSource
from penstock.sources.records import RecordsSource

_ALIKE = (Map, Filter, Enumerate, Prefetch)
_CYCLE = 16


def shuffle_small(plan: Inspection) -> Iterator[Advice]:
    """Shuffle(1)·x, and Shuffle(n)·…·x where x reads files of more than n records one after the other."""
    for shuffle, _ in plan.asked(Shuffle):
        if shuffle.buffer_size == 1 and shuffle.input.cardinality not in (0, 1):
            yield Advice.on(
                shuffle,
                "shuffle-small",
                "data",
                "shuffle(1) keeps the order: it picks from a buffer of one element.",
                ".shuffle(10_000)",
                "Take as many elements as memory allows, at best all of them; to keep the order, leave the step out.",
            )
            continue
        files = _read_in_turn(shuffle)
        records = estimated_records(files[0]) if len(files) > 1 else None
        if records is not None and records > shuffle.buffer_size:
            cycle = min(_CYCLE, len(files))
            yield Advice.on(
                shuffle,
                "shuffle-small",
                "data",
                f"{shuffle.label} mixes within a file: {len(files)} files are read one after the other, and one holds "
                f"about {records} records.",
                f"ps.Dataset.list_files(...).interleave(ps.TFRecordDataset, cycle_length={cycle}, "
                f"num_parallel_calls=ps.AUTOTUNE){call(shuffle)}",
                "list_files shuffles the names in every epoch and interleave takes from several files in turn: the "
                "buffer then mixes records of all of these.",
            )


def _read_in_turn(shuffle: Shuffle) -> tuple[str, ...]:
    """The TFRecord files behind a shuffle, where they are read one after the other."""
    for node in below(shuffle):
        if isinstance(node, Scan):
            return node.source.files if isinstance(node.source, RecordsSource) and _is_plain(node.source) else ()
        if isinstance(node, FlatMap) and function_name(node.function) == RecordsSource.kind:
            source = getattr(node.function, "source", None)
            return _named(node.input) if source is None or _is_plain(source) else ()
        if not isinstance(node, _ALIKE):
            break
    return ()


def _is_plain(source: RecordsSource) -> bool:
    return not source.compression_type


def _named(names: Node) -> tuple[str, ...]:
    for node in (names, *below(names)):
        if isinstance(node, Scan) and isinstance(node.source, ArraysSource):
            values = [value for column in node.source.columns for value in column.values()]
            return tuple(value.decode(errors="replace") for value in values if isinstance(value, bytes))
    return ()
