"""Functions of one element that draw, look at their argument, raise, or calculate in ways that depend on its kind."""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum
from typing import Any

import numpy as np
from tests.physical.nasty_functions import NASTY, Made, nasty

import penstock as ps

MASK = np.array([[[1], [2]]], np.float64)


class Number(IntEnum):
    TWO = 2


class Wide(np.ndarray):
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*[np.asarray(each) for each in inputs], **kwargs) + 1


# What a function draws.


@nasty
def an_element_key() -> Made:
    return lambda x: x + np.random.default_rng(ps.element_key()).integers(100), ()


@nasty
def a_flip_of_what_is_no_element() -> Made:
    return lambda x: x * 0.0 + ps.image.random_flip_left_right(MASK), ()


@nasty
def a_seeded_flip_of_what_is_no_element() -> Made:
    return lambda x: x * 0.0 + ps.image.random_flip_left_right(MASK, seed=5), ()


# What a function looks at.


@nasty
def the_type_by_a_pattern() -> Made:
    def function(x: Any) -> Any:
        match x:
            case np.integer() | float():
                return x * 2
            case _:
                return x * 3

    return function, ()


@nasty
def the_type_by_isinstance() -> Made:
    return lambda x: x * 2 if isinstance(x, np.ndarray) else x * 3, ()


@nasty
def the_rank() -> Made:
    return lambda x: x * 2 if x.ndim else x * 3, ()


@nasty
def the_shape() -> Made:
    return lambda x: x * len(x.shape), ()


@nasty
def the_length() -> Made:
    return lambda x: x * len(x), ()


@nasty
def the_dtype() -> Made:
    return lambda x: x * 2 if x.dtype == np.float32 else x * 3, ()


@nasty
def identity() -> Made:
    return lambda x: x * 2 if x is None or x is Ellipsis else x * 3, ()


@nasty
def a_value() -> Made:
    return lambda x: x * 2 if np.all(x > 3) else x * 3, ()


@nasty
def a_value_by_min() -> Made:
    return lambda x: min(x, 3), ()


@nasty
def an_array_of_lists() -> Made:
    lists = np.empty(1, object)
    lists[0] = [3]
    return lambda x: x + lists[0][0], ()


@nasty
def a_subclass_of_array() -> Made:
    wide = np.ones(1).view(Wide)
    return lambda x: x + wide, ()


@nasty
def a_matrix() -> Made:
    matrix = np.array([[2.0]]).view(np.matrix)
    return lambda x: x * matrix, ()


@nasty
def a_masked_array() -> Made:
    masked = np.ma.array([1.0], mask=[1])
    return lambda x: x + masked, ()


@nasty
def an_enum() -> Made:
    two = Number.TWO
    return lambda x: (x * two, two), ()


@nasty
def an_ordered_dict() -> Made:
    known = OrderedDict(a=2, b=3)
    return lambda x: (x * known["a"], x * known["b"]), ()


@nasty
def a_dict_that_holds_itself() -> Made:
    known: dict[str, Any] = {"a": 2}
    known["self"] = known
    return lambda x: x * known["a"], ()


# Exceptions.


@nasty
def a_raise_for_some() -> Made:
    def function(x: Any) -> Any:
        if np.sum(x) > 300:
            message = "too large"
            raise ValueError(message)
        return x

    return function, ()


@nasty
def a_shape_that_does_not_fit() -> Made:
    return lambda x: x + np.arange(5), ()


@nasty
def an_integer_that_does_not_fit() -> Made:
    return lambda x: x + 300, ()


@nasty
def a_handler() -> Made:
    def function(x: Any) -> Any:
        try:
            return x * int(x)
        except TypeError:
            return x * 3

    return function, ()


@nasty
def nothing() -> Made:
    return lambda x: None, ()


# Arithmetic.

for _name, _function in {
    "overflow": lambda x: (x + 250) * 3,
    "negative": lambda x: -x,
    "a large constant": lambda x: x + np.uint64(1),
    "a float64": lambda x: x * np.float64(0.1),
    "a float32": lambda x: x * np.float32(0.1),
    "by zero": lambda x: (x / 0, x // 0, x % 0),
    "shifts": lambda x: (x << 3, x >> 70),
    "truths": lambda x: ((x > 3) + (x > 5), (x > 3) * 2, ~(x > 3), (x > 3) - (x > 5)),
    "a power": lambda x: x**2,
    "clip": lambda x: (np.clip(x, 2, 5), np.clip(x, 5, 1), np.clip(x, None, 3)),
    "where": lambda x: (np.where(x > 3, x, 0), np.where(x > 3, x, 0.5) + 1),
    "where as a search": lambda x: np.where(x > 3),
    "select": lambda x: np.select([x > 3], [x], 0),
    "casts": lambda x: x.astype(bool).astype(np.int32).astype("f2"),
    "a cast to text": lambda x: x.astype(str),
    "a cast to a foreign order": lambda x: x.astype(">f4"),
    "a cast to a duration": lambda x: x.astype("m8[s]"),
    "complex": lambda x: x * 1j,
    "einsum": lambda x: np.einsum("...->...", x),
    "a norm": lambda x: np.linalg.norm(x),
    "a sum": lambda x: x.sum(axis=-1),
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "reshaped": lambda x: x.reshape(-1),
    "fancy": lambda x: x[[0]],
    "masked": lambda x: x[x > 3],
    "at": lambda x: np.add.at(x.copy(), 0, 1),
    "an output": lambda x: np.add(x, 1, out=np.zeros_like(x)),
    "a sum in place": lambda x: x.__iadd__(1),
    "a list": lambda x: [x, x * 2],
    "a nest": lambda x: (x, {"a": x * 2, "b": (x, 1, "s", 2.5, True, b"\0")}),
    "constants": lambda x: (1, "a", 2.5, b"\0x", np.float16(3)),
    "text": lambda x: (f"{x}", "%s" % x),  # noqa: UP031 - another way to the text
}.items():
    NASTY[_name] = lambda function=_function: (function, ())  # type: ignore[misc]
