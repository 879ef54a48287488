"""Errors for names and arguments from elsewhere, with what to write in their place."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from penstock.errors import InvalidTypeError, UnknownNameError
from penstock.habits.tables import ARGUMENTS, METHODS, REQUIRED

_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
_MISSING = re.compile(r"missing \d+ required positional argument")


def unknown(
    owner: str, name: str, table: Mapping[str, str], names: Iterable[str], *, alike: float = 0.6
) -> AttributeError:
    """The error for a name that `owner` does not have; one of `names` is suggested that is so much `alike`.

    >>> print(unknown("penstock", "cast", {"cast": "Write x.astype(np.float32)."}, []))
    penstock has no 'cast'.
      Write x.astype(np.float32).
    >>> print(unknown("penstock", "CSVDataset", {}, ["Dataset", "CsvDataset"]))
    penstock has no 'CSVDataset'.
      Did you mean CsvDataset?
    """
    if name.startswith("_"):  # of a protocol, such as pickle or copy
        return AttributeError(f"{owner} has no {name!r}.")
    hint = table.get(name)
    if hint is None:
        import difflib

        known = {known.lower(): known for known in names if not known.startswith("_")}
        near = difflib.get_close_matches(name.lower(), known, 1, cutoff=alike)
        hint = f"Did you mean {known[near[0]]}?" if near else None
    return UnknownNameError(f"{owner} has no {name!r}.", hint=hint)


def unknown_in(module: str, table: Mapping[str, str], names: Iterable[str]) -> Callable[[str], Any]:
    """A module's `__getattr__`, asked for names that it does not have."""

    def missing(name: str) -> Any:
        raise unknown(module, name, table, names)

    return missing


def namespace(package: str, table: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names its module `public` holds.

    That module is imported when the first of them is asked for, and all of them are attributes of the package then.

    >>> _, names = namespace("penstock.io", {})
    >>> "parse_example" in names()
    True
    """

    def public() -> ModuleType:
        return importlib.import_module(f"{package}.public")

    def found(name: str) -> Any:
        if name == "__all__":  # of `from package import *`
            return public().__all__
        if name.startswith("_"):  # of a protocol, such as pickle or copy
            raise unknown(package, name, table, ())
        try:
            return importlib.import_module(f"{package}.{name}")  # `from package import module`
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":  # it is there, and what it imports is not
                raise
        offered = public()
        values = {each: getattr(offered, each) for each in offered.__all__}
        vars(sys.modules[package]).update(values)
        if name not in values:
            raise unknown(package, name, table, values)
        return values[name]

    return found, lambda: sorted(public().__all__)


class Taught(type):
    """The class of `Dataset`: names that it does not have say what to write."""

    def __getattr__(cls, name: str) -> Any:
        names = () if name.startswith("_") else dir(cls)  # protocols are asked for, for each element that is a data set
        raise unknown(cls.__name__, name, METHODS, names)


def teach(kind: type, folded: Callable[[BaseException], TracebackType | None]) -> None:
    """Let the public methods that a class inherits say what to write for arguments from elsewhere.

    Errors leave them with the traceback that `folded` returns.
    """
    for base in kind.__mro__[1:-1]:
        for name, value in vars(base).items():
            if (name[0] != "_" or name == "__getitem__") and name not in vars(kind):
                taught = _taught(name, value, folded)
                if taught is not None:
                    setattr(kind, name, taught)


def _taught(name: str, value: Any, folded: Any) -> Any:
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(_wrapped(name, value.__func__, folded))
    return _wrapped(name, value, folded) if isinstance(value, FunctionType) else None


def _wrapped(name: str, function: Callable[..., Any], folded: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            taught = None
            if isinstance(error, TypeError) and error.__traceback__.tb_next is None:  # type: ignore[union-attr]
                taught = _explained(name, function, str(error))
            error.with_traceback(folded(error))
            if taught is None:
                raise
        raise taught

    return method


def _explained(name: str, function: Callable[..., Any], said: str) -> InvalidTypeError | None:
    """The error for a call that does not fit the function, None where nothing is known of it."""
    parameters = [one for one in inspect.signature(function).parameters if one != "self"]
    unexpected = _UNEXPECTED.search(said)
    if unexpected:
        argument = unexpected.group(1)
        message = f"{name}() has no argument {argument!r}: it has {', '.join(parameters)}."
        import difflib

        near = difflib.get_close_matches(argument, parameters, 1, cutoff=0.7)
        if near:
            return InvalidTypeError(message, hint=f"Did you mean {near[0]}?")
        written = ARGUMENTS.get(argument)
        return InvalidTypeError(message, hint=None if written is None else f"Write {written}.")
    if _MISSING.search(said) and name in REQUIRED:
        return InvalidTypeError(f"{name}() needs {parameters[0]}.", hint=REQUIRED[name])
    return None
