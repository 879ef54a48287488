"""Steps: shuffle of a whole data set by index, and elements with the place from which they were read.

`Provenance` is this place.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import NOBODY, Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF, Structure, flatten, known_bytes, nest
from penstock.plan.counted import Unbatch
from penstock.plan.fused import MapAndBatch
from penstock.plan.inputs import Scan, Zip
from penstock.plan.node import AUTOTUNE, INFINITE_CARDINALITY, Node, UnaryNode, check_seed
from penstock.plan.ops import Batch, Chosen, Enumerate, Filter, Map, Prefetch, Repeat, Shard, Shuffle, Skip, Take
from penstock.plan.step_effects import on_workers, shown
from penstock.plan.storing import Cache


class Provenance(NamedTuple):
    """Place that an element was read from. For a batch, each field is an array with one value for each element.

    Elements that a function computed from several elements have an unknown place: b"", -1 and -1.

    Attributes:
        file: Name of the file as `bytes`, or of the source if it has no file.
        offset: Byte at which the element begins in the file, or -1.
        position: Index of the element, from 0: in the data set if the source has an index, and otherwise in its file.

    Example:
        >>> import penstock as ps
        >>> element, place = next(iter(ps.Dataset.range(10, 20).with_provenance()))
        >>> int(element), int(place.position)
        (10, 0)
    """

    file: Any
    offset: Any
    position: Any


_PAIR = Structure(tuple, (), (LEAF, LEAF), 2)
_FIELDS = flatten(Provenance(0, 0, 0))[1]


def with_provenance(block: Block) -> Block:
    """Return a Block of `(element, Provenance)`."""
    origin = _unknown(block.size) if block.origin is None else block.origin
    structure = nest(_PAIR, [block.structure, _FIELDS])
    position = np.full_like(origin.offset, -1) if origin.position is None else origin.position
    fields = [_names(origin), DenseColumn(origin.offset), DenseColumn(position)]
    if (origin.file == NOBODY).any():
        fields = [_cut(field, origin.sizes()) for field in fields]
    return block.with_columns(structure, [*block.columns, *fields])


def _cut(column: Column, sizes: list[tuple[int, ...]]) -> Column:
    """Return the column with each element cut to its own size, without padding."""
    corners = [tuple(slice(size) for size in element) for element in sizes]
    return ListColumn([value[corner] for value, corner in zip(column.values(), corners, strict=True)])


def _unknown(size: int) -> Origin:
    return Origin.of_source("", np.full(size, -1))


def _names(origin: Origin) -> Column:
    """Return the file name of each element; all names point into one buffer."""
    names = [*map(os.fsencode, origin.files), b""]  # the last name is for NOBODY
    lengths = np.array([len(name) for name in names], np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(b"".join(names), np.uint8)
    return BytesColumn((buffer,), starts[origin.file], lengths[origin.file])


_BUFFER = 1 << 28  # bytes that a buffer chosen by AUTOTUNE may hold, if elements are as large as their spec says
_UNKNOWN = 1 << 17  # bytes assumed for all parts of unknown size of an element, such as an encoded image
_MOST = 1 << 16
_LEAST = 16


class All:
    """The type of `ALL`."""

    def __repr__(self) -> str:
        return "penstock.ALL"

    def __reduce__(self) -> str:
        return "ALL"


ALL: Final = All()
"""Argument of `Dataset.shuffle` that shuffles all elements by index, without a buffer."""


class GlobalShuffle(UnaryNode):
    """All elements in random order. The input is read by index.

    `salt` is as in `ops.Shuffle`.
    """

    seed: int | None = None
    reshuffle_each_iteration: bool = True
    salt: int = -1

    name: ClassVar[str] = "shuffle"

    def __post_init__(self) -> None:
        check_seed(self)

    @property
    def label(self) -> str:
        return "shuffle(ALL)"

    @property
    def num_parallel_calls(self) -> int | None:
        """Number of parallel calls of the steps below, which run by index: each worker computes a Block of elements.

        It is None if a cache stores their results, because the cache is in this process and only has to be read. It is
        also None if a step without parallel calls has side effects: such a step runs in one thread, one element at a
        time.
        """
        if any(isinstance(node, Cache) for node in self.input.walk()):
            return None
        below = [getattr(node, "num_parallel_calls", None) for node in self.input.walk()]
        below += [node.steps[0].num_parallel_calls for node in self.input.walk() if isinstance(node, MapAndBatch)]
        wanted = [number for number in below if number is not None]
        if not wanted:
            return None
        if any(shown(node) for node in self.input.walk() if not on_workers(node)):
            return None
        return AUTOTUNE if AUTOTUNE in wanted else max(wanted)


class Split(GlobalShuffle):
    """The elements of the input with these indices, in this order; `numbers` are the bytes of an int64 array."""

    numbers: bytes = b""

    name: ClassVar[str] = "split"

    @property
    def label(self) -> str:
        return f"split({self.cardinality})"

    @property
    def cardinality(self) -> int:
        return len(self.numbers) // 8


def globally_shuffled(plan: Node, **parameters: Any) -> Node:
    """Return the plan with all elements in random order: indices are shuffled, and maps run on the elements read.

    A map yields one element per input element, so shuffling its input also shuffles its output. The map can stay
    parallel.
    """
    if isinstance(plan, (Map, Prefetch)):
        return plan.with_inputs((globally_shuffled(plan.input, **parameters),))
    return GlobalShuffle(input=plan, **parameters)


def is_endless(plan: Node) -> bool:
    """Return True if a plan with index is infinite. The cardinality is computed only if the plan repeats forever."""
    repeats = any(isinstance(node, Repeat) and node.count < 0 for node in plan.walk())
    return repeats and plan.cardinality == INFINITE_CARDINALITY


def unwieldy(plan: Node) -> tuple[Node, str] | None:
    """Return the step that makes a shuffle by index unsuitable, with the reason, or None."""
    if is_endless(plan):
        return plan, "never ends"
    scan = _below(plan, lambda node: isinstance(node, Scan) and node.source.costly_by_number is not None)
    if isinstance(scan, Scan) and scan.source.costly_by_number is not None:
        return scan, scan.source.costly_by_number
    unbatch = _below(plan, lambda node: isinstance(node, Unbatch))
    return None if unbatch is None else (unbatch, "computes a whole batch for one element")


def _below(plan: Node, wanted: Callable[[Node], bool]) -> Node | None:
    """Return a step for which `wanted` is True, searching down to the sources or the nearest caches."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if wanted(node):
            return node
        if not isinstance(node, Cache):
            waiting += reversed(node.inputs)
    return None


def autotuned_buffer(plan: Node, obstacle: str) -> Chosen:
    """Return the buffer size of `shuffle(AUTOTUNE)` over a plan; `obstacle` is the reason why it needs a buffer.

    The size depends on the plan only: 256 MiB of elements according to their spec, between 16 and 65536 elements, and
    at most the length of the data set. Parts of unknown size count as 128 KiB together, in a batch for each of its
    elements. Results of functions count the same, because what is known about them depends on the tracing.
    """
    known, is_whole = known_bytes(None if any(isinstance(node, Map) for node in plan.walk()) else plan.spec)
    nbytes = known if is_whole else known + _UNKNOWN * _grouped(plan)
    size = min(max(_BUFFER // max(nbytes, 1), _LEAST), _MOST)
    reason = f"256 MiB at {known} bytes per element" if is_whole else "for elements of unknown size"
    if size in (_LEAST, _MOST):
        reason = "the minimum" if size == _LEAST else "the maximum"
    if 0 <= plan.cardinality <= size:
        size, reason = max(plan.cardinality, 1), "all of them"
    return Chosen(size, f"a buffer of {size}, {reason}, because {obstacle}")


def _grouped(plan: Node) -> int:
    """Return the number of elements that batches have joined into one."""
    if isinstance(plan, Unbatch):
        return 1
    size = getattr(plan, "batch_size", 1)
    return size * max(map(_grouped, plan.inputs), default=1) if isinstance(size, int) else 1


class WithProvenance(UnaryNode):
    """Yields `(element, Provenance)` for every element."""

    name: ClassVar[str] = "with_provenance"

    @property
    def spec(self) -> Any:
        shape = _shape(self.input)
        if self.input.spec is None or shape is None:
            return None
        number = TensorSpec(shape, np.int64)
        return self.input.spec, Provenance(TensorSpec(shape, bytes), number, number)


_KEEP = (Cache, Enumerate, Filter, GlobalShuffle, Map, Prefetch, Repeat, Shard, Shuffle, Skip, Take, WithProvenance)


def _shape(node: Node) -> tuple[int | None, ...] | None:
    """Return the shape of an element's origin: one axis for every batch; None if unknown."""
    match node:
        case Scan():
            return ()
        case UnaryNode() if isinstance(node, _KEEP):
            return _shape(node.input)
        case Zip():
            return _shape(node.parts[0])
        case Batch():
            shape = _shape(node.input)
            whole = node.drop_remainder or node.input.cardinality == INFINITE_CARDINALITY
            return None if shape is None else (node.batch_size if whole else None, *shape)
        case Unbatch():
            shape = _shape(node.input)
            return shape[1:] if shape else None
    return None
