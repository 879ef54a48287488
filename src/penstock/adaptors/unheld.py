"""The error about a column that a framework cannot hold: its name, what it is, and the ways out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.adaptors.columns import called
from penstock.block.ragged_spec import RaggedTensorSpec
from penstock.block.spec import TensorSpec, dtype_name
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError


def unheld(held: str, name: str, value: Any, otherwise: str | None) -> InvalidTypeError:
    """About a value of which no `held` ("tensor of torch") can be made.

    `otherwise` is what may be done instead of changing the elements; by default, to keep them as numpy.
    """
    if isinstance(value, (RaggedTensor, SparseTensor)):
        return _tensor(held, name, value, otherwise)
    if isinstance(value, bytes):
        return _bytes(held, name, otherwise)
    if isinstance(value, (np.ndarray, np.generic)):
        return _bytes(held, name, otherwise) if value.dtype == object else _dtype(held, name, value.dtype, otherwise)
    return _dataset(held, name)


def unheld_spec(
    held: str, name: str, spec: Any, holds: Callable[[np.dtype], bool], otherwise: str | None
) -> InvalidTypeError | None:
    """About values of this spec; None where they can be held."""
    if isinstance(spec, TensorSpec):
        if spec.dtype is bytes:
            return _bytes(held, name, otherwise)
        return None if holds(spec.dtype) else _dtype(held, name, spec.dtype, otherwise)
    if isinstance(spec, RaggedTensorSpec):
        return _tensor(held, name, RaggedTensor, otherwise)
    kind = getattr(spec, "kind", None)
    if kind in (RaggedTensor, SparseTensor):
        return _tensor(held, name, kind, otherwise)
    return _dataset(held, name)


def _keep(name: str) -> str:
    return f"keep it as numpy: as_numpy=[{name!r}]" if name else "iterate over the data set itself, which gives numpy"


def _bytes(held: str, name: str, otherwise: str | None) -> InvalidTypeError:
    message = f"{called(name)} holds byte strings, of which no {held} can be made."
    return InvalidTypeError(
        message, hint=f"Make numbers of it or leave it out with map(), or {otherwise or _keep(name)}."
    )


def _dtype(held: str, name: str, dtype: Any, otherwise: str | None) -> InvalidTypeError:
    message = f"{called(name)} has dtype {dtype_name(dtype)}, of which no {held} can be made."
    return InvalidTypeError(
        message, hint=f"Convert it with map(), as value.astype(np.int64), or {otherwise or _keep(name)}."
    )


def _tensor(held: str, name: str, value: Any, otherwise: str | None) -> InvalidTypeError:
    ragged = value is RaggedTensor or isinstance(value, RaggedTensor)
    message = f"{called(name)} is a {'ragged' if ragged else 'sparse'} tensor, of which no {held} can be made."
    other = "Use padded_batch in place of ragged_batch, make" if ragged else "Make"
    return InvalidTypeError(
        message, hint=f"{other} it dense with map(), as value.to_dense(), or {otherwise or _keep(name)}."
    )


def _dataset(held: str, name: str) -> InvalidTypeError:
    message = f"{called(name)} is a data set, of which no {held} can be made."
    return InvalidTypeError(message, hint="Make elements of it before: flat_map(lambda window: window.batch(8)).")
