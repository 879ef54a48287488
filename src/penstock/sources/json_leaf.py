"""JsonLeaf: the kind of the values that one key of JSON Lines has, and the values as leaves of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.leaf import as_leaf
from penstock.block.spec import DType, dtype_name
from penstock.errors import InvalidArgumentError, InvalidTypeError, PenstockError

EXACT = 1 << 53  # integers up to here are float64s
HINT = "defaults={key: value} says the dtype of a key, and stands in where it is absent or null."
Path = tuple[str, ...]


def named(path: Path) -> str:
    """A key as errors call it: with those of the objects around it."""
    return repr(".".join(path))


def leaf_of(path: Path, found: Any) -> Any:
    """The leaf that a JSON value is; raises InvalidTypeError or InvalidArgumentError with the name of the key."""
    if found is None:
        message = f"Key {named(path)} is null, and it has no default."
        raise InvalidTypeError(message, hint=HINT)
    if isinstance(found, dict):
        message = f"Key {named(path)} is an object, and before it was none."
        raise InvalidTypeError(message, hint=HINT)
    try:
        with np.errstate(over="ignore"):
            return np.asarray(found, np.float32) if _is_empty(found) else as_leaf(found)
    except PenstockError as error:
        message = f"Key {named(path)}: {error.message}"
        raise type(error)(message) from None
    except UnicodeEncodeError as error:
        message = f"Key {named(path)} holds half of a surrogate pair, which is no text."
        raise InvalidArgumentError(message) from error


def _is_empty(found: Any) -> bool:
    return isinstance(found, list) and all(map(_is_empty, found))


def _is_wide(number: float) -> bool:
    """Whether it is an integer that a float64 need not hold, on its way to float32."""
    return type(number) is int and not -EXACT <= number <= EXACT


def kind_of(leaf: Any) -> tuple[DType, int]:
    """(dtype, rank)."""
    if isinstance(leaf, bytes):
        return bytes, 0
    return (bytes if leaf.dtype == object else leaf.dtype), leaf.ndim


@dataclass(frozen=True, eq=False)
class JsonLeaf:
    """The dtype and rank of the values of a key, and what stands in for one that is absent or null."""

    path: Path
    dtype: DType
    rank: int
    default: Any = None

    @classmethod
    def of(cls, path: Path, found: Any, default: Any = None) -> JsonLeaf:
        """As the default has it, else as the value found first."""
        return cls(path, *kind_of(leaf_of(path, found) if default is None else default), default)

    def value(self, found: Any) -> Any:
        """The leaf that a JSON value is; raises InvalidTypeError for one of another kind."""
        if found is None and self.default is not None:
            return self.default
        leaf = leaf_of(self.path, found)
        dtype, rank = kind_of(leaf)
        if rank == self.rank:
            if dtype == self.dtype:
                return leaf
            if rank and leaf.size == 0:
                return np.empty(leaf.shape, object if self.dtype is bytes else self.dtype)
            if self._admits(dtype):
                return self._cast(np.asarray(found, np.float64)[()] if self.dtype == np.float64 else leaf)
        wanted, had = (f"{dtype_name(d)} of rank {r}" for d, r in ((self.dtype, self.rank), (dtype, rank)))
        message = f"Key {named(self.path)} is {wanted}, and in this line it is {had}."
        raise InvalidTypeError(message, hint=HINT)

    def _admits(self, dtype: DType) -> bool:
        """Whether numbers of `dtype` may become this one's: integers any number, floats only floats."""
        if dtype is bytes or self.dtype is bytes:
            return False
        wanted = np.dtype(self.dtype).kind
        return dtype.kind in "iu" and wanted in "iuf" if dtype.kind != "f" else wanted == "f"

    def _cast(self, leaf: Any) -> Any:
        dtype = np.dtype(self.dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype.name)
            if np.any(leaf < limits.min) or np.any(leaf > limits.max):
                message = f"Key {named(self.path)} is {dtype}, and {leaf!r:.60} does not fit."
                raise InvalidArgumentError(message, hint="Give a default of a wider dtype.")
        with np.errstate(over="ignore"):
            return leaf.astype(dtype)

    def column(self, found: Sequence[Any]) -> Column | None:
        """All values at once, where they are scalars or flat lists of this very kind; None asks for one by one.

        `value` says what they are: this is only quicker.
        """
        try:
            if self.rank == 0:
                return self._scalars(found)
            if self.rank == 1 and set(map(type, found)) == {list}:
                return self._lists(found)
        except Exception:  # one of them is the reason, and finds out on its own
            pass
        return None

    def _scalars(self, found: Sequence[Any]) -> Column | None:
        if self.dtype is bytes:
            return (
                BytesColumn.from_values([text.encode() for text in found]) if set(map(type, found)) == {str} else None
            )
        array = self._array(found)
        return None if array is None else DenseColumn(array)

    def _lists(self, found: Sequence[list[Any]]) -> Column | None:
        array = None if self.dtype is bytes else self._array(list(chain.from_iterable(found)))
        if array is None:
            return None
        sizes = list(map(len, found))
        if len(set(sizes)) == 1:
            return DenseColumn(array.reshape(len(found), sizes[0]))
        return ListColumn(np.split(array, np.cumsum(sizes)[:-1]))

    def _array(self, found: Sequence[Any]) -> np.ndarray | None:
        kinds = set(map(type, found))
        if self.dtype == np.int64:
            return np.array(found, np.int64) if kinds <= {int} else None
        if self.dtype == np.bool_:
            return np.array(found, np.bool_) if kinds <= {bool} else None
        if self.dtype == np.float32 and kinds <= {int, float} and not (int in kinds and any(map(_is_wide, found))):
            with np.errstate(over="ignore"):
                return np.array(found, np.float64).astype(np.float32)
        return None
