"""`tf.lookup`: tables from keys to values, and vocabularies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.column import BytesColumn
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, op, texts_of
from penstock.compat.teaching import Namespace, missing_in
from penstock.compat.tf.hashing import fingerprint64
from penstock.compat.tf.io.gfile import read_bytes
from penstock.compat.values import array_of, lowered, one_text, raised, whole
from penstock.errors import InvalidArgumentError, InvalidTypeError


class TextFileIndex:
    """Special columns of a line: the whole line, and its number."""

    WHOLE_LINE, LINE_NUMBER = -2, -1


class KeyValueTensorInitializer:
    """Keys and values as arrays."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: Any = None
    ) -> None:
        self.keys, self.values = whole(keys, key_dtype).reshape(-1), whole(values, value_dtype).reshape(-1)


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values from columns of the lines of a file, by index or by `TextFileIndex`."""

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


class DatasetInitializer(KeyValueTensorInitializer):
    """Keys and values from a data set of pairs, which is read once."""

    def __init__(self, dataset: Any, key_dtype: Any = None, value_dtype: Any = None) -> None:
        pairs = list(dataset.as_numpy_iterator())
        super().__init__([key for key, _ in pairs], [value for _, value in pairs], key_dtype, value_dtype)


def _of_all(keys: np.ndarray, table: StaticHashTable) -> Any:
    values = table._of(keys.reshape(-1).tolist())
    return np.fromiter(values, table.initializer.values.dtype, keys.size).reshape(keys.shape)


def _of_block(keys: Any, table: StaticHashTable) -> Any:
    return _of_all(texts_of(keys) if isinstance(keys, BytesColumn) else keys, table)


@op("lookup", block=_of_block, text=True, ragged=True)
def _looked_up(keys: Any, table: StaticHashTable) -> Any:
    return _of_all(np.asarray(one_text(keys)), table)[()]


@dataclass(frozen=True, eq=False)
class StaticHashTable:
    """An immutable table: `lookup` returns the values of keys, and `default_value` for unknown keys.

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
        if isinstance(keys, ps.SparseTensor):
            return raised(keys).with_values(_looked_up(raised(keys).values, self))
        return _looked_up(array_of(keys), self)

    __getitem__ = lookup

    def _of(self, keys: list[Any]) -> Iterable[Any]:
        return map(self._values.get, keys, repeat(np.asarray(one_text(self.default_value)).tolist()))

    def export(self, name: Any = None) -> Any:
        """Return the keys and the values."""
        return raised(self.initializer.keys), raised(self.initializer.values)

    def size(self, name: Any = None) -> Any:
        return raised(np.int64(len(self._values)))


@dataclass(frozen=True, eq=False)
class StaticVocabularyTable(StaticHashTable):
    """A table of integers. Unknown keys get one of the numbers after the last, by their hash.

    The buckets are those of TensorFlow: `tf.strings.to_hash_bucket_fast` of the text, or of the digits of a number.
    """

    buckets: int = 1

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: Any = None, **other: Any
    ) -> None:
        if int(num_oov_buckets) < 1:
            message = f"num_oov_buckets must be at least 1, got {num_oov_buckets!r}."
            raise InvalidArgumentError(message, hint="tf.lookup.StaticHashTable has a default value in their place.")
        if initializer is None:
            initializer = KeyValueTensorInitializer(np.array([], object), np.array([], np.int64))
        object.__setattr__(self, "buckets", int(num_oov_buckets))
        super().__init__(initializer, len(initializer.keys), name)

    def _of(self, keys: list[Any]) -> Iterable[Any]:
        return (self._values[key] if key in self._values else self._bucket(key) for key in keys)

    def _bucket(self, key: Any) -> int:
        text = key if isinstance(key, bytes) else str(key).encode()
        return len(self._values) + fingerprint64(text) % self.buckets

    def size(self, name: Any = None) -> Any:
        return raised(np.int64(len(self._values) + self.buckets))


def table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: Any = None,
    default_value: Any = None,
    hasher_spec: Any = None,
    key_dtype: Any = "string",
    name: Any = None,
) -> StaticHashTable:
    """Return a table of the pairs of a data set, or of the first `vocab_size` pairs.

    Unknown keys get the default value, or one of `num_oov_buckets` numbers after the last.
    """
    pairs = dataset if vocab_size is None else dataset.take(int(vocab_size))
    initializer = DatasetInitializer(pairs, key_dtype)
    if num_oov_buckets:
        return StaticVocabularyTable(initializer, num_oov_buckets)
    return StaticHashTable(initializer, -1 if default_value is None else default_value)


def index_table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: Any = None,
    default_value: Any = -1,
    hasher_spec: Any = None,
    key_dtype: Any = "string",
    name: Any = None,
) -> StaticHashTable:
    """Return a table from the elements of a data set to their indices.

    >>> from penstock.compat import tf
    >>> table = index_table_from_dataset(tf.data.Dataset.from_tensor_slices(["cat", "dog"]))
    >>> table.lookup(tf.constant(["dog", "owl"])).numpy()
    array([ 1, -1])
    """
    numbered = dataset.enumerate().map(_turned)
    return table_from_dataset(numbered, num_oov_buckets, vocab_size, default_value, None, key_dtype)


def _turned(number: Any, key: Any) -> Any:
    return key, number


class MutableHashTable:
    """A table that changes in place. A function of `map` that uses the table runs per element, in this process.

    >>> from penstock.compat import tf
    >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    >>> table.insert(["cat", "dog"], [3, 4])
    >>> table.remove(["dog"])
    >>> table.lookup(["dog", "cat"]).numpy()
    array([-1,  3])
    """

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, *args: Any, **options: Any) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._default, self._values = whole(default_value, value_dtype), dict[Any, Any]()

    def __reduce__(self) -> Any:
        message = "A mutable table belongs to its process."
        raise InvalidTypeError(message, hint="tf.lookup.StaticHashTable can be sent to other processes.")

    def _keys(self, keys: Any) -> list[Any]:
        return whole(keys, self.key_dtype).reshape(-1).tolist()

    def _rows(self, rows: Any, shape: tuple[int, ...]) -> Any:
        found = np.empty((len(rows), *self._default.shape), self._default.dtype)
        for place, row in enumerate(rows):
            found[place] = row
        return raised(found.reshape((*shape, *self._default.shape)))

    def insert(self, keys: Any, values: Any, name: Any = None) -> None:
        """Set the values of keys."""
        rows = whole(values, self.value_dtype).reshape(-1, *self._default.shape).copy()
        self._values.update(zip(self._keys(keys), rows, strict=True))

    def lookup(self, keys: Any, name: Any = None) -> Any:
        """Return the values of keys, and the default value for keys that are not there."""
        default = self._default[()]
        return self._rows([self._values.get(key, default) for key in self._keys(keys)], np.shape(whole(keys)))

    __getitem__ = lookup

    def remove(self, keys: Any, name: Any = None) -> None:
        """Remove keys; keys that are not there are ignored."""
        for key in self._keys(keys):
            self._values.pop(key, None)

    def export(self, name: Any = None) -> Any:
        """Return all keys and all values."""
        return raised(whole(list(self._values), self.key_dtype)), self._rows(self._values.values(), (-1,))

    def size(self, name: Any = None) -> Any:
        """Return the number of keys."""
        return raised(np.int64(len(self._values)))


class DenseHashTable(MutableHashTable):
    """A mutable table. It takes `empty_key` and `deleted_key`, which TensorFlow needs, and does without them."""


experimental = Namespace(
    "tf.lookup.experimental",
    DatasetInitializer=DatasetInitializer,
    MutableHashTable=MutableHashTable,
    DenseHashTable=DenseHashTable,
)

__getattr__ = missing_in(
    "tf.lookup", globals(), {"StaticVocabularyTableFromFile": "Write tf.lookup.StaticVocabularyTable."}
)
