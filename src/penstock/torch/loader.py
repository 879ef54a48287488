"""DataLoader: torch's class, with batches computed by penstock's engine."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

from penstock.dataset.dataset import Dataset
from penstock.errors import FailedPreconditionError, InvalidArgumentError, optional_package
from penstock.forked import when_gone
from penstock.options import Options
from penstock.plan.inputs import Scan
from penstock.torch.batches import LoaderBatches, LoopBatches
from penstock.torch.drawn import Drawn
from penstock.torch.fetch import FORKED, Fetch, Given, LoaderWorkers, is_default, write_given
from penstock.torch.generators import torch_state
from penstock.torch.packed import unpack
from penstock.torch.shared import states_of
from penstock.torch.vision.jobs import AheadBatches, first_states
from penstock.torch.vision.own_code import OwnCode, plan_of
from penstock.torch.vision.plan import Plan

Sample = TypeVar("Sample", covariant=True)
_VERSION = 1
_AT_ONCE = 2  # batches requested from a forked worker at the same time
_BY_TORCH = (
    "torch's own workers run this loader: an IterableDataset has an order and a state of its own, which an engine "
    "cannot divide. A map-style data set, or a penstock Dataset, runs in this engine."
)


@cache
def data_loader_type() -> type:
    """Return the DataLoader class, derived from torch's, which checks arguments and creates samplers and the collate.

    Raises:
        MissingDependencyError: If torch is not installed.
    """
    torch = optional_package("torch", "penstock.torch", "torch")
    data = optional_package("torch.utils.data", "penstock.torch", "torch")
    pinned = optional_package("torch.utils.data._utils.pin_memory", "penstock.torch", "torch").pin_memory

    _have_the_engine()

    class DataLoader(data.DataLoader[Sample]):  # type: ignore[misc, name-defined]
        """`torch.utils.data.DataLoader` with penstock's workers.

        It has the same arguments, and yields the same batches in the same order.

        A map-style data set is read by `num_workers` worker processes of penstock, which return batches through shared
        memory. With `num_workers=0`, the calling thread reads it. Random numbers are those of torch's workers. An
        IterableDataset runs in torch's own workers.

        If torch forks its workers, penstock forks too: for each epoch, or once with `persistent_workers=True`. Forked
        workers copy nothing and need no pickle. With "spawn" or "forkserver", in `multiprocessing_context` or as the
        start method of `multiprocessing`, workers import torch, stay for later epochs and loaders, and receive a pickle
        of the data set.

        Kernels compute the images of torchvision's data sets, with the random numbers and the bits of torchvision. If
        kernels run all transforms, threads replace the worker processes. The code of your own data sets runs as
        written: kernels run the transforms that it calls, and decode images that `open_image` opens.

        `state_dict()` and `load_state_dict()` continue after the last batch, as torchdata's StatefulDataLoader.
        `explain()` reports which workers run, and which transforms run in kernels.

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
                raise InvalidArgumentError(
                    message, hint="The training loop's own thread cannot be interrupted: set num_workers."
                )
            self._penstock_executor = executor
            self._penstock_pins = bool(self.pin_memory) and torch.accelerator.is_available()
            if self.pin_memory and not self._penstock_pins:
                message = "pin_memory=True has no effect, because torch finds no accelerator."
                warnings.warn(message, stacklevel=2)
            self._penstock_meeting: Any = None
            self._penstock_workers: LoaderWorkers | None = None  # set if workers persist
            self._penstock_resume: Any = None
            self._penstock_epoch = 0  # of the next pass
            self._penstock_seed: int | None = None  # of the latest pass, where workers persist
            self._penstock_plan: Any = None  # how kernels compute the samples, for the latest pass
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
            starts = self._starts(resume)
            place: dict[str, Any] = {"generator": state, "batches": first, "seed": known, "epoch": epoch}
            place |= {"ended": False, "workers": list(starts)}
            self._penstock_place = place
            plan = self._plan()
            with ExitStack() as failed:
                ahead = plan if self._runs_ahead(plan) else None
                workers = None if ahead else self._forked()
                if workers is not None and not self.persistent_workers:
                    failed.callback(workers.close)
                aside = resume is not None and self.generator is None
                drawn = Drawn(islice(asked, first, None), first)
                drawn.draw(self._penstock_ahead or int(aside))
                if aside:
                    _set_generator_state(torch, None, before)  # the program's own random numbers go on where they were
                if isinstance(ahead, Plan):
                    painted = AheadBatches(ahead, drawn, self.collate_fn, first_states(seed, starts))
                    place["workers"] = painted.states
                    return LoaderBatches(self, painted, place, self._handed, drawn)
                fetch = self._fetch(seed, epoch, workers, first, starts)
                if not self.num_workers:
                    return LoaderBatches(self, LoopBatches(fetch, drawn), place, self._handed)
                elements = self._pipeline(drawn, fetch).iterator(epoch=0)
                made = LoaderBatches(self, elements, place, partial(self._unpacked, place["workers"]), drawn)
                failed.pop_all()
            if workers is not None:
                made.by(workers, partial(workers.passes.end, fetch.place), ends=not self.persistent_workers)
            return made

        def _plan(self) -> Plan | OwnCode | None:
            """Return how kernels compute the samples, or None."""
            if self._penstock_plan is None or not self._penstock_plan.holds():
                self._penstock_plan, _ = plan_of(self.dataset) if self._auto_collation else (None, "")
            found: Plan | OwnCode | None = self._penstock_plan
            return found

        def _runs_ahead(self, plan: Plan | OwnCode | None) -> bool:
            """Return True if threads replace the worker processes: kernels do all, and no other code runs there."""
            own = self.worker_init_fn is None and is_default(self.collate_fn)
            return bool(plan is not None and plan.whole and self.num_workers and own and not self.timeout)

        def _starts(self, resume: Any) -> list[bytes | None]:
            """Return the states of the workers' generators at the begin of an iteration, None for new workers."""
            known = resume if resume is not None else self._penstock_place if self.persistent_workers else None
            found = [_bytes_of(state) for state in (known or {}).get("workers") or [None] * self.num_workers]
            if len(found) != self.num_workers:
                message = f"The state was saved with num_workers={len(found)}, this loader has {self.num_workers}."
                hint = "Random numbers of torch's workers depend on their number."
                raise FailedPreconditionError(message, hint=hint)
            return found

        def _unpacked(self, states: list[Any], element: Any) -> Any:
            header, memory = element
            number, found = states_of(header)
            if found:
                states[number % len(states)] = found
            return self._handed(unpack(header, memory))

        @property
        def _penstock_ahead(self) -> int:
            """Number of batches that are requested before the loop asks for them."""
            return int(self.num_workers * (self.prefetch_factor or 2))

        def _known_seed(self) -> int | None:
            """Return the seed of the next iteration, if workers persist.

            torch takes a seed from its generator for the first iteration only. This class does the same.
            """
            return None if self._penstock_seed is None else _another_seed(self._penstock_seed)

        def _forked(self) -> LoaderWorkers | None:
            """Return workers for an iteration, forked in this thread, or None if torch would not fork."""
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
            given = Given(self.dataset, self.collate_fn, self.worker_init_fn, plan=self._penstock_plan)
            return LoaderWorkers(context, self.num_workers, given, at_once=min(self.prefetch_factor or 2, _AT_ONCE))

        def _handed(self, batch: Any) -> Any:
            if self._penstock_pins:
                return pinned(batch, self.pin_memory_device or None)
            return batch

        def _fetch(
            self, seed: int, epoch: int, workers: LoaderWorkers | None, first: int = 0, starts: Any = None
        ) -> Fetch:
            given = Given(self.dataset, self.collate_fn, self.worker_init_fn, plan=self._penstock_plan)
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
                first=first,
                starts=starts,
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
            place["workers"] = None
            for _ in range(0 if resume is None else resume["batches"]):
                next(made)
                place["batches"] += 1
            return LoaderBatches(self, made, place, None)

        def state_dict(self) -> dict[str, Any]:
            """Return the number of batches yielded in the latest iteration, and the generator state at its start.

            Raises:
                FailedPreconditionError: With `in_order=False`, because a count does not tell which batches were
                    yielded.
            """
            if not self.in_order and self.num_workers:
                message = "A loader with in_order=False does not know which batches it has yielded."
                raise FailedPreconditionError(message, hint="Leave in_order out to save and resume.")
            place = self._penstock_resume or self._penstock_place
            if place is None or place["ended"]:
                place = {"batches": 0, "generator": _generator_state(torch, self.generator), "seed": self._known_seed()}
                place |= {"epoch": self._penstock_epoch, "workers": self._starts(None)}
            found = {name: place[name] for name in ("batches", "generator", "seed", "epoch")}
            states = [_bytes_of(state) for state in place["workers"] or ()]
            return {
                "version": _VERSION,
                **found,
                "workers": [None if state is None else state.hex() for state in states],
            }

        def load_state_dict(self, state: dict[str, Any]) -> None:
            """Resume the next iteration at the batch where `state_dict()` was called.

            Raises:
                InvalidArgumentError: If `state` was not returned by `state_dict()`.
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
            self._penstock_resume = place | {"workers": state.get("workers")}

        def explain(self, *, analyze: bool = False, seconds: float = 5.0) -> str:
            """Return a report of the workers that run, and with `analyze=True` of their cost, like `Dataset.explain`.

            The step `map(Fetch)` contains the data set itself, its transforms and the collate function. If this step is
            the bottleneck, the loader can only run more workers.
            """
            if not self._penstock_runs:
                return _BY_TORCH
            plan, report = plan_of(self.dataset) if self._auto_collation else (None, "")
            report = report and f"\n{report}"
            if not self.num_workers:
                return f"The training loop's own thread reads the data set, because num_workers is 0.{report}"
            if self._runs_ahead(plan):
                return f"Threads of this process compute all batches, because kernels run all transforms.{report}"
            indices = range(len(self.dataset))
            batches = data.BatchSampler(indices, self.batch_size or 1, False) if self._auto_collation else indices
            workers, drawn = self._own_workers(), Drawn(iter(batches), 0)
            drawn.draw(len(indices) + 1)
            pipeline = self._pipeline(drawn, self._fetch(0, 0, workers))
            said = report if self._penstock_executor == "thread" else self._workers_said() + report
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
            return "\nIts worker processes are forked: copies of this program as it is when an iteration begins."

    # pickle imports the class by this name
    DataLoader.__module__, DataLoader.__qualname__ = "penstock.torch", "DataLoader"
    return DataLoader


_PER_BATCH: Any = {"experimental_optimization": {"map_vectorization": {"enabled": False}}}


def _have_the_engine() -> None:
    """Import the whole engine now, so that neither the first batch nor a forked worker waits for it."""
    made = Dataset.from_sequence([b""]).with_options(Options(**_PER_BATCH)).map(len, num_parallel_calls=1).prefetch(1)
    for _ in made.iterator(executor="inline"):
        continue


def _another_seed(seed: int) -> int:
    """Return a seed derived from the seed of an iteration.

    It is far away from the seeds of the batches, which are the next integers.

    >>> _another_seed(1)
    6364136223846793006
    """
    return (seed * 6_364_136_223_846_793_005 + 1) % 2**63


def _forking_context(given: Any) -> tuple[Any, str]:
    """Return the multiprocessing context for forking. If torch would not fork, return None and the reason."""
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
    """Return the state of the sampler's generator as a hex string, which JSON can store."""
    state = torch.get_rng_state() if generator is None else generator.get_state()
    return str(state.numpy().tobytes().hex())


def _bytes_of(state: Any) -> bytes | None:
    """Return the state of a worker: a tensor is that of torch's generator, a string was saved."""
    if state is None or isinstance(state, bytes):
        return state
    return bytes.fromhex(state) if isinstance(state, str) else torch_state(state)


def _set_generator_state(torch: Any, generator: Any, state: str) -> None:
    found = torch.frombuffer(bytearray.fromhex(state), dtype=torch.uint8)
    if generator is None:
        torch.set_rng_state(found)
    else:
        generator.set_state(found)
