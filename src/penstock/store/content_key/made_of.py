"""MadeOf: everything that determines the elements of a plan, part by part, and the key computed from it."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from penstock.block.column import Column, DenseColumn
from penstock.block.leaf import NESTED
from penstock.functions.ownership import is_users
from penstock.functions.uses import HeldValue, held
from penstock.hints import redacted
from penstock.sources.source import Source
from penstock.store.content_key.digest import Digester, FileVersion, digest_of, is_step, named_files, telling

_MOST = 60  # characters of a value
_NEVER = re.compile(r"secret|token|passw|credential|api_?key|private_?key", re.IGNORECASE)
_SHORT = (int, float, complex, str, bytes, bool, range, type(None), np.generic, np.dtype)


def named_value(name: str, value: Any) -> str:
    """Return a text such as `SIZE = 224`.

    A name that looks like a secret is shown without its value, as logs are public.
    """
    if _NEVER.search(name):
        return f"{name}, not shown"
    if callable(value) or hasattr(type(value), NESTED):
        return f"{name}, {value_text(value)}"
    return f"{name} = {value_text(value)}"


def value_text(value: Any) -> str:
    """Return a short value itself, and a long one by its kind and size."""
    if isinstance(value, _SHORT):
        return _cut(redacted(repr(value)))  # redact first: a truncated signature would not be recognised
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
    """Return a text such as `function decode, train.py:31`."""
    if isinstance(function, functools.partial):
        return f"partial of {function_text(function.func)}"
    if isinstance(function, MethodType):
        return f"method of {type(function.__self__).__name__}, {function_text(function.__func__)}"
    if not isinstance(function, FunctionType):
        return f"function {function.__name__}" if _is_function(function) else f"{type(function).__name__} object"
    name = "lambda" if function.__name__ == "<lambda>" else f"function {function.__name__}"
    return f"{name}, {_line(function.__code__.co_filename, function.__code__.co_firstlineno)}"


def _line(path: str, number: int | str) -> str:
    return f"{PurePath(path).name}:{number}"


def files_text(names: tuple[str, ...]) -> str:
    """Return a text such as `3 files, the first data/a.tfrecord`."""
    return f"file {names[0]}" if len(names) == 1 else f"{len(names)} files, the first {names[0]}"


def _is_function(value: Any) -> bool:
    return isinstance(value, (FunctionType, MethodType, functools.partial, np.ufunc, type(len)))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


BELOW = " › "
PYTHON = "Python"  # the part that names the Python version of the bytecode


class KeyPart(NamedTuple):
    """A path in the plan (`map#2 › function › SIZE`), a text (`global SIZE = 224`), and the digest of the content."""

    path: str
    text: str
    digest: str

    @property
    def step(self) -> str:
        """The step or setting that the part belongs to."""
        return self.path.partition(BELOW)[0]


@dataclass(frozen=True)
class MadeOf:
    """Parts in the order in which elements pass them, and the files among them as (name, size, time or ETag).

    If there are very many files, none is listed.
    """

    parts: tuple[KeyPart, ...]
    sources: tuple[FileVersion, ...] = ()

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits, which differ if the elements may differ."""
        return digest_of(text for part in self.parts for text in (part.path, part.digest))

    def under(self, **settings: Any) -> MadeOf:
        """Return the same content with these settings."""
        return replace(self, parts=(*self.parts, *made_of(**settings).parts))


def made_of(*values: Any, **named: Any) -> MadeOf:
    """Return everything that determines the elements of plans and other values.

    For a plan, these are the steps with their parameters, the contents of arrays, and the sizes and times of all files:
    files that a source reads, files named in its elements and files that an array maps. For an object, they are its
    attributes. For a function, they are its code, captured values, and the globals, functions, classes and modules that
    it uses, except those of packages. Data that a function reads from elsewhere is not included. Scheduling parameters
    do not count.

    >>> import penstock as ps
    >>> made = made_of(ps.Dataset.range(6).batch(2)._plan, seed=3)
    >>> made.parts[-3].path, made.parts[-3].text, made.parts[-1].text
    ('batch#1 › batch_size', 'batch_size = 2', 'seed = 3')
    """
    walk = _Walk()
    for number, value in enumerate(values, 1):
        if is_step(value):
            walk.plan(value)
        else:
            walk.value(f"value#{number}", "value", value)
    for name, value in named.items():
        if value is not None:
            walk.value(name, name, value)
    if walk.digester.saw_code:
        walk.part(PYTHON, "Python {}.{}".format(*sys.version_info), digest_of([sys.implementation.cache_tag or ""]))
    return MadeOf(tuple(walk.parts), walk.digester.files.listed())


class _Walk:
    def __init__(self) -> None:
        self.parts: list[KeyPart] = []
        self.digester = Digester()
        self._numbers: Counter[str] = Counter()

    def part(self, path: str, text: str, digest: str) -> None:
        self.parts.append(KeyPart(redacted(path), redacted(text), digest))

    def plan(self, node: Any) -> None:
        for below in node.inputs:
            self.plan(below)
        if not node.changes_elements:
            return
        source = getattr(node, "source", None)
        name = node.name if source is None else "source"
        self._numbers[name] += 1
        step = f"{name}#{self._numbers[name]}"
        where = f", {_line(*node.where.rsplit(':', 1))}" if node.where else ""
        if source is not None:
            self.part(step, f"{node.label}{where}", self.digester.of(type(source)))
            self._source(step, source)
        else:
            self.part(step, f"{node.label}{where}", digest_of([type(node).__name__, str(len(node.inputs))]))
            for name, value in telling(node).items():
                self.value(f"{step}{BELOW}{name}", name, value)

    def _source(self, step: str, source: Source) -> None:
        files = named_files(source)
        if files:
            self.part(f"{step}{BELOW}files", files_text(files), self.digester.versions(files))
        if not is_dataclass(source):
            self.value(f"{step}{BELOW}itself", "itself", source)
            return
        for field in fields(source):
            value = getattr(source, field.name)
            if value is not None and value is not getattr(source, "files", None):
                self.value(f"{step}{BELOW}{field.name}", field.name, value)

    def value(self, path: str, name: str, value: Any) -> None:
        """Add the parts of a parameter or setting."""
        if isinstance(value, MethodType) and isinstance(value.__func__, FunctionType) and is_users(value.__func__):
            self.part(f"{path}{BELOW}self", value_text(value.__self__), self.digester.of(value.__self__))
            self._function(path, value.__func__, set())
        elif isinstance(value, functools.partial):
            given = [value.args, value.keywords]
            self.part(f"{path}{BELOW}arguments", f"arguments of {function_text(value)}", self.digester.of(given))
            self.value(path, name, value.func)
        elif isinstance(value, FunctionType) and is_users(value):
            self._function(path, value, set())
        else:
            text = function_text(value) if callable(value) else named_value(name, value)
            self.part(path, text, self.digester.of(value))

    def _function(self, path: str, function: FunctionType, met: set[FunctionType]) -> None:
        """Add a function of the user. Objects that it uses become separate parts where they first occur."""
        self.part(path, function_text(function), self.digester.code(function))
        if function not in met:
            met.add(function)
            for use in held(function):
                self._use(f"{path}{BELOW}{use.name}", use, met)

    def _use(self, path: str, use: HeldValue, met: set[FunctionType]) -> None:
        if isinstance(use.value, FunctionType) and is_users(use.value):
            self._function(path, use.value, met)
        elif use.kind == "imported":
            self.part(path, f"module {use.name}", self.digester.of(use.value))
        elif use.kind != "module":
            self.part(path, f"{use.kind} {named_value(use.name, use.value)}", self.digester.of(use.value))
