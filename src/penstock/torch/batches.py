"""The iterators over the batches of a loader."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from penstock.errors import Context, as_failure
from penstock.forked import when_gone
from penstock.torch.drawn import Drawn
from penstock.torch.fetch import Fetch, LoaderWorkers


class LoopBatches:
    """Batches made in the loop's own thread, when they are asked for."""

    def __init__(self, fetch: Fetch, drawn: Drawn) -> None:
        self._fetch, self._drawn = fetch, drawn

    def __next__(self) -> Any:
        if not self._drawn.ready:
            self._drawn.draw()
        found = self._drawn.take()
        if found is None:
            raise StopIteration
        try:
            return self._fetch.fetch(found[1])
        except StopIteration as raised:  # a mistake in the data set, and not the end
            raise as_failure(raised, Context("penstock.torch.DataLoader")) from raised


class LoaderBatches:
    """A pass: an iterator that counts what it gives, and draws from the sampler for each batch."""

    def __init__(
        self, loader: Any, elements: Any, place: dict[str, Any], handed: Any, drawn: Drawn | None = None
    ) -> None:
        self._loader = loader
        self._elements, self._place, self._handed, self._drawn = elements, place, handed, drawn
        self._here: Any = nullcontext()
        self._end: Callable[[], Any] = _nothing if drawn is None else when_gone(self, drawn.end)

    def __len__(self) -> int:
        return len(self._loader)

    def by(self, workers: LoaderWorkers, over: Callable[[], None], *, ends: bool) -> None:
        """Its workers, which are told when they may be replaced and when it is over, and end with it or not."""
        self._here = workers.here
        assert self._drawn is not None
        self._end = when_gone(self, _ended, self._drawn, self._elements, workers, over, ends)

    def __iter__(self) -> LoaderBatches:
        return self

    def __next__(self) -> Any:
        try:
            with self._here:
                element = next(self._elements)
        except StopIteration:
            self._place["ended"] = True
            self._end()
            raise
        except Exception as error:
            found = getattr(error, "penstock_states", None)  # of the worker's generators
            if found is not None:
                states = self._place["workers"]
                states[self._place["batches"] % len(states)] = found
                error.penstock_states = None  # type: ignore[attr-defined]
            self._counts()  # a batch that fails has its place
            raise
        self._counts()
        return element if self._handed is None else self._handed(element)

    def _counts(self) -> None:
        self._place["batches"] += 1
        if self._drawn is not None:
            self._drawn.draw()


def _nothing() -> None:
    """Do nothing."""


def _ended(drawn: Drawn, elements: Any, workers: LoaderWorkers, over: Callable[[], None], ends: bool) -> None:  # noqa: FBT001
    drawn.end()
    over()
    if ends:
        workers.stop()
    with workers.here:  # where one has to be replaced first
        elements.close()
    if ends:
        workers.close()
