"""Unbatch: elements taken apart."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError
from penstock.plan.node import DEEP, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, UnaryNode
from penstock.plan.rows import rows_of


class Unbatch(UnaryNode):
    """Every slice along the first axis as an element of its own."""

    name: ClassVar[str] = "unbatch"

    def __post_init__(self) -> None:
        if self.input.height > DEEP or self.input.spec is None:
            return
        leaves, structure = flatten(self.input.spec)
        for leaf, path in zip(leaves, structure.paths(), strict=True):
            if isinstance(leaf, TensorSpec) and not leaf.shape:
                message = f"unbatch cuts along the first axis; component {path or 'value'} is a scalar."
                hint = "Only elements made by batch, or arrays, can be unbatched."
                raise InvalidArgumentError(message, hint=hint)
        known = {path: leaf.shape[0] for leaf, path in zip(leaves, structure.paths(), strict=True) if _is_long(leaf)}
        if len(set(known.values())) > 1:
            told = ", ".join(f"{path or 'value'}: {length}" for path, length in known.items())
            message = f"unbatch cuts all components along the first axis, and they differ in length ({told})."
            raise InvalidArgumentError(message, hint="Map the elements to components of one length first.")

    @property
    def spec(self) -> Any:
        if self.input.spec is None:
            return None
        leaves, structure = flatten(self.input.spec)
        if any(not isinstance(leaf, TensorSpec) or not leaf.shape for leaf in leaves):
            return None
        return structure.build([TensorSpec(leaf.shape[1:], leaf.dtype) for leaf in leaves])

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        if count == 0 or count == INFINITE_CARDINALITY:
            return count
        rows = rows_of(self.input)
        return UNKNOWN_CARDINALITY if rows is None else rows.total


def _is_long(leaf: Any) -> bool:
    """Whether the length of a component is known."""
    return isinstance(leaf, TensorSpec) and bool(leaf.shape) and leaf.shape[0] is not None
