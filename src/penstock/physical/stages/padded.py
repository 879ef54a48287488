"""Batches of elements of different shapes: padded, ragged or sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, shape_mismatch
from penstock.block.spec import LeafSpec, Shape
from penstock.block.structure import Structure
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import Context, DataLossError, InvalidArgumentError, InvalidTypeError
from penstock.physical.stacking import check_one_rank, extents_of, flat_values, rank_of, shapes_of, stack_each
from penstock.physical.stages.batch import stack_block, stack_column
from penstock.physical.stages.grouped import Stack
from penstock.plan.batching import PaddedBatch, RaggedBatch, SparseBatch, wrong_rank
from penstock.plan.ops import BatchNode
from penstock.plan.packing import open_spec

_SMALL = 2048  # bytes of an element below which one scatter for all is faster than one copy for each

Paddings = Callable[[Structure, list[LeafSpec]], Sequence[tuple[Shape, Any]]]


class Padder:
    """Pads and stacks every `size` elements of the Blocks of one stream.

    `paddings` returns the shape and the value of each component. A shape has None for a dimension that is as long as
    the longest element. A value is a numpy scalar of the component's dtype, or bytes. An open first extent is rounded
    up to a multiple of `multiple`.

    Calls raise DataLossError if an element is larger than its shape.
    """

    def __init__(self, paddings: Paddings, multiple: int = 1) -> None:
        self._paddings = paddings
        self._multiple = multiple
        self._structure: Structure | None = None
        self._found: Sequence[tuple[Shape, Any]] = ()

    def __call__(self, block: Block, size: int) -> Block:
        if self._structure is None or block.structure != self._structure:  # dict keys may change their order
            specs = [open_spec(column.slice(0, 1).spec()) for column in block.columns]  # extents may differ later
            self._found = self._paddings(block.structure, specs)
            self._structure = block.structure

        def stack(number: int, column: Column, path: str) -> Column:
            shape, value = self._found[number]
            return _pad(column, size, self._rounded(column, shape), value, path)

        return stack_each(block, size, stack)

    def _rounded(self, column: Column, shape: Shape) -> Shape:
        if self._multiple == 1 or not shape or shape[0] is not None:
            return shape
        extents = extents_of(column)
        assert extents is not None
        return (-(-int(extents.max()) // self._multiple) * self._multiple, *shape[1:])


def _pad(column: Column, size: int, shape: Shape, value: Any, path: str) -> Column:
    if isinstance(column, ListColumn):
        parts = [_pad_items(column.items[at : at + size], shape, value, path) for at in range(0, len(column), size)]
        if len(parts) == 1:
            return parts[0]
        return ListColumn([part.values()[0] for part in parts])
    assert isinstance(column, (DenseColumn, BytesColumn))
    have = column.array.shape[1:] if isinstance(column, DenseColumn) else column.starts.shape[1:]
    target = _target(np.array([have], np.int64).reshape(1, -1), shape, path)
    if target != have:
        column = _widened(column, target, value)
    batched = column.batched(size)
    assert batched is not None
    return batched


def _target(shapes: np.ndarray, shape: Shape, path: str) -> tuple[int, ...]:
    """Return the shape that all elements are padded to. `shapes` has one row per element."""
    if len(shape) != shapes.shape[1]:
        component = f"component {path}" if path else "the element"
        message = f"padded_shapes has {len(shape)} dimensions, {shape}, and {component} has {shapes.shape[1]}."
        raise InvalidArgumentError(message)
    longest = shapes.max(axis=0).tolist()
    target = tuple(most if wanted is None else wanted for most, wanted in zip(longest, shape, strict=True))
    if any(most > wanted for most, wanted in zip(longest, target, strict=True)):
        row = int(np.flatnonzero((shapes > np.array(target)).any(axis=1))[0])
        component = f" in component {path}" if path else ""
        found = tuple(shapes[row].tolist())
        message = f"Element {row} of the batch has shape {found}{component}, larger than padded_shapes {shape}."
        hint = "Padding never cuts: give a larger size, None for as long as the longest, or crop in a map."
        raise DataLossError(message, hint=hint, context=Context(element=row))
    return target


def _widened(column: DenseColumn | BytesColumn, target: tuple[int, ...], value: Any) -> DenseColumn | BytesColumn:
    """Pad elements of one shape to a larger one."""
    count = len(column)
    if isinstance(column, DenseColumn):
        array = ARENA.empty((count, *target), column.array.dtype)
        array.fill(value)
        array[_corner(column.array.shape)] = column.array
        return DenseColumn(array)
    corner = _corner(column.starts.shape)
    buffers, filler = _with_filler(column.buffers, value)
    which = np.full((count, *target), filler, np.int32)
    which[corner] = 0 if column.which is None else column.which
    starts = np.zeros((count, *target), np.int64)
    starts[corner] = column.starts
    lengths = np.full((count, *target), len(value), np.int64)
    lengths[corner] = column.lengths
    return BytesColumn(buffers, starts, lengths, which if len(buffers) > 1 else None)


def _with_filler(buffers: tuple[np.ndarray, ...], value: bytes) -> tuple[tuple[np.ndarray, ...], int]:
    """Return the buffers with one for the padding, and its index. Empty padding needs no buffer."""
    if not value:
        return buffers, 0
    return (*buffers, np.frombuffer(value, np.uint8)), len(buffers)


def _corner(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(0, extent) for extent in shape)


def _pad_items(items: list[Any], shape: Shape, value: Any, path: str) -> DenseColumn | BytesColumn:
    """Return arrays of different shapes as the only element of a column."""
    check_one_rank(items, path)
    first = items[0]
    if not isinstance(first, np.ndarray):
        message = f"padded_batch pads arrays, {f'component {path}' if path else 'the element'} is a "
        message += f"{type(first).__name__}."
        raise InvalidTypeError(message)
    shapes = shapes_of(items, first.ndim)
    target = _target(shapes, shape, path)
    if first.dtype == object:
        return _pad_strings(items, shapes, target, value)
    out = ARENA.empty((1, len(items), *target), first.dtype)
    if out.nbytes < _SMALL * len(items):
        out.fill(value)
        out[0][_inside(shapes, target)] = np.concatenate([item.reshape(-1) for item in items])
        return DenseColumn(out)
    for row, item in enumerate(items):
        if item.shape != target:
            out[0, row] = value
        out[0, row][_corner(item.shape)] = item
    return DenseColumn(out)


def _pad_strings(items: list[Any], shapes: np.ndarray, target: tuple[int, ...], value: bytes) -> BytesColumn:
    strings = BytesColumn.from_values([value, *(string for item in items for string in item.reshape(-1).tolist())])
    inside = _inside(shapes, target)
    starts = np.full(inside.shape, strings.starts[0], np.int64)
    starts[inside] = strings.starts[1:]
    lengths = np.full(inside.shape, len(value), np.int64)
    lengths[inside] = strings.lengths[1:]
    return BytesColumn(strings.buffers, starts[None], lengths[None])


def _inside(shapes: np.ndarray, target: tuple[int, ...]) -> np.ndarray:
    """Return the mask of positions in the stacked array that contain values of elements, in C order."""
    inside: Any = True
    for axis, extent in enumerate(target):
        dims = [1] * len(target)
        dims[axis] = extent
        inside = inside & (np.arange(extent) < shapes[:, axis, None]).reshape(len(shapes), *dims)
    return inside


def ragged_block(block: Block, size: int, dims: dict[str, int], row_splits_dtype: Any) -> Block:
    """Join every `size` elements to one, with the first `dims[path]` dimensions of a component ragged.

    For a component without entry in `dims`, all dimensions are ragged. Components without ragged dimensions are stacked
    as in `batch`.
    """

    def stack(_: int, column: Column, path: str) -> Column:
        rank = rank_of(column)
        depth = dims.get(path, rank)
        parts = [column.slice(at, at + size) for at in range(0, len(column), size)] if depth else []
        if parts:
            return ListColumn([_ragged(part, depth, row_splits_dtype, path) for part in parts])
        batched = column.batched(size)
        return stack_column(column, path) if batched is None else batched

    return stack_each(block, size, stack)


def _ragged(column: Column, depth: int, row_splits_dtype: Any, path: str) -> RaggedTensor:
    flat, shapes = flat_values(column)
    trailing = shapes[:, depth:]
    if (trailing != trailing[0]).any():
        row = int(np.flatnonzero((trailing != trailing[0]).any(axis=1))[0])
        raise shape_mismatch(row, tuple(shapes[row].tolist()), tuple(shapes[0].tolist()), path)
    values: Any = flat.reshape(int(np.prod(shapes[:, :depth], axis=1).sum()), *trailing[0].tolist())
    for axis in reversed(range(depth)):
        lengths = np.repeat(shapes[:, axis], np.prod(shapes[:, :axis], axis=1, dtype=np.int64))
        values = RaggedTensor.from_row_lengths(values, lengths.astype(row_splits_dtype, copy=False))
    return values


class Sparser:
    """Runs `sparse_block` on Blocks of one stream. `check` checks the kind of the first Block."""

    def __init__(self, row_shape: Shape, check: Callable[[Structure, list[LeafSpec]], None]) -> None:
        self._row_shape = row_shape
        self._check = check
        self._checked = False

    def __call__(self, block: Block, size: int) -> Block:
        if not self._checked:
            self._check(block.structure, [column.slice(0, 1).spec() for column in block.columns])
            self._checked = True
        return sparse_block(block, size, self._row_shape)


def sparse_block(block: Block, size: int, row_shape: Shape) -> Block:
    """Join every `size` arrays to one sparse tensor that contains all their values, including zeros.

    `row_shape` is the shape of a row; None means the longest element.

    Raises:§DataLossError: If an element is larger.
    """

    def stack(_: int, column: Column, path: str) -> Column:
        parts = [column.slice(at, at + size) for at in range(0, len(column), size)]
        return ListColumn([_sparse(part, row_shape) for part in parts])

    return stack_each(block, size, stack)


def _sparse(column: Column, row_shape: Shape) -> SparseTensor:
    rank = rank_of(column)
    if rank:
        values, shapes = flat_values(column)
    else:
        values, shapes = _scalars(column), np.empty((len(column), 0), np.int64)
    if len(row_shape) != shapes.shape[1]:  # another rank than in the first batch
        raise wrong_rank(row_shape, shapes.shape[1])
    longest = shapes.max(axis=0).tolist()
    shape = [most if dim is None else dim for most, dim in zip(longest, row_shape, strict=True)]
    if any(most > dim for most, dim in zip(longest, shape, strict=True)):
        row = int(np.flatnonzero((shapes > np.array(shape)).any(axis=1))[0])
        message = f"Element {row} of the batch has shape {tuple(shapes[row].tolist())}, larger than row_shape "
        message += f"{row_shape}."
        hint = "Give a larger size, or None for as long as the longest."
        raise DataLossError(message, hint=hint, context=Context(element=row))
    return SparseTensor(_positions(shapes), values, np.array([len(shapes), *shape], np.int64))


def _scalars(column: Column) -> np.ndarray:
    if isinstance(column, DenseColumn):
        return column.array
    found = np.empty(len(column), object)
    found[:] = column.values()
    return found


def _positions(shapes: np.ndarray) -> np.ndarray:
    """Return (row, position in the row) of every value of arrays of the given shapes, in C order."""
    sizes = np.prod(shapes, axis=1, dtype=np.int64)
    found = np.empty((int(sizes.sum()), 1 + shapes.shape[1]), np.int64)
    found[:, 0] = np.repeat(np.arange(len(sizes)), sizes)
    rank = shapes.shape[1]
    if not rank:
        return found
    left = np.arange(len(found)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    for axis in range(rank - 1, 0, -1):
        left, found[:, 1 + axis] = np.divmod(left, np.repeat(shapes[:, axis], sizes))
    found[:, 1] = left
    return found


def stack_of(node: BatchNode) -> Stack:
    """Return the function that joins the elements of each batch of a step."""
    match node:
        case PaddedBatch():
            return Padder(node.paddings)
        case RaggedBatch():
            return partial(ragged_block, dims=node.ragged_dims(), row_splits_dtype=node.row_splits_dtype)
        case SparseBatch():
            return Sparser(node.row_shape, node.check)
    return stack_block
