"""Reference and generated steps: padded, ragged and sparse batches, rebatch, padding to a number of elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.generated import cardinality
from tests.reference import Context, elements, leaves_of, rebuilt, stacked, stacked_leaves

from penstock.block.structure import flatten
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.plan import batching, ops
from penstock.plan.batching import PadToCardinality

# -- meaning


def groups(node: ops.BatchNode, context: Context) -> Iterator[list[Any]]:
    below = elements(node.input, context)
    while parts := list(islice(below, node.batch_size)):
        if len(parts) == node.batch_size or not node.drop_remainder:
            yield parts


def columns_of(parts: list[Any]) -> list[list[Any]]:
    return [list(column) for column in zip(*[leaves_of(part, parts[0]) for part in parts], strict=True)]


def as_array(leaf: Any) -> np.ndarray:
    if not isinstance(leaf, bytes):
        return np.asarray(leaf)
    found = np.empty((), object)
    found[()] = leaf
    return found


def padded(leaves: list[Any], shape: Sequence[int | None], value: Any) -> np.ndarray:
    arrays = [as_array(leaf) for leaf in leaves]
    sizes = [max(array.shape[i] for array in arrays) if dim is None else dim for i, dim in enumerate(shape)]
    found = np.empty((len(arrays), *sizes), arrays[0].dtype)
    if value is None:
        value = b"" if found.dtype == object else 0
    found[...] = value
    for row, array in enumerate(arrays):
        corner: Any = (row, *[slice(0, extent) for extent in array.shape])
        found[corner] = array if array.ndim else array[()]  # an object array would hold the array
    return found


@elements.register
def _(node: batching.PaddedBatch, context: Context) -> Iterator[Any]:
    for parts in groups(node, context):
        columns = columns_of(parts)
        if node.padded_shapes is None:
            shapes = [[None] * as_array(column[0]).ndim for column in columns]
        else:
            shapes = leaves_of(node.padded_shapes, parts[0])
        values = [padded(column, shape, node.padding_values) for column, shape in zip(columns, shapes, strict=True)]
        yield rebuilt(parts[0], iter(values))


def ragged(arrays: list[np.ndarray], dims: int) -> RaggedTensor:
    lengths = [len(array) for array in arrays]
    if dims == 1:
        return RaggedTensor.from_row_lengths(np.concatenate(arrays), lengths)
    return RaggedTensor.from_row_lengths(ragged([row for array in arrays for row in array], dims - 1), lengths)


def ragged_dims(leaf: Any, spec: Any) -> int:
    if not isinstance(leaf, np.ndarray):
        return 0
    unknown = [axis + 1 for axis in range(leaf.ndim) if spec is None or spec.shape[axis] is None]
    return max(unknown, default=0)


@elements.register
def _(node: batching.RaggedBatch, context: Context) -> Iterator[Any]:
    for parts in groups(node, context):
        spec = node.input.spec
        specs = [None] * len(columns_of(parts)) if spec is None else flatten(parts[0])[1].flatten(spec)
        values = []
        for column, leaf_spec in zip(columns_of(parts), specs, strict=True):
            dims = ragged_dims(column[0], leaf_spec)
            values.append(ragged(column, dims) if dims else stacked_leaves(column))
        yield rebuilt(parts[0], iter(values))


@elements.register
def _(node: batching.SparseBatch, context: Context) -> Iterator[Any]:
    for parts in groups(node, context):
        arrays = [as_array(part) for part in parts]
        positions = [[row, *place] for row, array in enumerate(arrays) for place in np.ndindex(array.shape)]
        values = np.array([array[place] for array in arrays for place in np.ndindex(array.shape)], arrays[0].dtype)
        longest = [max(array.shape[i] for array in arrays) for i in range(arrays[0].ndim)]
        shape = [most if dim is None else dim for most, dim in zip(longest, node.row_shape, strict=True)]
        yield SparseTensor(
            np.array(positions, np.int64).reshape(-1, 1 + len(shape)), values, np.array([len(arrays), *shape])
        )


@elements.register
def _(node: batching.Rebatch, context: Context) -> Iterator[Any]:
    def rows() -> Iterator[Any]:
        for batch in elements(node.input, context):
            leaves = leaves_of(batch, batch)
            for row in range(len(leaves[0])):
                yield rebuilt(batch, iter([leaf[row] for leaf in leaves]))

    below = rows()
    for size in cycle(node.sizes):
        parts = list(islice(below, size))
        if not parts or (len(parts) < size and node.drop_remainder):
            return
        yield stacked(parts)


@elements.register
def _(node: PadToCardinality, context: Context) -> Iterator[Any]:
    specs, structure = flatten(node.element)
    count = 0
    for element in elements(node.input, context):
        yield {**element, node.mask_key: np.bool_(True)}
        count += 1
    zeros = [b"" if spec.dtype is bytes else np.zeros(spec.shape, spec.dtype)[()] for spec in specs]
    for _ in range(node.count - count):
        yield {**structure.build(zeros), node.mask_key: np.bool_(False)}


# -- steps

PADDED: dict[str, list[Any]] = {  # shapes that are large enough for the elements of a kind
    "int": [None, []],
    "bytes": [None, []],
    "vector": [None, [None], [3], [5]],
    "ragged": [None, [None], [4], [6]],
    "pair": [None, ([], [])],
    "dict": [None],
    "named": [None],
    "nested": [None],
}
_BATCH_KINDS = {"int": "rows"}


def _padded_batch(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if at.kind not in PADDED:
        return at
    size, drop = draw(st.integers(1, 6)), draw(st.booleans())
    shapes = draw(st.sampled_from(PADDED[at.kind]))
    value = draw(st.sampled_from([None, 1])) if at.kind in ("ragged", "int") else None
    dataset = at.dataset.padded_batch(size, shapes, value, drop)
    return at.then(f"padded_batch({size}, {shapes}, {value}, {drop})", dataset, _BATCH_KINDS.get(at.kind, "other"))


def _ragged_batch(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if at.kind not in PADDED and at.kind != "rows":
        return at
    size, drop = draw(st.integers(1, 6)), draw(st.booleans())
    dataset = at.dataset.ragged_batch(size, drop)
    return at.then(f"ragged_batch({size}, {drop})", dataset, _BATCH_KINDS.get(at.kind, "other"))


def _sparse_batch(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if at.kind not in ("ragged", "vector", "int", "bytes"):
        return at
    size, shape = draw(st.integers(1, 6)), draw(st.sampled_from([[None], [6]]))
    shape = shape if at.kind in ("ragged", "vector") else []
    return at.then(f"sparse_batch({size}, {shape})", at.dataset.sparse_batch(size, shape), "other")


SIZES = st.one_of(st.integers(1, 7), st.lists(st.integers(1, 5), min_size=1, max_size=3))


def _rebatch(draw: Any, at: Any, deterministic: bool | None) -> Any:
    sizes, drop = draw(SIZES), draw(st.booleans())
    if at.kind == "rows":
        return at.then(f"rebatch({sizes}, {drop})", at.dataset.rebatch(sizes, drop))
    if at.kind in ("ragged", "other"):
        return at
    size = draw(st.integers(1, 6))
    kind = _BATCH_KINDS.get(at.kind, "other")
    return at.then(f"batch({size}).rebatch({sizes}, {drop})", at.dataset.batch(size).rebatch(sizes, drop), kind)


def _pad_to_cardinality(draw: Any, at: Any, deterministic: bool | None) -> Any:
    count = cardinality(at)
    if at.kind != "dict" or count < 1 or "valid" in at.dataset.element_spec:
        return at
    more = count + draw(st.integers(0, 4))
    return at.then(f"pad_to_cardinality({more})", at.dataset.pad_to_cardinality(more))


STEPS = [_padded_batch, _ragged_batch, _sparse_batch, _rebatch, _pad_to_cardinality]
