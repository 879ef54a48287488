"""Sources without end whose element follows from its number alone: counters and random numbers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.spec import TensorSpec, as_dtype, dtype_name
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.keys import draws
from penstock.sources.source import Reader, Source

_BITS = 32  # of a random number: tf.data's range
_MASK = (1 << 64) - 1


class EndlessSource(Source):
    """A Source whose element number n is a number computed from n."""

    @property
    def cardinality(self) -> int:
        return -1

    @abstractmethod
    def numbers(self, start: int, count: int) -> np.ndarray:
        """The elements from number `start` on."""

    def open(self, position: int | None = None) -> Reader:
        return _EndlessReader(self, position or 0)


class _EndlessReader(Reader):
    def __init__(self, source: EndlessSource, at: int) -> None:
        self._source = source
        self._at = at

    def read(self, max_elements: int) -> Block:
        found = self._source.numbers(self._at, max_elements)
        self._at += max_elements
        return Block.single(DenseColumn(found))

    def position(self) -> int:
        return self._at

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class RandomSource(EndlessSource):
    """Uniform int64 below 2**32, from a key and the element's number."""

    key: int
    label: str = "random"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), np.int64)

    def numbers(self, start: int, count: int) -> np.ndarray:
        return draws(self.key, start, count, 1 << _BITS)


@dataclass(frozen=True)
class CounterSource(EndlessSource):
    """`start + n * step`; integers wrap around at the ends of their dtype."""

    start: Any
    step: Any
    dtype: np.dtype

    def __post_init__(self) -> None:
        kind = self.dtype.kind
        for name in ("start", "step"):
            object.__setattr__(self, name, _number(name, getattr(self, name), self.dtype))
        if kind in "iu" and not np.iinfo(self.dtype).min <= self.start <= np.iinfo(self.dtype).max:
            message = f"start must fit {self.dtype}, got start={self.start}."
            raise InvalidArgumentError(message, hint="Choose a wider dtype.")

    @property
    def label(self) -> str:
        return f"counter({self.start}, {self.step})"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), self.dtype)

    def numbers(self, start: int, count: int) -> np.ndarray:
        if self.dtype.kind == "f":
            numbers: np.ndarray = self.start + np.arange(start, start + count) * self.step
        else:  # modulo 2**64, of which the lower bits are those of any narrower integer
            counts = np.arange(start, start + count, dtype=np.uint64)
            numbers = counts * np.uint64(self.step & _MASK) + np.uint64(self.start & _MASK)
        return numbers.astype(self.dtype)


def _number(name: str, value: Any, dtype: np.dtype) -> int | float:
    whole = dtype.kind in "iu"
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds):
        wanted = "an integer" if whole else "a number"
        message = f"{name} must be {wanted} for a counter of {dtype}, got {name}={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message, hint="dtype= says what the elements are.")
    return int(value) if whole else float(value)


def counter_source(start: Any, step: Any, dtype: Any) -> CounterSource:
    """A counter from what a user gives."""
    found = as_dtype(dtype)
    if found is bytes or found.kind not in "iuf":
        message = f"A counter gives integers or floating-point numbers, got dtype={dtype_name(found)}."
        raise InvalidTypeError(message, hint="For example np.int64 or np.float32.")
    return CounterSource(start, step, found)
