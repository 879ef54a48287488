"""The nest of an element as JSON, for the metadata of an Arrow schema, and the names of its columns."""

from __future__ import annotations

import sys
from types import NoneType
from typing import Any

from penstock.block.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec, ValueSpec, dtype_name
from penstock.block.structure import LEAF, NONE, Structure, field_names
from penstock.errors import DataLossError, InvalidTypeError

_KINDS: dict[str, Any] = {"SparseTensor": SparseTensorSpec, "RaggedTensor": RaggedTensorSpec}


def structure_to_json(structure: Structure) -> Any:
    """Return the structure as JSON values, for `structure_from_json`."""
    children = [structure_to_json(child) for child in structure.children]
    if structure.kind is None:
        return None
    if structure.kind is tuple:
        return {"tuple": children}
    if structure.kind is dict:
        for name in structure.names:
            if type(name) not in (str, int, bool):
                message = f"A dict key of an element that is stored is text or an integer, got {name!r:.60}."
                raise InvalidTypeError(message, hint="Rename it with map().")
        return {"dict": [list(pair) for pair in zip(structure.names, children, strict=True)]}
    kind = structure.kind
    if kind is NoneType:
        return {"none": True}
    return {"type": f"{kind.__module__}:{kind.__qualname__}", "fields": list(structure.names), "parts": children}


def structure_from_json(stored: Any) -> Structure:
    """Return the structure for JSON values of `structure_to_json`.

    Named tuples and dataclasses are looked up in the modules that are already imported.
    """
    if stored is None:
        return LEAF
    if "tuple" in stored:
        return _node(tuple, (), stored["tuple"])
    if "dict" in stored:
        return _node(dict, tuple(name for name, _ in stored["dict"]), [child for _, child in stored["dict"]])
    if "none" in stored:
        return NONE
    names = tuple(stored["fields"])
    return _node(_found_type(stored["type"], names), names, stored["parts"])


def _node(kind: type, names: tuple[Any, ...], parts: list[Any]) -> Structure:
    children = tuple(structure_from_json(part) for part in parts)
    size, flat = sum(child.size for child in children), all(child.is_leaf for child in children)
    return Structure(kind, names, children, size, flat)


def _found_type(name: str, names: tuple[str, ...]) -> type:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        known = field_names(found) or getattr(found, "_fields", None)
        if known is not None and tuple(known) == names:
            return found
    message = f"The elements were stored as {name} with the fields {', '.join(names)}, and there is no such class here."
    raise InvalidTypeError(message, hint=f"Import {module} first, or give the element's spec.")


def spec_to_json(spec: LeafSpec) -> Any:
    assert not isinstance(spec, ValueSpec)  # file elements never contain a data set
    found = {"dtype": dtype_name(spec.dtype), "shape": None if spec.shape is None else list(spec.shape)}
    if isinstance(spec, TensorSpec):
        return found
    ragged = [dtype_name(spec.row_splits_dtype), spec.ragged_rank] if isinstance(spec, RaggedTensorSpec) else []
    return {**found, "kind": spec.value_type.__name__, "ragged": ragged}


def spec_from_json(stored: Any) -> LeafSpec:
    if "kind" not in stored:
        return TensorSpec(stored["shape"], stored["dtype"])
    if stored["kind"] not in _KINDS:
        raise DataLossError(f"A stored leaf is of the unknown kind {stored['kind']!r:.40}.")
    return _KINDS[stored["kind"]](stored.get("shape"), stored["dtype"], *stored.get("ragged", ()))


def column_names(structure: Structure) -> list[str]:
    """Return one unique name for each leaf, from its position in the nest.

    >>> from penstock.block.structure import flatten
    >>> column_names(flatten(({"image": 1, "label": 2}, 3))[1])
    ['0.image', '0.label', '1']
    """
    found: list[str] = []
    for name in _names(structure, ""):
        unique, number = name, 1
        while unique in found:
            unique, number = f"{name}_{number}", number + 1
        found.append(unique)
    return found


def _names(structure: Structure, prefix: str) -> list[str]:
    if structure.kind is None:
        return [prefix or "value"]
    steps = range(len(structure.children)) if structure.kind is tuple else structure.names
    return [
        name
        for step, child in zip(steps, structure.children, strict=True)
        for name in _names(child, f"{prefix}.{step}" if prefix else str(step))
    ]
