"""`map_fn` inside a traced function: it runs on the rows of all batches of a Block at once.

`Signature` describes the results of its function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.fixed import without_aliasing
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, RaggedTensorSpec, TensorSpec, as_dtype, dtype_name, spec_of
from penstock.block.structure import Structure, flatten
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.physical.stages.batch import stack_block
from penstock.physical.vectorise import column_of_output, in_one_piece, optimised
from penstock.trace.graph import Allocate, DrawKeys, Graph, GraphBuilder, Keys, KeysFrom, NotTraceable, Primitive
from penstock.trace.traced import trace
from penstock.trace.tracer import Tracer, bind


@dataclass(frozen=True, slots=True, repr=False)
class AnyShape:
    """A leaf of which only the dtype is known."""

    dtype: Any

    def __repr__(self) -> str:
        return dtype_name(self.dtype)


Wanted = TensorSpec | RaggedTensorSpec | AnyShape


@dataclass(frozen=True, slots=True)
class Signature:
    """The nest of a result, with a spec per leaf."""

    leaves: tuple[Wanted, ...]
    structure: Structure

    def ragged(self) -> dict[int, RaggedTensorSpec]:
        """Return the leaves that are stacked as ragged tensors, by number."""
        return {i: leaf for i, leaf in enumerate(self.leaves) if isinstance(leaf, RaggedTensorSpec)}

    def converted(self, result: Any) -> Any:
        """Return a result with Python numbers converted to the dtypes. Raise InvalidTypeError if it does not fit."""
        if isinstance(result, list) and self.structure.kind is tuple:
            result = tuple(result)
        leaves = self.structure.flatten(result)
        paths = self.structure.paths()
        return self.structure.build(
            [_converted(leaf, wanted, path) for leaf, wanted, path in zip(leaves, self.leaves, paths, strict=True)]
        )

    def fits(self, made: Block) -> bool:
        """Return True if results have the specs, without a conversion."""
        specs = [column.spec() for column in made.columns]
        return self.agrees(specs, made.structure)

    def agrees(self, specs: Sequence[LeafSpec], structure: Structure) -> bool:
        if structure != self.structure:
            return False
        return all(_admits(wanted, spec) for wanted, spec in zip(self.leaves, specs, strict=True))

    def nothing(self) -> Any:
        """Return the result for no rows, or None if a shape is unknown."""
        found = [empty_of(leaf) for leaf in self.leaves]
        return None if any(value is None for value in found) else self.structure.build(found)


def as_signature(given: Any) -> Signature | None:
    """Return a nest of dtypes and specs as a Signature. Raise InvalidTypeError for anything else."""
    if given is None:
        return None
    leaves, structure = flatten(given)
    return Signature(tuple(_wanted(leaf) for leaf in leaves), structure)


def empty_of(spec: Wanted | LeafSpec) -> np.ndarray | RaggedTensor | None:
    """Return an array or ragged tensor without rows, or None if the shape is unknown."""
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
        message = f"The function's result{' ' + path if path else ''} is {value!r}, not {dtype_name(dtype)}."
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
    return isinstance(found, RaggedTensorSpec) and found.dtype == wanted.dtype


def _fits(wanted: TensorSpec, found: TensorSpec) -> bool:
    """Return True if the spec fits, like `admits_spec`. Extents that differ between rows may still be unknown."""
    return found.dtype == wanted.dtype and all(
        want is None or have is None or want == have for want, have in zip(wanted.shape, found.shape, strict=True)
    )


def lifted(
    fn: Callable[[Any], Any], leaves: Sequence[Any], structure: Structure, signature: Signature | None, *, same: bool
) -> Any:
    """Return the result of `map_fn` on placeholders for batches. Raise NotTraceable if it needs real batches."""
    if not all(type(leaf) is Tracer for leaf in leaves):
        raise NotTraceable("map_fn takes an argument besides the element")
    size, specs = _rows([leaf.spec for leaf in leaves])
    traced = trace(fn, structure, specs)
    graph = traced.graph
    if graph is None:
        raise NotTraceable(f"map_fn calls its function row by row: {traced.reason}")
    made = [_tensor(graph.output_spec(k)) for k in range(len(graph.outputs))]
    if signature is not None and (signature.ragged() or not signature.agrees(made, graph.structure)):
        raise NotTraceable("map_fn converts its results, or makes them ragged")
    operands: list[Any] = list(leaves)
    if graph.random:
        operands.append(_keys(leaves[0].builder, graph, 1 if same else size))
    params = {"graph": graph, "specs": [spec.batched(size) for spec in made], "draws": 0 if same else graph.draws}
    found = bind(MAP_FN, operands, params)
    return graph.structure.build(found)


def _keys(builder: GraphBuilder, graph: Graph, size: int | None) -> KeysFrom:
    """Return the keys of the rows' random numbers: each row uses as many keys as its graph declares."""
    if size is None or graph.draws is None:
        msg = "map_fn uses random numbers, and the number of rows or of random numbers differs between batches"
        raise NotTraceable(msg)
    return KeysFrom(builder.next_draw(size * graph.draws))


def _rows(specs: Sequence[LeafSpec]) -> tuple[int | None, list[LeafSpec]]:
    """Return the number of rows of a batch, and the specs of a row."""
    found: list[LeafSpec] = []
    sizes = set()
    for spec in specs:
        if not isinstance(spec, TensorSpec) or not spec.shape:
            raise NotTraceable("map_fn over a value that is not an array with rows")
        sizes.add(spec.shape[0])
        found.append(TensorSpec(spec.shape[1:], spec.dtype))
    if len(sizes) > 1:
        raise NotTraceable("map_fn over components whose numbers of rows are not known to be equal")
    return sizes.pop(), found


def _tensor(spec: LeafSpec) -> TensorSpec:
    if not isinstance(spec, TensorSpec):
        raise NotTraceable("map_fn returns a value that is not an array")
    return spec


def _rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[LeafSpec]:
    return list(params["specs"])


def _run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
    graph: Graph = params["graph"]
    columns = [operand for operand in operands if isinstance(operand, Column)]
    sizes = {size for column in columns for size in _sizes(column)}
    if len(sizes) != 1 or 0 in sizes:
        message = "The batches of a Block differ in size, or are empty."  # the batches are then computed one by one
        raise InvalidArgumentError(message)
    size = sizes.pop()
    flat = [column.unbatched([size] * rows) for column in columns]
    fused = optimised(graph, copied=range(len(graph.outputs)))
    keys = keys_of_rows(operands[-1], size, params["draws"]) if graph.random else None
    made = fused.run(flat, rows * size, None, keys)
    columns = [column_of_output(column, rows * size) for column in made]
    pieces = [in_one_piece(column, None) for column in columns]  # contiguous, as np.stack would return them
    found = without_aliasing(pieces, fused.sharing())
    return list(stack_block(Block(graph.structure, found, rows * size), size).columns)


def keys_of_rows(keys: DrawKeys, size: int, draws: int) -> DrawKeys:
    """Return the keys for the rows of batches of `size`: each row takes the next `draws` keys of its batch."""

    def of_rows(wanted: Keys) -> np.ndarray:
        if wanted.seed is not None:
            return np.repeat(keys(wanted), size)
        ordinals = np.arange(size)[:, None] * draws + np.atleast_1d(wanted.ordinal)
        found = keys(Keys(ordinals.reshape(-1)))
        return found.reshape(-1) if isinstance(wanted.ordinal, int) else found.reshape(-1, ordinals.shape[1])

    return of_rows


def _sizes(column: Column) -> set[int]:
    if isinstance(column, ListColumn):
        return {len(item) for item in column.items}
    assert isinstance(column, (DenseColumn, BytesColumn))
    return {(column.array if isinstance(column, DenseColumn) else column.starts).shape[1]}


MAP_FN = Primitive("map_fn", _rule, _run)
