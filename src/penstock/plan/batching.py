"""Steps: padded, ragged and sparse batches, rebatch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from penstock.block.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from penstock.block.structure import Structure, flatten, map_leaves
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.inputs import Zip
from penstock.plan.node import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    LeafwiseNode,
    Node,
    UnaryNode,
    check_ends,
    check_int,
)
from penstock.plan.ops import BatchNode
from penstock.plan.padding import Padding, as_shape, paddings


class PaddedBatch(BatchNode):
    """Pads neighbours of different shapes to one shape and stacks them."""

    padded_shapes: Any = None
    padding_values: Any = None

    name: ClassVar[str] = "padded_batch"

    def __post_init__(self) -> None:
        super().__post_init__()
        shapes, values = map_leaves(_plain_shape, self.padded_shapes), map_leaves(_plain_value, self.padding_values)
        self.settle(padded_shapes=shapes, padding_values=values)
        known = self.known()
        if known is not None:
            self.paddings(known[1], known[0])

    def paddings(self, structure: Structure, specs: list[LeafSpec]) -> list[Padding]:
        """Return the padding of each component."""
        return paddings(structure, specs, self.padded_shapes, self.padding_values)

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        found = self.paddings(structure, leaves)
        shapes = [padding.shape for padding in found]
        return structure.build(
            [TensorSpec((self.size, *shape), leaf.dtype) for shape, leaf in zip(shapes, leaves, strict=True)]
        )


def _plain_shape(leaf: Any) -> Any:
    """Return one form for equal shapes, so that equal plans have equal fingerprints."""
    return leaf if leaf is None or isinstance(leaf, (list, int)) else as_shape(leaf, "padded_shapes")


def _plain_value(leaf: Any) -> Any:
    return leaf[()] if isinstance(leaf, np.ndarray) and not leaf.ndim else leaf


class RaggedBatch(BatchNode):
    """Joins neighbours of different shapes as the rows of a ragged tensor."""

    row_splits_dtype: Any = np.int64

    name: ClassVar[str] = "ragged_batch"

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = (np.dtype(np.int32), np.dtype(np.int64))
        try:
            dtype = np.dtype(self.row_splits_dtype)
        except TypeError:
            dtype = None
        if dtype not in allowed or self.row_splits_dtype is None:
            message = f"row_splits_dtype must be int32 or int64, got {self.row_splits_dtype!r}."
            raise InvalidArgumentError(message)
        self.settle(row_splits_dtype=dtype)

    def ragged_dims(self) -> dict[str, int]:
        """Return the number of dimensions that become ragged, for each component of known spec.

        In components of unknown spec, all dimensions become ragged. A dimension of unknown extent makes itself and all
        dimensions before it ragged, as in tf.data.
        """
        places: list[tuple[str, Node]] = [("", self.input)]
        if isinstance(self.input, Zip):
            places = list(zip(self.input.structure.paths(), self.input.parts, strict=True))
        found: dict[str, int] = {}
        for path, part in places:
            if part.spec is not None:
                leaves, structure = flatten(part.spec)
                found |= zip(structure.paths(path), map(self.ragged_of, leaves), strict=True)
        return found

    def ragged_of(self, leaf: LeafSpec) -> int:
        """Return the number of dimensions of a component that become ragged."""
        if is_ragged_slice(leaf):
            return 1
        unknown = [axis for axis, dim in enumerate(leaf.shape) if dim is None] if isinstance(leaf, TensorSpec) else []
        return max(unknown, default=-1) + 1

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        return structure.build([self._batched(leaf, self.ragged_of(leaf)) for leaf in leaves])

    def _batched(self, leaf: LeafSpec, ragged: int) -> LeafSpec:
        if not ragged or not isinstance(leaf, TensorSpec):
            return leaf.batched(self.size)
        return RaggedTensorSpec((self.size, *leaf.shape), leaf.dtype, self.row_splits_dtype, ragged)


class BatchOfSlices(RaggedBatch):
    """Stacks neighbours into one element; slices of ragged tensors become ragged tensors again."""

    name: ClassVar[str] = "batch"

    def ragged_of(self, leaf: LeafSpec) -> int:
        return int(is_ragged_slice(leaf))


def is_ragged_slice(leaf: LeafSpec) -> bool:
    """Return True for arrays that are slices of a ragged tensor."""
    return isinstance(leaf, RaggedTensorSpec) and not leaf.ragged_rank


class SparseBatch(BatchNode):
    """Joins neighbours of different shapes as the rows of a sparse tensor."""

    row_shape: Any

    name: ClassVar[str] = "sparse_batch"

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = as_shape(self.row_shape, "row_shape")
        if shape is None:
            message = "row_shape must be a list of sizes, got None."
            raise InvalidTypeError(message, hint="Give [None] for rows that are as long as the longest of the batch.")
        self.settle(row_shape=shape)
        known = self.known()
        if known is not None:
            self.check(known[1], known[0])

    def check(self, structure: Structure, specs: list[LeafSpec]) -> None:
        """Raise InvalidTypeError unless each element is a single array."""
        if not structure.is_leaf:
            message = f"sparse_batch takes elements of one component, these are {structure.describe()}."
            raise InvalidTypeError(message, hint="Pick one with map, and zip the batches of the others.")
        (spec,) = specs
        if not isinstance(spec, TensorSpec):
            message = f"sparse_batch makes sparse tensors of arrays, the elements are {spec!r}."
            raise InvalidTypeError(message, hint="batch stacks sparse tensors.")
        if len(spec.shape) != len(self.row_shape):
            raise wrong_rank(self.row_shape, len(spec.shape))

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        (leaf,) = leaves
        return SparseTensorSpec((self.size, *self.row_shape), leaf.dtype)


def wrong_rank(row_shape: tuple[int | None, ...], rank: int) -> InvalidArgumentError:
    """Return the error for elements whose rank does not match `row_shape`."""
    message = f"row_shape has {len(row_shape)} dimensions, {row_shape}; the elements have {rank}."
    return InvalidArgumentError(message, hint="Give one size per dimension of the element.")


class Rebatch(LeafwiseNode):
    """Cuts and joins batches into batches of other sizes, which are used in turn."""

    sizes: tuple[int, ...]
    drop_remainder: bool = False

    name: ClassVar[str] = "rebatch"

    def __post_init__(self) -> None:
        hint = "Give a size, or a list of sizes that are taken in turn."
        given: Any = self.sizes
        if hasattr(given, "__index__") and not isinstance(given, (bool, np.ndarray)):
            given = (given,)
        elif isinstance(given, np.ndarray):
            given = np.atleast_1d(given).tolist()
        if not isinstance(given, (list, tuple)):
            message = f"batch_size must be an integer or a list of integers, got batch_size={given!r}."
            raise InvalidTypeError(message, hint=hint)
        if not given:
            message = "batch_size must hold at least one size, got an empty list."
            raise InvalidArgumentError(message, hint=hint)
        self.settle(sizes=tuple(check_int("batch_size", n, least=1, hint=hint) for n in given))
        if self.input.spec is not None:
            self._check(*flatten(self.input.spec))

    def _check(self, leaves: list[LeafSpec], structure: Structure) -> None:
        found: dict[int, str] = {}
        for leaf, path in zip(leaves, structure.paths(), strict=True):
            if not isinstance(leaf, TensorSpec):
                continue
            if not leaf.shape:
                message = f"rebatch takes batches, {f'component {path}' if path else 'the element'} is a scalar."
                raise InvalidArgumentError(message, hint="Elements become batches with .batch().")
            if leaf.shape[0] is not None:
                found.setdefault(leaf.shape[0], path)
        if len(found) > 1:
            (one, first), (other, second) = list(found.items())[:2]
            message = f"The components of a batch have one size, {first} has {one} and {second} has {other}."
            raise InvalidArgumentError(message)

    @property
    def label(self) -> str:
        return f"rebatch({self.sizes[0] if len(self.sizes) == 1 else list(self.sizes)})"

    def specs(self, leaves: list[LeafSpec], structure: Structure) -> Any:
        full = self.drop_remainder or self.input.cardinality == INFINITE_CARDINALITY
        full = full or any(extent % self.sizes[0] == 0 for extent in self._extents(leaves))
        size = self.sizes[0] if full and len(set(self.sizes)) == 1 else None
        return structure.build(
            [
                TensorSpec((size, *leaf.shape[1:]), leaf.dtype) if isinstance(leaf, TensorSpec) else leaf
                for leaf in leaves
            ]
        )

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        if count in (0, INFINITE_CARDINALITY):
            return count
        extents = self._extents([] if self.input.spec is None else flatten(self.input.spec)[0])
        if count < 0 or not extents:
            return UNKNOWN_CARDINALITY
        turns, left = divmod(count * extents[0], sum(self.sizes))
        found = turns * len(self.sizes)
        for size in self.sizes:
            if left < size:
                break
            left, found = left - size, found + 1
        return found if not left or self.drop_remainder else found + 1

    @staticmethod
    def _extents(leaves: list[LeafSpec]) -> list[int]:
        """Return the known numbers of rows of the input batches."""
        return [leaf.shape[0] for leaf in leaves if isinstance(leaf, TensorSpec) and leaf.shape[0] is not None]


class PadToCardinality(UnaryNode):
    """Appends zeros up to `count` elements and adds the key `mask_key`: True for elements, False for zeros."""

    count: int
    mask_key: str = "valid"
    element: Any  # the nest of specs of one element, from which the zeros are created

    name: ClassVar[str] = "pad_to_cardinality"
    shown: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        hint = "Give the number of elements to reach, such as the next multiple of the batch size."
        self.settle(count=check_int("cardinality", self.count, least=0, hint=hint))
        self._check_elements()
        have = self.input.cardinality
        check_ends("pad_to_cardinality", have)
        if have > self.count:
            message = f"The data set has {have} elements, more than cardinality={self.count}."
            raise InvalidArgumentError(message, hint="Padding never drops elements; take() does.")

    def _check_elements(self) -> None:
        if not isinstance(self.mask_key, str):
            message = f"mask_key must be text, got {self.mask_key!r} ({type(self.mask_key).__name__})."
            raise InvalidTypeError(message)
        if not isinstance(self.element, Mapping):
            message = f"pad_to_cardinality adds a key to dicts, the elements are {flatten(self.element)[1].describe()}."
            raise InvalidTypeError(message, hint='Make dicts of them: .map(lambda x: {"x": x}).')
        if self.mask_key in self.element:
            message = f"The elements have a key {self.mask_key!r} already."
            raise InvalidArgumentError(message, hint="Give another mask_key.")
        leaves, structure = flatten(self.element)
        for leaf, path in zip(leaves, structure.paths(), strict=True):
            if not isinstance(leaf, TensorSpec) or not leaf.fixed:
                message = f"Zeros need a known shape, but component {path} is {leaf!r}."
                raise InvalidArgumentError(message, hint="Batch with drop_remainder=True, or pad to a fixed shape.")

    @property
    def spec(self) -> Any:
        below = self.input.spec
        return None if below is None else {**below, self.mask_key: TensorSpec((), np.bool_)}

    @property
    def cardinality(self) -> int:
        return self.count
