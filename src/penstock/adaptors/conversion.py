"""Converts the leaves of an element to objects of a framework.

Columns have names, which errors about unsupported columns mention. A framework is imported on first use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from penstock.block.spec import RaggedTensorSpec, TensorSpec, dtype_name
from penstock.block.structure import Structure, flatten
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


def column_names(structure: Structure) -> list[str]:
    """Return the names of the leaves, in order. An element that is a single value has the empty name.

    >>> column_names(flatten(({"image": 1, "id": 2}, 3))[1])
    ['0.image', '0.id', '1']
    """
    if structure.kind is None:
        return [""]
    names = structure.names or range(len(structure.children))
    found = []
    for name, child in zip(names, structure.children, strict=True):
        found += [f"{name}.{below}" if below else str(name) for below in column_names(child)]
    return found


def called(name: str) -> str:
    """Return the beginning of a sentence about a column."""
    return f"Column {name!r}" if name else "The element"


def checked_names(parameter: str, names: Any) -> frozenset[str]:
    """Return the column names of an argument, which may be one name or several."""
    several = [names] if isinstance(names, str) else names
    if not isinstance(several, Iterable) or not all(isinstance(name, str) for name in several):
        message = f"{parameter} takes names of columns, got {names!r}."
        raise InvalidTypeError(message, hint='Such as "id", or ["0.id", "1"] for parts of a tuple.')
    return frozenset(several)


def check_there(parameter: str, names: Iterable[str], there: Sequence[str]) -> None:
    """Raise InvalidArgumentError for names that no column has."""
    missing = sorted(set(names) - set(there))
    if missing:
        message = f"{parameter} names the column {missing[0]!r}, which the element does not have."
        have = ", ".join(map(repr, there)) if any(there) else "none with a name: it is a single value"
        raise InvalidArgumentError(message, hint=f"It has {have}.")


def spec_columns(spec: Any) -> list[tuple[str, Any]]:
    """Return the columns of a nest of specs."""
    leaves, structure = flatten(spec)
    return list(zip(column_names(structure), leaves, strict=True))


def unheld(held: str, name: str, value: Any, otherwise: str | None) -> InvalidTypeError:
    """Return the error for a value that cannot become a `held` ("tensor of torch").

    `otherwise` is an alternative to changing the elements. Default: keep them as numpy.
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
    """Return the error for values of this spec, or None if the framework can represent them."""
    if isinstance(spec, TensorSpec):
        if spec.dtype is bytes:
            return _bytes(held, name, otherwise)
        return None if holds(spec.dtype) else _dtype(held, name, spec.dtype, otherwise)
    if isinstance(spec, RaggedTensorSpec):
        return _tensor(held, name, RaggedTensor, otherwise)
    kind = getattr(spec, "value_type", None)
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
    if ragged and held == "tensor of torch" and otherwise is None:  # not for Keras
        other = f'Pass ragged="list" for a list of tensors. {other}'
    return InvalidTypeError(
        message, hint=f"{other} it dense with map(), as value.to_dense(), or {otherwise or _keep(name)}."
    )


def _dataset(held: str, name: str) -> InvalidTypeError:
    message = f"{called(name)} is a data set, of which no {held} can be made."
    return InvalidTypeError(message, hint="Make elements of it before: flat_map(lambda window: window.batch(8)).")


class Conversion(ABC):
    """Converts elements of one structure. Columns named in `as_numpy` stay numpy arrays.

    If the spec of the elements is known, an unsupported column raises an error at once, on the line of the user.
    """

    value: ClassVar[str]  # name of a result: "tensor of torch"
    otherwise: str | None = None  # advice of an error about an unsupported column

    def __init__(self, as_numpy: Any, spec: Any) -> None:
        self._as_numpy = checked_names("as_numpy", as_numpy)
        self._structure: Structure | None = None
        self.names: list[str] = []
        self._seen: list[Any] = []  # last supported dtype of each column
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
        """Return True if the framework has this dtype."""

    @abstractmethod
    def convert(self, array: np.ndarray, number: int) -> Any:
        """Convert the leaf with this number, which has a supported dtype. No other object writes to the array."""

    def leaves(self, element: Any) -> list[Any]:
        """Return the converted leaves in order. Columns of `as_numpy` stay numpy values."""
        if self._structure is None:
            self._learn(flatten(element)[1])
        assert self._structure is not None
        values = self._structure.flatten(element)
        for i, value in enumerate(values):
            if not self._as_numpy or self.names[i] not in self._as_numpy:
                values[i] = self._converted(value, i)
        return values

    def nest(self, leaves: Sequence[Any]) -> Any:
        """Build the element from these leaves."""
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
        if not (flags.writeable and flags.aligned):  # read-only memory belongs to another object, too
            value = value.copy()
        return self.convert(value, number)
