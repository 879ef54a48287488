"""Functions of one element that change something outside of themselves; each is made anew, with state of its own.

`@nasty` registers a maker: it gives the function, and something whose text tells what the function has left behind.
"""

from __future__ import annotations

import functools
import random
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

Made = tuple[Callable[..., Any], Any]
NASTY: dict[str, Callable[[], Made]] = {}
CALLS = 0


def nasty(make: Callable[[], Made]) -> Callable[[], Made]:
    NASTY[make.__name__] = make
    return make


class Loud(float):
    """A number whose products count."""

    products = 0

    def __rmul__(self, other: Any) -> Any:
        self.products += 1
        return other * float(self) + self.products


class Missing(dict):
    missed = 0

    def __missing__(self, key: Any) -> int:
        self.missed += 1
        return self.missed


class Call:
    count = 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return x + self.count


def fill(place: dict[str, Any]) -> None:
    place["k"] = place.get("k", 0) + 1


@nasty
def a_global() -> Made:
    def function(x: Any) -> Any:
        global CALLS
        CALLS += 1
        return x * 2

    return function, ()


@nasty
def a_closure() -> Made:
    count = 0

    def function(x: Any) -> Any:
        nonlocal count
        count += 1
        return x + count

    return function, ()


@nasty
def a_list() -> Made:
    seen: list[int] = []
    return lambda x: (seen.append(1), x + len(seen))[1], seen


@nasty
def an_array_under_another_name() -> Made:
    total = np.zeros(1)

    def function(x: Any) -> Any:
        count = total
        count += 1
        return x * 2 + total

    return function, total


@nasty
def an_array_as_output() -> Made:
    total = np.zeros(1)

    def function(x: Any) -> Any:
        np.add(total, 1, total)
        return x * 2 + total

    return function, total


@nasty
def an_array_as_output_of_a_function_handed_on() -> Made:
    total = np.zeros(1)

    def apply(function: Any, *arrays: Any) -> Any:
        return function(*arrays)

    def function(x: Any) -> Any:
        apply(np.add, total, 1, total)
        return x * 2

    return function, total


@nasty
def an_array_as_output_of_clip() -> Made:
    total = np.zeros(1)

    def function(x: Any) -> Any:
        np.clip(total + 1, 0, 100, total)
        return x * 2 + total

    return function, total


@nasty
def an_entry_of_an_array() -> Made:
    total = np.zeros(2)

    def function(x: Any) -> Any:
        total[0] += 1
        return x * 2

    return function, total


@nasty
def a_part_of_an_array() -> Made:
    total = np.zeros(2)

    def function(x: Any) -> Any:
        total[:1] = total[:1] + 1
        return x * 2

    return function, total


@nasty
def a_default() -> Made:
    def function(x: Any, total: Any = np.zeros(1)) -> Any:  # noqa: B008 - the mistake it is about
        total += 1
        return x + total

    return function, ()


@nasty
def a_dict_joined_with() -> Made:
    known = {"a": 1}

    def function(x: Any) -> Any:
        now = known
        now |= {str(len(known)): 1}
        return x * 2

    return function, known


@nasty
def a_dict_by_a_helper_that_was_seen_before() -> Made:
    known = {"a": 1}

    def function(x: Any) -> Any:
        fill({})
        fill(known)
        return x * 2

    return function, known


@nasty
def a_dict_in_the_second_round() -> Made:
    known = {"a": 1}

    def function(x: Any) -> Any:
        place: dict[str, Any] = {}
        for _ in range(2):
            place["k"] = place.get("k", 0) + 1
            place = known
        return x * 2

    return function, known


@nasty
def a_dict_that_makes_entries() -> Made:
    known: dict[str, int] = defaultdict(int)
    return lambda x: x + known["a"], known


@nasty
def a_dict_that_counts() -> Made:
    known = Missing()
    return lambda x: x + known["a"], ()


@nasty
def a_number_that_counts() -> Made:
    loud = Loud(2)
    return lambda x: x * loud, ()


@nasty
def a_callable() -> Made:
    call = Call()
    return call, ()


@nasty
def a_partial() -> Made:
    call = Call()
    return functools.partial(lambda call, x: call(x), call), ()


@nasty
def an_attribute() -> Made:
    def function(x: Any) -> Any:
        function.calls = getattr(function, "calls", 0) + 1  # type: ignore[attr-defined]
        return x + function.calls  # type: ignore[attr-defined]

    return function, ()


@nasty
def a_generator() -> Made:
    numbers = iter(range(10_000))
    return lambda x: x + next(numbers), ()


@nasty
def printing() -> Made:
    return lambda x: (print(end=""), x)[1], ()


@nasty
def numpys_generator() -> Made:
    generator = np.random.default_rng(3)
    return lambda x: x + generator.integers(100), ()


@nasty
def pythons_generator() -> Made:
    generator = random.Random(3)
    return lambda x: x + generator.random(), ()


@nasty
def the_clock() -> Made:
    return lambda x: x * (time.monotonic() > 0), ()
