"""`map_fn` on stand-ins: the rows of all batches of a Block at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.spec import LeafSpec, TensorSpec, spec_of
from penstock.block.structure import Structure
from penstock.block.without_aliasing import without_aliasing
from penstock.dataset.map_fn_signature import Signature
from penstock.errors import InvalidArgumentError
from penstock.physical.equivalence import in_one_piece
from penstock.physical.stages.batch import stack_block
from penstock.physical.vectorise import optimised
from penstock.trace.graph import (
    Allocate,
    Const,
    DrawKeys,
    Graph,
    GraphBuilder,
    Keys,
    KeysFrom,
    NotTraceable,
    Primitive,
)
from penstock.trace.traced import trace
from penstock.trace.tracer import Tracer, bind


def lifted(fn: Callable[[Any], Any], leaves: Sequence[Any], structure: Structure, signature: Signature | None) -> Any:
    """The result of `map_fn` on stand-ins for batches; NotTraceable where only real ones can tell it."""
    if not all(type(leaf) is Tracer for leaf in leaves):
        msg = "map_fn takes something beside the element"
        raise NotTraceable(msg)
    size, specs = _rows([leaf.spec for leaf in leaves])
    traced = trace(fn, structure, specs)
    graph = traced.graph
    if graph is None:
        msg = f"map_fn calls its function row by row: {traced.reason}"
        raise NotTraceable(msg)
    made = [_output_spec(graph, output) for output in graph.outputs]
    if signature is not None and (signature.ragged() or not signature.agrees(made, graph.structure)):
        msg = "map_fn converts its results, or makes them ragged"
        raise NotTraceable(msg)
    operands: list[Any] = list(leaves)
    if graph.random:
        operands.append(_keys(leaves[0].builder, graph, size))
    found = bind(MAP_FN, operands, {"graph": graph, "specs": [spec.batched(size) for spec in made]})
    return graph.structure.build(found)


def _keys(builder: GraphBuilder, graph: Graph, size: int | None) -> KeysFrom:
    """What the rows draw from: each takes as many keys as its graph says, one row after the other."""
    if size is None:
        msg = "map_fn draws for a number of rows that differs between batches"
        raise NotTraceable(msg)
    return KeysFrom(builder.next_draw(size * graph.draws))


def _rows(specs: Sequence[LeafSpec]) -> tuple[int | None, list[LeafSpec]]:
    """The number of rows of a batch, and what a row is."""
    found: list[LeafSpec] = []
    sizes = set()
    for spec in specs:
        if not isinstance(spec, TensorSpec) or not spec.shape:
            msg = "map_fn over what is no array with rows"
            raise NotTraceable(msg)
        sizes.add(spec.shape[0])
        found.append(TensorSpec(spec.shape[1:], spec.dtype))
    if len(sizes) > 1:
        msg = "map_fn over components whose numbers of rows are not known to be equal"
        raise NotTraceable(msg)
    return sizes.pop(), found


def _output_spec(graph: Graph, output: Any) -> TensorSpec:
    spec = graph.spec_of(output)
    if isinstance(spec, Const):
        spec = spec_of(spec.value)
    if not isinstance(spec, TensorSpec):
        msg = "map_fn gives what is no array"
        raise NotTraceable(msg)
    return spec


def _rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[LeafSpec]:
    return list(params["specs"])


def _run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
    graph: Graph = params["graph"]
    columns = [operand for operand in operands if isinstance(operand, Column)]
    sizes = {size for column in columns for size in _sizes(column)}
    if len(sizes) != 1 or 0 in sizes:
        message = "The batches of a Block differ in size, or are empty."  # each is mapped alone
        raise InvalidArgumentError(message)
    size = sizes.pop()
    flat = [column.unbatched([size] * rows) for column in columns]
    fused = optimised(graph, copied=range(len(graph.outputs)))
    keys = keys_of_rows(operands[-1], size, graph.draws) if graph.random else None
    made = fused.run(flat, rows * size, None, keys)
    pieces = [in_one_piece(_column(column, rows * size), None) for column in made]  # as np.stack makes one of them
    found = without_aliasing(pieces, fused.sharing())
    return list(stack_block(Block(graph.structure, found, rows * size), size).columns)


def keys_of_rows(keys: DrawKeys, size: int, draws: int) -> DrawKeys:
    """What the rows of all batches of `size` draw from, each taking `draws` keys of its batch behind the row before."""

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


def _column(value: Column | Const, rows: int) -> Column:
    if not isinstance(value, Const):
        return value
    if isinstance(value.value, bytes):
        return BytesColumn.from_values([value.value] * rows)
    return DenseColumn(np.full(rows, value.value))


MAP_FN = Primitive("map_fn", _rule, _run)
