"""Feeds supply the batches of a loader, in the thread of the step or in a thread that runs ahead of it."""

from __future__ import annotations

import atexit
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from penstock.errors import Context, FailedPreconditionError, as_failure
from penstock.forked import in_child
from penstock.trace.drawing import leave_generators_alone

State = dict[str, Any]
_EXIT_PATIENCE = 2.0  # seconds that interpreter exit waits for the present element of a thread


class Elements(Protocol):
    """An iteration over a data set: `penstock.Iterator`."""

    def __next__(self) -> Any: ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...

    def close(self) -> None: ...


class Feed(ABC):
    """Batches of one iteration, converted for a framework. One thread at a time may use it.

    The contract has four rules:

    - A batch that fails raises its error in its place. The next call returns the batch after it.
    - `state` is the state after the last returned batch, whatever was computed ahead.
    - `close` ends the iteration and waits for the batch in progress. It may be called again.
    - A feed without references ends by itself.
    """

    @abstractmethod
    def next(self) -> Any:
        """Return the next batch. Raises StopIteration at the end."""

    @abstractmethod
    def state(self) -> State:
        """Return the state after the last returned batch."""

    @abstractmethod
    def close(self) -> None: ...


class DirectFeed(Feed):
    """Makes batches on demand, for conversions that cost almost nothing, such as tensors on the memory of a batch."""

    def __init__(self, elements: Elements, make: Callable[[Any], Any]) -> None:
        self._elements, self._make = elements, make

    def next(self) -> Any:
        return self._make(next(self._elements))

    def state(self) -> State:
        return self._elements.state_dict()

    def close(self) -> None:
        self._elements.close()


class AheadFeed(Feed):
    """Lets a thread make up to `depth` batches during the step, for copies to a device.

    The thread calls `make`. The thread of the step calls `take` with its result.
    """

    def __init__(
        self,
        elements: Elements,
        make: Callable[[Any], Any],
        depth: int,
        take: Callable[[Any], Any] = lambda made: made,
    ) -> None:
        self._take = take
        self._queue = _BatchQueue(depth)
        self._state = elements.state_dict()
        self._thread = threading.Thread(
            target=_work, args=(elements, make, self._queue), name="penstock-ahead", daemon=True
        )
        _QUEUES.add(self._queue)
        _THREADS.add(self._thread)
        self._thread.start()
        weakref.finalize(self, self._queue.stop).atexit = False

    def next(self) -> Any:
        found = self._queue.get()
        if found is None:
            raise StopIteration
        made, error, state = found
        if state is not None:
            self._state = state
        if error is not None:
            raise error
        return self._take(made)

    def state(self) -> State:
        return self._state

    def close(self) -> None:
        self._queue.stop()
        if self._thread is not threading.current_thread():
            self._thread.join()


class _BatchQueue:
    """Batches that the thread has made and the step has not taken. Feed and thread refer to it, not to each other."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._made: deque[tuple[Any, BaseException | None, State | None]] = deque()
        self._changed = threading.Condition()
        self._ended = False  # no more batches will come
        self.stopped = False  # no more batches are needed
        self.foreign = False  # True in a forked child: the thread is in the parent

    def wait_for_room(self) -> bool:
        """Wait for room. Return True if another batch is needed."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or len(self._made) < self._depth)
            return not self.stopped

    def put(self, made: Any, error: BaseException | None, state: State | None) -> None:
        with self._changed:
            if not self.stopped:
                self._made.append((made, error, state))
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def get(self) -> tuple[Any, BaseException | None, State | None] | None:
        if self.foreign:
            message = "This pass belongs to the process that this one was forked from: its thread is not here."
            raise FailedPreconditionError(message, hint="Begin one in the process that uses it, with iter(loader).")
        with self._changed:
            self._changed.wait_for(lambda: self._made or self._ended or self.stopped)
            if not self._made:
                return None
            found = self._made.popleft()
            self._changed.notify_all()
            return found

    def stop(self) -> None:
        with self._changed:
            self.stopped = True
            self._made.clear()
            self._changed.notify_all()


def _work(elements: Elements, make: Callable[[Any], Any], queue: _BatchQueue) -> None:
    leave_generators_alone()
    try:
        _fill(elements, make, queue)
    except BaseException as error:  # this ends the iteration
        queue.put(None, error, None)
    finally:
        queue.end()
        elements.close()


def _fill(elements: Elements, make: Callable[[Any], Any], queue: _BatchQueue) -> None:
    while queue.wait_for_room():
        made, error = None, None
        try:
            element = next(elements)
        except StopIteration as end:
            queue.put(None, end, elements.state_dict())
            return
        except Exception as raised:
            error = raised
        else:
            try:
                made = make(element)
            except Exception as raised:
                error = as_failure(raised, Context())
            del element
        queue.put(made, error, elements.state_dict())


_QUEUES: weakref.WeakSet[_BatchQueue] = weakref.WeakSet()
_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Stop all threads, because copies to a device during interpreter exit would use unloaded modules."""
    for queue in list(_QUEUES):
        queue.stop()
    for thread in list(_THREADS):
        thread.join(_EXIT_PATIENCE)


@in_child
def _threads_are_the_parents() -> None:
    """Mark all queues as foreign in a forked child, so that `get` raises an error instead of waiting for ever."""
    for queue in list(_QUEUES):
        queue._changed = threading.Condition()
        queue.foreign = True
    _THREADS.clear()
