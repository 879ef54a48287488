"""Checks of what runs beside what: work that could and does not, and steps that wait for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.functions.uses import keeps_state
from penstock.plan.batching import BatchNode
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, Node, function_name
from penstock.plan.ops import Batch, Interleave, Map, Prefetch
from penstock.plan.visible import on_workers, shown_ahead
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call, calls
from penstock.profiler.lint.inspection import Inspection, element_bytes, has_bytes
from penstock.profiler.lint.names import reads_files
from penstock.profiler.lint.natures import randomness, work
from penstock.rewrite.rules.inject_prefetch import has_workers, is_ahead, must_stay
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.source import SlicedSource

_GROUPS = (Batch, BatchNode)


def idle_prefetch(plan: Inspection) -> Iterator[Advice]:
    """Prefetch(m)·Prefetch(n), and Batch·Prefetch(n)·Map(f, parallel)."""
    for node in plan.written.walk():
        yield from _in(node)


def _in(node: Node) -> Iterator[Advice]:
    if isinstance(node, Prefetch) and isinstance(node.input, Prefetch):
        yield Advice.on(
            node.input,
            "idle-prefetch",
            "speed",
            f"{node.input.label} is followed by {node.label}: one buffer hands to the next.",
            calls([node]),
            "One buffer does the same with one hand-over less.",
        )
    if not isinstance(node, Batch) or not isinstance(node.input, Prefetch) or node.input.buffer_size == 0:
        return
    prefetch, mapped = node.input, node.input.input
    if isinstance(mapped, Map) and mapped.num_parallel_calls is not None:
        yield Advice.on(
            prefetch,
            "idle-prefetch",
            "speed",
            f"{prefetch.label} keeps the workers of {mapped.label} from writing into the memory of {node.label}.",
            calls([mapped, node, prefetch]),
            "They are ahead without it. After the batch, it makes whole batches ahead.",
        )


_NARROW = 32  # elements ahead, below which handing one over costs more than a µs
_SMALL = 1 << 12  # bytes of an element that is made in a few µs


def narrow_prefetch(plan: Inspection) -> Iterator[Advice]:
    """Prefetch(n)·x, where n is a few, and elements are small and no batches."""
    for node, above in plan.each(Prefetch):
        spec = node.input.spec
        size = element_bytes(spec)
        if not 0 < node.buffer_size < _NARROW or size is None or size > _SMALL or has_bytes(spec):
            continue
        others = [each for each in (*above, *node.input.walk()) if on_workers(each)]  # of which other advice is
        if others or any(isinstance(each, _GROUPS) for each in node.input.walk()) or shown_ahead(node.input):
            continue
        yield Advice.on(
            node,
            "narrow-prefetch",
            "speed",
            f"{node.label} lets small elements go over to the loop's thread one by one, for up to 50 µs each.",
            call(replace(node, buffer_size=AUTOTUNE)),
            "As many are ahead then as come to some megabytes, and go over together. A number is meant for batches: "
            f".batch(32){call(node)} has {node.buffer_size} of these ahead.",
        )


_DEFAULT = 16  # nobody asked for it


def idle_cycle(plan: Inspection) -> Iterator[Advice]:
    """Interleave(f, cycle_length=n) over 2 to n - 1 files, n being of the user's choice."""
    for node, _ in plan.asked(Interleave):
        count = node.input.cardinality
        if 1 < count < node.cycle_length != _DEFAULT and reads_files(node):
            yield Advice.on(
                node,
                "idle-cycle",
                "speed",
                f"cycle_length={node.cycle_length} asks for more inputs in turn than there are files: {count}.",
                call(replace(node, cycle_length=count)),
                "The order stays as it is. To read more at a time, write the data into more files.",
            )


def one_file(plan: Inspection) -> Iterator[Advice]:
    """Interleave(f)·x, where x is the name of one file."""
    for node, _ in plan.asked(Interleave):
        if node.input.cardinality == 1 and node.cycle_length > 1 and reads_files(node):
            yield Advice.on(
                node,
                "one-file",
                "speed",
                f"interleave reads one file: of {node.cycle_length} inputs in turn, one is there.",
                f"ps.{function_name(node.function)}(file)"
                if function_name(node.function).endswith("Dataset")
                else "ps.io.TFRecordWriter(...), one for each of several files",
                "To have reading overlap and records mix, write the data into several files; for one, leave out "
                "interleave.",
            )


def sequential_maps(plan: Inspection) -> Iterator[tuple[Map, str, str]]:
    """Maps without num_parallel_calls that work outside the interpreter's lock, what they do, and how it is spelled."""
    for mapped, _ in plan.each(Map):
        chosen = mapped.num_parallel_calls is not None or mapped.executor == "inline"
        found = None if chosen else work(mapped.function)
        if found is not None and not keeps_state(mapped.function):
            yield mapped, *found


def sequential_interleaves(plan: Inspection) -> Iterator[Interleave]:
    """Interleaves of several files without num_parallel_calls."""
    for node, _ in plan.each(Interleave):
        if node.num_parallel_calls is None and node.input.cardinality not in (0, 1) and reads_files(node):
            yield node


def sequential_interleave(plan: Inspection) -> Iterator[Advice]:
    """Interleave(f) over several files without num_parallel_calls."""
    for node in sequential_interleaves(plan):
        yield Advice.on(
            node,
            "sequential-interleave",
            "speed",
            f"{node.label} opens and reads files in the thread that asks for the next record.",
            call(replace(node, num_parallel_calls=AUTOTUNE)),
            "Files are then opened and read ahead, and the order stays as it is.",
        )


def sequential_map(plan: Inspection) -> Iterator[Advice]:
    """Map(f) without num_parallel_calls, where f is known to work outside the interpreter's lock."""
    for mapped, does, spelled in sequential_maps(plan):
        draws = randomness(mapped.function)
        note = "Several calls then run at once, and the order stays as it is."
        if draws is not None:
            note += f" Which element gets which random numbers of {draws} then depends on timing."
        yield Advice.on(
            mapped,
            "sequential-map",
            "speed",
            f"{mapped.label} {does} ({spelled}), one element after the other.",
            call(replace(mapped, num_parallel_calls=AUTOTUNE)),
            note,
        )


def no_prefetch(plan: Inspection) -> Iterator[Advice]:
    """A plan of batches whose end runs in the loop: nothing is parallel, or its end is not to run ahead unasked."""
    end = plan.written
    if not any(isinstance(node, _GROUPS) for node in end.walk()) or _becomes_parallel(plan):
        return
    if has_workers(plan.final):
        if is_ahead(plan.final) or must_stay(plan.final):
            return
        message = f"The steps up to {end.label}, after the last parallel step, run in the training loop."
        if plan.options.experimental_optimization.inject_prefetch:  # else they would be ahead
            message += (
                " Their functions may have side effects, and the pipeline does not ask for elements ahead of time."
            )
    elif all(_is_in_memory(node) for node in end.walk() if isinstance(node, Scan)):
        return
    else:
        message = f"All steps up to {end.label} run in the training loop: reading and training take turns."
    yield Advice.on(
        end,
        "no-prefetch",
        "speed",
        message,
        ".prefetch(ps.AUTOTUNE)",
        "As the last step: the next batches are then made while the loop works on this one.",
    )


def _becomes_parallel(plan: Inspection) -> bool:
    """Whether other advice makes a step parallel: what follows it is then ahead of the loop, or advised to be."""
    return any(sequential_maps(plan)) or any(sequential_interleaves(plan))


def _is_in_memory(scan: Scan) -> bool:
    source = scan.source
    while isinstance(source, SlicedSource):
        source = source.inner
    return isinstance(source, (ArraysSource, RangeSource))
