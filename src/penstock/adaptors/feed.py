"""Feeds: where a loader's pass takes its batches from, in the step's own thread or in one that runs ahead of it."""

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
_EXIT_PATIENCE = 2.0  # seconds that interpreter exit waits for the element that a thread is at


class Elements(Protocol):
    """A pass over a data set: `penstock.Iterator`."""

    def __next__(self) -> Any: ...

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State) -> None: ...

    def close(self) -> None: ...


class Feed(ABC):
    """Batches of one pass, made for a framework. Used by one thread at a time.

    Contract: (1) a batch that fails raises in its place, and the next call gives the one behind it; (2) `state` is that
    behind the last batch given, whatever was made ahead; (3) `close` ends the pass, waits for what is being made, and
    may be called again; (4) a feed that nobody holds any more ends by itself.
    """

    @abstractmethod
    def next(self) -> Any:
        """The next batch; raises StopIteration at the end."""

    @abstractmethod
    def state(self) -> State:
        """What is needed to go on behind the last batch given."""

    @abstractmethod
    def close(self) -> None: ...


class Direct(Feed):
    """Made when asked for: where it costs next to nothing, as for tensors over the memory of a batch."""

    def __init__(self, elements: Elements, make: Callable[[Any], Any]) -> None:
        self._elements, self._make = elements, make

    def next(self) -> Any:
        return self._make(next(self._elements))

    def state(self) -> State:
        return self._elements.state_dict()

    def close(self) -> None:
        self._elements.close()


class Ahead(Feed):
    """Up to `depth` batches made by a thread while the step computes: where memory has to travel to a device.

    `make` is called in that thread, and what it returns is given to `take` in the step's, which hands it over.
    """

    def __init__(
        self,
        elements: Elements,
        make: Callable[[Any], Any],
        depth: int,
        take: Callable[[Any], Any] = lambda made: made,
    ) -> None:
        self._take = take
        self._queue = _Queue(depth)
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


class _Queue:
    """What the thread has made and the step has not taken. Both hold it, and not one another."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._made: deque[tuple[Any, BaseException | None, State | None]] = deque()
        self._changed = threading.Condition()
        self._ended = False  # nothing comes any more
        self.stopped = False  # nothing is wanted any more
        self.foreign = False  # the thread is in the process that this one was forked from

    def wait_for_room(self) -> bool:
        """Whether to make another one."""
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


def _work(elements: Elements, make: Callable[[Any], Any], queue: _Queue) -> None:
    leave_generators_alone()
    try:
        _fill(elements, make, queue)
    except BaseException as error:  # the pass is over
        queue.put(None, error, None)
    finally:
        queue.end()
        elements.close()


def _fill(elements: Elements, make: Callable[[Any], Any], queue: _Queue) -> None:
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


_QUEUES: weakref.WeakSet[_Queue] = weakref.WeakSet()
_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Threads that copy to a device while the interpreter ends would meet modules that are gone."""
    for queue in list(_QUEUES):
        queue.stop()
    for thread in list(_THREADS):
        thread.join(_EXIT_PATIENCE)


@in_child
def _threads_are_the_parents() -> None:
    """In a forked child no thread runs ahead: who asks there is told so, and nobody waits for ever."""
    for queue in list(_QUEUES):
        queue._changed = threading.Condition()
        queue.foreign = True
    _THREADS.clear()
