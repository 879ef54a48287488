"""ScanState: the state that a user's function passes from one element to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.fixed import fix
from penstock.block.leaf import as_leaf, from_json, settle, to_json
from penstock.block.spec import dtype_name, spec_of
from penstock.block.structure import Structure, flatten, is_nest, refuse_none
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError

_NUMBERS = "biufc"


@dataclass(frozen=True, slots=True)
class InitialState:
    """The state before the first element: its nest, and its leaves as a JSON string, so that plans can be compared."""

    structure: Structure
    text: str

    @classmethod
    def of(cls, nest: Any) -> InitialState:
        """Return the initial state from a user's value: literals become numpy values, arrays are copied."""
        import json

        leaves, structure = flatten(nest)
        try:
            refuse_none(structure)
            return cls(structure, json.dumps([to_json(as_leaf(leaf)) for leaf in leaves]))
        except InvalidTypeError as error:
            message = f"The initial state is not valid: {error.message}"
            raise InvalidTypeError(message, hint="Give numbers, text, arrays, or tuples and dicts of them.") from None

    def carried(self) -> ScanState:
        return ScanState(self.structure, self._leaves())

    @property
    def spec(self) -> Any:
        return self.structure.build([spec_of(leaf) for leaf in self._leaves()])

    def _leaves(self) -> list[Any]:
        import json

        return [from_json(leaf) for leaf in json.loads(self.text)]


class ScanState:
    """A nest of leaves with constant structure, dtypes and kinds of tensor; shapes may change.

    Its arrays are read-only, so a function that fails midway leaves the state unchanged.
    """

    def __init__(self, structure: Structure, leaves: list[Any]) -> None:
        self._structure = structure
        self._kinds = [_kind(leaf) for leaf in leaves]
        first = leaves[0] if structure.is_leaf else None
        plain = isinstance(first, np.generic) and first.dtype.kind in _NUMBERS
        self._scalar = type(first) if plain else None  # class of a single number, for which checks are skipped
        self._put(leaves)

    def _put(self, leaves: list[Any]) -> None:
        for leaf in leaves:
            if isinstance(leaf, np.ndarray):
                leaf.flags.writeable = False
            elif isinstance(leaf, (RaggedTensor, SparseTensor)):
                leaf.with_arrays(fix)
        self._leaves = leaves
        self._json: list[Any] | None = None

    def nest(self) -> Any:
        """Return the value that the user's function receives; dicts and other containers are new in each call."""
        return self._leaves[0] if self._scalar is not None else self._structure.build(self._leaves)

    def replace(self, held: list[Any]) -> None:
        """Set the value to `held.pop()`.

        The argument is a list so that the list holds the only reference: an array with other references is copied.

        Raises:§InvalidTypeError: If the structure, a dtype or a kind of leaf differs. The value then stays unchanged.
        """
        if type(held[-1]) is self._scalar:
            self._leaves[0], self._json = held.pop(), None
            return
        if isinstance(held[-1], list) and self._structure.kind is tuple:
            held[-1] = tuple(held[-1])
        leaves = self._settled(held)
        for i, leaf in enumerate(leaves):
            if _kind(leaf) != self._kinds[i]:
                raise self._other_kind(i, leaf)
        self._put(leaves)

    def _other_kind(self, which: int, leaf: Any) -> InvalidTypeError:
        path, wanted, found = self._structure.paths()[which], _name(self._kinds[which]), _name(_kind(leaf))
        place = f" in component {path}" if path else ""
        message = f"The state keeps its dtypes: it began with {wanted}{place}, the function returned {found}."
        return InvalidTypeError(message, hint=_hint(wanted))

    def _settled(self, held: list[Any]) -> list[Any]:
        try:
            leaves = self._structure.flatten(held[-1])
        except InvalidTypeError:
            raise self._other_structure(held[-1]) from None
        held.pop()
        try:
            return settle(leaves)
        except InvalidTypeError as error:
            if self._structure.is_leaf and is_nest(leaves[0]):
                raise self._other_structure(leaves[0]) from None
            raise InvalidTypeError(f"The function returned no state: {error.message}", hint=error.hint) from None

    def _other_structure(self, nest: Any) -> InvalidTypeError:
        expected, found = self._structure.describe(), flatten(nest)[1].describe()
        message = f"The structure of the state changed: expected {expected}, got {found}."
        return InvalidTypeError(message, hint="Return the state as the nest of tuples and dicts that it began with.")

    def to_json(self) -> list[Any]:
        """Return the leaves for a checkpoint."""
        if self._json is None:
            self._json = [to_json(leaf) for leaf in self._leaves]
        return self._json

    def load_json(self, data: list[Any]) -> None:
        """Restore the value from the result of `to_json`."""
        self._put([from_json(leaf) for leaf in data])

    def copied(self) -> Any:
        """Return a copy of the value that the caller owns."""
        return self._structure.build([_copied(leaf) for leaf in self._leaves])


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    return leaf.with_arrays(np.copy) if isinstance(leaf, (RaggedTensor, SparseTensor)) else leaf


def _kind(leaf: Any) -> Any:
    """Return the part of a leaf that must stay constant: its dtype, and whether it is sparse, ragged or dense."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return bytes if leaf.dtype.kind == "O" else leaf.dtype
    return bytes if type(leaf) is bytes else (type(leaf).__name__, leaf.dtype)


def _name(kind: Any) -> str:
    return f"a {kind[0]} of {dtype_name(kind[1])}" if isinstance(kind, tuple) else dtype_name(kind)


def _hint(wanted: str) -> str:
    if hasattr(np, wanted):
        return f"Convert in the function, np.{wanted}(state), or begin with a state of another dtype."
    return "Return what initial_state is made of, or begin with another."
