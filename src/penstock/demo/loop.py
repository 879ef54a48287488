"""The training loop takes batches from a Dataset, trains on them, and measures where the time goes."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.observers import Recorder

TRAIN, WAIT, MAKE = "train", "wait", "make a batch: read, map, batch"


class Span(NamedTuple):
    """A call that ran in `thread` from `start` to `stop` (seconds since the run began)."""

    thread: str
    label: str
    start: float
    stop: float


class Learner(Protocol):
    """The model that is trained."""

    def step(self, images: Any, labels: Any) -> tuple[float, int]:
        """Learn from a batch. Return the mean loss and the number of right answers before the step."""

    def accuracy(self, images: Any, labels: Any) -> float:
        """Return the share of right answers."""


class SimulatedAccelerator:
    """A step that waits for `milliseconds` without using the CPU, as for an accelerator."""

    def __init__(self, milliseconds: float) -> None:
        self._seconds = milliseconds / 1e3
        self._never = threading.Event()

    def step(self, images: Any, labels: Any) -> tuple[float, int]:
        self._never.wait(self._seconds)
        return float("nan"), 0

    def accuracy(self, images: Any, labels: Any) -> float:
        return float("nan")


@dataclass(frozen=True)
class Epoch:
    """One epoch: its seconds, its waits for the first batch and in all, and its results."""

    seconds: float
    first_batch: float
    waiting: float
    steps: int
    loss: float
    accuracy: float

    @property
    def waiting_share(self) -> float:
        return self.waiting / self.seconds


@dataclass(frozen=True)
class TrainingRun:
    """A complete training: its epochs, its spans, and a digest of its batches."""

    title: str
    epochs: tuple[Epoch, ...]
    spans: tuple[Span, ...]
    digest: str

    @property
    def seconds(self) -> float:
        return sum(epoch.seconds for epoch in self.epochs)

    @property
    def waiting(self) -> float:
        return sum(epoch.waiting for epoch in self.epochs)

    @property
    def first_batches(self) -> float:
        return sum(epoch.first_batch for epoch in self.epochs)


def train(
    title: str,
    dataset: Any,
    learner: Learner,
    epochs: int,
    held_out: tuple[NDArray[np.float32], NDArray[np.int64]],
    on_epoch: Callable[[int, Epoch], None],
    *,
    inline: bool = False,
) -> TrainingRun:
    """Train `learner` on `dataset` for `epochs` epochs. `on_epoch` is called after each. The times exclude the test.

    With `inline`, the thread of the loop computes the batches, and its own work counts as waiting.
    """
    executor, waits_for = ("inline", MAKE) if inline else ("thread", WAIT)
    recorder = Recorder()
    loop = threading.current_thread().name
    spans: list[Span] = []
    done: list[Epoch] = []
    seen = hashlib.blake2b(digest_size=16)
    began = time.perf_counter()
    pauses: list[tuple[float, float]] = []
    for number in range(epochs):
        start = asked = time.perf_counter()
        waits, losses = [], []
        iterator = dataset.iterator(executor=executor, instrument=recorder)
        for images, labels in iterator:
            got = time.perf_counter()
            loss, _ = learner.step(images, labels)
            stop = time.perf_counter()
            spans += [Span(loop, waits_for, asked, got), Span(loop, TRAIN, got, stop)]
            waits.append(got - asked)
            losses.append(loss)
            seen.update(labels.tobytes() + np.ascontiguousarray(images[0]).tobytes())
            asked = time.perf_counter()
        stop = time.perf_counter()
        waits.append(stop - asked)  # the wait for the end of the data
        epoch = Epoch(
            seconds=stop - start,
            first_batch=waits[0],
            waiting=sum(waits),
            steps=len(losses),
            loss=float(np.mean(losses)),
            accuracy=learner.accuracy(*held_out),
        )
        done.append(epoch)
        on_epoch(number, epoch)
        pauses.append((stop, time.perf_counter()))  # the figure excludes the test, too
    spans += [Span(*span) for span in recorder.spans]
    placed = [
        span._replace(start=since(span.start, began, pauses), stop=since(span.stop, began, pauses)) for span in spans
    ]
    return TrainingRun(title, tuple(done), tuple(placed), seen.hexdigest())


def since(moment: float, began: float, pauses: list[tuple[float, float]]) -> float:
    """Return the seconds from `began` to `moment` without the pauses.

    >>> since(10.0, began=1.0, pauses=[(3.0, 5.0), (9.0, 12.0)])
    6.0
    """
    return moment - began - sum(max(min(moment, stop) - start, 0.0) for start, stop in pauses)
