"""Signature: what the function of a `map_fn` is said to return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.leaf import as_leaf
from penstock.block.ragged_spec import RaggedTensorSpec
from penstock.block.spec import LeafSpec, TensorSpec, as_dtype, dtype_name, spec_of
from penstock.block.structure import Structure, flatten
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


@dataclass(frozen=True, slots=True, repr=False)
class AnyShape:
    """A leaf of which the dtype alone is known."""

    dtype: Any

    def __repr__(self) -> str:
        return dtype_name(self.dtype)


Wanted = TensorSpec | RaggedTensorSpec | AnyShape


@dataclass(frozen=True, slots=True)
class Signature:
    """The nest of a result and what its leaves are."""

    leaves: tuple[Wanted, ...]
    structure: Structure

    def ragged(self) -> dict[int, RaggedTensorSpec]:
        """The leaves that are to be stacked as ragged tensors, by number."""
        return {i: leaf for i, leaf in enumerate(self.leaves) if isinstance(leaf, RaggedTensorSpec)}

    def converted(self, result: Any) -> Any:
        """A result with Python's numbers in the dtypes wanted; InvalidTypeError where it is not as said."""
        if isinstance(result, list) and self.structure.kind is tuple:
            result = tuple(result)
        leaves = self.structure.flatten(result)
        paths = self.structure.paths()
        return self.structure.build(
            [_converted(leaf, wanted, path) for leaf, wanted, path in zip(leaves, self.leaves, paths, strict=True)]
        )

    def fits(self, made: Block) -> bool:
        """Whether results are as said, without a conversion."""
        specs = [column.spec() for column in made.columns]
        return self.agrees(specs, made.structure)

    def agrees(self, specs: Sequence[LeafSpec], structure: Structure) -> bool:
        if structure != self.structure:
            return False
        return all(_admits(wanted, spec) for wanted, spec in zip(self.leaves, specs, strict=True))

    def nothing(self) -> Any:
        """The result for no rows, or None where shapes are missing."""
        found = [empty_of(leaf) for leaf in self.leaves]
        return None if any(value is None for value in found) else self.structure.build(found)


def as_signature(given: Any) -> Signature | None:
    """A nest of dtypes and specs as a Signature; InvalidTypeError for anything else."""
    if given is None:
        return None
    leaves, structure = flatten(given)
    return Signature(tuple(_wanted(leaf) for leaf in leaves), structure)


def empty_of(spec: Wanted | LeafSpec) -> np.ndarray | RaggedTensor | None:
    """No rows of this kind; None where its shape is not known."""
    shape = getattr(spec, "shape", None)
    if isinstance(spec, RaggedTensorSpec):
        inner = [extent for extent in spec.shape[1:] if extent is not None]
        if not spec.shape or len(inner) < len(spec.shape) - 1:
            return None
        return RaggedTensor(np.empty((0, *inner), _numpy(spec.dtype)), np.zeros(1, spec.row_splits_dtype))
    if shape is None or None in shape:
        return None
    return np.empty((0, *shape), _numpy(spec.dtype))


def _numpy(dtype: Any) -> Any:
    return object if dtype is bytes else dtype


def _wanted(leaf: Any) -> Wanted:
    if isinstance(leaf, TensorSpec) and leaf.open_rank:
        return AnyShape(leaf.dtype)
    if isinstance(leaf, (TensorSpec, RaggedTensorSpec)):
        return leaf
    if isinstance(leaf, list):
        message = f"fn_output_signature is a nest of tuples and dicts, got the list {leaf!r}."
        raise InvalidTypeError(message, hint="Write a tuple; a list is one array.")
    return AnyShape(as_dtype(leaf))


def _converted(leaf: Any, wanted: Wanted, path: str) -> Any:
    if wanted.dtype is not bytes and isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
        leaf = _number(leaf, wanted.dtype, path)
    value = as_leaf(leaf)
    found = spec_of(value)
    if not _admits(wanted, found):
        message = f"The function's result{' ' + path if path else ''} is {found}, fn_output_signature says {wanted}."
        raise InvalidTypeError(message, hint="Convert in the function, or correct the signature.")
    return value


def _number(value: complex, dtype: Any, path: str) -> Any:
    kinds = "biufc" if isinstance(value, int) else "fc" if isinstance(value, float) else "c"
    if np.dtype(dtype).kind not in kinds:
        message = f"The function's result{' ' + path if path else ''} is {value!r}, which is no {dtype_name(dtype)}."
        raise InvalidTypeError(message, hint="Convert in the function, or correct the signature.")
    try:
        return np.asarray(value, dtype)[()]
    except OverflowError:
        message = f"The function's result{' ' + path if path else ''} is {value!r}, beyond {dtype_name(dtype)}."
        raise InvalidArgumentError(message) from None


def _admits(wanted: Wanted, found: LeafSpec) -> bool:
    if isinstance(wanted, AnyShape):
        return bool(wanted.dtype == found.dtype)
    if isinstance(wanted, TensorSpec):
        return isinstance(found, TensorSpec) and len(found.shape) == len(wanted.shape) and _fits(wanted, found)
    if isinstance(found, TensorSpec):
        return len(found.shape) == len(wanted.shape) and _fits(TensorSpec(wanted.shape, wanted.dtype), found)
    return found.kind is RaggedTensor and found.dtype == wanted.dtype


def _fits(wanted: TensorSpec, found: TensorSpec) -> bool:
    """As `admits_spec`, where an extent that differs between rows is not known yet."""
    return found.dtype == wanted.dtype and all(
        want is None or have is None or want == have for want, have in zip(wanted.shape, found.shape, strict=True)
    )
