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
    """Iterator that computes each batch in the training loop's own thread."""

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
        except StopIteration as raised:  # an error of the data set, not the end
            raise as_failure(raised, Context("penstock.torch.DataLoader")) from raised


class LoaderBatches:
    """Iterator over the batches of one epoch. It counts them, and asks the sampler for one more with each."""

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
        """Set the workers. `over` is called at the end of the iteration; with `ends` the workers then stop."""
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
            self._counts()  # a batch that failed has a number, too
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
    with workers.here:  # a dead worker may have to be replaced first
        elements.close()
    if ends:
        workers.close()
