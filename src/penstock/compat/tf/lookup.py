"""`tf.lookup`: tables from keys to values, and vocabularies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, op
from penstock.compat.teaching import missing_in
from penstock.compat.tf.io.gfile import read_bytes
from penstock.compat.values import lowered, raised, whole
from penstock.errors import InvalidArgumentError


class TextFileIndex:
    """Columns of a line that are none: all of it, and its number."""

    WHOLE_LINE, LINE_NUMBER = -2, -1


class KeyValueTensorInitializer:
    """Keys and values as arrays."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: Any = None
    ) -> None:
        self.keys, self.values = whole(keys, key_dtype).reshape(-1), whole(values, value_dtype).reshape(-1)


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values from the lines of a file: its columns by number, or those of `TextFileIndex`."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: Any = None,
        delimiter: str = "\t",
        name: Any = None,
        value_index_offset: int = 0,
    ) -> None:
        content = read_bytes(lowered(filename)).split(b"\n")
        lines = [line.removesuffix(b"\r") for line in content[: None if content[-1] else -1]]
        lines = lines[: None if vocab_size is None else int(vocab_size)]

        def column(index: int, dtype: Any, offset: int) -> Any:
            if index == TextFileIndex.LINE_NUMBER:
                return whole([number + offset for number in range(len(lines))], dtype)
            whole_line = index == TextFileIndex.WHOLE_LINE
            texts = [line if whole_line else line.split(delimiter.encode())[index] for line in lines]
            wanted = as_dtype(dtype)
            if wanted.name == "string":
                return whole(texts)
            return np.array([float(text) if wanted.is_floating else int(text) for text in texts], wanted.dtype)

        super().__init__(column(key_index, key_dtype, 0), column(value_index, value_dtype, value_index_offset))


def _of_all(keys: np.ndarray, table: StaticHashTable) -> Any:
    found = [table._values.get(key, table.default_value) for key in keys.reshape(-1).tolist()]
    made = np.empty(len(found), table.initializer.values.dtype)
    made[:] = found
    return made.reshape(keys.shape)


@op("lookup", block=_of_all, text=True)
def _looked_up(keys: Any, table: StaticHashTable) -> Any:
    return _of_all(whole(keys), table)[()]


@dataclass(frozen=True, eq=False)
class StaticHashTable:
    """A table that stays as it is: `lookup` gives the values of keys, and `default_value` for any other key.

    >>> from penstock.compat import tf
    >>> table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [0, 1]), -1)
    >>> table.lookup(tf.constant(["dog", "owl"])).numpy()
    array([ 1, -1], dtype=int32)
    """

    initializer: KeyValueTensorInitializer
    default_value: Any
    name: Any = None
    _values: dict[Any, Any] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        keys, values = self.initializer.keys, self.initializer.values
        dtype = None if values.dtype.hasobject else values.dtype
        object.__setattr__(self, "default_value", whole(self.default_value, dtype)[()])
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            if self._values.setdefault(key, value) != value:
                message = f"The table has two values for the key {key!r}: {self._values[key]!r} and {value!r}."
                raise InvalidArgumentError(message)

    @known
    def lookup(self, keys: Any, name: Any = None) -> Any:
        return _looked_up(keys, self)

    __getitem__ = lookup

    def size(self, name: Any = None) -> Any:
        return raised(np.int64(len(self._values)))


@known
def StaticVocabularyTable(
    initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: Any = None
) -> StaticHashTable:
    """A table of integers; keys that are not there get the number behind the last."""
    if num_oov_buckets != 1:
        message = f"num_oov_buckets must be 1, got {num_oov_buckets!r}."
        hint = "Several buckets need TensorFlow's hash. Spread unknown words in a function, by hashlib.blake2b."
        raise InvalidArgumentError(message, hint=hint)
    return StaticHashTable(initializer, len(initializer.keys))


__getattr__ = missing_in(
    "tf.lookup",
    globals(),
    dict.fromkeys(("experimental", "StaticVocabularyTableFromFile"), "Write tf.lookup.StaticHashTable, or a dict."),
)
