"""JsonKinds: the keys of JSON Lines objects and the kinds of their values.

JsonLeaf converts the values of one key to leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import DType, as_dtype, dtype_name
from penstock.block.structure import Structure, flatten
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError, PenstockError
from penstock.sources.row_files import unreadable

EXACT = 1 << 53  # larger integers may not be exact in float64
HINT = "defaults={key: value} gives a key a dtype and a value, ps.RaggedTensor([], [0]) for unequal lists."
Path = tuple[str, ...]


def named(path: Path) -> str:
    """Return the name of a key for errors, with the keys of enclosing objects."""
    return repr(".".join(path))


def leaf_of(path: Path, found: Any) -> Any:
    """Return a JSON value as a leaf. Raises InvalidTypeError or InvalidArgumentError with the name of the key."""
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
        raise type(error)(message, hint=HINT) from None


def _is_empty(found: Any) -> bool:
    return isinstance(found, list) and all(map(_is_empty, found))


def _is_wide(number: float) -> bool:
    """Return True for an integer that float64 may not represent. Conversion to float32 goes through float64."""
    return type(number) is int and not -EXACT <= number <= EXACT


def kind_of(leaf: Any) -> tuple[DType, int]:
    """Return (dtype, rank) of a leaf."""
    if isinstance(leaf, bytes):
        return bytes, 0
    if isinstance(leaf, RaggedTensor):
        return kind_of(leaf.flat_values)[0], len(leaf.shape)
    return (bytes if leaf.dtype == object else leaf.dtype), leaf.ndim


@dataclass(frozen=True, eq=False)
class JsonLeaf:
    """The dtype and rank of the values of a key, and the default for a missing or null value.

    `ragged` lists may have unequal lengths at every level, such as lists inside lists of objects. In a ragged leaf, a
    default that is not a RaggedTensor replaces missing items.
    """

    path: Path
    dtype: DType
    rank: int
    default: Any = None
    ragged: bool = False

    @classmethod
    def of(cls, path: Path, found: Any, default: Any = None, lists: int = 0) -> JsonLeaf:
        """Return the kind of the default, or of the first value. The value is inside `lists` lists of objects."""
        if default is None and (lists or not _is_regular(found)):
            rank = _depth(found)
            flat = _flat(found, rank)
            return cls(path, kind_of(leaf_of(path, found if flat is None else flat[0]))[0], rank, ragged=True)
        dtype, rank = kind_of(leaf_of(path, found) if default is None else default)
        return cls(path, dtype, rank + lists, default, lists > 0 or isinstance(default, RaggedTensor))

    def value(self, found: Any) -> Any:
        """Return a JSON value as a leaf. Raises InvalidTypeError for a value of another kind."""
        fill = None if isinstance(self.default, RaggedTensor) else self.default
        if found is None and self.default is not None:
            if not self.ragged or fill is None:
                return self.default
            found = []
        flat = _flat(found, self.rank) if self.ragged else None
        if flat is not None:
            items = [fill if item is None else item for item in flat[0]]
            values = replace(self, rank=1, default=None, ragged=False).value(items)
            for splits in reversed(flat[1]):
                values = RaggedTensor(values, splits)
            return values
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
        """Return True if numbers of `dtype` convert to this dtype.

        Integers convert to any number, floats only to floats.
        """
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
        """Convert all values at once, if they are scalars or flat lists of this kind. Otherwise return None.

        This is only a faster form of `value`, which defines the results.
        """
        try:
            if self.rank == 0:
                return self._scalars(found)
            if self.rank == 1 and set(map(type, found)) == {list}:
                return self._lists(found)
        except Exception:  # one value is the reason, and `value` reports it
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


Defaults = dict[Path, Any]


@dataclass(frozen=True, eq=False)
class JsonKinds:
    """The keys of the objects, in order, each with the kind of its values."""

    leaves: tuple[JsonLeaf, ...]

    @classmethod
    def of(cls, first: Mapping[str, Any], defaults: Defaults) -> JsonKinds:
        """Return the kinds of the first object, and of `defaults`.

        Raises InvalidTypeError for a value that is not a leaf.
        """
        inner = {path[:i] for path in defaults for i in range(1, len(path))}
        found = dict(_walk(first, defaults))
        for path in inner:
            found.pop(path, None)  # a null object: its keys have defaults
        for path in found:
            for outer in (path[:i] for i in range(1, len(path))):
                if outer in defaults:
                    leaf_of(outer, {})  # raises, because an object is no value
        found |= {path: None for path in defaults if path not in found}
        if not found:
            message = "An object without keys is no element."
            raise InvalidTypeError(message, hint=HINT)
        leaves = ((path, value, defaults.get(path), _lists_around(first, path)) for path, value in found.items())
        return cls(tuple(JsonLeaf.of(*leaf) for leaf in leaves))

    @cached_property
    def structure(self) -> Structure:
        """Return the structure as a nest of dicts."""
        nest: dict[str, Any] = {}
        for leaf in self.leaves:
            inner = nest
            for name in leaf.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[leaf.path[-1]] = 0
        return flatten(nest)[1]

    @cached_property
    def _names(self) -> list[str] | None:
        """Return the keys, or None if an object is inside another."""
        return None if any(len(leaf.path) > 1 for leaf in self.leaves) else [leaf.path[0] for leaf in self.leaves]

    @cached_property
    def _inner(self) -> set[Path]:
        return {leaf.path[:i] for leaf in self.leaves for i in range(1, len(leaf.path))}

    def values(self, found: dict[str, Any]) -> list[Any]:
        """Return the JSON value of each key, or None. Raises InvalidTypeError for an object with other keys."""
        names = self._names
        if names is not None and len(found) == len(names):
            try:
                return [found[name] for name in names]
            except KeyError:
                pass  # the code below reports all differences
        flat = dict(_walk(found, [leaf.path for leaf in self.leaves if leaf.default is not None], self._inner))
        known = [leaf.path for leaf in self.leaves]
        for path in [path for path in flat if path in self._inner and _is_empty(flat[path])]:
            empty = flat.pop(path)  # lists without objects
            flat |= {inside: empty for inside in known if inside[: len(path)] == path}
        more = [path for path in flat if path not in known and not (path in self._inner and flat[path] is None)]
        less = [leaf.path for leaf in self.leaves if leaf.path not in flat and leaf.default is None]
        if more or less:
            said = [
                f"{what} {', '.join(map(named, paths))}" for what, paths in (("has no", less), ("has", more)) if paths
            ]
            message = f"Every line has the same keys, and this one {' and '.join(said)}."
            raise InvalidTypeError(message, hint=HINT)
        return [flat.get(path) for path in known]

    def columns(self, rows: Sequence[list[Any]]) -> tuple[list[Column], list[tuple[int, Exception]]]:
        """Return the columns of valid rows (none if there are none), and (number, error) of the other rows."""
        made: list[Column | list[Any]] = []
        failures: dict[int, Exception] = {}
        for leaf, found in zip(self.leaves, zip(*rows, strict=True), strict=True):
            column = leaf.column(found)
            made.append(_one_by_one(leaf, found, failures) if column is None else column)
        good = np.array([number for number in range(len(rows)) if number not in failures], np.int64)
        if not len(good):
            return [], sorted(failures.items())
        columns = []
        for values in made:
            if isinstance(values, list):
                columns.append(_column([values[number] for number in good.tolist()]))
            else:
                columns.append(values.take(good) if failures else values)
        return columns, sorted(failures.items())

    def state(self) -> list[Any]:
        """Return the data that `restored` needs besides the defaults, as JSON."""
        return [[list(leaf.path), dtype_name(leaf.dtype), leaf.rank, leaf.ragged] for leaf in self.leaves]

    @classmethod
    def restored(cls, state: Sequence[Any], defaults: Defaults) -> JsonKinds:
        parts = ((tuple(path), as_dtype(dtype), rank, *ragged) for path, dtype, rank, *ragged in state)
        return cls(tuple(JsonLeaf(path, dtype, rank, defaults.get(path), *more) for path, dtype, rank, *more in parts))


def _column(values: list[Any]) -> Column:
    first = values[0]
    if isinstance(first, np.ndarray) and first.dtype == object and not any(value.size for value in values):
        return ListColumn(values)  # a BytesColumn without byte strings cannot know the number of arrays
    return column_of(values)


def _one_by_one(leaf: JsonLeaf, found: Sequence[Any], failures: dict[int, Exception]) -> list[Any]:
    """Return the values, with None for an invalid one. The first error of each row is stored in `failures`."""
    values = []
    for number, value in enumerate(found):
        try:
            values.append(leaf.value(value))
        except Exception as error:  # an error of any kind in one line must not affect the others
            values.append(None)
            failures.setdefault(number, unreadable(f"Key {named(leaf.path)}", error))
    return values


def _walk(
    found: Mapping[str, Any], given: Collection[Path], inner: set[Path] | None = None, above: Path = ()
) -> Iterator[tuple[Path, Any]]:
    """Yield (path, value) of all values that are no objects.

    With `inner`, only objects at these paths are opened; empty objects too.

    Lists of objects become objects of lists. These also have the keys in `given`, which have defaults.
    """
    for name, value in found.items():
        path = (*above, name)
        if isinstance(value, list) and (inner is None or path in inner):
            value = _transposed(value, [one[len(path)] for one in given if path == one[: len(path)] != one])
        if isinstance(value, dict) and (not value or inner is None or path in inner):
            yield from _walk(value, given, inner, path)
        else:
            yield path, value


def _transposed(items: list[Any], names: Sequence[str]) -> Any:
    """Return a list of objects as an object of lists, with `names` and all keys of the objects.

    Other lists are unchanged.
    """
    inside = [_transposed(item, names) if isinstance(item, list) else item for item in items]
    objects = [item for item in inside if isinstance(item, dict)]
    if not objects or not all(item is None or isinstance(item, dict) or _is_empty(item) for item in inside):
        return items
    found = dict.fromkeys([*chain.from_iterable(objects), *names])
    return {name: [item.get(name) if isinstance(item, dict) else item for item in inside] for name in found}


def _lists_around(found: Any, path: Path) -> int:
    """Return the number of lists of objects around the values of a key."""
    count = 0
    for name in path[:-1]:
        found = found.get(name) if isinstance(found, dict) else None
        while isinstance(found, list):
            count += 1
            found = next(filter(None, found), None)
    return count


def _depth(found: Any) -> int:
    return 1 + max(map(_depth, found), default=0) if isinstance(found, list) else 0


def _is_regular(found: Any) -> bool:
    """Return True for nested lists that are equally long at every level."""
    inner = [item for item in found if isinstance(item, list)] if isinstance(found, list) else []
    return not inner or (len(inner) == len(found) and len({*map(len, inner)}) == 1 and all(map(_is_regular, inner)))


def _flat(found: Any, rank: int) -> tuple[list[Any], list[np.ndarray]] | None:
    """Return the items of nested lists, and the row splits of each level. Return None if an item is no list."""
    items, splits = [found], []
    for _ in range(rank):
        if not all(isinstance(item, list) for item in items):
            return None
        splits.append(np.cumsum([0, *map(len, items)]))
        items = list(chain.from_iterable(items))
    return items, splits[1:]
