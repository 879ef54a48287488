"""JsonKinds: which keys the objects of JSON Lines have, and of which kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock.block.column import Column, ListColumn, column_of
from penstock.block.spec import as_dtype, dtype_name
from penstock.block.structure import Structure, flatten
from penstock.errors import InvalidTypeError
from penstock.sources.json_leaf import HINT, JsonLeaf, Path, leaf_of, named
from penstock.sources.rows import unreadable

Defaults = dict[Path, Any]


@dataclass(frozen=True, eq=False)
class JsonKinds:
    """The keys of the objects, in their order, each with the kind of its values."""

    leaves: tuple[JsonLeaf, ...]

    @classmethod
    def of(cls, first: Mapping[str, Any], defaults: Defaults) -> JsonKinds:
        """As the first object has them, and `defaults` beside it. Raises InvalidTypeError for what can be no leaf."""
        inner = {path[:i] for path in defaults for i in range(1, len(path))}
        found = dict(_walk(first))
        for path in inner:
            found.pop(path, None)  # an object that is null: its keys have defaults
        for path in found:
            for outer in (path[:i] for i in range(1, len(path))):
                if outer in defaults:
                    leaf_of(outer, {})  # raises: an object is no value
        found |= {path: None for path in defaults if path not in found}
        if not found:
            message = "An object without keys is no element."
            raise InvalidTypeError(message, hint=HINT)
        return cls(tuple(JsonLeaf.of(path, value, defaults.get(path)) for path, value in found.items()))

    @cached_property
    def structure(self) -> Structure:
        """The nest of dicts."""
        nest: dict[str, Any] = {}
        for leaf in self.leaves:
            inner = nest
            for name in leaf.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[leaf.path[-1]] = 0
        return flatten(nest)[1]

    @cached_property
    def _names(self) -> list[str] | None:
        """The keys, where no object is inside another."""
        return None if any(len(leaf.path) > 1 for leaf in self.leaves) else [leaf.path[0] for leaf in self.leaves]

    @cached_property
    def _inner(self) -> set[Path]:
        return {leaf.path[:i] for leaf in self.leaves for i in range(1, len(leaf.path))}

    def values(self, found: dict[str, Any]) -> list[Any]:
        """The JSON value of each key, None where there is none; raises InvalidTypeError for an object of other keys."""
        names = self._names
        if names is not None and len(found) == len(names):
            try:
                return [found[name] for name in names]
            except KeyError:
                pass  # said below, with all that differs
        flat = dict(_walk(found, self._inner))
        known = [leaf.path for leaf in self.leaves]
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
        """Columns of those rows that are of this kind, none if there is no such row; (number, error) of the others."""
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
        """What `restored` needs beside the defaults, as JSON."""
        return [[list(leaf.path), dtype_name(leaf.dtype), leaf.rank] for leaf in self.leaves]

    @classmethod
    def restored(cls, state: Sequence[Any], defaults: Defaults) -> JsonKinds:
        parts = ((tuple(path), as_dtype(dtype), rank) for path, dtype, rank in state)
        return cls(tuple(JsonLeaf(path, dtype, rank, defaults.get(path)) for path, dtype, rank in parts))


def _column(values: list[Any]) -> Column:
    first = values[0]
    if isinstance(first, np.ndarray) and first.dtype == object and not any(value.size for value in values):
        return ListColumn(values)  # a BytesColumn without byte strings does not know how many arrays it holds
    return column_of(values)


def _one_by_one(leaf: JsonLeaf, found: Sequence[Any], failures: dict[int, Exception]) -> list[Any]:
    """The values, None where there is none: there the error is noted, if it is the first one of its row."""
    values = []
    for number, value in enumerate(found):
        try:
            values.append(leaf.value(value))
        except Exception as error:  # of any kind: what one line holds is no reason to lose the others
            values.append(None)
            failures.setdefault(number, unreadable(f"Key {named(leaf.path)}", error))
    return values


def _walk(found: Mapping[str, Any], inner: set[Path] | None = None, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of all that is no object; with `inner`, objects elsewhere count as values, but for empty ones."""
    for name, value in found.items():
        path = (*above, name)
        if isinstance(value, dict) and (not value or inner is None or path in inner):
            yield from _walk(value, inner, path)
        else:
            yield path, value
