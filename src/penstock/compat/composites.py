"""RaggedTensor and SparseTensor: penstock's, with the methods that code written for TensorFlow calls on them.

>>> rows = raised(ps.RaggedTensor.from_row_lengths(np.array([1, 2, 3]), [2, 1]))
>>> rows.to_tensor().numpy().tolist(), rows.row_lengths().numpy().tolist(), (rows * 2).to_list()
([[1, 2], [3, 0]], [2, 1], [[2, 4], [6]])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

import penstock as ps
from penstock.compat import values as _values
from penstock.compat.dtypes import DType, as_dtype
from penstock.compat.teaching import unknown
from penstock.compat.values import TensorShape, lowered, over_flat, raised, stacked, whole, with_flat
from penstock.errors import InvalidArgumentError

_Ragged = TypeVar("_Ragged", bound=ps.RaggedTensor)
_MISSING = {
    "from_variant": "There are no variants: ds.ragged_batch(n), and map, take and give ragged tensors as they are.",
    "to_dense": "Write to_tensor().",
}


class _Taught(type):
    """The metaclass: penstock's own values count as instances, and unknown names raise an error with advice."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.__bases__[1])

    def __getattr__(cls, name: str) -> Any:
        raise unknown(f"tf.{cls.__name__}", name, _MISSING, dir(cls))


def _held(value: Any, name: str) -> Any:
    """Return the value of the base class under a name that this class overrides by a property."""
    return vars(type(value).__bases__[1])[name].__get__(value)


def _hold(value: Any, name: str, held: Any) -> None:
    vars(type(value).__bases__[1])[name].__set__(value, held)


def _splits(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)


def _row_splits(splits: Any) -> np.ndarray:
    found = np.asarray(lowered(splits))
    return found if found.dtype in (np.int32, np.int64) and hasattr(splits, "dtype") else found.astype(np.int64)


def _inner(values: Any) -> Any:
    found = lowered(values)
    return found if isinstance(found, ps.RaggedTensor) else whole(values)


def _made(values: Any, splits: Any) -> Any:
    return raised(ps.RaggedTensor(_inner(values), _row_splits(splits)))


class _Composite:
    """The common part of both kinds. `_plain` returns penstock's value."""

    __slots__ = ()

    _plain: Callable[[], Any]

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._plain().shape)

    @property
    def dtype(self) -> DType:
        return as_dtype(self._plain().dtype)

    def get_shape(self) -> TensorShape:
        return self.shape

    def to_list(self) -> Any:
        return self._plain().to_list()

    def __reduce__(self) -> Any:
        return raised, (self._plain(),)

    def __str__(self) -> str:
        return repr(self)

    def __getattr__(self, name: str) -> Any:
        raise unknown(f"tf.{type(self).__name__}", name, _MISSING, dir(type(self)))


class RaggedTensor(_Composite, ps.RaggedTensor, metaclass=_Taught):
    """Rows of differing length, with TensorFlow's methods."""

    __slots__ = ()

    @property
    def values(self) -> Any:
        return raised(_held(self, "values"))

    @property
    def row_splits(self) -> Any:
        return raised(_held(self, "row_splits"))

    def _plain(self) -> ps.RaggedTensor:
        return _same_rows(ps.RaggedTensor, self)

    # -- made of --------------------------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: Any = None, validate: bool = True) -> Any:
        """Return rows between each two neighbouring positions in `row_splits`."""
        return _made(values, row_splits)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: Any = None, validate: bool = True) -> Any:
        """Return rows of these lengths."""
        lengths = _row_splits(row_lengths)
        return _made(values, _splits(lengths).astype(lengths.dtype))

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: Any = None, validate: bool = True
    ) -> Any:
        """Return rows of the values with equal row numbers, which must ascend."""
        ids = np.asarray(lowered(value_rowids), np.int64)
        return _made(values, _splits(np.bincount(ids, minlength=0 if nrows is None else int(nrows))))

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, name: Any = None, validate: bool = True) -> Any:
        """Return rows that begin at the positions in `row_starts`."""
        return _made(values, np.append(_row_splits(row_starts), len(_inner(values))))

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, name: Any = None, validate: bool = True) -> Any:
        """Return rows that end at the positions in `row_limits`."""
        return _made(values, np.append(0, _row_splits(row_limits)))

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: Any = None
    ) -> Any:
        """Return rows of one length."""
        length = int(uniform_row_length)
        return _made(values, np.arange(0, len(_inner(values)) + 1, length) if length else np.zeros(int(nrows or 0) + 1))

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: Any = None, validate: bool = True
    ) -> Any:
        """Return nested rows. The outermost splits come first."""
        found = flat_values
        for splits in reversed(list(nested_row_splits)):
            found = _made(found, splits)
        return found

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: Any = None, validate: bool = True
    ) -> Any:
        """Return nested rows. The outermost lengths come first."""
        return cls.from_nested_row_splits(flat_values, [_splits(lowered(lengths)) for lengths in nested_row_lengths])

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: Any = None,
        row_splits_dtype: Any = "int64",
    ) -> Any:
        """Return the rows of an array, without values after `lengths` or `padding` at their ends.

        >>> RaggedTensor.from_tensor([[5, 7, 0], [0, 3, 0]], padding=0).to_list()
        [[5, 7], [0, 3]]
        """
        array, rank = whole(tensor), int(ragged_rank)
        if not 0 < rank < array.ndim or (lengths is not None and padding is not None):
            message = f"from_tensor of shape {list(array.shape)} with ragged_rank={rank}."
            hint = "ragged_rank is at least 1 and below the rank; lengths and padding exclude each other."
            raise InvalidArgumentError(message, hint=hint)
        rows = array.reshape(-1, *array.shape[rank:])
        width = rows.shape[1]
        if lengths is not None:
            kept = np.clip(np.asarray(lowered(lengths), np.int64).reshape(-1), 0, width)
        elif padding is not None:
            filler = whole(padding, None if array.dtype.hasobject else array.dtype)
            filled = (rows != filler[()]).reshape(len(rows), width, -1).any(-1)
            kept = width - np.where(filled.any(1), filled[:, ::-1].argmax(1), width)
        else:
            kept = np.full(len(rows), width)
        splits_dtype = as_dtype(row_splits_dtype).dtype
        found = _made(rows[np.arange(width) < kept[:, None]], _splits(kept).astype(splits_dtype))
        for extent in reversed(array.shape[1:rank]):
            found = cls.from_row_splits(found, np.arange(0, len(found) + 1, extent, dtype=splits_dtype))
        return found

    @classmethod
    def from_sparse(cls, st_input: Any, name: Any = None, row_splits_dtype: Any = "int64") -> Any:
        """Return the rows of a sparse matrix whose values are at the beginnings of its rows."""
        sparse = lowered(st_input)
        return cls.from_value_rowids(sparse.values, sparse.indices[:, 0], int(sparse.dense_shape[0]))

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def flat_values(self) -> Any:
        return raised(self._plain().flat_values)

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        inner = self.values
        return (self.row_splits, *(inner.nested_row_splits if type(inner) is RaggedTensor else ()))

    def nested_row_lengths(self, name: Any = None) -> tuple[Any, ...]:
        return tuple(raised(np.diff(lowered(splits))) for splits in self.nested_row_splits)

    def row_lengths(self, axis: int = 1, name: Any = None) -> Any:  # type: ignore[override]
        """Return the length of each row, or with `axis=2` of the rows inside the rows."""
        found = np.diff(lowered(self.row_splits))
        if axis <= 1:
            return raised(found)
        inner = self.values
        if type(inner) is RaggedTensor:
            return _made(inner.row_lengths(axis - 1), self.row_splits)
        return _made(np.full(len(inner), np.shape(inner)[axis - 1], found.dtype), self.row_splits)

    def nrows(self, out_type: Any = "int64", name: Any = None) -> Any:
        return raised(as_dtype(out_type).dtype.type(len(self)))

    def row_starts(self, name: Any = None) -> Any:
        return self.row_splits[:-1]

    def row_limits(self, name: Any = None) -> Any:
        return self.row_splits[1:]

    def value_rowids(self, name: Any = None) -> Any:
        """Return the row number of each value."""
        lengths = lowered(self.row_lengths())
        return raised(np.repeat(np.arange(len(lengths), dtype=lengths.dtype), lengths))

    def bounding_shape(self, axis: Any = None, name: Any = None, out_type: Any = "int64") -> Any:
        """Return the shape of `to_tensor()`."""
        found = np.asarray(self._plain().to_dense().shape, as_dtype(out_type).dtype)
        return raised(found if axis is None else found[axis])

    # -- made into ------------------------------------------------------------------------------------------------

    def to_tensor(self, default_value: Any = None, name: Any = None, shape: Any = None) -> Any:
        """Return one array: each row is padded to the longest row, or padded and truncated to `shape`."""
        plain = self._plain()
        filler = lowered(default_value)
        filler = filler.encode() if isinstance(filler, str) else filler
        dense = plain.to_dense(filler)
        if shape is None:
            return raised(dense)
        wanted = tuple(have if want is None else int(want) for want, have in zip(shape, dense.shape, strict=True))
        found = dense[tuple(map(slice, wanted))]
        made = np.empty(wanted, dense.dtype)
        made.fill((b"" if dense.dtype.hasobject else 0) if filler is None else filler)
        made[tuple(map(slice, found.shape))] = found
        return raised(made)

    def numpy(self) -> np.ndarray:
        """Return the rows as an array of arrays, or as one array if all have the same length."""
        rows = [lowered(row.numpy() if type(row) is RaggedTensor else row) for row in self]
        if len({np.shape(row) for row in rows}) == 1:
            return np.stack(rows)
        made = np.empty(len(rows), object)
        made[:] = rows
        return made

    def to_sparse(self, name: Any = None) -> Any:
        """Return the rows as a sparse tensor."""
        lengths = lowered(self.row_lengths())
        within = np.concatenate([np.arange(length) for length in lengths]) if len(lengths) else np.empty(0, np.int64)
        at = np.stack([lowered(self.value_rowids()), within.astype(np.int64)], 1)
        shape = np.array([len(lengths), lengths.max(initial=0)])
        return raised(ps.SparseTensor(at, lowered(self.values), shape))

    def with_values(self, new_values: Any) -> Any:
        return _made(new_values, self.row_splits)

    def with_flat_values(self, new_values: Any) -> Any:
        return raised(with_flat(self._plain(), lowered(new_values)))

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Return the same values with the dimensions from one axis to the other merged."""
        rank = len(self.shape)
        outer, inner = outer_axis % rank, inner_axis % rank
        if outer == inner:
            return self
        values = self.values
        if outer > 1:
            return _made(_merge(values, outer - 1, inner - 1), self.row_splits)
        if outer == 0:
            return values if inner == 1 else _merge(values, 0, inner - 1)
        ends, level = lowered(self.row_splits), values
        for _ in range(inner - outer):  # positions of the row ends, counted in the inner values
            if type(level) is RaggedTensor:
                ends, level = lowered(level.row_splits)[ends], level.values
            else:
                ends, level = ends * np.shape(level)[1], _merge(level, 0, 1)
        return _made(_merge(values, 0, inner - 1), ends)

    def __getitem__(self, key: Any) -> Any:
        """Return a row for a number, rows for a slice, and with a second index a part of each row."""
        first, rest = (key[0], key[1:]) if isinstance(key, tuple) else (key, ())
        if first is Ellipsis and not rest:
            return self
        if isinstance(first, slice):
            plain = self._plain()
            rows = [plain[row] for row in range(*first.indices(len(self)))]
            if rest and isinstance(plain.values, np.ndarray):
                rows = [row[tuple(map(lowered, rest))] for row in rows]  # type: ignore[index]
            elif rest:
                rows = [lowered(raised(row)[rest if len(rest) > 1 else rest[0]]) for row in rows]
            if any(isinstance(part, int) for part in rest[:1]):
                return raised(np.stack([np.asarray(row) for row in rows]))
            return raised(stacked(rows, plain))
        found = raised(self._plain()[int(lowered(first))])
        return found[rest if len(rest) > 1 else rest[0]] if rest else found

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()!r}>"


def _merge(values: Any, outer: int, inner: int) -> Any:
    if type(values) is RaggedTensor:
        return values.merge_dims(outer, inner)
    shape = np.shape(values)
    return raised(np.reshape(lowered(values), (*shape[:outer], -1, *shape[inner + 1 :])))


class SparseTensor(_Composite, ps.SparseTensor, metaclass=_Taught):
    """Values at some places of an otherwise empty array, with TensorFlow's methods."""

    __slots__ = ()

    def __new__(cls, indices: Any = (), values: Any = (), dense_shape: Any = ()) -> Any:
        return super().__new__(cls)

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        for name, held in (("indices", whole(indices, "int64")), ("values", whole(values)),
                           ("dense_shape", whole(dense_shape, "int64"))):  # fmt: skip
            _hold(self, name, held)
        self._plain()  # checks them

    def _plain(self) -> ps.SparseTensor:
        held = (_held(self, name) for name in ("indices", "values", "dense_shape"))
        return ps.SparseTensor(*held)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> Any:
        return raised(lowered(sparse_tensor_value))

    @property
    def indices(self) -> Any:
        return raised(_held(self, "indices"))

    @property
    def values(self) -> Any:
        return raised(_held(self, "values"))

    @property
    def dense_shape(self) -> Any:
        return raised(_held(self, "dense_shape"))

    def with_values(self, new_values: Any) -> Any:
        return SparseTensor(self.indices, new_values, self.dense_shape)

    def to_dense(self, default_value: Any = None) -> Any:
        return raised(self._plain().to_dense(default_value))

    def __iter__(self) -> Iterator[Any]:
        return map(raised, self._plain())

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def _same_rows(kind: type[_Ragged], value: ps.RaggedTensor) -> _Ragged:
    """Return a ragged tensor as one of class `kind`, without checking it again."""
    found = object.__new__(kind)
    for name in ("values", "row_splits"):
        slot = vars(ps.RaggedTensor)[name]
        slot.__set__(found, slot.__get__(value))
    return found


def _raised_sparse(value: ps.SparseTensor) -> SparseTensor:
    return SparseTensor(value.indices, value.values, value.dense_shape)


_values.CONVERSIONS.update({ps.RaggedTensor: partial(_same_rows, RaggedTensor), ps.SparseTensor: _raised_sparse})


def _operator(name: str, function: Callable[[Any, Any], Any], *, reflected: bool = False) -> None:
    def call(self: Any, other: Any) -> Any:
        parts = (lowered(other), self._plain()) if reflected else (self._plain(), lowered(other))
        return raised(over_flat(lambda x, y: function(_tensor(x), _tensor(y)), parts))

    call.__name__ = name
    setattr(RaggedTensor, name, call)


def _unary(name: str, function: Callable[[Any], Any]) -> None:
    setattr(RaggedTensor, name, lambda self: self.with_flat_values(function(self.flat_values)))


def _tensor(value: Any) -> Any:
    """Return an operand as a tensor. Python numbers stay, so that they get the dtype of the other operand."""
    if isinstance(value, (str, bytes)):
        return raised(value.encode() if isinstance(value, str) else value)
    return raised(value) if isinstance(value, (np.ndarray, np.generic)) else value


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _operator(f"__{_name}__", getattr(operator, _name))
    _operator(f"__r{_name}__", getattr(operator, _name), reflected=True)
for _name in ("neg", "abs", "invert"):
    _unary(f"__{_name}__", getattr(operator, _name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_"):
    _operator(f"__{_name.rstrip('_')}__", getattr(operator, _name))
RaggedTensor.__hash__ = None  # type: ignore[assignment,method-assign]

__all__ = ["RaggedTensor", "SparseTensor"]
