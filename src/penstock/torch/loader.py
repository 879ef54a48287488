"""DataLoader: torch's, with batches made by this engine."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

from penstock.dataset.dataset import Dataset
from penstock.errors import Context, FailedPreconditionError, InvalidArgumentError, as_failure, optional_package
from penstock.forked import when_gone
from penstock.options import Options
from penstock.plan.inputs import Scan
from penstock.torch.fetch import FORKED, Drawn, Fetch, Given, LoaderWorkers, write_given
from penstock.torch.packed import unpack

Sample = TypeVar("Sample", covariant=True)
_VERSION = 1
_AT_ONCE = 2  # batches that a forked worker has been asked for, and so one when it has made one
_BY_TORCH = (
    "torch's own workers run this loader: an IterableDataset has an order and a state of its own, which an engine "
    "cannot divide. A map-style data set, or a penstock Dataset, runs in this engine."
)


@cache
def data_loader_type() -> type:
    """The class, derived from torch's, which checks the arguments and makes samplers and the default collate.

    Raises:
        MissingDependencyError: torch is not installed.
    """
    torch = optional_package("torch", "penstock.torch", "torch")
    data = optional_package("torch.utils.data", "penstock.torch", "torch")
    pinned = optional_package("torch.utils.data._utils.pin_memory", "penstock.torch", "torch").pin_memory

    _have_the_engine()

    class DataLoader(data.DataLoader[Sample]):  # type: ignore[misc, name-defined]
        """`torch.utils.data.DataLoader` with penstock's workers.

        It has the same arguments, and yields the same batches in the same order.

        A map-style data set is read by `num_workers` worker processes of penstock, which return batches through shared
        memory. With `num_workers=0`, the calling thread reads it. In worker processes, each batch has its own seeds, so
        random numbers depend on torch's seed and the number of the batch only. torch's own workers run an
        IterableDataset.

        If torch forks its workers, penstock forks too: for each epoch, or once with `persistent_workers=True`. Forked
        workers copy nothing and need no pickle. With "spawn" or "forkserver", in `multiprocessing_context` or as the
        start method of `multiprocessing`, workers import torch, stay for later epochs and loaders, and receive a pickle
        of the data set.

        `state_dict()` and `load_state_dict()` continue after the last batch, as torchdata's StatefulDataLoader.
        `explain()` reports which workers run.

        Args:
            *args: Arguments of torch's DataLoader.
            executor: `"process"`, or `"thread"` for a data set without random numbers. Default: `"process"`.
            **kwargs: Keyword arguments of torch's DataLoader.

        Raises:
            MissingDependencyError: If torch is not installed.
            InvalidArgumentError: If `executor` is another string, or if `timeout` is passed without workers.

        Example:
            >>> from penstock.torch import DataLoader  # doctest: +SKIP
            >>> loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)  # doctest: +SKIP
        """

        def __init__(self, *args: Any, executor: str = "process", **kwargs: Any) -> None:
            if executor not in ("process", "thread"):
                message = f'executor must be "process" or "thread", got {executor!r}.'
                raise InvalidArgumentError(message, hint="Threads are for data sets that use no random numbers.")
            super().__init__(*args, **kwargs)
            if self.timeout and not self.num_workers:
                message = f"timeout={self.timeout!r} is for workers, and num_workers is 0."
                raise InvalidArgumentError(message, hint="The loop's own thread cannot give up what it is doing.")
            self._penstock_executor = executor
            self._penstock_pins = bool(self.pin_memory) and torch.accelerator.is_available()
            if self.pin_memory and not self._penstock_pins:
                message = "pin_memory=True, and torch finds no accelerator that memory could be pinned for: it is not."
                warnings.warn(message, stacklevel=2)
            self._penstock_meeting: Any = None
            self._penstock_workers: LoaderWorkers | None = None  # that persist
            self._penstock_resume: Any = None
            self._penstock_epoch = 0  # of the next pass
            self._penstock_seed: int | None = None  # of the latest pass, where workers persist
            self._penstock_place: Any = None  # of the latest pass: the generator's state before it, batches given

        @property
        def _penstock_runs(self) -> bool:
            return not isinstance(self.dataset, data.IterableDataset)

        def __iter__(self) -> Iterator[Any]:
            resume, self._penstock_resume = self._penstock_resume, None
            if not self._penstock_runs:
                return self._by_torch(resume)
            before = _generator_state(torch, self.generator)
            if resume is not None:
                _set_generator_state(torch, self.generator, resume["generator"])
            state = _generator_state(torch, self.generator)
            known = self._known_seed() if resume is None else resume["seed"]
            asked = iter(self._index_sampler)
            seed = known
            if seed is None:
                seed = int(torch.empty((), dtype=torch.int64).random_(generator=self.generator).item())
            if self.persistent_workers:
                self._penstock_seed = seed
            first = 0 if resume is None else resume["batches"]
            named = self.dataset._named_epoch() if isinstance(self.dataset, Dataset) else None
            epoch = self._penstock_epoch if named is None else named
            self._penstock_epoch = epoch + 1
            place = {"generator": state, "batches": first, "ended": False, "seed": known, "epoch": epoch}
            self._penstock_place = place
            with ExitStack() as failed:
                workers = self._forked()
                if workers is not None and not self.persistent_workers:
                    failed.callback(workers.close)
                aside = resume is not None and self.generator is None
                drawn = Drawn(islice(asked, first, None), first)
                drawn.draw(self._penstock_ahead or int(aside))
                if aside:
                    _set_generator_state(torch, None, before)  # the program's own random numbers go on where they were
                fetch = self._fetch(seed, epoch, workers)
                if not self.num_workers:
                    return _Batches(self, _Here(fetch, drawn), place, self._handed)
                elements = self._pipeline(drawn, fetch).iterator(epoch=0)
                made = _Batches(self, elements, place, lambda element: self._handed(unpack(*element)), drawn)
                failed.pop_all()
            if workers is not None:
                made.by(workers, partial(workers.passes.end, fetch.place), ends=not self.persistent_workers)
            return made

        @property
        def _penstock_ahead(self) -> int:
            """The number of batches that are asked for before the loop has them."""
            return int(self.num_workers * (self.prefetch_factor or 2))

        def _known_seed(self) -> int | None:
            """The next pass's, where workers persist: torch draws one for the first pass alone, and so do we."""
            return None if self._penstock_seed is None else _another_seed(self._penstock_seed)

        def _forked(self) -> LoaderWorkers | None:
            """Workers for a pass, forked in this thread; None where torch does not fork."""
            if self._penstock_workers is not None or not self.num_workers:
                return self._penstock_workers
            found = self._own_workers()
            if found is not None:
                found.fork()
                if self.persistent_workers:
                    self._penstock_workers = found
                    when_gone(self, found.close)
            return found

        def _own_workers(self) -> LoaderWorkers | None:
            context, _ = _forking_context(self.multiprocessing_context)
            if context is None or self._penstock_executor != "process":
                return None
            given = Given(self.dataset, self.collate_fn, self.worker_init_fn)
            return LoaderWorkers(context, self.num_workers, given, at_once=min(self.prefetch_factor or 2, _AT_ONCE))

        def _handed(self, batch: Any) -> Any:
            if self._penstock_pins:
                return pinned(batch, self.pin_memory_device or None)
            return batch

        def _fetch(self, seed: int, epoch: int, workers: LoaderWorkers | None) -> Fetch:
            given = Given(self.dataset, self.collate_fn, self.worker_init_fn)
            if self._penstock_meeting is None and self.num_workers and workers is None:
                meeting = tempfile.mkdtemp(prefix="penstock-loader-")
                when_gone(self, partial(shutil.rmtree, ignore_errors=True), meeting)
                if self._penstock_executor == "process":
                    write_given(given, meeting, kept=self._penstock_kept)
                self._penstock_meeting = meeting
            return Fetch(
                given,
                together=self._auto_collation,
                num_workers=self.num_workers,
                seed=seed,
                epoch=epoch,
                meeting=self._penstock_meeting or FORKED,
                kept=self._penstock_kept,
                workers=workers,
            )

        @property
        def _penstock_kept(self) -> bool:
            return bool(self.persistent_workers) and self._penstock_executor == "process"

        def _pipeline(self, drawn: Drawn, fetch: Fetch) -> Dataset:
            options = Options(**_PER_BATCH, experimental_warm_start=True)  # torch's workers begin with iter(loader)
            if self.timeout:
                options.element_timeout = float(self.timeout)
            made = Dataset._of(Scan(source=drawn)).with_options(options)
            workers, executor = self.num_workers, self._penstock_executor
            made = made.map(fetch, num_parallel_calls=workers, deterministic=self.in_order, executor=executor)
            return made.prefetch(self._penstock_ahead)

        def _by_torch(self, resume: Any) -> Iterator[Any]:
            made = super().__iter__()
            place = self._penstock_place = {"generator": None, "batches": 0, "ended": False, "seed": None, "epoch": 0}
            for _ in range(0 if resume is None else resume["batches"]):
                next(made)
                place["batches"] += 1
            return _Batches(self, made, place, None)

        def state_dict(self) -> dict[str, Any]:
            """How many batches of the latest pass were given, and the random numbers it began with.

            Raises FailedPreconditionError with `in_order=False`, where a count does not say which.
            """
            if not self.in_order and self.num_workers:
                message = "A loader with in_order=False cannot say which batches it has given."
                raise FailedPreconditionError(message, hint="Leave in_order out to save and resume.")
            place = self._penstock_resume or self._penstock_place
            if place is None or place["ended"]:
                place = {"batches": 0, "generator": _generator_state(torch, self.generator), "seed": self._known_seed()}
                place["epoch"] = self._penstock_epoch
            return {"version": _VERSION, **{name: place[name] for name in ("batches", "generator", "seed", "epoch")}}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            """The next pass goes on where `state_dict()` was taken.

            Raises InvalidArgumentError for what is no such state.
            """
            try:
                version, batches, generator = state["version"], int(state["batches"]), state["generator"]
            except (TypeError, KeyError, IndexError, ValueError) as error:
                message = f"A state is what state_dict() of a loader returned, got {type(state).__name__}."
                raise InvalidArgumentError(message, hint="Save the dict as it is, as JSON or by pickle.") from error
            if version != _VERSION:
                message = f"This state has format {version}; this version of penstock reads format {_VERSION}."
                raise FailedPreconditionError(message)
            seed, epoch = state.get("seed"), state.get("epoch", 0)  # earlier versions have saved neither
            self._penstock_epoch = epoch
            place = {"batches": batches, "generator": generator, "ended": False, "seed": seed, "epoch": epoch}
            self._penstock_resume = place

        def explain(self, *, analyze: bool = False, seconds: float = 5.0) -> str:
            """What runs, and with `analyze=True` what it costs, as `Dataset.explain`.

            The step `map(Fetch)` is the data set itself, its transforms and the collate: where it is the bottleneck,
            the loader can only ask more of them at once.
            """
            if not self._penstock_runs:
                return _BY_TORCH
            if not self.num_workers:
                return "The loop's own thread asks the data set, as num_workers is 0."
            indices = range(len(self.dataset))
            batches = data.BatchSampler(indices, self.batch_size or 1, False) if self._auto_collation else indices
            workers, drawn = self._own_workers(), Drawn(iter(batches), 0)
            drawn.draw(len(indices) + 1)
            pipeline = self._pipeline(drawn, self._fetch(0, 0, workers))
            said = "" if self._penstock_executor == "thread" else self._workers_said()
            if not analyze:
                return f"{pipeline.explain()}{said}"
            if workers is None:
                return f"{pipeline.explain(analyze=True, seconds=seconds)}{said}"
            try:
                workers.fork()
                with workers.here:
                    return f"{pipeline.explain(analyze=True, seconds=seconds)}{said}"
            finally:
                workers.close()

        def _workers_said(self) -> str:
            _, why = _forking_context(self.multiprocessing_context)
            if why:
                return f"\nIts worker processes are started again, and each imports torch: {why}."
            return "\nIts worker processes are forked: copies of this program as it is when a pass begins."

    DataLoader.__module__, DataLoader.__qualname__ = "penstock.torch", "DataLoader"  # where pickle finds it
    return DataLoader


_PER_BATCH: Any = {"experimental_optimization": {"map_vectorization": {"enabled": False}}}


def _have_the_engine() -> None:
    """Import all of it now: the first batch does not wait for it, and no worker that is forked does it again."""
    made = Dataset.from_sequence([b""]).with_options(Options(**_PER_BATCH)).map(len, num_parallel_calls=1).prefetch(1)
    for _ in made.iterator(executor="inline"):
        continue


class _Here:
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


class _Batches:
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

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        try:
            with self._here:
                element = next(self._elements)
        except StopIteration:
            self._place["ended"] = True
            self._end()
            raise
        except Exception:
            self._counts()  # a batch that fails has its place
            raise
        self._counts()
        return element if self._handed is None else self._handed(element)

    def _counts(self) -> None:
        self._place["batches"] += 1
        if self._drawn is not None:
            self._drawn.draw()


def _another_seed(seed: int) -> int:
    """A seed that follows from a pass's, far from those of its batches, which are the next ones.

    >>> _another_seed(1)
    6364136223846793006
    """
    return (seed * 6_364_136_223_846_793_005 + 1) % 2**63


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


def _forking_context(given: Any) -> tuple[Any, str]:
    """The context of multiprocessing to fork by, where torch would fork; or None, and why not."""
    if given is not None:
        method = given.get_start_method()
    else:
        method = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    if method != "fork":
        return None, f"multiprocessing's start method is {method!r}"
    if multiprocessing.current_process().daemon:
        return None, "this is a daemonic process of multiprocessing, which must not have children"
    return given or multiprocessing.get_context("fork"), ""


def _generator_state(torch: Any, generator: Any) -> str:
    """The state of the generator that the sampler draws from, as text: it goes into JSON."""
    state = torch.get_rng_state() if generator is None else generator.get_state()
    return str(state.numpy().tobytes().hex())


def _set_generator_state(torch: Any, generator: Any, state: str) -> None:
    found = torch.frombuffer(bytearray.fromhex(state), dtype=torch.uint8)
    if generator is None:
        torch.set_rng_state(found)
    else:
        generator.set_state(found)
