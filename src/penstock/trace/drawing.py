"""Random numbers of user functions. They depend on the element, and not on the worker or the time of the call.

While a function is called for an element, `element_key` returns keys that depend on the data set's seed, the step, the
epoch and the element's number in the step's input. An element therefore has the same random numbers with any number of
workers, in threads, processes or one by one, before and after a resume.

A function may also use the generators of the process: those of `random`, `np.random` and torch. They are seeded for
each element, with another key of the element. After each Block, they get their old states back. No other code of the
process may use them at the same time. Worker threads therefore never seed them (`leave_generators_alone`).
"""

from __future__ import annotations

import itertools
import operator
import os
import random
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from penstock.block.numbers import Numbers
from penstock.errors import FailedPreconditionError
from penstock.keys import fold, folds
from penstock.trace.graph import DrawKeys, Keys, NotTraceable


class Draws(NamedTuple):
    """The source of the random keys of a Block: the key of the step, and the numbers of the elements in its input."""

    key: int
    numbers: Numbers

    def one(self, row: int, keys: Keys) -> int:
        """Return the key of one element for one ordinal."""
        assert isinstance(keys.ordinal, int)
        number, epoch = self.numbers.at(row), self.numbers.epoch
        if number is None:
            raise _unnumbered()
        if keys.seed is not None:
            return fold(keys.seed, epoch, number)
        return fold(self.key, epoch, number, keys.ordinal)

    def of(self, rows: int) -> DrawKeys:
        """Return a function that returns the keys of the Block's first `rows` elements as uint64."""
        own: list[np.ndarray] = []  # one key per element, from which the keys of all ordinals are computed

        def keys_of(keys: Keys) -> np.ndarray:
            if self.numbers.first is None:
                raise _unnumbered()
            numbers = self.numbers.all(rows)[:rows]
            if keys.seed is not None:
                return folds(fold(keys.seed, self.numbers.epoch), numbers)
            if not own:
                own.append(folds(fold(self.key, self.numbers.epoch), numbers))
            return folds(own[0] if isinstance(keys.ordinal, int) else own[0][:, None], keys.ordinal)

        return keys_of


UNNUMBERED = Draws(0, Numbers(None))  # for functions that may not be random


class _OfStandIns(Draws):
    """The source of keys during tracing. Random operations on tracers get their keys later, all others are refused."""

    def one(self, row: int, keys: Keys) -> int:
        raise NotTraceable("it draws random numbers for a value that is not part of the element")


OF_STAND_INS = _OfStandIns(0, Numbers(None))


def _unnumbered() -> FailedPreconditionError:
    message = "A random function needs the numbers of the elements, and the elements of this step have none."
    return FailedPreconditionError(message, hint="Draw the random number in a map() before this step, and pass it on.")


def _generator(name: str) -> tuple[Callable[[], Any], Callable[[Any], object], Callable[[int], object]]:
    """Return three functions for a generator of the process: get its state, set its state, seed it."""
    if name == "torch":
        torch = import_module("torch").default_generator
        return torch.get_state, torch.set_state, torch.manual_seed
    if name == "numpy":  # uses other bits of the key than torch, because both have the same algorithm
        return np.random.get_state, np.random.set_state, lambda key: np.random.seed(key >> 32)
    return random.getstate, random.setstate, random.seed


class Element(threading.local):
    """The element that the calling thread works on."""

    draws: Draws | None = None
    row = 0
    ordinal = 0
    seeders: Sequence[Callable[[int], object]] = ()  # seed the generators of the process, for each element
    seeds: Sequence[int] = ()  # their arguments, by row
    is_workers = False  # True in a worker thread of a process with other threads

    def begin(self, row: int) -> None:
        """Begin the element in this row of its Block."""
        self.row = row
        self.return_to(0)

    def return_to(self, ordinal: int) -> None:
        """Continue with key number `ordinal` of the element, and seed the generators of the process again."""
        self.ordinal = ordinal
        for seed in self.seeders:
            seed(self.seeds[self.row])

    def key(self, seed: int | None) -> int:
        assert self.draws is not None
        if seed is None:
            self.ordinal += 1
        return self.draws.one(self.row, Keys(self.ordinal - 1, seed))


SPAN = 64  # keys that are reserved for a branch; the next keys do not depend on the branch
_element = Element()
_outside = int.from_bytes(os.urandom(8), "little"), itertools.count()


def element_key(seed: int | None = None) -> int:
    """Return a key for the random numbers of the element that a function is called for.

    Seed the generator of your random numbers with the key: then they depend on the seed of the data set, and not on
    threads, processes or a resume. Outside of a data set, each call returns another key. With `seed`, each call there
    returns the same key.

    Args:
        seed: An integer. By default, the key depends on `Options.seed`, the step, the epoch and the number of the
            element, and each call for one element returns another key. With a seed, it depends on the seed, the epoch
            and the number of the element only: pass the same seed in two steps that need the same random numbers, such
            as for an image and its mask.

    Returns:
        An integer of 64 bits.

    Raises:
        TypeError: If `seed` is not an integer.

    Example:
        >>> import numpy as np
        >>> import penstock as ps
        >>> ds = ps.Dataset.range(3).map(lambda x: x + np.random.default_rng(ps.element_key()).integers(10))
        >>> epoch = [int(x) for x in ds.iterator(epoch=0)]
        >>> epoch == [int(x) for x in ds.iterator(epoch=0)]
        True
    """
    if seed is not None:
        seed = operator.index(seed)
    if _element.draws is not None:
        return _element.key(seed)
    return fold(_outside[0], next(_outside[1])) if seed is None else fold(seed)


def leave_generators_alone() -> None:
    """Mark the calling thread as one of several workers: it never seeds the generators of the process."""
    _element.is_workers = True


class drawing:
    """Let calls inside use the random numbers of the element that `begin` selects.

    For a Block of `rows` elements, `begin` also seeds the `generators` of the process. At the end they get their old
    states back.
    """

    __slots__ = ("_draws", "_generators", "_outer", "_rows", "_states")
    _outer: tuple[Any, ...] | None
    _states: Sequence[tuple[Callable[[Any], object], Any]]

    def __init__(self, draws: Draws, generators: Collection[str] = (), rows: int = 0) -> None:
        self._draws = draws
        self._generators = generators
        self._rows = rows

    def __enter__(self) -> Element:
        element = _element
        self._outer = None
        if element.draws is not None:
            self._outer = element.draws, element.row, element.ordinal, element.seeders, element.seeds
            element.seeders = ()
        element.draws, self._states = self._draws, ()
        if self._generators and can_seed(self._draws):
            found = [*map(_generator, self._generators)]
            self._states = [(restore, state()) for state, restore, _ in found]
            element.seeders = [seed for _, _, seed in found]
            few = self._rows < _FEW
            of, one = self._draws.of(self._rows), self._draws.one
            element.seeds = [one(row, _SEEDS) for row in range(self._rows)] if few else of(_SEEDS).tolist()
        return element

    def __exit__(self, *raised: object) -> None:
        for restore, state in self._states:
            restore(state)
        if self._outer is not None:
            _element.draws, _element.row, _element.ordinal, _element.seeders, _element.seeds = self._outer
        else:
            _element.draws = None
            if self._states:
                _element.seeders = ()


_SEEDS = Keys(-1)  # keys that seed the generators of the process
_FEW = 16  # rows whose keys are computed one by one


def can_seed(draws: Draws) -> bool:
    """Return True if the calling thread may seed the generators of the process for these elements."""
    return draws.numbers.first is not None and not is_worker()


def is_worker() -> bool:
    """Return True in a worker thread of a process with other threads."""
    return _element.is_workers


class _Outside(Draws):
    """The random numbers of a call outside of a data set."""

    def one(self, row: int, keys: Keys) -> int:
        return super().one(row, keys) if keys.seed is None else fold(keys.seed)


@contextmanager
def repeating() -> Iterator[Callable[[], None]]:
    """Yield a function that resets the random numbers of the element to the present state.

    After each call of that function, the same random numbers follow again.
    """
    with nullcontext() if _element.draws is not None else drawing(_Outside(element_key(), Numbers(0))):
        yield partial(_element.return_to, _element.ordinal)


@contextmanager
def branch() -> Iterator[None]:
    """Reserve `SPAN` keys of the element for the calls inside, independent of how many they use."""
    begin = _element.ordinal
    yield
    _element.ordinal = max(_element.ordinal, begin + SPAN)
