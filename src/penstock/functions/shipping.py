"""Decides whether the engine may move a function to another process by itself.

In another process, the user cannot observe what the function changes or prints. Random numbers, clocks and the order of
sets differ there. A function with such effects stays in its process (`facts`). Any other function is pickled as a test:
it may move if pickling works and the pickle is small enough.

`unpicklable` returns the name of the value in a function that cannot be pickled, and its type.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from types import FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

from penstock.functions.code import Instruction, codes, steps, words
from penstock.functions.facts import facts
from penstock.functions.libraries import Kind
from penstock.functions.memory import recalled
from penstock.functions.ownership import is_users
from penstock.functions.uses import Use, closure, defaults, uses

_MOST_BYTES = 1 << 26  # of a pickled function with the values that it captures
_MOST_ITEMS = 1000  # items of a container that are examined
_DEEPEST = 40


def get_ready() -> None:
    """Import the modules that a verdict needs, before a consumer waits for it."""
    import cloudpickle  # noqa: F401

    import penstock.functions.scan  # noqa: F401


def why_not_shippable(function: Callable[..., Any], *, seeded: bool = False) -> str | None:
    """Return why the engine must not move this function to another process by itself, or None if it may.

    With `seeded`, the generators of the process are seeded for each element.

    >>> why_not_shippable(lambda x: x * 2)
    >>> seen = []
    >>> why_not_shippable(lambda x: seen.append(x))
    'it appends to `seen`'
    """
    question = "shippable, seeded" if seeded else "shippable"
    return recalled(function, question, lambda: _why_not_shippable(function, seeded=seeded), by_value=True)[0]


def _why_not_shippable(function: Callable[..., Any], *, seeded: bool) -> tuple[str | None, list[Any]]:
    found = facts(function)
    kinds = (Kind.EFFECT, Kind.RANDOM, Kind.CLOCK, Kind.PROCESS)
    why: str | None = found.why(*kinds, *(() if seeded else (Kind.SEEDED, Kind.ACCELERATOR)))
    return why or _why_unlike(function, found.functions) or _why_stuck(function), list(found.watched)


_WRITES_TEXT = ("FORMAT", "CONVERT_VALUE")
_SHOWS_ORDER = ("GET_ITER", "GET_YIELD", "UNPACK", "LIST_EXTEND", "CALL_FUNCTION_EX", "BUILD_SLICE", "STORE_SLICE")
_HIDES_ORDER = (set, frozenset, len, sorted, min, max, any, all, isinstance, type, bool, int, float, abs)
_METHODS = {f".{name}" for kind in (str, bytes, set) for name in dir(kind) if name[:2] != "__"}
_METHODS -= words(".join .format .format_map .pop")
_BY_ADDRESS = words("repr ascii object __repr__ __str__ __format__ __hash__")


def _why_unlike(function: Callable[..., Any], functions: list[FunctionType]) -> str | None:
    """Return why results may differ in another process, where sets have another order and objects other addresses.

    `functions` are the user's functions that are called. A function that uses a set moves only if none of its
    operations depends on the order. Examples are `in`, `len` and `sorted`.
    """
    read = [code for one in functions for code in codes(one.__code__)]
    done = [step for code in read for step in steps(code)]
    every: list[Callable[..., Any]] = [function, *functions]
    used = [use for one in every for use in uses(one)]
    operators = {step.spelled for step in done if step.name == "BINARY_OP"}
    writes = "%" in operators or any(step.name.startswith(_WRITES_TEXT) for step in done)
    writes = writes or any(use.value is str or use.spelled == ".format" for use in used)
    if any(use.spelled.rpartition(".")[2] in _BY_ADDRESS or (writes and _has_address(use.value)) for use in used):
        return "it uses the address or the hash of an object, which differs between processes"
    held = {"set", "frozenset", *_names_of_sets(function, "", set())}
    seen = any(_is_set(step, held) and after.name != "CONTAINS_OP" for step, after in pairwise(done))
    of_keys = bool({"&", "|", "^", "-"} & operators) and any(use.spelled == ".keys" for use in used)
    if not (seen or of_keys or "args" in held):
        return None
    shows = writes or operators & {"+=", "%="} or any(step.name.startswith(_SHOWS_ORDER) for step in done)
    by_key = any(type(names) is tuple and "key" in names for code in read for names in code.co_consts)  # keyword names
    if shows or by_key or not all(map(_hides_order, used)):
        return "it depends on the order of a set, which differs between processes"
    return None


def _has_address(value: Any) -> bool:
    """Return True if the repr of a value, or of an object of this class, contains its address."""
    kind = value if isinstance(value, type) else type(value)
    return is_users(kind) and vars(object)["__repr__"] is getattr(kind, "__repr__", None)


def _is_set(step: Instruction, held: set[str]) -> bool:
    if step.name == "LOAD_CONST":
        return isinstance(step.value, frozenset)
    return step.name in ("BUILD_SET", "SET_ADD") or (step.name.startswith("LOAD_") and step.value in held)


def _hides_order(use: Use) -> bool:
    if use.spelled[0] == ".":
        return use.spelled in _METHODS
    return not callable(use.value) or any(use.value is one for one in _HIDES_ORDER) or is_users(use.value)


def _names_of_sets(value: Any, name: str, seen: set[int]) -> Iterator[str]:
    """Yield the names of variables and attributes with sets, in a function and in the objects that it holds."""
    if isinstance(value, (set, frozenset)):
        yield name
    if id(value) in seen or len(seen) >= _MOST_ITEMS:
        return
    if isinstance(value, (dict, list, tuple)):
        seen.add(id(value))
        for item in islice(value.values() if isinstance(value, dict) else value, 100):
            yield from _names_of_sets(item, name, seen)
    elif isinstance(value, (MethodType, functools.partial)) or (is_users(value) and not isinstance(value, ModuleType)):
        seen.add(id(value))
        for step in _held(value):
            yield from _names_of_sets(step.value, step.text.lstrip("."), seen)


class _TooLarge(Exception):
    """The pickle has more bytes than the engine sends by itself."""


class _Counter:
    """A file that counts the bytes that are written to it, up to a limit."""

    def __init__(self) -> None:
        self._left = _MOST_BYTES

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise _TooLarge
        return size

    def beside(self, buffer: pickle.PickleBuffer) -> None:
        self.write(buffer.raw())


def _why_stuck(function: Any) -> str | None:
    """Return why a function cannot be pickled or has a pickle that is too large, or None."""
    counter = _Counter()
    try:
        _by_value()(counter, protocol=5, buffer_callback=counter.beside).dump(function)
    except _TooLarge:
        return f"it captures more than {_MOST_BYTES >> 20} MiB"
    except Exception as error:
        said = str(error).splitlines() or [""]
        return f"it cannot be pickled: {said[0] or type(error).__name__}"
    return None


def dumped_by_value(value: Any, callback: Callable[[pickle.PickleBuffer], Any]) -> bytes:
    """Pickle a value as `cloudpickle.dumps` does, but refuse open text files.

    cloudpickle copies the content of an open text file, and each process would then read the same lines. Any error of
    pickling is raised.
    """
    content = io.BytesIO()
    _by_value()(content, protocol=5, buffer_callback=callback).dump(value)
    return content.getvalue()


def by_value() -> Any:
    """Return cloudpickle, which sends the main script by value, also in processes that multiprocessing has spawned."""
    import cloudpickle

    spawned = sys.modules.get("__mp_main__")
    if spawned is not None:
        cloudpickle.register_pickle_by_value(spawned)
    return cloudpickle


@functools.cache
def _by_value() -> Any:
    cloudpickle = by_value()

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        dispatch_table: ClassVar = ChainMap({io.TextIOWrapper: _text_file}, cloudpickle.Pickler.dispatch_table)

    return Pickler


def _text_file(file: io.TextIOWrapper) -> tuple[Any, ...]:
    for name in ("stdout", "stderr"):
        if file is getattr(sys, name):
            return getattr, (sys, name)
    raise pickle.PicklingError("cannot pickle an open file")


@dataclass(frozen=True, slots=True)
class _Step:
    """A step from a value to a value in it. `text` is appended to the name. If `starts` is True, the name is new."""

    text: str
    value: Any
    starts: bool = False


def unpicklable(function: Callable[..., Any]) -> str | None:
    """Return which value in a function cannot be pickled, or None if the function can be pickled.

    >>> import threading
    >>> lock = threading.Lock()
    >>> def f(x):
    ...     with lock:
    ...         return x
    >>> unpicklable(f)
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
    """Return the steps from `value` to the innermost value that cannot be pickled."""
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
    code, known = function.__code__, function.__globals__
    named = ((name, known[name]) for one in codes(code) for name in one.co_names if name in known)
    for name, value in (*closure(function), *defaults(function).items(), *named):
        yield _Step(name, value, starts=True)
    for name, value in vars(function).items():
        yield _Step(f"{_name(function)}.{name}", value, starts=True)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name != "__weakref__" and hasattr(value, name):
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
