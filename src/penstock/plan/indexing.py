"""Steps: the order of a whole data set drawn at once, and elements with where they were read.

Provenance is what stands beside such an element.
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
    """`(element, Provenance)` for every element."""
    origin = _unknown(block.size) if block.origin is None else block.origin
    structure = nest(_PAIR, [block.structure, _FIELDS])
    position = np.full_like(origin.offset, -1) if origin.position is None else origin.position
    fields = [_names(origin), DenseColumn(origin.offset), DenseColumn(position)]
    if (origin.file == NOBODY).any():
        fields = [_cut(field, origin.sizes()) for field in fields]
    return block.with_columns(structure, [*block.columns, *fields])


def _cut(column: Column, sizes: list[tuple[int, ...]]) -> Column:
    """Each element less what is there for larger ones."""
    corners = [tuple(slice(size) for size in element) for element in sizes]
    return ListColumn([value[corner] for value, corner in zip(column.values(), corners, strict=True)])


def _unknown(size: int) -> Origin:
    return Origin.of_source("", np.full(size, -1))


def _names(origin: Origin) -> Column:
    """The file of each element; all point into one buffer of names."""
    names = [*map(os.fsencode, origin.files), b""]  # which NOBODY, the last one, has
    lengths = np.array([len(name) for name in names], np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(b"".join(names), np.uint8)
    return BytesColumn((buffer,), starts[origin.file], lengths[origin.file])


_BUFFER = 1 << 28  # bytes that a buffer of AUTOTUNE's may hold, if elements are what their spec says
_UNKNOWN = 1 << 17  # bytes that stand for all parts of an element whose size no spec tells: an encoded picture
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
    """All elements in an order drawn from all orders; the input is read by the numbers of its elements.

    `salt` is what it is for `ops.Shuffle`.
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
        """That of the steps below, which run by number here, a Block of elements on each worker.

        None where a cache keeps what they made: it stays in this process, and only has to be looked up. Also where a
        step that is not parallel calls what somebody could see: that is called in one thread, one element at a time.
        """
        if any(isinstance(node, Cache) for node in self.input.walk()):
            return None
        below = [getattr(node, "num_parallel_calls", None) for node in self.input.walk()]
        below += [node.steps[0].num_parallel_calls for node in self.input.walk() if isinstance(node, MapAndBatch)]
        wanted = [number for number in below if number is not None]
        if not wanted:
            return None
        from penstock.plan.visible import on_workers, shown  # which knows this class

        if any(shown(node) for node in self.input.walk() if not on_workers(node)):
            return None
        return AUTOTUNE if AUTOTUNE in wanted else max(wanted)


class Split(GlobalShuffle):
    """The elements of the input that have these numbers, in their order; `numbers` are the bytes of an int64 array."""

    numbers: bytes = b""

    name: ClassVar[str] = "split"

    @property
    def label(self) -> str:
        return f"split({self.cardinality})"

    @property
    def cardinality(self) -> int:
        return len(self.numbers) // 8


def globally_shuffled(plan: Node, **parameters: Any) -> Node:
    """The plan with all its elements in random order: numbers are shuffled, and maps run on what they then give.

    A map gives one element for each, so that shuffling its input shuffles its output, and it can stay parallel.
    """
    if isinstance(plan, (Map, Prefetch)):
        return plan.with_inputs((globally_shuffled(plan.input, **parameters),))
    return GlobalShuffle(input=plan, **parameters)


def is_endless(plan: Node) -> bool:
    """Whether a plan that can be read by number has no last element; lengths are asked for only where it repeats."""
    repeats = any(isinstance(node, Repeat) and node.count < 0 for node in plan.walk())
    return repeats and plan.cardinality == INFINITE_CARDINALITY


def unwieldy(plan: Node) -> tuple[Node, str] | None:
    """The step for which a plan that can be read by number is not to be shuffled so, and why; None if there is none."""
    if is_endless(plan):
        return plan, "never ends"
    scan = _below(plan, lambda node: isinstance(node, Scan) and node.source.costly_by_number is not None)
    if isinstance(scan, Scan) and scan.source.costly_by_number is not None:
        return scan, scan.source.costly_by_number
    unbatch = _below(plan, lambda node: isinstance(node, Unbatch))
    return None if unbatch is None else (unbatch, "makes a whole batch for one element")


def _below(plan: Node, wanted: Callable[[Node], bool]) -> Node | None:
    """A step between here and the sources, or the nearest caches, that is `wanted`."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if wanted(node):
            return node
        if not isinstance(node, Cache):
            waiting += reversed(node.inputs)
    return None


def autotuned_buffer(plan: Node, obstacle: str) -> Chosen:
    """Size of the buffer that `shuffle(AUTOTUNE)` has over a plan, where `obstacle` is why it needs one.

    It follows from the plan alone: 256 MiB of elements as their spec says, 16 to 65536 of them, at most as many as
    there are. Parts of unknown size count 128 KiB together, in a batch for each of its elements. So does what functions
    return: what is known of that depends on how well they were understood.
    """
    known, is_whole = known_bytes(None if any(isinstance(node, Map) for node in plan.walk()) else plan.spec)
    nbytes = known if is_whole else known + _UNKNOWN * _grouped(plan)
    size = min(max(_BUFFER // max(nbytes, 1), _LEAST), _MOST)
    reason = f"256 MiB of {known} bytes each" if is_whole else "for elements of unknown size"
    if size in (_LEAST, _MOST):
        reason = "the least" if size == _LEAST else "the most"
    if 0 <= plan.cardinality <= size:
        size, reason = max(plan.cardinality, 1), "all of them"
    return Chosen(size, f"a buffer of {size}, {reason}, because {obstacle}")


def _grouped(plan: Node) -> int:
    """How many elements batches have put into one."""
    if isinstance(plan, Unbatch):
        return 1
    size = getattr(plan, "batch_size", 1)
    return size * max(map(_grouped, plan.inputs), default=1) if isinstance(size, int) else 1


class WithProvenance(UnaryNode):
    """`(element, Provenance)` for every element."""

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
    """The shape of what is known of an element's origin: an axis for every batch it was put in; None if unknown."""
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
