"""Conversion: the leaves of an element as a framework holds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from penstock.adaptors.columns import check_there, checked_names, column_names, spec_columns
from penstock.adaptors.unheld import unheld, unheld_spec
from penstock.block.structure import Structure, flatten


class Conversion(ABC):
    """Takes any number of elements of one structure. Columns named in `as_numpy` stay as they are.

    With the spec of the elements, a column that the framework cannot hold is an error now, on the user's line.
    """

    value: ClassVar[str]  # what one is called: "tensor of torch"
    otherwise: str | None = None  # what an error says may be done with a column that cannot be held

    def __init__(self, as_numpy: Any, spec: Any) -> None:
        self._as_numpy = checked_names("as_numpy", as_numpy)
        self._structure: Structure | None = None
        self.names: list[str] = []
        self._seen: list[Any] = []  # the dtype that each column had last, and that is held
        if spec is not None:
            self._learn(flatten(spec)[1])
            for name, leaf in spec_columns(spec):
                error = (
                    None if name in self._as_numpy else unheld_spec(self.value, name, leaf, self.holds, self.otherwise)
                )
                if error is not None:
                    raise error

    def _learn(self, structure: Structure) -> None:
        self._structure, self.names = structure, column_names(structure)
        self._seen = [None] * len(self.names)
        check_there("as_numpy", self._as_numpy, self.names)

    @abstractmethod
    def holds(self, dtype: np.dtype) -> bool:
        """Whether the framework has this dtype."""

    @abstractmethod
    def convert(self, array: np.ndarray, number: int) -> Any:
        """The leaf with this number, of a dtype that the framework has. The array is nobody else's to write to."""

    def leaves(self, element: Any) -> list[Any]:
        """What the framework holds, and numpy values where these were asked for, in the order of the leaves."""
        if self._structure is None:
            self._learn(flatten(element)[1])
        assert self._structure is not None
        values = self._structure.flatten(element)
        for i, value in enumerate(values):
            if not self._as_numpy or self.names[i] not in self._as_numpy:
                values[i] = self._converted(value, i)
        return values

    def nest(self, leaves: Sequence[Any]) -> Any:
        """The element again, of these leaves."""
        assert self._structure is not None
        return self._structure.build(leaves)

    def _converted(self, value: Any, number: int) -> Any:
        if type(value) is not np.ndarray:
            if not isinstance(value, (np.ndarray, np.generic)):
                raise unheld(self.value, self.names[number], value, self.otherwise)
            value = np.array(value)
        dtype = value.dtype
        if dtype is not self._seen[number]:
            if not self.holds(dtype):
                raise unheld(self.value, self.names[number], value, self.otherwise)
            self._seen[number] = dtype
        flags = value.flags
        if not (flags.writeable and flags.aligned):  # what is not to be written to is somebody else's, too
            value = value.copy()
        return self.convert(value, number)
