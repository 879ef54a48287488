"""Fetch: the work of one worker for one batch: read the elements, collate them, pack the batch."""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing.context import assert_spawning
from pathlib import Path
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, column_of
from penstock.block.numbers import Numbers
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.dataset.indexing import EPOCH
from penstock.errors import FailedPreconditionError, as_failure
from penstock.functions.shipping import by_value
from penstock.physical.transform import Outcome, Transform
from penstock.plan.node import UNKNOWN_CARDINALITY
from penstock.runtime.processes.forks import ForkedPool
from penstock.runtime.processes.pool import ProcessPool, process_pool
from penstock.runtime.processes.task import OwnWorkers
from penstock.runtime.processes.worker import ROOM, Room
from penstock.sources.source import Reader, Source
from penstock.torch.packed import pack
from penstock.trace.graph import Allocate


@dataclass
class Given:
    """The objects that the caller passed to a loader. Each worker process has its own copy."""

    dataset: Any
    collate: Callable[[Any], Any]
    worker_init_fn: Callable[[int], Any] | None
    initialised: bool = False


class Fetch(OwnWorkers):
    """Compute `collate(dataset[i] for i in indices)`, like torch's fetcher for map-style data sets.

    In a worker process, each batch has its own seeds, computed from the seed of the iteration and the number of the
    batch. They seed the global generators of `random`, numpy and torch. Random numbers therefore depend neither on the
    number of workers nor on the worker that runs a batch.

    Each worker has a copy of the data set and calls `worker_init_fn` on it. A forked worker has the copy of its parent
    at the time of the fork. Other workers receive a copy with each iteration. If the loader is `kept`
    (persistent_workers), the copy is in a file instead, and each worker reads the file once.
    """

    def __init__(
        self,
        given: Given,
        *,
        together: bool,
        num_workers: int,
        seed: int,
        epoch: int,
        meeting: str,
        kept: bool,
        workers: LoaderWorkers | None,
    ) -> None:
        self.given: Given | None = given
        self.together = together  # False if the loader has no batch size and returns single elements
        self.num_workers = num_workers
        self.seed = seed
        self.epoch = epoch  # of the penstock data sets
        self.meeting = meeting  # a folder of the loader, in which started workers choose their numbers
        self.kept = kept
        self.own = workers
        self.place = -1 if workers is None else workers.passes.begin()
        self.parent = os.getpid()

    @property
    def workers(self) -> ProcessPool:
        return process_pool() if self.own is None else self.own

    def __getstate__(self) -> dict[str, Any]:
        given = None if self.kept or self.own is not None else self.given
        return {**vars(self), "given": given, "own": None}

    def __call__(self, asked: bytes) -> tuple[bytes, np.ndarray]:
        number, indices = pickle.loads(asked)
        if os.getpid() == self.parent:
            return pack(self.fetch(indices))
        if self.place >= 0 and _PASSES[FORKED].is_over(self.place):
            # the consumer has left this iteration and never sees the message
            message = "The iteration ended before this batch was started."
            raise FailedPreconditionError(message)
        self._in_worker(number)
        first = ROOM.used
        return pack(self.fetch(indices, ROOM), ROOM, first)

    def there(self, transform: Transform) -> Transform:
        return FetchBlock(self, transform.label, transform.where)

    def fetch(self, indices: Any, room: Room | None = None) -> Any:
        assert self.given is not None
        dataset, collate = self.given.dataset, self.given.collate
        if room is not None:
            collate = collating_into(room, collate)
        token = EPOCH.set(self.epoch)
        try:
            if not self.together:
                return collate(dataset[indices])
            many = getattr(dataset, "__getitems__", None)
            return collate(many(indices) if many else [dataset[index] for index in indices])
        finally:
            EPOCH.reset(token)

    def _in_worker(self, number: int) -> None:
        if self.meeting not in _NUMBERS:
            _forget_loaders_that_are_gone()
            _NUMBERS[self.meeting] = self._number()
            import_module("torch").set_num_threads(1)
        if self.given is None:
            if self.meeting not in _KEPT:
                _KEPT[self.meeting] = read_given(self.meeting)
            self.given = _KEPT[self.meeting]
        if not self.given.initialised:
            self.given.initialised = True
            if self.given.worker_init_fn is not None:
                mine = self.seed + _NUMBERS[self.meeting]
                self._introduce(mine)
                seed_all(mine)
                self.given.worker_init_fn(_NUMBERS[self.meeting])
        self._introduce(self.seed + number)
        seed_all(self.seed + number)

    def _introduce(self, seed: int) -> None:
        """Set the result of `torch.utils.data.get_worker_info()`."""
        assert self.given is not None
        worker: Any = import_module("torch.utils.data._utils.worker")
        worker._worker_info = worker.WorkerInfo(
            id=_NUMBERS[self.meeting], num_workers=self.num_workers, seed=seed, dataset=self.given.dataset
        )

    def _number(self) -> int:
        """Return the first free worker number. A worker that replaces another one starts to search at 0 again."""
        for number in range(self.num_workers):
            try:
                os.close(os.open(Path(self.meeting, str(number)), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return number
        return 0


class FetchBlock(Transform):
    """`Fetch` in a worker process: compute the batches of a Block and write failures in their places."""

    one_to_one = True

    def __init__(self, fetch: Fetch, label: str, where: str | None) -> None:
        self._fetch, self.label, self.where = fetch, label, where

    def run(self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        made: list[tuple[bytes, np.ndarray]] = []
        failures: list[tuple[int, Exception]] = []
        for row, asked in enumerate(block.elements()):
            try:
                made.append(self._fetch(asked))
            except Exception as raised:
                failures.append((row, as_failure(raised, self.context(block, row, numbers), asked)))
        rows = np.delete(np.arange(block.size), [row for row, _ in failures]) if failures else None
        if not made:
            return Outcome(None, rows, failures)
        headers, memories = zip(*made, strict=True)
        columns = BytesColumn.from_values(headers), column_of(list(memories))
        return Outcome(Block(_STRUCTURE, columns, len(made)), rows, failures)


_STRUCTURE = flatten((b"", np.empty(0, np.uint8)))[1]


def collating_into(room: Room, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return torch's default collate with its tensors in `room`, while they fit; return other functions unchanged."""
    known: Any = import_module("torch.utils.data._utils.collate")
    torch = import_module("torch")
    default: Callable[[Any], Any] = known.default_collate
    if collate is not default:
        return collate
    stack = known.default_collate_fn_map[torch.Tensor]

    def like(one: Any, first: Any) -> bool:
        alike = type(one) is torch.Tensor and one.dtype == first.dtype and one.shape == first.shape
        return alike and not one.requires_grad and one.numel() > 0

    def stacked(batch: Any, *, collate_fn_map: Any = None) -> Any:
        first = batch[0]
        memory = None
        dense = not first.is_nested and first.layout == torch.strided and first.device.type == "cpu"
        if dense and all(like(one, first) for one in batch):
            memory = room.empty(len(batch) * first.numel() * first.element_size())
        if memory is None:
            return stack(batch, collate_fn_map=collate_fn_map)
        out = torch.from_numpy(memory).view(first.dtype).view(len(batch), *first.shape)
        return torch.stack(batch, 0, out=out)

    if stack is not known.collate_tensor_fn:  # other code has replaced torch's function
        return collate
    kinds = {**known.default_collate_fn_map, torch.Tensor: stacked}
    return lambda samples: known.collate(samples, collate_fn_map=kinds)


class Passes:
    """Iterations of a loader that have ended, in memory shared with its forked workers.

    Workers start no batch of an ended iteration.
    """

    def __init__(self) -> None:
        self._over = mmap.mmap(-1, mmap.PAGESIZE)  # shared with children
        self._numbers = itertools.count()

    def begin(self) -> int:
        """Register a new iteration and return its index."""
        place = next(self._numbers) % len(self._over)
        self._over[place] = False
        return place

    def end(self, place: int) -> None:
        self._over[place] = True

    def is_over(self, place: int) -> bool:
        return bool(self._over[place])


class LoaderWorkers(ForkedPool):
    """The forked workers of one loader."""

    def __init__(self, context: Any, count: int, given: Given, *, at_once: int) -> None:
        self.passes = Passes()
        super().__init__(context, count, partial(_take_over, given, self.passes), at_once=at_once)


def _take_over(given: Given, passes: Passes, number: int) -> None:
    """Set up a worker that was just forked for one loader. Such a loader has no folder."""
    _NUMBERS[FORKED], _KEPT[FORKED], _PASSES[FORKED] = number, given, passes
    import_module("torch").set_num_threads(1)


def write_given(given: Given, meeting: str, *, kept: bool) -> None:
    """Pickle the objects passed to a loader, for workers that do not share this program's memory.

    If the pickle is `kept`, workers read it from a file, which is written completely or not at all. Otherwise the
    function only checks that the objects can be pickled, and each iteration sends a copy.

    Raises:
        FailedPreconditionError: If the objects hold memory or locks shared between processes. A worker would receive a
            copy of them.
    """
    torch = import_module("torch")
    written = Path(meeting, "given.part") if kept else Path(os.devnull)

    class Pickler(by_value().Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            strided = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested
            held = strided or isinstance(value, torch.UntypedStorage)
            if held and value.device.type == "cpu" and value.is_shared():
                assert_spawning(value)
            return super().reducer_override(value)

    try:
        with written.open("wb") as file:
            Pickler(file, protocol=5).dump(given)
    except RuntimeError as error:
        # wording of `assert_spawning` and of the shared objects of multiprocessing
        if "through inheritance" not in str(error):
            raise
        message = f"A worker process that is started by spawn or forkserver cannot share memory or locks: {error}."
        hint = 'Write multiprocessing_context="fork", or take the loader of torch.utils.data.'
        raise FailedPreconditionError(message, hint=hint) from error
    if kept:
        written.rename(Path(meeting, "given"))


def read_given(meeting: str) -> Given:
    with Path(meeting, "given").open("rb") as file:
        found: Given = pickle.load(file)
    return found


def _forget_loaders_that_are_gone() -> None:
    for meeting in list(_NUMBERS):
        if not Path(meeting).is_dir():
            _NUMBERS.pop(meeting)
            _KEPT.pop(meeting, None)


FORKED = ""
_NUMBERS: dict[str, int] = {}  # in a worker process: its number for each loader
# in a worker process: the objects of loaders with persistent workers and of forked loaders
_KEPT: dict[str, Given] = {}
_PASSES: dict[str, Passes] = {}


def seed_all(seed: int) -> None:
    """Seed the generators as torch seeds a worker.

    Of torch's generators, only that of the CPU is seeded: the others cost more than all the rest.
    """
    random.seed(seed)
    import_module("torch").default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)


class Drawn(Source):
    """Index batches that the training loop has read from its sampler and that workers take.

    As in torch, the loop reads a few batches ahead, and one more for each batch that it receives. The sampler runs in
    the thread of the loop only. An error of the sampler takes the place of a batch.
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
        """Read no more batches from the sampler. Waiting readers see the end of the source."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def open(self, position: int | None = None) -> Reader:
        return _DrawnReader(self)

    def take(self) -> tuple[int, Any] | None:
        """Wait for the next index batch. Return it with its number, or None at the end."""
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
        found = self._drawn.take()  # one batch per Block, so that each worker gets its own
        self._count += 1
        return None if found is None else Block.single(BytesColumn.from_values([pickle.dumps(found, protocol=5)]))

    def position(self) -> int:
        return self._count

    def close(self) -> None:
        self._drawn.end()
