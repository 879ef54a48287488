"""Fetch: the work of one worker for one batch: read the elements, collate them, pack the batch."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from multiprocessing.context import assert_spawning
from pathlib import Path
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, column_of
from penstock.block.numbers import Numbers
from penstock.block.structure import flatten
from penstock.dataset.indexing import EPOCH
from penstock.errors import FailedPreconditionError, as_failure
from penstock.functions.shipping import by_value
from penstock.physical.transform import BlockTransform, Outcome
from penstock.runtime.processes.forks import BlockPlace, ForkedPool, Order
from penstock.runtime.processes.task import OwnWorkers, ProcessTask
from penstock.runtime.processes.worker import ROOM, ResultRoom
from penstock.torch.drawn import asked_in
from penstock.torch.generators import seed_all, set_states, states
from penstock.torch.packed import pack
from penstock.torch.shared import SharedPasses, SharedWorkers, Slots, with_states
from penstock.torch.vision.jobs import Job, threads
from penstock.torch.vision.own_code import OwnCode, plan_of
from penstock.torch.vision.plan import Plan
from penstock.trace.graph import Allocate


@dataclass
class Given:
    """The objects that the caller passed to a loader. Each worker process has its own copy."""

    dataset: Any
    collate: Callable[[Any], Any]
    worker_init_fn: Callable[[int], Any] | None
    initialised: set[int] = field(default_factory=set)  # numbers of workers
    states: dict[tuple[int, int], bytes] = field(default_factory=dict)  # by pass and worker, in a forked process
    latest: tuple[int, int] | None = None  # whose states the generators have
    plan: Plan | OwnCode | None = None  # of images and transforms of torchvision

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "plan": self.plan is not None}  # steps are closures

    def __setstate__(self, state: dict[str, Any]) -> None:
        plan = plan_of(state["dataset"])[0] if state["plan"] else None
        vars(self).update(state, plan=plan)


class Fetch(OwnWorkers):
    """Compute `collate(dataset[i] for i in indices)`, like torch's fetcher for map-style data sets.

    Batch n has the random numbers of worker n modulo the number of workers, as in torch: the global generators of
    `random`, numpy and torch are seeded per worker, and continue from batch to batch. A forked process is one worker.
    Other processes may compute any batch, because the states travel with the batches. Each process has its own copy of
    the data set, on which `worker_init_fn` is called. A forked process has its parent's copy at the time of the fork.
    Other processes receive a copy per iteration, or read it once from a file if the loader keeps its workers.
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
        first: int = 0,
        starts: list[bytes | None] | None = None,
    ) -> None:
        self.given: Given | None = given
        self.together = together  # False if the loader has no batch size and returns single elements
        self.num_workers = num_workers
        self.seed = seed
        self.epoch = epoch  # of elements of penstock's data sets
        self.meeting = meeting  # a folder of the loader, for what its workers keep
        self.kept = kept
        self.own = workers
        self.place = -1 if workers is None else workers.passes.begin()
        self.parent = os.getpid()
        self.order = Order(max(num_workers, 1), first)
        self.starts = starts or [None] * num_workers  # states of the workers at the begin, if they were saved

    @property
    def workers(self) -> Any:
        return SharedWorkers(self.order, self.starts) if self.own is None else self.own

    def __getstate__(self) -> dict[str, Any]:
        given = None if self.kept or self.own is not None else self.given
        return {**vars(self), "given": given, "own": None, "order": None}

    def __call__(self, asked: bytes) -> tuple[bytes, np.ndarray]:
        number, indices, *sent = pickle.loads(asked)
        if os.getpid() == self.parent:
            header, memory = pack(self.fetch(indices))
            return with_states(header, number, b""), memory
        if self.place >= 0 and _PASSES[FORKED].is_over(self.place):
            # the consumer has left this iteration and never sees the message
            message = "The iteration ended before this batch was started."
            raise FailedPreconditionError(message)
        worker = number % self.num_workers
        self._in_worker(worker, number, *sent)
        first = ROOM.used
        try:
            header, memory = pack(self.fetch(indices, ROOM), ROOM, first)
        except Exception as error:
            with suppress(Exception):  # it may have no attributes
                error.penstock_states = self._after(worker, number)  # type: ignore[attr-defined]
            raise
        return with_states(header, number, self._after(worker, number)), memory

    def there(self, transform: BlockTransform) -> BlockTransform:
        return FetchBlock(self, transform.label, transform.where)

    def fetch(self, indices: Any, room: ResultRoom | None = None) -> Any:
        assert self.given is not None
        dataset, collate, plan = self.given.dataset, self.given.collate, self.given.plan
        if isinstance(plan, Plan) and self.together and plan.is_current():
            job = Job(plan, indices, None if room else threads(), room.empty if room else None)
            job.draw()
            return job.batch(collate, default=is_default(collate))
        if room is not None:
            collate = collating_into(room, collate)
        token = EPOCH.set(self.epoch)
        try:
            with plan.in_place() if isinstance(plan, OwnCode) else nullcontext():
                samples = self._samples(dataset, indices)
            return collate(samples)
        finally:
            EPOCH.reset(token)

    def _samples(self, dataset: Any, indices: Any) -> Any:
        if not self.together:
            return dataset[indices]
        many = getattr(dataset, "__getitems__", None)
        return many(indices) if many else [dataset[index] for index in indices]

    def _in_worker(self, worker: int, number: int, sent: bytes | None = None) -> None:
        """Set the generators to the states of a worker, before one of its batches."""
        if self.given is None:
            if self.meeting not in _KEPT:
                _forget_loaders_that_are_gone()
                _KEPT[self.meeting] = read_given(self.meeting)
            self.given = _KEPT[self.meeting]
        given, mine = self.given, (self.place, worker)
        self._introduce(worker)
        if worker not in given.initialised:
            import_module("torch").set_num_threads(1)
            seed_all(self.seed, worker)
            if given.worker_init_fn is not None:
                given.worker_init_fn(worker)
            given.initialised.add(worker)
            given.latest = None
        if self.place >= 0 and given.latest != mine:
            sent = given.states.get(mine) or _SLOTS[FORKED].read(worker, self.place, number - self.num_workers)
            sent = sent or self.starts[worker]
            given.latest = mine
            for old in [known for known in given.states if _PASSES[FORKED].is_over(known[0])]:
                del given.states[old]
        if sent is not None:
            set_states(sent)

    def _after(self, worker: int, number: int) -> bytes:
        """Return the states of the generators after a batch."""
        found = states()
        if self.place >= 0:
            assert self.given is not None
            self.given.states[self.place, worker] = found
            _SLOTS[FORKED].write(worker, self.place, number, found)
        return found

    def _introduce(self, worker: int) -> None:
        """Set the result of `torch.utils.data.get_worker_info()`."""
        assert self.given is not None
        known: Any = import_module("torch.utils.data._utils.worker")
        known._worker_info = known.WorkerInfo(
            id=worker, num_workers=self.num_workers, seed=self.seed + worker, dataset=self.given.dataset
        )


class FetchBlock(BlockTransform):
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
                failure = as_failure(raised, self.context(block, row, numbers), asked)
                with suppress(Exception):
                    failure.penstock_states = getattr(raised, "penstock_states", None)  # type: ignore[attr-defined]
                failures.append((row, failure))
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


def collating_into(room: ResultRoom, collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return torch's default collate so that it writes tensors to the room. Return any other function unchanged."""
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


class LoaderWorkers(ForkedPool):
    """The forked workers of one loader."""

    def __init__(self, context: Any, count: int, given: Given, *, at_once: int) -> None:
        self.passes = SharedPasses()
        slots = Slots(count)
        super().__init__(context, count, partial(_take_over, given, self.passes, slots), at_once=at_once)

    def place_of(self, task: ProcessTask, block: Block) -> BlockPlace | None:
        fetch = getattr(task.transforms[0], "function", None)
        return BlockPlace(fetch.order, asked_in(block)[0]) if isinstance(fetch, Fetch) else None


def _take_over(given: Given, passes: SharedPasses, slots: Slots, number: int) -> None:
    """Register the objects of a loader in a worker that was just forked for it."""
    _KEPT[FORKED], _PASSES[FORKED], _SLOTS[FORKED] = given, passes, slots


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

    class GivenPickler(by_value().Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            strided = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested
            held = strided or isinstance(value, torch.UntypedStorage)
            if held and value.device.type == "cpu" and value.is_shared():
                assert_spawning(value)
            return super().reducer_override(value)

    try:
        with written.open("wb") as file:
            GivenPickler(file, protocol=5).dump(given)
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
    for meeting in [meeting for meeting in _KEPT if meeting != FORKED and not Path(meeting).is_dir()]:
        del _KEPT[meeting]


FORKED = ""
_KEPT: dict[str, Given] = {}  # in a worker process: by the loader's folder, or `FORKED`
_PASSES: dict[str, SharedPasses] = {}
_SLOTS: dict[str, Slots] = {}
