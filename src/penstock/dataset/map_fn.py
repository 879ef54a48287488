"""map_fn: apply a function of one row to all rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, RaggedTensorSpec, TensorSpec, spec_of
from penstock.block.structure import Structure, components, flatten
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.dataset.map_fn_lift import Signature, as_signature, empty_of, lifted
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError
from penstock.physical.stages.batch import stack_block
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import repeating
from penstock.trace.graph import Const
from penstock.trace.purity import may_draw
from penstock.trace.traced import trace
from penstock.trace.tracer import Tracer


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    fn_output_signature: Any = None,
    *,
    same_random_numbers: bool = False,
) -> Any:
    """Apply a function to every row, and stack the results along a new first axis, as `tf.map_fn` does.

    If the function consists of operations that penstock knows, it runs once for all rows. Otherwise it is called row by
    row, in order, in the calling thread. The results are the same.

    Args:
        fn: A function of a row, or of a nest of rows if `elems` is a nest.
        elems: An array, RaggedTensor or SparseTensor, or a tuple or dict of them, with the same number of rows. A list
            is an array. (In TensorFlow, it is a nest.)
        dtype: Older name of `fn_output_signature`.
        parallel_iterations: Accepted without effect, as in eager TensorFlow.
        back_prop: Accepted without effect.
        swap_memory: Accepted without effect.
        infer_shape: Accepted without effect.
        fn_output_signature: A nest of dtypes, `TensorSpec` or `RaggedTensorSpec` of the results. Python numbers are
            converted to its dtypes. With `RaggedTensorSpec`, results of different lengths become a RaggedTensor.
            Default: the type of the first result.
        same_random_numbers: If True, random functions use the same numbers for all rows, such as for the frames of a
            clip. Default: False.

    Returns:
        The nest that `fn` returns, with arrays of shape (rows, ...), RaggedTensors or SparseTensors as leaves. A list
        that `fn` returns is a tuple of components, or one array if `fn_output_signature` says so.

    Raises:
        InvalidTypeError: If `fn` cannot be called, if `elems` has no rows, or if results differ in structure or dtype
            from each other or from the signature.
        InvalidArgumentError: If numbers of rows or shapes of results differ, or if there is no row and no signature.

    Example:
        >>> map_fn(lambda row: row[0] * row[1], (np.array([1, 2, 3]), np.array([4, 5, 6])))
        array([ 4, 10, 18])
        >>> map_fn(np.arange, np.array([3, 0, 2]), fn_output_signature=RaggedTensorSpec((None,), np.int64)).to_list()
        [[0, 1, 2], [], [0, 1]]
    """
    if not callable(fn):
        message = f"map_fn takes a function and the elements for it, got {type(fn).__name__} as the function."
        raise InvalidTypeError(message)
    signature = as_signature(dtype if fn_output_signature is None else fn_output_signature)
    leaves, structure = flatten((elems,))
    if any(type(leaf) is Tracer for leaf in leaves):
        return lifted(fn, leaves, structure, signature, same=same_random_numbers)
    paths = [path[3:] for path in structure.paths()]  # without the index of the tuple around them
    columns, sizes = _columns(leaves, paths)
    if not sizes:
        return _of_nothing(fn, structure, leaves, signature)
    block = Block(structure, columns, sizes)
    made = None if may_draw(fn) else Vectoriser(fn).run(block, None)
    if made is None or (signature is not None and not signature.fits(made)):
        made = _row_by_row(fn, block, signature, same=same_random_numbers)
    return _stacked(made, signature, [column.array for column in columns if isinstance(column, DenseColumn)])


map_fn.__penstock_primitive__ = True  # type: ignore[attr-defined]


def _columns(leaves: list[Any], paths: list[str]) -> tuple[list[Column], int]:
    """Return a column of rows for each component, and the number of rows."""
    if not leaves:
        raise InvalidArgumentError("map_fn needs at least one array in elems, got an empty nest.")
    columns = [_column(leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
    sizes = [len(column) for column in columns]
    if len(set(sizes)) > 1:
        found = ", ".join(f"{path} has {size}" for path, size in zip(paths, sizes, strict=True))
        raise InvalidArgumentError(f"The components of map_fn's elems must have the same number of rows: {found}.")
    return columns, sizes[0]


def _column(leaf: Any, path: str) -> Column:
    value = as_leaf(leaf)
    if isinstance(value, (RaggedTensor, SparseTensor)):
        return ListColumn([value[i] for i in range(len(value))] if isinstance(value, RaggedTensor) else list(value))
    if not isinstance(value, np.ndarray):
        where = f"component {path} of elems" if path else "elems"
        message = f"map_fn takes arrays with rows along their first axis, {where} is a scalar {type(leaf).__name__}."
        raise InvalidTypeError(message, hint="Call the function itself, or give an array: np.array([value]).")
    if value.dtype == object:
        return BytesColumn.from_values(value.reshape(-1).tolist(), value.shape[1:], len(value))
    rows = value.view()
    rows.flags.writeable = False
    return DenseColumn(rows)


def _row_by_row(fn: Callable[[Any], Any], block: Block, signature: Signature | None, *, same: bool) -> Block:
    builder = BlockBuilder()
    with repeating() if same else nullcontext(lambda: None) as again:
        for row, element in enumerate(block.elements()):
            again()
            try:
                result = fn(*element)
            except Exception as error:
                error.add_note(f"map_fn: row {row}")
                raise
            try:
                builder.add(components(result) if signature is None else signature.converted(result))
                del result
            except PenstockError as error:
                error.message = f"map_fn, row {row}: {error.message}"
                raise
    try:
        return builder.build()
    except InvalidTypeError as error:
        odd, error.context = error.context.element, Context()
        error.message = f"map_fn's results must be alike, row {odd} is not: {error.message.partition(': ')[2]}"
        error.hint = "Convert in the function, or name the dtype: fn_output_signature=np.float32."
        raise


def _stacked(made: Block, signature: Signature | None, inputs: list[np.ndarray]) -> Any:
    ragged = {} if signature is None else signature.ragged()
    found: list[Any] = []
    for i, (column, path) in enumerate(zip(made.columns, made.structure.paths(), strict=True)):
        if i in ragged:
            found.append(_ragged(column, ragged[i], path))
            continue
        try:
            value = stack_block(Block.single(column)).columns[0].values()[0]
        except InvalidArgumentError as error:
            raise _differing(column, path) from error
        if isinstance(value, np.ndarray) and any(np.may_share_memory(value, array) for array in inputs):
            value = value.copy()
        found.append(value)
    return made.structure.build(found)


def _ragged(column: Column, spec: RaggedTensorSpec, path: str) -> RaggedTensor:
    try:
        return RaggedTensor.stack(column.values(), spec.row_splits_dtype)
    except ValueError as error:
        raise _differing(column, path) from error


def _differing(column: Column, path: str) -> InvalidArgumentError:
    values = column.values()
    row = next((i for i, value in enumerate(values) if value.shape != values[0].shape), 0)
    where = f" in component {path}" if path else ""
    message = (
        f"map_fn's results must have one shape: that of row 0 is {values[0].shape}{where}, "
        f"that of row {row} {values[row].shape}."
    )
    hint = "Rows that differ in their first axis alone become a RaggedTensor with fn_output_signature=RaggedTensorSpec."
    return InvalidArgumentError(message, hint=hint)


def _of_nothing(fn: Callable[[Any], Any], structure: Structure, leaves: list[Any], signature: Signature | None) -> Any:
    """Return the result for no rows: from the signature, or else from tracing `fn` with a placeholder row."""
    known = None if signature is None else signature.nothing()
    if known is not None:
        return known
    specs = [_row_spec(leaf) for leaf in leaves]
    graph = None if None in specs else trace(fn, structure, [spec for spec in specs if spec is not None]).graph
    if graph is not None:
        outputs = [graph.spec_of(output) for output in graph.outputs]
        made = [spec_of(spec.value) if isinstance(spec, Const) else spec for spec in outputs]
        if signature is None or signature.agrees(made, graph.structure):
            nothing = [empty_of(spec) for spec in made]
            if all(value is not None for value in nothing):
                return graph.structure.build(nothing)
    message = "map_fn got no rows, so it does not know the shape and dtype of a result."
    hint = "Pass fn_output_signature=TensorSpec((224, 224, 3), np.float32), or a nest of them."
    raise InvalidArgumentError(message, hint=hint)


def _row_spec(leaf: Any) -> LeafSpec | None:
    value = as_leaf(leaf)
    return TensorSpec(value.shape[1:], value.dtype) if isinstance(value, np.ndarray) else None
