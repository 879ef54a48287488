"""The records of a split, from a builder's examples: made in this thread if they are cheap, else in parallel."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from penstock.catalog.features import FeaturesDict
from penstock.catalog.recipe import Each, Skipped
from penstock.catalog.spool import Key, Spool, key_bytes
from penstock.dataset.dataset import Dataset
from penstock.errors import InvalidTypeError
from penstock.plan.node import AUTOTUNE
from penstock.runtime.machine.granted import granted_cpus

_CHUNK, _CHUNK_BYTES = 32, 1 << 22
# Seconds of a record above which it is not computed in this thread. Cheaper records in threads would mostly wait for
# the GIL. The median of the last records counts, because another process may delay any of them. If the first records
# together take long, fewer of them count.
_CHEAP, _LATELY, _LONG = 1e-4, 16, 5e-2
Made = TypeVar("Made")
Filled = Generator[tuple[int, Key, "bytes | Skipped"], None, None]


def of_each(examples: Each, features: FeaturesDict, spool: Spool) -> Filled:
    """Yield the records of the items that are not in the spool. Cheap records are computed in this thread."""
    left = np.setdiff1d(np.arange(len(examples), dtype=np.int64), spool.numbers())
    making = _Making(examples, features)
    done = 0
    with _Here() as here:
        while done < len(left) and not here.is_dear:
            yield from _as_filled(*here(1, making, int(left[done])))
            done += 1
    if done == len(left):
        return
    records = Dataset.from_tensor_slices(left[done:]).map(making, num_parallel_calls=AUTOTUNE)
    with iter(records) as found:  # the engine chooses threads or processes
        for number, kind, key, content in found:
            yield from _as_filled(int(number), int(kind), bytes(key), bytes(content))


class _Here:
    """Calls a function in this thread after it was cheap once. Before, it calls the function in another thread.

    The first call may import compiled modules, and a Ctrl-C during such an import in the main thread is lost. `is_dear`
    is True if the next records should be computed in parallel.
    """

    def __init__(self) -> None:
        self.is_dear = False
        self._was_cheap = self._was_called = False
        self._lately: deque[float] = deque(maxlen=_LATELY)
        self._other = ThreadPoolExecutor(1)

    def __call__(self, count: int, function: Callable[..., Made], *arguments: Any) -> Made:
        """Return the result of the function, which makes `count` records."""
        call = partial(_timed, function, *arguments)
        made, seconds = call() if self._was_cheap else self._other.submit(call).result()
        self._note(seconds / count)
        return made

    def _note(self, seconds: float) -> None:
        if not self._was_called:
            self._was_called = True  # the first call includes imports
            return
        self._lately.append(seconds)
        if seconds <= _CHEAP:
            self._was_cheap = True
        elif len(self._lately) == _LATELY or (len(self._lately) > 1 and sum(self._lately) > _LONG):
            self.is_dear = sorted(self._lately)[len(self._lately) // 2] > _CHEAP

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._other.shutdown()


def _timed(function: Callable[..., Made], *arguments: Any) -> tuple[Made, float]:
    """Return the result of a call, and its seconds without the transfer to another thread."""
    begun = time.perf_counter()
    made = function(*arguments)
    return made, time.perf_counter() - begun


def _as_filled(number: int, kind: int, key: bytes, content: bytes) -> Filled:
    if kind == _EXAMPLE:
        yield number, key, content
    elif kind == _SKIPPED:
        yield number, b"", Skipped(key.decode(), content.decode())


_NOTHING, _EXAMPLE, _SKIPPED = range(3)


class _Making:
    """Makes the record of an item from its number. Runs in the workers."""

    def __init__(self, examples: Each, features: FeaturesDict) -> None:
        self._examples, self._features = examples, features

    def __call__(self, number: Any) -> tuple[Any, int, bytes, bytes]:
        made = self._examples.function(self._examples.items[int(number)])
        if made is None:
            return number, _NOTHING, b"", b""
        if isinstance(made, Skipped):
            return number, _SKIPPED, made.name.encode(), made.reason.encode()
        key, example = _pair(made)
        return number, _EXAMPLE, key_bytes(key), self._features.serialize(example)


def of_any(examples: Iterable[Any], features: FeaturesDict, spool: Spool) -> Filled:
    """Yield the records of an iterable, computed by threads if they are expensive. Known keys are skipped."""
    known = spool.hashes() if spool.count else set()
    chunks = _chunks(examples, spool, known)
    with _Here() as here:
        for chunk in chunks:
            yield from here(len(chunk), _serialised, chunk, features)
            if here.is_dear:
                break
    workers = granted_cpus()
    waiting: deque[Future[list[tuple[int, Key, bytes | Skipped]]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_serialised, chunk, features))
                while len(waiting) > 2 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _chunks(examples: Iterable[Any], spool: Spool, known: set[bytes]) -> Iterator[list[tuple[int, Any]]]:
    chunk: list[tuple[int, Any]] = []
    size = 0
    for number, made in enumerate(examples):
        if made is None:
            continue
        if not isinstance(made, Skipped) and known:
            digest = spool.hash_of(_pair(made)[0])
            if digest in known:
                known.discard(digest)  # a key that comes twice in this run is an error, which the sorting finds
                continue
        chunk.append((number, made))
        size += _size_of(made)
        if len(chunk) == _CHUNK or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _serialised(chunk: list[tuple[int, Any]], features: FeaturesDict) -> list[tuple[int, Key, bytes | Skipped]]:
    found: list[tuple[int, Key, bytes | Skipped]] = []
    for number, made in chunk:
        if isinstance(made, Skipped):
            found.append((number, b"", made))
        else:
            key, example = _pair(made)
            found.append((number, key, features.serialize(example)))
    return found


def _pair(made: Any) -> tuple[Key, Mapping[str, Any]]:
    if isinstance(made, tuple) and len(made) == 2:
        return made
    message = f"_generate_examples() must yield pairs of a key and an example, got {made!r:.80}."
    raise InvalidTypeError(message, hint="For example `yield file.name, {'image': file, 'label': 'cat'}`.")


def _size_of(made: Any) -> int:
    """Return the approximate number of bytes of an example, to limit the waiting ones."""
    if isinstance(made, bytes | str):
        return len(made)
    if isinstance(made, np.ndarray):
        return made.nbytes
    if isinstance(made, Mapping):
        return sum(map(_size_of, made.values()))
    return sum(map(_size_of, made)) if isinstance(made, tuple | list) else 8
