"""Checks of parallelism: work that could run in parallel and does not, and buffers without effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.functions.uses import keeps_state
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, function_name
from penstock.plan.ops import Batch, BatchNode, Interleave, Map, Prefetch
from penstock.profiler.lint.advice import Finding
from penstock.profiler.lint.calls import call, calls
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.names import reads_files
from penstock.profiler.lint.natures import randomness, work
from penstock.rewrite.rules.inject_prefetch import has_workers, is_ahead, must_stay
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.source import SlicedSource


def idle_prefetch(plan: Inspection) -> Iterator[Finding]:
    """Prefetch(m)·Prefetch(n), and Batch·Prefetch(n)·Map(f, parallel)."""
    for node in plan.written.walk():
        if isinstance(node, Prefetch) and isinstance(node.input, Prefetch):
            yield Finding(
                node.input,
                f"{node.input.label} is followed by {node.label}: one buffer feeds the next one.",
                calls([node]),
                "One buffer has the same effect and less overhead.",
            )
        if not isinstance(node, Batch) or not isinstance(node.input, Prefetch) or node.input.buffer_size == 0:
            continue
        prefetch, mapped = node.input, node.input.input
        if isinstance(mapped, Map) and mapped.num_parallel_calls is not None:
            yield Finding(
                prefetch,
                f"{prefetch.label} prevents the workers of {mapped.label} from writing into the batches of "
                f"{node.label}.",
                calls([mapped, node, prefetch]),
                "The workers run ahead without it. After the batch step, it computes whole batches ahead.",
            )


_DEFAULT = 16  # the default


def idle_cycle(plan: Inspection) -> Iterator[Finding]:
    """Interleave(f, cycle_length=n) over 2 to n - 1 files, if the user chose n."""
    for node, _ in plan.asked(Interleave):
        count = node.input.cardinality
        if 1 < count < node.cycle_length != _DEFAULT and reads_files(node):
            yield Finding(
                node,
                f"cycle_length={node.cycle_length} is larger than the number of files, {count}.",
                call(replace(node, cycle_length=count)),
                "The order stays the same. To read more files at the same time, write the data into more files.",
            )


def one_file(plan: Inspection) -> Iterator[Finding]:
    """Interleave(f)·x, where x is the name of one file."""
    for node, _ in plan.asked(Interleave):
        if node.input.cardinality == 1 and node.cycle_length > 1 and reads_files(node):
            yield Finding(
                node,
                f"interleave reads only one file, although cycle_length={node.cycle_length}.",
                f"ps.{function_name(node.function)}(file)"
                if function_name(node.function).endswith("Dataset")
                else "ps.io.TFRecordWriter(...), one for each of several files",
                "To read in parallel and mix records, write the data into several files. For one file, leave out "
                "interleave.",
            )


def sequential_maps(plan: Inspection) -> Iterator[tuple[Map, str, str]]:
    """Yield sequential maps that work without the GIL, with their work and the name of the called function."""
    for mapped, _ in plan.each(Map):
        chosen = mapped.num_parallel_calls is not None or mapped.executor == "inline"
        found = None if chosen else work(mapped.function)
        if found is not None and not keeps_state(mapped.function):
            yield mapped, *found


def sequential_interleaves(plan: Inspection) -> Iterator[Interleave]:
    """Yield interleaves of several files without num_parallel_calls."""
    for node, _ in plan.each(Interleave):
        if node.num_parallel_calls is None and node.input.cardinality not in (0, 1) and reads_files(node):
            yield node


def sequential_interleave(plan: Inspection) -> Iterator[Finding]:
    """Interleave(f) over several files without num_parallel_calls."""
    for node in sequential_interleaves(plan):
        yield Finding(
            node,
            f"{node.label} opens and reads files in the consumer's thread.",
            call(replace(node, num_parallel_calls=AUTOTUNE)),
            "Files are then opened and read ahead, and the order stays the same.",
        )


def sequential_map(plan: Inspection) -> Iterator[Finding]:
    """Map(f) without num_parallel_calls, where f is known to work without the GIL."""
    for mapped, does, spelled in sequential_maps(plan):
        draws = randomness(mapped.function)
        note = "Several calls then run at the same time, and the order stays the same."
        if draws is not None:
            note += f" The assignment of random numbers of {draws} to elements then depends on timing."
        yield Finding(
            mapped,
            f"{mapped.label} {does} ({spelled}), one element after another.",
            call(replace(mapped, num_parallel_calls=AUTOTUNE)),
            note,
        )


def no_prefetch(plan: Inspection) -> Iterator[Finding]:
    """A plan of batches whose last steps run in the training loop: nothing is parallel, or they may not run ahead."""
    end = plan.written
    # other advice makes a step parallel: later steps then run ahead, or have their own advice
    becomes_parallel = any(sequential_maps(plan)) or any(sequential_interleaves(plan))
    if becomes_parallel or not any(isinstance(node, BatchNode) for node in end.walk()):
        return
    if has_workers(plan.final):
        if is_ahead(plan.final) or must_stay(plan.final):
            return
        message = f"The steps up to {end.label}, after the last parallel step, run in the training loop."
        if plan.options.experimental_optimization.inject_prefetch:  # otherwise they would run ahead
            message += " Their functions may have side effects, so penstock does not run them ahead without prefetch()."
    elif all(_is_in_memory(node) for node in end.walk() if isinstance(node, Scan)):
        return
    else:
        message = f"All steps up to {end.label} run in the training loop: they alternate with the training step."
    yield Finding(
        end,
        message,
        ".prefetch(ps.AUTOTUNE)",
        "Add it as the last step: the next batches are then computed while the loop works on this one.",
    )


def _is_in_memory(scan: Scan) -> bool:
    source = scan.source
    while isinstance(source, SlicedSource):
        source = source.inner
    return isinstance(source, (ArraysSource, RangeSource))
