"""Fetch: what a worker does for a batch: ask the data set, put together, pack."""

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
from penstock.torch.vision.jobs import Job, threads
from penstock.torch.vision.plan import Plan
from penstock.trace.graph import Allocate


@dataclass
class Given:
    """What the caller of a loader gave, as a worker has it: a copy of its own."""

    dataset: Any
    collate: Callable[[Any], Any]
    worker_init_fn: Callable[[int], Any] | None
    initialised: bool = False
    plan: Plan | None = None  # of a data set of torchvision

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "plan": None}  # steps are closures


class Fetch(OwnWorkers):
    """`collate(dataset[i] for i in indices)`, as torch's fetcher for map-style data sets.

    In a worker process every batch begins with seeds of its own, made of the pass's and the number of the batch: what a
    data set draws from `random`, numpy's and torch's global generators depends neither on the number of workers nor on
    which of them is asked. A worker has a copy of the data set, on which `worker_init_fn` is called: one that is forked
    has its parent's, as it was then. To others each pass brings one; a loader that is `kept` (persistent_workers)
    leaves one in a file, and each worker reads it once.
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
        self.together = together  # whether there are batches at all
        self.num_workers = num_workers
        self.seed = seed
        self.epoch = epoch  # of elements of penstock's data sets
        self.meeting = meeting  # a folder of the loader, where workers that are started take their numbers
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
            message = "The pass was over before this batch was begun."  # which nobody will see
            raise FailedPreconditionError(message)
        self._in_worker(number)
        first = ROOM.used
        return pack(self.fetch(indices, ROOM), ROOM, first)

    def there(self, transform: Transform) -> Transform:
        return FetchBlock(self, transform.label, transform.where)

    def fetch(self, indices: Any, room: Room | None = None) -> Any:
        assert self.given is not None
        dataset, collate = self.given.dataset, self.given.collate
        if self.given.plan is not None and self.together:
            job = Job(self.given.plan, indices, None if room else threads(), room.empty if room else None)
            job.draw()
            return job.batch(collate, default=is_default(collate))
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
        """What torch.utils.data.get_worker_info() is to say."""
        assert self.given is not None
        worker: Any = import_module("torch.utils.data._utils.worker")
        worker._worker_info = worker.WorkerInfo(
            id=_NUMBERS[self.meeting], num_workers=self.num_workers, seed=seed, dataset=self.given.dataset
        )

    def _number(self) -> int:
        """The first that no other process has taken; one that replaces another begins again at 0."""
        for number in range(self.num_workers):
            try:
                os.close(os.open(Path(self.meeting, str(number)), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return number
        return 0


class FetchBlock(Transform):
    """What `Fetch` is in a worker process: the batches of a Block, where they are made, or their failures."""

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


def is_default(collate: Callable[[Any], Any]) -> bool:
    """Return True for torch's default collate, with torch's own function for tensors."""
    known: Any = import_module("torch.utils.data._utils.collate")
    own = known.default_collate_fn_map[import_module("torch").Tensor] is known.collate_tensor_fn
    return own and collate is known.default_collate


def collating_into(room: Room, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """torch's default collate with its tensors in the room, as far as that goes; any other function as it is."""
    if not is_default(collate):
        return collate
    known: Any = import_module("torch.utils.data._utils.collate")
    torch = import_module("torch")
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

    kinds = {**known.default_collate_fn_map, torch.Tensor: stacked}
    return lambda samples: known.collate(samples, collate_fn_map=kinds)


class Passes:
    """Which passes of a loader are over, as its forked workers see it, too: they begin nothing more for those."""

    def __init__(self) -> None:
        self._over = mmap.mmap(-1, mmap.PAGESIZE)  # shared with children
        self._numbers = itertools.count()

    def begin(self) -> int:
        """A new one's place."""
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
    """In a worker that has just been forked for one loader, which has no folder."""
    _NUMBERS[FORKED], _KEPT[FORKED], _PASSES[FORKED] = number, given, passes
    import_module("torch").set_num_threads(1)


def write_given(given: Given, meeting: str, *, kept: bool) -> None:
    """Pickle what a loader was given for workers that do not share this program's memory.

    The file that workers read once is there as a whole or not at all. If it is not `kept`, each pass sends a copy.

    Raises:
        FailedPreconditionError: If it holds memory or locks that processes share, of which a worker would get a copy.
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
        if "through inheritance" not in str(error):  # as `assert_spawning` and what multiprocessing shares say
            raise
        message = f"A worker process that is started by spawn or forkserver cannot share what a data set has: {error}."
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
_KEPT: dict[str, Given] = {}  # and what it keeps: for those with persistent workers, or since it was forked
_PASSES: dict[str, Passes] = {}


def seed_all(seed: int) -> None:
    """As torch seeds a worker; of its generators the one of the CPU, as the others cost more than all of these."""
    random.seed(seed)
    import_module("torch").default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)


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
        return None if found is None else Block.single(BytesColumn.from_values([pickle.dumps(found, protocol=5)]))

    def position(self) -> int:
        return self._count

    def close(self) -> None:
        self._drawn.end()
