"""Feature: the interface of all kinds of values, and their form in a record."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.block.spec import RaggedTensorSpec, TensorSpec
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError

# The largest decompressed size of a single value of a record.
MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class Stored:
    """One entry of a record: `dtype` is `bytes` or a numpy dtype, and None in `shape` is a variable size.

    The first `sequence_rank` dimensions come from sequences around the value.
    """

    shape: tuple[int | None, ...]
    dtype: Any
    sequence_rank: int = 0
    optional: bool = False
    default: Any = None

    def repeated(self, length: int | None) -> Stored:
        """Return the entry of a sequence of these values."""
        return replace(self, shape=(length, *self.shape), sequence_rank=self.sequence_rank + 1)

    @property
    def wire_dtype(self) -> Any:
        """The dtype in the record: bytes, int64 or float32."""
        if self.dtype is bytes:
            return bytes
        return np.float32 if self.dtype.kind == "f" else np.int64


# One entry, or entries by name.
StoredNest = Stored | Mapping[str, Any]


@dataclass(frozen=True)
class Documentation:
    """Description of a feature, which is stored in `features.json` as tfds does.

    Attributes:
        desc: Description of the feature.
        value_range: Description of its values.

    Example:
        >>> Documentation("Age of the patient.", value_range="0 to 120").value_range
        '0 to 120'
    """

    desc: str | None = None
    value_range: str | None = None


# The description of a feature: a text or a `Documentation`.
Doc = str | Documentation | None


def documentation(doc: Any) -> Documentation:
    """Return a description as a `Documentation`."""
    if isinstance(doc, Documentation):
        return doc
    if doc is not None and not isinstance(doc, str):
        message = f"doc must be text or a Documentation, got {type(doc).__name__}."
        raise InvalidTypeError(message, hint='For example doc="How old the patient is."')
    return Documentation(doc)


# Lengths of the sequences around a value, the outermost first; None: variable.
Lengths = tuple[int | None, ...]


class Feature(ABC):
    """Base class of features: named values of an example.

    A feature checks and stores its values, describes their form in a record, and reads them again. Values are stored as
    bytes, int64 or float32, as tfds stores them.

    Example:
        >>> from penstock.catalog.features import Text
        >>> issubclass(Text, Feature)
        True
    """

    # Class of tfds for the same feature, for `features.json`.
    tfds_class: str
    doc = Documentation()

    @abstractmethod
    def encode_example(self, value: Any, name: str) -> Any:
        """Check `value` and return the form that `stored` describes. Errors mention `name`."""

    @abstractmethod
    def stored(self) -> StoredNest:
        """Return the form of this feature in a record."""

    @abstractmethod
    def decode_example(self, stored: Any) -> Any:
        """Return the value for the user from the stored value."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the entry of this feature in tfds's `features.json`, without the class name."""

    def spec(self, lengths: Lengths = ()) -> Any:
        """Return the nest of specs of decoded values in sequences of `lengths`, or None if only a value shows it."""
        return None

    def decode_batch(self, stored: Any) -> Any:
        """Return the values of a sequence from the stored ones. They must have the same shape."""
        values = [np.asarray(self.decode_example(one)) for one in rows_of(stored)]
        if not values:
            return self.empty_batch()
        if any(value.shape != values[0].shape for value in values):
            shapes = sorted({value.shape for value in values})
            message = f"the values of one sequence must have one shape, got {shapes[0]} and {shapes[1]}."
            hint = "Read them as they are stored, with decoders={…: SkipDecoding()}, and decode them one by one."
            raise InvalidArgumentError(message, hint=hint)
        return np.stack(values)

    def empty_batch(self) -> Any:
        """Return the value of an empty sequence."""
        leaf = self.stored()
        shape = leaf.shape if isinstance(leaf, Stored) else ()
        dtype = object if not isinstance(leaf, Stored) or leaf.dtype is bytes else leaf.dtype
        return np.empty((0, *(size or 0 for size in shape)), dtype)

    def restore(self, stored: Any, rank: int, decoders: Any = None) -> Any:
        """Return the decoded value of a stored value in `rank` nested sequences."""
        using = self if decoders is None else decoders.of(self)
        if rank == 0:
            return using.decode_example(stored)
        return using.decode_batch(stored) if rank == 1 else map_flat(using.decode_batch, stored)

    def entry(self) -> dict[str, Any]:
        """Return the complete entry in `features.json`."""
        told = {"description": self.doc.desc, "valueRange": self.doc.value_range}
        return {
            "pythonClassName": self.tfds_class,
            **{name: text for name, text in told.items() if text},
            **self.to_json(),
        }

    def __repr__(self) -> str:
        facts = self.facts()
        return f"{type(self).__name__}({', '.join(f'{name}={fact}' for name, fact in facts.items())})"

    def repr_inside(self) -> str:
        """Return the repr of this feature inside another one. A plain scalar is shown as its dtype."""
        return repr(self)

    def part(self, wanted: Any, name: str) -> Feature:
        """Return the part of a dict of features, or of a sequence of dicts, that `wanted` describes."""
        message = f"feature {name!r} is a {type(self).__name__}, of which no part can be read; got {wanted!r}."
        raise InvalidArgumentError(message, hint=f"Write {{{name!r}: True}} for all of it.")

    def facts(self) -> dict[str, Any]:
        """Return the properties for `repr`: shape and dtype if the feature has them, as in tfds."""
        found: dict[str, Any] = {}
        if hasattr(self, "shape"):
            found["shape"] = self.shape
        if hasattr(self, "dtype"):
            found["dtype"] = dtype_name(self.dtype)
        if self.doc.desc:
            found["description"] = self.doc.desc
        return found

    def save_metadata(self, folder: Path, name: str) -> None:  # noqa: B027 - most features have none
        """Write the files of the feature, such as the names of classes, into `folder`."""

    def load_metadata(self, folder: Path, name: str) -> None:  # noqa: B027 - most features have none
        """Read the files that `save_metadata` has written."""


def spec_in_sequences(shape: tuple[int | None, ...], dtype: Any, lengths: Lengths) -> TensorSpec | RaggedTensorSpec:
    """Return the spec of values of `shape` in sequences: stacked in one sequence, a ragged tensor in several.

    >>> spec_in_sequences((2,), np.int64, (None,))
    TensorSpec(shape=(None, 2), dtype=int64)
    """
    found = TensorSpec((*lengths, *shape), dtype)
    return found if len(lengths) < 2 else RaggedTensorSpec(found.shape, dtype, np.int64, len(lengths) - 1)


def rows_of(stored: Any) -> list[Any]:
    """Return the stored values of a sequence as a list. Values of a dict are dicts."""
    if isinstance(stored, Mapping):
        columns = {name: list(values) for name, values in stored.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return list(stored)


def file_content(value: Any) -> Any:
    """Return the bytes of a path or of an open file, and any other value unchanged."""
    if isinstance(value, str | os.PathLike):
        return Path(value).read_bytes()
    return value.read() if hasattr(value, "read") else value


def map_flat(function: Any, stored: Any) -> Any:
    """Apply `function` to the innermost values of a ragged tensor, and return them in the same rows."""
    if isinstance(stored, Mapping):
        first = next(iter(stored.values()))
        if not isinstance(first, RaggedTensor):
            return function(stored)
        inner = map_flat(function, {name: ragged.values for name, ragged in stored.items()})
        return RaggedTensor(inner, first.row_splits)
    if isinstance(stored, RaggedTensor):
        return RaggedTensor(map_flat(function, stored.values), stored.row_splits)
    return function(stored)


def shape_json(shape: tuple[int | None, ...]) -> dict[str, Any]:
    """Return a shape in tfds's JSON: sizes as text, -1 for an unknown size, no entry for a scalar.

    >>> shape_json((None, 3))
    {'dimensions': ['-1', '3']}
    >>> shape_json(())
    {}
    """
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}


def shape_of_json(entry: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Return the shape of an entry that `shape_json` made.

    >>> shape_of_json({"dimensions": ["-1", "3"]})
    (None, 3)
    """
    return tuple(None if int(size) < 0 else int(size) for size in entry.get("dimensions", ()))


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype in `features.json`.

    >>> dtype_name(bytes), dtype_name(np.dtype(bool))
    ('string', 'bool')
    """
    return "string" if dtype is bytes else str(np.dtype(dtype).name)


def repr_of_dict(name: str, features: Mapping[str, Feature]) -> str:
    """Return the repr of a dict of features as in tfds: sorted, one per line."""
    lines = [f"{name}({{"]
    for key in sorted(features):
        lines += [f"    {line}" for line in f"{key!r}: {features[key].repr_inside()},".split("\n")]
    return "\n".join([*lines, "})"])


def fits(shape: tuple[int | None, ...], found: tuple[int, ...]) -> bool:
    """Return True if an array of shape `found` fits `shape`."""
    return len(shape) == len(found) and all(
        want is None or want == have for want, have in zip(shape, found, strict=True)
    )


def child_name(parent: str, name: str) -> str:
    """Return the file name of a nested feature: `objects` and `label` give `objects-label`."""
    name = name.replace("/", ".")
    return f"{parent.replace('/', '-')}-{name}" if parent else name
