"""Values in a few words, for people."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn
from penstock.block.leaf import NESTED
from penstock.plan.explain import short_location
from penstock.plan.node import function_name
from penstock.redacted import redacted

_MOST = 60  # characters of a value
_NEVER = re.compile(r"secret|token|passw|credential|api_?key|private_?key", re.IGNORECASE)
_SHORT = (int, float, complex, str, bytes, bool, range, type(None), np.generic, np.dtype)


def named_value(name: str, value: Any) -> str:
    """`SIZE = 224`; of what is called like a secret only the name, as the text is for everybody to read."""
    if _NEVER.search(name):
        return f"{name}, not shown"
    if callable(value) or hasattr(type(value), NESTED):
        return f"{name}, {value_text(value)}"
    return f"{name} = {value_text(value)}"


def value_text(value: Any) -> str:
    """A short value itself, a long one by its kind and size."""
    if isinstance(value, _SHORT):
        return _cut(redacted(repr(value)))  # before it is cut: half a signature is not known as one
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {value.dtype}"
    if isinstance(value, DenseColumn):
        return value_text(value.array)
    if isinstance(value, Column):
        return f"{len(value)} values"
    if isinstance(value, tuple) and value and all(isinstance(item, Column) for item in value):
        return _cut("; ".join(map(value_text, value)))
    if isinstance(value, (tuple, list, set, frozenset, dict)):
        items = [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
        if len(items) <= 8 and all(isinstance(item, _SHORT) for item in items):
            ordered = value if not isinstance(value, (set, frozenset)) else sorted(value, key=repr)
            return _cut(repr(ordered))
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if hasattr(type(value), NESTED):
        return "a data set"
    return function_text(value) if _is_function(value) else f"{type(value).__name__} object"


def function_text(function: Callable[..., Any]) -> str:
    """`function decode, train.py:31`."""
    if isinstance(function, functools.partial):
        return f"partial of {function_text(function.func)}"
    if isinstance(function, MethodType):
        return f"method of {type(function.__self__).__name__}, {function_text(function.__func__)}"
    if not isinstance(function, FunctionType):
        return f"function {function_name(function)}" if _is_function(function) else f"{type(function).__name__} object"
    name = "lambda" if function.__name__ == "<lambda>" else f"function {function.__name__}"
    code = function.__code__
    return f"{name}, {short_location(f'{code.co_filename}:{code.co_firstlineno}')}"


def files_text(names: tuple[str, ...]) -> str:
    """`3 files, the first data/a.tfrecord`."""
    return f"file {names[0]}" if len(names) == 1 else f"{len(names)} files, the first {names[0]}"


def _is_function(value: Any) -> bool:
    return isinstance(value, (FunctionType, MethodType, functools.partial, np.ufunc, type(len)))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
