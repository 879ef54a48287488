"""Batches of a plan: in the thread of the caller, with help of threads, or ahead in the place of worker processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.forked import in_child
from penstock.image.resizing.pillow import copy_parts
from penstock.runtime.machine.granted import granted_cpus
from penstock.torch.generators import as_tensor, set_states, states, torch_state
from penstock.torch.vision.plan import Plan
from penstock.torch.vision.planned import PlannedImage

Memory = Callable[[int], "npt.NDArray[np.uint8] | None"]  # from a number of bytes


@cache
def threads() -> ThreadPoolExecutor:
    """Return the threads that decode and paint."""
    return ThreadPoolExecutor(granted_cpus(), "penstock-vision")


in_child(threads.cache_clear)


class Job:
    """One batch. Images are read at once, in `pool`; `draw` gets the parameters, in order."""

    def __init__(self, plan: Plan, indices: Any, pool: ThreadPoolExecutor | None, memory: Memory | None = None) -> None:
        self._plan, self._pool, self._memory = plan, pool, memory
        self._entries: list[tuple[Any, Any] | Exception] = []
        for index in indices:
            try:
                self._entries.append(plan.source.entry(index))
            except Exception as error:
                self._entries.append(error)
                break
        self._images: list[Future[Any]] = []
        if pool is not None and plan.source.data is None:
            self._images = [pool.submit(plan.source.read, entry[0]) for entry in self._found()]
        self._begin()

    def _begin(self) -> None:
        self._drawn: list[Any] = []  # images of the samples that have parameters
        self._painting: list[Future[None]] = []
        self._failed: Exception | None = None
        self._batch: npt.NDArray[Any] | None = None  # of all results, if they have one shape
        self._results: list[Any] = []  # arrays; or values of transforms that run as written
        self._targets: list[Any] = []

    def _found(self) -> Iterator[tuple[Any, Any]]:
        return (entry for entry in self._entries if not isinstance(entry, Exception))

    def is_read(self) -> bool:
        """Return True if `draw` need not wait."""
        return all(image.done() for image in self._images)

    def draw(self) -> None:
        """Get the parameters of all samples, and begin to compute their pixels.

        An error of the data set ends this: later samples use no random numbers. `wait` raises the error.
        """
        self._begin()
        torch = import_module("torch")
        self._begun = torch_state(torch.get_rng_state()) if self._plan.whole else states()
        try:
            self._draw()
        except Exception as error:
            self._failed = error

    def _draw(self) -> None:
        plan = self._plan
        planned_images: list[PlannedImage] = []
        own_code = plan.rest or plan.target_transform is not None
        for number, entry in enumerate(self._entries):
            if isinstance(entry, Exception):
                raise entry
            place, target = entry
            if plan.source.data is None:
                image = self._images[number].result() if self._images else plan.source.read(place)
                if own_code and not isinstance(image, np.ndarray):
                    image = image.part(0, 0, *image.shape[:2])
            else:
                image = plan.source.data[place]
            planned = plan.prefix.planned(image)
            planned_images.append(planned)
            self._drawn.append(image)
            if plan.rest:
                self._results.append(self._as_written(planned, image))
            elif plan.source.data is None:
                self._paint(planned, image, self._place(planned))
            self._targets.append(target if plan.target_transform is None else plan.target_transform(target))
        if plan.source.data is not None and not plan.rest:
            self._copy(planned_images)

    def wait(self) -> None:
        """Wait for the pixels.

        Raises:
            Exception: The first error of a sample. The generators have the states that they had at this sample.
        """
        for number, painting in enumerate(self._painting):
            error = painting.exception()
            if error is not None:
                set_states(self._begun)
                for image in self._drawn[:number]:
                    self._plan.prefix.planned(image)
                raise error
        if self._failed is not None:
            raise self._failed

    def _as_written(self, planned: PlannedImage, image: Any) -> Any:
        painted = self._plan.prefix.empty(planned)
        self._plan.prefix.paint(planned, image, painted)
        value = self._plan.prefix.value(painted)
        for transform in self._plan.rest:
            value = transform(value)
        return value

    def _paint(self, planned: PlannedImage, image: Any, out: npt.NDArray[Any]) -> None:
        paint = self._plan.prefix.paint
        if self._pool is not None:
            self._painting.append(self._pool.submit(paint, planned, image, out))
            return
        done: Future[None] = Future()
        self._painting.append(done)
        try:
            done.set_result(paint(planned, image, out))
        except Exception as error:
            done.set_exception(error)

    def _place(self, planned: PlannedImage) -> npt.NDArray[Any]:
        """Return memory for the next result: in the batch, if it has the shape of the first one."""
        prefix, number = self._plan.prefix, len(self._results)
        if not number and prefix.like is not None and not planned.crops:
            shape = len(self._entries), planned.channels, planned.height, planned.width
            self._batch = self._allocated(shape, prefix.table.dtype)
        batch = self._batch
        if batch is None or batch.shape[2:] != (planned.height, planned.width):
            self._batch = None
            self._results.append(prefix.empty(planned))
        else:
            self._results.append(batch[number])
        found: npt.NDArray[Any] = self._results[-1]
        return found

    def _allocated(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        size = int(np.prod(shape)) * dtype.itemsize
        found = None if self._memory is None else self._memory(size)
        return np.empty(shape, dtype) if found is None else found.view(dtype).reshape(shape)

    def _copy(self, planned_images: list[PlannedImage]) -> None:
        """Compute results from an array: in few calls, if they only copy parts of the images."""
        data, prefix = self._plan.source.data, self._plan.prefix
        stages = [stage for planned in planned_images if (stage := planned.copied()) is not None]
        outs = [self._place(planned) for planned in planned_images]
        places = [entry[0] for entry in self._found()]
        plain = len(stages) == len(planned_images) and len({stage.fill for stage in stages if stage.padding}) < 2
        if self._batch is None or not plain:
            for planned, place, out in zip(planned_images, places, outs, strict=True):
                self._paint(planned, data[place], out)
            return
        fills = [stage.fill for stage in stages if stage.padding] or [(0,)]
        fill = np.array(fills[0] * (data.shape[3] // len(fills[0])), np.uint8)
        copies = np.array([stage.place() for stage in stages], np.int64)
        copy_parts(data, np.array(places, np.int64), copies, fill, prefix.table, self._batch, planes=True)

    def batch(self, collate: Callable[[Any], Any], *, default: bool) -> Any:
        """Wait for the pixels, and return what `collate` makes of the samples. `default`: it is torch's."""
        self.wait()
        if default and self._batch is not None:
            return [import_module("torch").from_numpy(self._batch), collate(self._targets)]
        values = self._results if self._plan.rest else [self._plan.prefix.value(each) for each in self._results]
        return collate(list(zip(values, self._targets, strict=True)))


_AHEAD = 2  # batches with memory for their results: that of this `next`, and the following one


class AheadBatches:
    """Batches that threads compute ahead, with the random numbers of torch's workers.

    Batch k has the numbers of worker k modulo the number of workers: its generator continues from batch to batch. The
    parameters are drawn inside `next`, because torchvision uses torch's global generator.
    """

    def __init__(self, plan: Plan, drawn: Any, collate: Callable[[Any], Any], states: list[Any]) -> None:
        self._plan, self._drawn, self._collate = plan, drawn, collate
        self._waiting: deque[tuple[int, Job | Exception]] = deque()
        self._done: deque[tuple[int, Job | Exception, Any]] = deque()
        self._states = states  # of each worker, after the last batch that was drawn
        self.states = list(states)  # after the last batch that was returned
        self.read()

    def read(self) -> None:
        """Begin to read the batches that the sampler has given."""
        while self._drawn.ready:
            found = self._drawn.ready.popleft()
            if isinstance(found, Exception):
                self._waiting.append((-1, found))
            else:
                self._waiting.append((found[0], Job(self._plan, found[1], threads())))

    def __next__(self) -> Any:
        self.read()
        self._draw()
        if not self._done:
            raise StopIteration
        number, job, state = self._done.popleft()
        if isinstance(job, Exception):
            raise job
        worker, torch = number % len(self.states), import_module("torch")
        kept = torch.get_rng_state()
        try:
            torch.set_rng_state(state)
            job.wait()
            self.states[worker] = state
        except Exception:
            self.states[worker] = self._states[worker] = torch.get_rng_state()
            for _ in range(len(self._done)):  # later batches of this worker have other parameters
                later = self._done.popleft()
                self._done.append(self._drawn_batch(*later[:2]) if later[0] % len(self.states) == worker else later)
            raise
        finally:
            torch.set_rng_state(kept)
        return job.batch(self._collate, default=True)

    def _draw(self) -> None:
        torch = import_module("torch")
        kept = torch.get_rng_state()
        try:
            while self._waiting and len(self._done) < _AHEAD and (not self._done or self._is_read(self._waiting[0][1])):
                self._done.append(self._drawn_batch(*self._waiting.popleft()))
        finally:
            torch.set_rng_state(kept)

    def _drawn_batch(self, number: int, job: Job | Exception) -> tuple[int, Job | Exception, Any]:
        """Get the parameters of a batch with the generator of its worker, and return its state."""
        if isinstance(job, Exception):
            return number, job, None
        torch, worker = import_module("torch"), number % len(self._states)
        torch.set_rng_state(self._states[worker])
        job.draw()
        self._states[worker] = torch.get_rng_state()
        return number, job, self._states[worker]

    def _is_read(self, job: Job | Exception) -> bool:
        return isinstance(job, Exception) or job.is_read()


def first_states(seed: int, starts: list[bytes | None]) -> list[Any]:
    """Return the states of torch's generator in the workers: of new ones, where there is no saved state."""
    torch = import_module("torch")
    return [
        torch.Generator().manual_seed(seed + worker).get_state() if start is None else as_tensor(start)
        for worker, start in enumerate(starts)
    ]
