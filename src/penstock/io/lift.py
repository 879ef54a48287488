"""The parsers on stand-ins: a function that parses an element is run over whole Blocks by `parse_columns`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, TensorSpec, ValueSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.io.batch_check import check_batched
from penstock.io.blocks import parse_strings
from penstock.io.columns import BytesValues, DenseValues, ParsedColumn
from penstock.io.expected import Expected, expect
from penstock.io.features import Feature, FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from penstock.trace.graph import Allocate, NotTraceable, Primitive
from penstock.trace.lift import byte_string
from penstock.trace.tracer import Tracer, bind


def single(serialized: Tracer, features: Mapping[str, Feature]) -> dict[str, Tracer]:
    """`parse_single_example` of a stand-in."""
    expected = expect(features)
    found = bind(PARSE_SINGLE, [serialized], {"expected": expected})
    return {output.name: value for output, value in zip(expected.outputs, found, strict=True)}


def batch(serialized: Tracer, features: Mapping[str, Feature]) -> dict[str, Tracer]:
    """`parse_example` of a stand-in."""
    expected = check_batched(features)
    found = bind(PARSE_BATCH, [serialized], {"expected": expected})
    return {output.name: value for output, value in zip(expected.outputs, found, strict=True)}


def _single_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[LeafSpec]:
    byte_string(specs[0])
    found: list[LeafSpec] = []
    for output in params["expected"].outputs:
        feature = output.feature
        if isinstance(feature, FixedLenFeature):
            found.append(TensorSpec(feature.shape, feature.dtype))
        elif isinstance(feature, FixedLenSequenceFeature):
            found.append(TensorSpec((None, *feature.shape), feature.dtype))
        elif isinstance(feature, VarLenFeature):
            found.append(ValueSpec(SparseTensor, feature.dtype))
        elif feature.partitions:
            found.append(ValueSpec(RaggedTensor, feature.dtype))
        else:
            found.append(TensorSpec((None,), feature.dtype))
    return found


def _single_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column = operands[0] if isinstance(operands[0], BytesColumn) else BytesColumn.from_values(operands[0].values())
    return [_column(values, (rows,)) for values in _parsed(column, params["expected"]).values()]


def _parsed(column: BytesColumn, expected: Expected) -> dict[str, ParsedColumn]:
    which = None if column.which is None else column.which.reshape(-1)
    buffers = column.buffers or (np.empty(0, np.uint8),)
    return parse_strings(buffers, which, column.starts.reshape(-1), column.lengths.reshape(-1), expected)


PARSE_SINGLE = Primitive("io.parse_single_example", _single_rule, _single_run)


def _batch_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[LeafSpec]:
    spec = specs[0]
    if not isinstance(spec, TensorSpec) or spec.dtype is not bytes or len(spec.shape) != 1:
        msg = "parse_example of what is no vector of byte strings"
        raise NotTraceable(msg)
    size = spec.shape[0]
    found: list[LeafSpec] = []
    for output in params["expected"].outputs:
        feature = output.feature
        if isinstance(feature, FixedLenFeature):
            found.append(TensorSpec((size, *feature.shape), feature.dtype))
        elif isinstance(feature, FixedLenSequenceFeature):
            found.append(TensorSpec((size, None, *feature.shape), feature.dtype))
        else:
            kind = SparseTensor if isinstance(feature, VarLenFeature) else RaggedTensor
            found.append(ValueSpec(kind, feature.dtype))
    return found


def _batch_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column, expected = operands[0], params["expected"]
    if isinstance(column, BytesColumn) and _all_dense(expected):
        return [_column(values, column.starts.shape) for values in _parsed(column, expected).values()]
    batches = []
    for row in range(rows):
        parsed = _parsed(_batch(column, row), expected)
        batches.append([as_leaf(values.batched()) for values in parsed.values()])
    return [column_of(list(values)) for values in zip(*batches, strict=True)]


def _batch(column: Column, row: int) -> BytesColumn:
    """The byte strings of one batch; batches that differ in size are a list of arrays."""
    if isinstance(column, BytesColumn):
        return column.slice(row, row + 1)
    assert isinstance(column, ListColumn)
    return BytesColumn.from_values(column.items[row].tolist())


PARSE_BATCH = Primitive("io.parse_example", _batch_rule, _batch_run)


def _all_dense(expected: Expected) -> bool:
    return all(isinstance(output.feature, FixedLenFeature) for output in expected.outputs)


def _column(values: ParsedColumn, rows: tuple[int, ...]) -> Column:
    """A column of `rows` elements; with two extents, of batches."""
    if isinstance(values, DenseValues):
        return DenseColumn(values.array.reshape(*rows, *values.array.shape[1:]))
    if isinstance(values, BytesValues):
        shape = (*rows, *values.starts.shape[1:])
        which = None if values.which is None else np.asarray(values.which, np.int32).reshape(shape)
        return BytesColumn(values.buffers, values.starts.reshape(shape), values.lengths.reshape(shape), which)
    return column_of([as_leaf(value) for value in values.singles()])
