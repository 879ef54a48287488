"""The meaning of a plan in plain Python: generators over single elements, no Blocks, no threads, no rewrites.

`run(plan, options, epoch)` yields what every executor has to give. It shares two things with the engine: the node
classes, which say what to compute, and `penstock.keys`, which says what the random numbers are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import singledispatch
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tests.generated import modules

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.keys import draw, fold
from penstock.options import Options
from penstock.plan import fused, inputs, ops
from penstock.plan.counted import Unbatch
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.plan.storing import Cache
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.generator import GeneratorSource
from penstock.sources.records import RecordsSource
from penstock.sources.source import SlicedSource


@dataclass(frozen=True)
class Context:
    """What a step needs to know beside its node: options, the epoch, and the caches filled so far."""

    options: Options
    epoch: int = 0
    kept: dict[int, list[Any]] = field(default_factory=dict)

    def in_epoch(self, epoch: int) -> Context:
        return replace(self, epoch=epoch)


def run(plan: Node, options: Options, epoch: int = 0) -> Iterator[Any]:
    """The elements of a plan in their order."""
    modules()  # register what they define
    return elements(plan, Context(options, epoch))


@singledispatch
def elements(node: Any, context: Context) -> Iterator[Any]:
    raise AssertionError(f"the reference does not know {type(node).__name__}")


# -- values


def value_of(nest: Any) -> Any:
    """What a user's function returned, as an element: literals become numpy values, arrays are copied."""
    if isinstance(nest, tuple):
        parts = [value_of(part) for part in nest]
        return type(nest)(*parts) if hasattr(nest, "_fields") else tuple(parts)
    if isinstance(nest, Mapping):
        return {name: value_of(part) for name, part in nest.items()}
    if is_dataclass(nest) and not isinstance(nest, (SparseTensor, RaggedTensor)):
        return type(nest)(**{f.name: value_of(getattr(nest, f.name)) for f in fields(nest) if f.init})
    return leaf_of(nest)


def leaf_of(value: Any) -> Any:
    if isinstance(value, (bytes, SparseTensor, RaggedTensor)) or hasattr(type(value), "__penstock_dataset__"):
        return value
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, np.generic):
        return value
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float32(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        array = np.array(value)
        return array.astype(np.float32) if array.dtype == np.float64 else array
    assert isinstance(value, np.ndarray), f"{value!r} is no leaf"
    return value.copy() if value.ndim else value[()]


def call(function: Any, element: Any) -> Any:
    """A user's function gets the parts of a plain tuple as arguments."""
    return function(*element) if type(element) is tuple else function(element)


def leaves_of(element: Any, like: Any) -> list[Any]:
    """The leaves in the order of `like`, which may have its dict keys in another one."""
    if isinstance(element, tuple):
        return [leaf for part, other in zip(element, like, strict=True) for leaf in leaves_of(part, other)]
    if isinstance(element, Mapping):
        return [leaf for name in like for leaf in leaves_of(element[name], like[name])]
    if is_dataclass(element) and not isinstance(element, (SparseTensor, RaggedTensor)):
        names = [f.name for f in fields(element) if f.init]
        return [leaf for name in names for leaf in leaves_of(getattr(element, name), getattr(like, name))]
    return [element]


def rebuilt(like: Any, leaves: Iterator[Any]) -> Any:
    """The nest of `like` around other leaves."""
    if isinstance(like, tuple):
        parts = [rebuilt(part, leaves) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
    if isinstance(like, Mapping):
        return {name: rebuilt(part, leaves) for name, part in like.items()}
    if is_dataclass(like) and not isinstance(like, (SparseTensor, RaggedTensor)):
        return type(like)(**{f.name: rebuilt(getattr(like, f.name), leaves) for f in fields(like) if f.init})
    return next(leaves)


def stacked(parts: list[Any]) -> Any:
    columns = zip(*[leaves_of(part, parts[0]) for part in parts], strict=True)
    return rebuilt(parts[0], iter([stacked_leaves(list(column)) for column in columns]))


def stacked_leaves(leaves: list[Any]) -> Any:
    first = leaves[0]
    if isinstance(first, bytes):
        found = np.empty(len(leaves), object)
        found[:] = leaves
        return found
    if isinstance(first, (SparseTensor, RaggedTensor)):
        return type(first).stack(leaves)
    if isinstance(first, np.generic):
        return np.array(leaves, first.dtype)
    return np.stack(leaves)


# -- sources


@elements.register
def _(node: Scan, context: Context) -> Iterator[Any]:
    source = node.source
    if isinstance(source, RangeSource):
        for number in source.range:
            yield np.array(number).astype(source.dtype)[()]
    elif isinstance(source, ArraysSource):
        columns = [column.values() for column in source.columns]
        for row in range(source.size):
            yield source.structure.build([column[row] for column in columns])
    elif isinstance(source, GeneratorSource):
        for element in source.function(*source.args):
            yield value_of(element)
    elif isinstance(source, SlicedSource):
        yield from islice(elements(Scan(source=source.inner), context), source.start, source.stop, source.step)
    else:
        yield from source_elements(source)


@singledispatch
def source_elements(source: Any) -> Iterator[Any]:
    raise AssertionError(f"the reference does not know {type(source).__name__}")


@source_elements.register
def _(source: RecordsSource) -> Iterator[bytes]:
    assert not source.compression_type
    for name in source.files:
        yield from _records(Path(name).read_bytes())


def _records(content: bytes) -> Iterator[bytes]:
    """TFRecord framing: length (uint64), its checksum, the record, its checksum."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        yield content[at + 12 : at + 12 + length]
        at += 16 + length


# -- steps with one input


@elements.register
def _(node: ops.Map, context: Context) -> Iterator[Any]:
    for element in elements(node.input, context):
        yield value_of(call(node.function, element))


@elements.register
def _(node: ops.Filter, context: Context) -> Iterator[Any]:
    return (element for element in elements(node.input, context) if call(node.predicate, element))


@elements.register
def _(node: fused.FusedMap, context: Context) -> Iterator[Any]:
    below: Node = node.input
    for step in node.steps:
        below = replace(step, input=below)
    return elements(below, context)


@elements.register
def _(node: fused.MapAndBatch, context: Context) -> Iterator[Any]:
    below: Node = node.input
    for step in node.steps:
        below = replace(step, input=below)
    return elements(replace(node.batch, input=below), context)


@elements.register
def _(node: ops.Batch, context: Context) -> Iterator[Any]:
    below = elements(node.input, context)
    while parts := list(islice(below, node.batch_size)):
        if len(parts) == node.batch_size or not node.drop_remainder:
            yield stacked(parts)


@elements.register
def _(node: Unbatch, context: Context) -> Iterator[Any]:
    for element in elements(node.input, context):
        leaves = leaves_of(element, element)
        for row in range(len(leaves[0])):
            yield rebuilt(element, iter([leaf[row] for leaf in leaves]))


@elements.register
def _(node: ops.Shuffle, context: Context) -> Iterator[Any]:
    key = fold(context.options.seed, node.salt) if node.seed is None else fold(node.seed, 0)
    if node.reshuffle_each_iteration:
        key = fold(key, context.epoch)
    number = count_from()
    buffer: list[Any] = []
    for element in elements(node.input, context):
        if len(buffer) < node.buffer_size:
            buffer.append(element)
            continue
        slot = draw(key, next(number), node.buffer_size)
        yield buffer[slot]
        buffer[slot] = element
    while buffer:
        slot = draw(key, next(number), len(buffer))
        yield buffer[slot]
        buffer[slot] = buffer[-1]
        buffer.pop()


@elements.register
def _(node: ops.Repeat, context: Context) -> Iterator[Any]:
    """For ever goes on after an epoch without elements, unless nothing has ever come."""
    gave = False
    for turn in count_from() if node.count < 0 else range(node.count):
        if node.count > 0:
            epoch = context.epoch * node.count + turn
        else:
            epoch = fold(context.epoch, turn) if context.epoch else turn
        for element in elements(node.input, context.in_epoch(epoch)):
            gave = True
            yield element
        if node.count < 0 and not gave:
            return


@elements.register
def _(node: ops.Take, context: Context) -> Iterator[Any]:
    return islice(elements(node.input, context), None if node.count < 0 else node.count)


@elements.register
def _(node: ops.Skip, context: Context) -> Iterator[Any]:
    return iter(()) if node.count < 0 else islice(elements(node.input, context), node.count, None)


@elements.register
def _(node: ops.Shard, context: Context) -> Iterator[Any]:
    return islice(elements(node.input, context), node.index, None, node.num_shards)


@elements.register
def _(node: ops.Enumerate, context: Context) -> Iterator[Any]:
    for number, element in enumerate(elements(node.input, context), node.start):
        yield np.int64(number), element


@elements.register
def _(node: ops.Prefetch, context: Context) -> Iterator[Any]:
    return elements(node.input, context)


@elements.register
def _(node: Cache, context: Context) -> Iterator[Any]:
    """Epoch 0 of the input, whichever epoch it is read in; kept by the first pass that comes to the end."""
    key = id(node.store)
    if key in context.kept:
        yield from context.kept[key]
        return
    seen = []
    for element in elements(node.input, context.in_epoch(0)):
        seen.append(element)
        yield element
    context.kept[key] = seen


# -- data sets of data sets


def _inner(node: ops.FlatMap | ops.Interleave, context: Context, element: Any, number: int) -> Iterator[Any]:
    dataset = call(node.function, element)
    epoch = fold(context.epoch, number) if number else context.epoch
    return elements(dataset._plan, context.in_epoch(epoch))


@elements.register
def _(node: ops.FlatMap, context: Context) -> Iterator[Any]:
    for number, element in enumerate(elements(node.input, context)):
        yield from _inner(node, context, element, number)


@elements.register
def _(node: ops.Interleave, context: Context) -> Iterator[Any]:
    """tf.data's order.

    The turn stays with a slot for `block_length` elements and passes on early, its count starting anew, when the
    slot's input ends. A free slot takes the next input when its turn comes.
    """
    outer = enumerate(elements(node.input, context))
    slots: list[Iterator[Any] | None] = [None] * node.cycle_length
    turn = given = 0
    nothing = object()
    ended = False
    while True:
        if slots[turn] is None and not ended:
            following = next(outer, None)
            if following is None:
                ended = True
            else:
                slots[turn] = _inner(node, context, following[1], following[0])
        if ended and not any(slots):
            return
        slot = slots[turn]
        element = nothing if slot is None else next(slot, nothing)
        if element is nothing:
            slots[turn] = None
            turn, given = (turn + 1) % node.cycle_length, 0
            continue
        yield element
        given += 1
        if given == node.block_length:
            turn, given = (turn + 1) % node.cycle_length, 0


# -- steps with several inputs


@elements.register
def _(node: inputs.Zip, context: Context) -> Iterator[Any]:
    streams = [elements(part, context) for part in node.parts]
    for row in zip(*streams, strict=False):
        yield node.structure.build(row)


@elements.register
def _(node: inputs.Concatenate, context: Context) -> Iterator[Any]:
    for part in node.parts:
        yield from elements(part, context)
