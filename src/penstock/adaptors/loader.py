"""Loader: a data set for the training loop of a framework, with one iteration per epoch, saved and resumed.

For processes that train together, the loader assigns a shard to each, and checks that all have the same data set.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.adaptors.feed import Elements, Feed, State
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.plan.fingerprint import fingerprint, steps
from penstock.plan.node import Node, check_int
from penstock.runtime.tracebacks import folded

_VERSION = 1


class Reiterable(Protocol):
    """The methods of an object that can be iterated over repeatedly: `penstock.Dataset`."""

    def iterator(self, *, epoch: int | None = None) -> Elements: ...

    def cardinality(self) -> int: ...

    def __len__(self) -> int: ...


class Loader:
    """A data set that yields inputs of a framework.

    Iterations are numbered from 0. The number is the epoch for shuffles. `set_epoch` sets the number of the next
    iteration. `state_dict()` may be called at any time. `load_state_dict` prepares the next `iter()`: it resumes after
    the last returned batch, or begins the next epoch after a complete one. torchdata's StatefulDataLoader does the
    same.

    An iteration that ends before its first batch does not count: trainers call `iter(loader)` as a test. `dataset` is
    the data set that the loader reads.
    """

    def __init__(
        self, dataset: Reiterable, feed: Callable[[Elements], Feed], agreed: Callable[[int], None] | None = None
    ) -> None:
        self.dataset = dataset
        self._feed = feed
        self._agreed = agreed  # compares the processes that share the data set, before the first iteration
        self._next_epoch = 0
        self._resume: State | None = None
        self._last = _Position(None)

    def __iter__(self) -> Pass:
        before = self._next_epoch, self._resume, self._last
        resume, self._resume = self._resume, None
        epoch = self._next_epoch
        elements = self.dataset.iterator(epoch=epoch)
        if resume is not None:
            elements.load_state_dict(resume)
            epoch = int(resume["epoch"])
        self._next_epoch = epoch + 1
        if self._agreed is not None:
            self._agreed(epoch)
            self._agreed = None
        place = self._last = _Position(epoch)

        def untouched() -> None:
            if self._last is place and self._next_epoch == epoch + 1:  # no other iteration or epoch was requested since
                self._next_epoch, self._resume, self._last = before

        return Pass(self._feed(elements), place, untouched)

    def __len__(self) -> int:
        return len(self.dataset)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, like a distributed sampler. A loaded state stays in force."""
        self._next_epoch = check_int("epoch", epoch, least=0, hint="Passes are counted from 0.")

    def state_dict(self) -> State:
        """Return the position of the latest iteration as numbers, strings, lists and dicts.

        Batches that were made ahead do not count as returned. The state belongs to the data set, like that of
        `penstock.Iterator`.
        """
        if self._resume is not None:
            return {"version": _VERSION, "epoch": int(self._resume["epoch"]), "elements": self._resume}
        place = self._last
        if place.epoch is None or place.ended:
            return {"version": _VERSION, "epoch": self._next_epoch, "elements": None}
        return {"version": _VERSION, "epoch": place.epoch, "elements": place.state()}

    def load_state_dict(self, state: State) -> None:
        """Resume at a state from `state_dict()` in the next iteration.

        Raises:
            InvalidArgumentError: If the value is no such state. The next iteration refuses the state of another data
                set and names
                the first different step.
        """
        try:
            version, epoch, elements = state["version"], int(state["epoch"]), state["elements"]
        except (TypeError, KeyError, IndexError, ValueError) as error:
            message = f"A state is what state_dict() of a loader returned, got {type(state).__name__}."
            raise InvalidArgumentError(message, hint="Save the dict as it is, as JSON or by pickle.") from error
        if version != _VERSION:
            message = f"This state has format {version}; this version of penstock reads format {_VERSION}."
            raise FailedPreconditionError(message)
        self._next_epoch, self._resume = epoch, elements
        self._last = _Position(None)


class Pass:
    """One iteration of a loader. Its workers end at its end, after `close`, and without references to it."""

    def __init__(self, feed: Feed, place: _Position, untouched: Callable[[], None]) -> None:
        self._feed = feed
        self._place = place
        self._untouched: Callable[[], None] | None = untouched  # called if the iteration ends before its first batch
        self._closed = False
        place.follow(self)

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        if self._closed:
            raise StopIteration
        self._untouched = None
        try:
            return self._feed.next()
        except StopIteration:
            self._place.ended = True
            self.close()
            raise
        except Exception as error:
            error.with_traceback(folded(error))
            raise

    def state_dict(self) -> State:
        """Return the position of the iteration, for `load_state_dict` of an iterator over the data set."""
        return self._feed.state()

    def close(self) -> None:
        """End the workers. The state of the loader stays. Idempotent."""
        if not self._closed:
            self._leave()
            self._feed.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and not sys.is_finalizing():
            self._leave()  # the feed has no other reference, and ends by itself

    def _leave(self) -> None:
        self._closed = True
        self._place.keep(self._feed.state())
        if self._untouched is not None:
            self._untouched()


class _Position:
    """The position of an iteration: asked from the iteration while it exists, and stored afterwards."""

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch  # None: there was no iteration
        self.ended = False
        self._pass: weakref.ref[Pass] | None = None
        self._kept: State | None = None

    def follow(self, one: Pass) -> None:
        self._pass = weakref.ref(one)

    def keep(self, state: State) -> None:
        self._kept = state

    def state(self) -> State:
        one = None if self._pass is None or self._kept is not None else self._pass()
        found = self._kept if one is None else one.state_dict()
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Share:
    """The shard number `index` of `count`. `own` is True if the shard is that of the calling process."""

    count: int
    index: int
    own: bool


def share_of(shard: Any, word: str, own: Callable[[], tuple[int, int]]) -> Share | None:
    """Return the shard that a caller asks for, or None for all data. `word` stands for the result of `own`."""
    if shard is None or shard is False:
        return None
    hint = f'shard="{word}" is the part of this process, shard=(2, 0) the first of two parts, shard=False everything.'
    if isinstance(shard, str) and shard == word:
        return Share(*own(), own=True)
    if not (isinstance(shard, tuple) and len(shard) == 2 and all(type(part) is int for part in shard)):
        message = f'shard must be "{word}", a pair or False, got {shard!r}.'
        raise InvalidTypeError(message, hint=hint)
    count, index = shard
    if not 0 <= index < count:
        message = f"shard=(count, index) needs an index from 0 to count - 1, got {shard!r}."
        raise InvalidArgumentError(message, hint=hint)
    return Share(count, index, own=False)


def identity(plan: Node, settings: tuple[Any, ...], epoch: int, size: int) -> dict[str, Any]:
    """Return the values that must be equal in all processes at the beginning of an iteration."""
    return {"plan": fingerprint(plan, *settings), "steps": steps(plan), "epoch": epoch, "length": size}


def check_alike(everyone: Sequence[dict[str, Any]]) -> None:
    """Raise FailedPreconditionError unless all processes have the same identity.

    The message names the first difference.
    """
    for rank, theirs in enumerate(everyone):
        if theirs != everyone[0]:
            message = f"Ranks 0 and {rank} do not read the same data set: {_difference(everyone[0], theirs)}."
            hint = "Build it by the same calls, with the same seeds, in every process; shard= parts it."
            raise FailedPreconditionError(message, hint=hint)


def _difference(first: dict[str, Any], other: dict[str, Any]) -> str:
    for number, (ours, theirs) in enumerate(zip(first["steps"], other["steps"], strict=False), 1):
        if ours[0] != theirs[0]:
            return f"step {number} from the source is {ours[0]} and {theirs[0]}"
        if ours[1] != theirs[1]:
            return f"step {number} from the source, {ours[0]}, has different functions or parameters"
    if len(first["steps"]) != len(other["steps"]):
        return f"they have {len(first['steps'])} and {len(other['steps'])} steps"
    if first["epoch"] != other["epoch"]:
        return f"they are in epochs {first['epoch']} and {other['epoch']}"
    if first["length"] != other["length"]:
        return f"they have {first['length']} and {other['length']} elements"
    return "their options differ (seed, deterministic, or which rewrites run)"
