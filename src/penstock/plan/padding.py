"""Meaning of `padded_shapes` and `padding_values` for each component of an element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.block.spec import DType, LeafSpec, Shape, TensorSpec, dtype_name
from penstock.block.structure import Structure, is_nest
from penstock.errors import InvalidArgumentError, InvalidTypeError, PenstockError
from penstock.plan.node import check_int


class Padding(NamedTuple):
    """Padding of one component: None in `shape` means the longest element of the batch."""

    shape: Shape
    value: Any  # a numpy scalar of the component's dtype, or bytes


def paddings(structure: Structure, specs: Sequence[LeafSpec], shapes: Any, values: Any) -> list[Padding]:
    """Return one Padding per leaf, from the user's two arguments of `padded_batch`.

    Raises:
        InvalidTypeError: If the arguments do not match the structure of the elements.
        InvalidArgumentError: If a shape or value does not fit its component.
    """
    found = []
    given_shapes = [None] * len(specs) if shapes is None else _spread(structure, shapes, "padded_shapes")
    given_values = _spread(structure, values, "padding_values", broadcast=True)
    for spec, shape, value, path in zip(specs, given_shapes, given_values, structure.paths(), strict=True):
        if not isinstance(spec, TensorSpec):
            message = f"padded_batch pads arrays, {_component(path)} is a {spec.value_type.__name__}."
            hint = "Make arrays of sparse and ragged tensors with to_dense(), in a map; nested data sets need flat_map."
            raise InvalidTypeError(message, hint=hint)
        found.append(Padding(_shape(shape, spec, path), _value(value, spec.dtype, path)))
    return found


def _component(path: str) -> str:
    return f"component {path}" if path else "the element"


def _spread(structure: Structure, nest: Any, argument: str, *, broadcast: bool = False) -> list[Any]:
    """Return the parts of a nest in the leaf positions of `structure`. With `broadcast`, one part may apply to all."""
    if structure.is_leaf or (broadcast and not is_nest(nest)):
        return [nest] * structure.size
    parts = _parts(structure, nest)
    if parts is None:
        message = f"{argument} must be a nest like the elements, {structure.describe()}, got {nest!r}."
        shape = "a shape within them is a list of sizes, such as [None, 3]."
        hint = "Tuples and dicts are nests; " + ("one scalar may stand for several." if broadcast else shape)
        raise InvalidTypeError(message, hint=hint)
    spread: list[Any] = []
    for child, part in zip(structure.children, parts, strict=True):
        spread.extend(_spread(child, part, argument, broadcast=broadcast))
    return spread


def _parts(structure: Structure, nest: Any) -> list[Any] | None:
    if structure.kind is NoneType:
        return [] if nest is None else None
    if isinstance(nest, tuple) and isinstance(structure.kind, type) and issubclass(structure.kind, tuple):
        return list(nest) if len(nest) == len(structure.children) else None
    if isinstance(nest, Mapping) and structure.kind is dict:
        return [nest[name] for name in structure.names] if set(nest) == set(structure.names) else None
    if is_nest(nest) and type(nest) is structure.kind:
        return [getattr(nest, name) for name in structure.names]
    return None


def as_shape(shape: Any, argument: str) -> Shape | None:
    """Return a user's shape as a tuple: one size or several, where None and -1 are open; None leaves all of it open."""
    if shape is None:
        return None
    if hasattr(shape, "__index__") and not isinstance(shape, (bool, np.ndarray)):
        shape = [shape]
    elif isinstance(shape, np.ndarray):
        shape = np.atleast_1d(shape).tolist()
    elif hasattr(shape, "shape"):
        shape = shape.shape
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        message = f"{argument} must be a list of sizes, got {shape!r} ({type(shape).__name__})."
        raise InvalidTypeError(message, hint="Give one size per dimension, and None for those that differ.")
    hint = "Give a size, or None (or -1) for a dimension that differs."
    dims = [-1 if dim is None else check_int(argument, dim, least=0, also=(-1,), hint=hint) for dim in shape]
    return tuple(None if dim == -1 else dim for dim in dims)


def _shape(given: Any, spec: TensorSpec, path: str) -> Shape:
    shape = as_shape(given, "padded_shapes")
    if shape is None:
        return spec.shape
    if len(shape) != len(spec.shape):
        message = f"padded_shapes has {len(shape)} dimensions, {shape}, and {_component(path)} has {len(spec.shape)}."
        raise InvalidArgumentError(message, hint="Give one size per dimension of the element, without the batch's.")
    if any(have is not None and want is not None and want < have for want, have in zip(shape, spec.shape, strict=True)):
        message = f"padded_shapes {shape} is smaller than {_component(path)}, which has shape {spec.shape}."
        raise InvalidArgumentError(message, hint="Padding never cuts: give a larger size or None, or crop in a map.")
    return shape


_KINDS = {bool: "b", int: "iufc", float: "fc", complex: "c"}


def _value(value: Any, dtype: DType, path: str) -> Any:
    """Return a padding value in the dtype of its component.

    Python numbers are converted if they fit. numpy values must have the dtype already.
    """
    if value is None:
        return _default(dtype)
    number = type(value) in _KINDS
    try:
        found = value if number else as_leaf(value)
    except PenstockError:
        found = None
    if not number and not isinstance(found, (bytes, np.generic)):
        message = f"padding_values must be scalars, got {value!r} for {_component(path)}."
        raise InvalidArgumentError(message, hint="Give one number or text for each component, or one for all.")
    if number:
        fits = dtype is not bytes and dtype.kind in _KINDS[type(value)]
    else:
        fits = dtype is bytes if isinstance(found, bytes) else found.dtype == dtype
    if not fits:
        message = f"The padding value {value!r} ({type(value).__name__}) is not of the dtype of {_component(path)}, "
        message += f"{dtype_name(dtype)}."
        hint = "Give a nest with a value for each component; None stands for the default: 0, an empty string, NaT."
        raise InvalidTypeError(message, hint=hint)
    if not number:
        return found
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        message = f"The padding value {value!r} does not fit {_component(path)} of dtype {dtype_name(dtype)}."
        raise InvalidArgumentError(message)
    return dtype.type(value)


def _default(dtype: DType) -> Any:
    """Return the default padding value."""
    if dtype is bytes:
        return b""
    return np.array("NaT", dtype)[()] if dtype.kind in "mM" else dtype.type(0)
