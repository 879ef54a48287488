"""Drawn: the index batches of a loader, as a source."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.spec import TensorSpec
from penstock.plan.node import UNKNOWN_CARDINALITY
from penstock.sources.source import Reader, Source


def block_of(asked: tuple[Any, ...]) -> Block:
    """Return a request to `Fetch` as a Block: the number of a batch, its indices, and states of generators, if any."""
    return Block.single(BytesColumn.from_values([pickle.dumps(asked, protocol=5)]))


def asked_in(block: Block) -> Any:
    """Return the request in a Block."""
    return pickle.loads(block.elements()[0])


class Drawn(Source):
    """Index batches that the training loop has drawn from its sampler, for the workers to take.

    As in torch, the loop draws some batches ahead, and one more for each batch that it gets. A sampler runs in the
    thread of the loop only. An error of the sampler takes the place of a batch.
    """

    calls = True  # a reader waits for the training loop
    label = "DataLoader"
    spec = TensorSpec((), bytes)
    cardinality = UNKNOWN_CARDINALITY

    def __init__(self, batches: Iterator[Any], first: int) -> None:
        self._batches = enumerate(batches, first)
        self.ready: deque[tuple[int, Any] | Exception] = deque()
        self._changed = threading.Condition()
        self._ended = False

    def draw(self, count: int = 1) -> None:
        """Ask the sampler for more batches."""
        while count > 0 and not self._ended:
            count -= 1
            try:
                found: tuple[int, Any] | Exception = next(self._batches)
            except StopIteration:
                self.end()
                return
            except Exception as error:
                found, self._ended = error, True
            with self._changed:
                self.ready.append(found)
                self._changed.notify_all()

    def end(self) -> None:
        """Draw nothing more. Readers that wait for a batch find the end."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def open(self, position: int | None = None) -> Reader:
        return _DrawnReader(self)

    def take(self) -> tuple[int, Any] | None:
        """Wait for the next batch that is drawn and return it with its number, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self.ready or self._ended)
            found = self.ready.popleft() if self.ready else None
        if isinstance(found, Exception):
            raise found
        return found


class _DrawnReader(Reader):
    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._count = 0

    def read(self, max_elements: int) -> Block | None:
        found = self._drawn.take()  # one, so that each worker has its own
        self._count += 1
        return None if found is None else block_of(found)

    def position(self) -> int:
        return self._count

    def close(self) -> None:
        self._drawn.end()
