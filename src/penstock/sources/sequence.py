"""SequenceSource: anything with `__len__` and `__getitem__`, such as a map-style data set of torch or Hugging Face."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.same_kind import SameKind
from penstock.errors import Context, InvalidArgumentError, as_failure
from penstock.forked import new_rlock
from penstock.sources.source import FetchedSource

_PATIENCE = 0.002  # seconds; slow elements are returned in small Blocks
_MOST = 256  # elements per call of `__getitems__`
_PLAIN = (list, tuple, range, np.ndarray)  # indexing these types runs no user code


@dataclass(frozen=True, eq=False)
class SequenceSource(FetchedSource):
    """`sequence[0]` up to `sequence[len(sequence) - 1]`, in one thread at a time.

    Elements have the kind of the first element that can be fetched, wherever an iteration begins.
    """

    sequence: Any
    name: str = "from_sequence"
    around: ClassVar[Any] = nullcontext  # a context for each fetch
    report: ClassVar[str] = ""  # how the elements are computed

    @property
    def calls(self) -> bool:
        return type(self.sequence) not in _PLAIN

    @property
    def label(self) -> str:
        return f"{self.name}({type(self.sequence).__name__})"

    @property
    def spec(self) -> Any:
        return None

    @property
    def cardinality(self) -> int:
        return len(self.sequence)

    @cached_property
    def _kind(self) -> _Kind:
        return _Kind()

    def fetch(self, indices: Sequence[int]) -> list[Block | Exception]:
        kind = self._kind
        with kind.lock, self.around():
            if kind.same.expected is None and indices[0]:
                self._learn(indices[0])
            builder = BlockBuilder(kind.same.structure)
            error = self._fill(builder, indices)
            pieces: list[Block | Exception] = [*kind.same.pieces(builder)]
            return pieces if error is None else [*pieces, error]

    def _learn(self, before: int) -> None:
        """Learn the kind of the first valid element, for an iteration that begins after it."""
        for index in range(before):
            builder = BlockBuilder()
            try:
                builder.add(self.sequence[index])
            except Exception:
                continue  # reading this element raises the error again
            self._kind.same.build(builder, None)
            return

    def _fill(self, builder: BlockBuilder, indices: Sequence[int]) -> Exception | None:
        """Add the first elements. Return the error of the next element if it fails."""
        many = self._at_once(indices[:_MOST])
        if many is not None and len(many) != len(indices[:_MOST]):
            message = f"__getitems__ was asked for {len(indices[:_MOST])} elements and gave {len(many)}."
            return InvalidArgumentError(message, context=Context(element=indices[0]))
        deadline = time.perf_counter() + _PATIENCE
        for number, index in enumerate(indices if many is None else indices[: len(many)]):
            try:
                builder.add(self.sequence[index] if many is None else many[number])
            except Exception as error:
                error.add_note(f"penstock: for element {index} of the sequence")
                return as_failure(error, Context())
            if many is None and time.perf_counter() > deadline:
                break
        return None

    def _at_once(self, indices: Sequence[int]) -> list[Any] | None:
        """Return the result of `__getitems__`, or None. If it fails, fetching one by one finds the failing element."""
        many = getattr(self.sequence, "__getitems__", None)
        if many is None or len(indices) == 1:
            return None
        try:
            return list(many(list(indices)))
        except Exception:
            return None


class _Kind:
    """The nest, dtypes and ranks of the elements, after the first element, and the lock for fetching."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self.same = SameKind("What the sequence holds")
