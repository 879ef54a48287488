"""PadToCardinality: zeros behind the elements, up to a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import INFINITE_CARDINALITY, UnaryNode, check_int


class PadToCardinality(UnaryNode):
    """Dicts with a mark `mask_key`, true for elements and false for the zeros that follow up to `count`."""

    count: int
    mask_key: str = "valid"
    element: Any  # the nest of specs of one element, which the zeros have

    name: ClassVar[str] = "pad_to_cardinality"

    def __post_init__(self) -> None:
        hint = "Give the number of elements to reach, such as the next multiple of the batch size."
        object.__setattr__(self, "count", check_int("cardinality", self.count, least=0, hint=hint))
        self._check_elements()
        have = self.input.cardinality
        if have == INFINITE_CARDINALITY:
            message = "pad_to_cardinality needs a finite data set, this one is infinite."
            raise InvalidArgumentError(message, hint="Bound it with take().")
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
                message = f"Zeros can be made of a known shape only, component {path} is {leaf!r}."
                raise InvalidArgumentError(message, hint="Batch with drop_remainder=True, or pad to a fixed shape.")

    @property
    def label(self) -> str:
        return f"pad_to_cardinality({self.count})"

    @property
    def spec(self) -> Any:
        below = self.input.spec
        return None if below is None else {**below, self.mask_key: TensorSpec((), np.bool_)}

    @property
    def cardinality(self) -> int:
        return self.count
