"""Stretch: part of a stream, in which every position holds an element or a failure.

A failure is the error that took the place of one element: the stream goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.block.block import Block, concat_blocks
from penstock.physical.fatal import failed


class Stretch(NamedTuple):
    """The elements of `block` in their order, parted by `failures`: (position in the stretch, error), ascending."""

    block: Block | None
    failures: tuple[tuple[int, Exception], ...] = ()

    @property
    def size(self) -> int:
        """Positions: elements and failures."""
        return (0 if self.block is None else self.block.size) + len(self.failures)

    @property
    def error(self) -> Exception | None:
        """The first failure."""
        return self.failures[0][1] if self.failures else None

    def pieces(self) -> Iterator[Block | Exception]:
        """Elements and failures in order; neighbouring elements as one Block."""
        at = row = 0
        for position, error in [*self.failures, (self.size, None)]:
            if self.block is not None and position > at:
                yield self.block.slice(row, row + position - at)
            if error is not None:
                yield error
            row += position - at
            at = position + 1

    def slice(self, start: int, stop: int) -> Stretch:
        """The positions from `start` up to, not including, `stop`."""
        before = sum(position < start for position, _ in self.failures)
        inside = tuple((position - start, error) for position, error in self.failures if start <= position < stop)
        first, count = start - before, min(stop, self.size) - start - len(inside)
        block = self.block.slice(first, first + count) if self.block is not None and count > 0 else None
        return Stretch(block, inside)


def join(parts: Sequence[Stretch]) -> Stretch:
    """One stretch behind the other."""
    if len(parts) == 1:
        return parts[0]
    failures: list[tuple[int, Exception]] = []
    at = 0
    for part in parts:
        failures += [(at + position, error) for position, error in part.failures]
        at += part.size
    blocks = [part.block for part in parts if part.block is not None]
    return Stretch(concat_blocks(blocks) if blocks else None, tuple(failures))


def failure(error: Exception) -> Stretch:
    """One position, which failed: the caller has just caught the error. Raises Fatal if it is nobody's failure."""
    return Stretch(None, ((0, failed(error)),))
