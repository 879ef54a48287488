"""The training loop: takes batches from a Dataset, trains on them, and notes where the time went."""

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
    """Something that ran in `thread` from `start` to `stop` (seconds since the run began)."""

    thread: str
    label: str
    start: float
    stop: float


class Learner(Protocol):
    """What is trained."""

    def step(self, images: Any, labels: Any) -> tuple[float, int]:
        """Learn from a batch; the mean loss, and how many were right before."""

    def accuracy(self, images: Any, labels: Any) -> float:
        """The share of right answers."""


class SimulatedAccelerator:
    """A step that leaves the CPU alone for `milliseconds`, as an accelerator does."""

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
    """One pass: how long it took, how long it waited for data (for the first batch, in all), and what came of it."""

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
class Run:
    """A whole training: its epochs, where everything ran, and a digest of the batches it got."""

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
) -> Run:
    """Train `learner` on `dataset` for `epochs` passes; `on_epoch` hears of each. Testing is outside of the times.

    With `inline` batches are made in the loop's own thread: what it waits for is its own work.
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
        waits.append(stop - asked)  # to hear that there are no more
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
        pauses.append((stop, time.perf_counter()))  # testing is left out of the picture, too
    spans += [Span(*span) for span in recorder.spans]
    placed = [
        span._replace(start=since(span.start, began, pauses), stop=since(span.stop, began, pauses)) for span in spans
    ]
    return Run(title, tuple(done), tuple(placed), seen.hexdigest())


def since(moment: float, began: float, pauses: list[tuple[float, float]]) -> float:
    """Seconds from `began` to `moment`, the pauses left out.

    >>> since(10.0, began=1.0, pauses=[(3.0, 5.0), (9.0, 12.0)])
    6.0
    """
    return moment - began - sum(max(min(moment, stop) - start, 0.0) for start, stop in pauses)
