"""What of a function cannot be sent to another process, in words: which name in it holds it, and of what type it is."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

from penstock.block.transport import dumped_by_value

_MOST_ITEMS = 1000  # of a container that are looked at
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class _Step:
    """From a value to one it holds: a name of its own (a variable of a function), or an addition to the name so far."""

    text: str
    value: Any
    starts: bool = False


def captured(function: Callable[..., Any]) -> str | None:
    """What the function holds that cannot be pickled, or None where it can, or nothing can be told.

    >>> import threading
    >>> lock = threading.Lock()
    >>> def f(x):
    ...     with lock:
    ...         return x
    >>> captured(f)
    '`f` holds `lock`, a _thread.lock'
    """
    if _travels(function):
        return None
    steps = _way(function, set(), 0)
    if not steps:
        return f"`{_name(function)}` is {_kind(function)}"
    found = f"`{_name(function)}` holds"
    at = "" if isinstance(function, (FunctionType, MethodType)) else "self"
    for place, step in enumerate(steps):
        if step.starts and at:
            found += f" `{at}`, the function `{_name(steps[place - 1].value)}`, which holds"
            at = ""
        at += step.text
    return f"{found} `{at}`, {_kind(steps[-1].value)}"


def _way(value: Any, seen: set[int], depth: int) -> list[_Step]:
    """The steps to the innermost value that cannot be pickled; `value` cannot."""
    seen.add(id(value))
    if depth > _DEEPEST:
        return []
    for step in _held(value):
        if id(step.value) not in seen and not _travels(step.value):
            return [step, *_way(step.value, seen, depth + 1)]
    return []


def _travels(value: Any) -> bool:
    try:
        dumped_by_value(value, lambda buffer: None)
    except Exception:
        return False
    return True


def _held(value: Any) -> Iterator[_Step]:
    if isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, MethodType):
        yield _Step("self", value.__self__, starts=True)
        yield _Step(value.__name__, value.__func__, starts=True)
    elif isinstance(value, functools.partial):
        yield _Step(".func", value.func)
        yield _Step(".args", value.args)
        yield _Step(".keywords", value.keywords)
    elif isinstance(value, dict):
        for key, item in islice(value.items(), _MOST_ITEMS):
            yield _Step(f"[{key!r}]", item)
            yield _Step(f" key {key!r}", key)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for place, item in enumerate(islice(value, _MOST_ITEMS)):
            yield _Step(f"[{place}]", item)
    else:
        for name, item in _attributes(value):
            yield _Step(f".{name}", item)
        if not isinstance(value, type):
            yield _Step(".__class__", type(value))


def _of_function(function: FunctionType) -> Iterator[_Step]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield _Step(name, cell.cell_contents, starts=True)
        except ValueError:  # not bound yet
            continue
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        yield _Step(name, value, starts=True)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield _Step(name, value, starts=True)
    for name in _names(code):
        if name in function.__globals__:
            yield _Step(name, function.__globals__[name], starts=True)
    for name, value in vars(function).items():
        yield _Step(f"{_name(function)}.{name}", value, starts=True)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name, getattr(value, name)


def _name(value: Any) -> str:
    return getattr(value, "__name__", None) or type(value).__name__


def _kind(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, io.IOBase):
        return f"an open file ({name})"
    article = "an" if name.lstrip("_")[:1].lower() in tuple("aeiou") else "a"
    return f"{article} {name}"
