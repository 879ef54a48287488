"""A stable digest of a plan: equal in every process for equal steps, parameters, functions and sources."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.block.column import Column
from penstock.functions.code import pieces
from penstock.functions.uses import attribute, closure
from penstock.plan.fused import FusedMap, MapAndBatch
from penstock.plan.node import Node, parameters
from penstock.plan.ops import Interleave, Prefetch
from penstock.plan.windows import WindowedFlatMap
from penstock.sources.source import Source


def fingerprint(plan: Node, seed: int = 0, deterministic: bool = True) -> str:  # noqa: FBT001 - an option
    """Return 32 hexadecimal digits that change if the plan yields other elements under these options.

    A function counts by its bytecode, constants, defaults and closures, and a long list or dict by its first items.
    Functions that it calls, and the contents of files and arrays, do not count. Parameters that do not change the order
    do not count either: the number of parallel calls, the executor, the size of a prefetch, the fusion of steps. For
    steps in free order, the digest includes which of them run together.
    """
    digest = _Digest()
    for node in _in_order(plan):
        for step in _parts(node, free=not deterministic):
            digest.update(b"%d " % len(node.inputs))
            _add_parameters(digest, step)
    for setting in (seed, deterministic):
        _add(digest, setting)
    return digest.hash.hexdigest()


def steps(plan: Node) -> list[list[str]]:
    """Return label and digest of every step, the source first, so that the difference of two plans can be reported."""
    found = []
    for node in _in_order(plan):
        digest = _Digest()
        _add_parameters(digest, node)
        found.append([node.label[:80], digest.hash.hexdigest()[:8]])
    return found[::-1]


def _in_order(plan: Node) -> Iterator[Node]:
    """Yield the steps of a plan that change elements or their order."""
    return (node for node in plan.walk() if not isinstance(node, Prefetch))


def _parts(node: Node, *, free: bool) -> Iterator[Node | str]:
    """Yield the steps that were fused into this one. In free order, also yield a mark for steps that run together."""
    own: tuple[Node, ...] = (node,)
    if isinstance(node, FusedMap):
        own = node.steps[::-1]
    elif isinstance(node, MapAndBatch):
        own = (node.batch, *node.steps[::-1])
    elif isinstance(node, WindowedFlatMap):
        own = (node.as_written,)
    head = own[-1]
    if getattr(head, "num_parallel_calls", None) is not None and not isinstance(head, Interleave):
        ordered = getattr(head, "deterministic", None)
        if ordered is False or (ordered is None and free):
            yield f"free {len(own)}"
    yield from own


_PLAIN = (int, float, complex, str, bytes, bool, range, type(None), np.generic, np.dtype)
_MOST_ITEMS = 1000  # items of a container in a closure; it is digested in every iteration


class _Digest:
    """A hash, and the functions and containers that are being digested: they may contain each other."""

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(digest_size=16)
        self.update = self.hash.update
        self.above: list[Any] = []


def _add(digest: _Digest, value: Any) -> None:
    if not isinstance(value, (FunctionType, tuple, list, dict)):
        _add_value(digest, value)
    elif any(value is outer for outer in digest.above):
        digest.update(b"itself")
    else:
        digest.above.append(value)
        _add_value(digest, value)
        digest.above.pop()


def _add_value(digest: _Digest, value: Any) -> None:
    if isinstance(value, _PLAIN):
        digest.update(f"{type(value).__name__}:{value!r}".encode())
    elif isinstance(value, Node):
        for node in value.walk():
            digest.update(b"%d " % len(node.inputs))
            _add_parameters(digest, node)
    elif isinstance(value, FunctionType):
        _add_function(digest, value)
    elif isinstance(value, np.ndarray):
        digest.update(f"array{value.shape}{value.dtype}".encode())
    elif isinstance(value, functools.partial):
        for part in (value.func, value.args, value.keywords):
            _add(digest, part)
    elif isinstance(value, MethodType):
        digest.update(_name_of(value.__self__).encode())
        _add(digest, value.__func__)
    elif isinstance(value, (tuple, list)):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for item in value[:_MOST_ITEMS]:
            _add(digest, item)
    elif isinstance(value, dict):
        digest.update(f"dict{len(value)}".encode())
        for key, item in islice(value.items(), _MOST_ITEMS):
            _add(digest, key)
            _add(digest, item)
    elif is_dataclass(value) and not isinstance(value, type):
        digest.update(type(value).__qualname__.encode())
        for field in fields(value):
            if not (field.name == "buffer_size" and isinstance(value, Source)):  # a parameter of reading only
                _add(digest, getattr(value, field.name))
    elif isinstance(value, type):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    elif isinstance(value, Column):
        digest.update(f"{type(value).__name__}{value.spec()}{len(value)}".encode())
    else:
        digest.update(_name_of(value).encode())
        call = vars(type(value)).get("__call__")
        if isinstance(call, FunctionType):
            _add(digest, call)


# a live object; parameters of scheduling. `_parts` handles the order of parallel steps
_NOT_TELLING = {"store", "service", "num_parallel_calls", "deterministic"}


def _add_parameters(digest: _Digest, node: Node | str) -> None:
    if isinstance(node, str):
        digest.update(node.encode())
        return
    digest.update(type(node).__name__.encode())
    for name, parameter in parameters(node).items():
        if name not in _NOT_TELLING:
            digest.update(name.encode())
            _add(digest, parameter)


def _name_of(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}:{attribute(value, '__qualname__') or ''}"


def _add_function(digest: _Digest, function: FunctionType) -> None:
    for piece in pieces(function.__code__):
        if isinstance(piece, CodeType):
            digest.update(piece.co_code)
            digest.update(repr((piece.co_names, piece.co_varnames)).encode())
        elif isinstance(piece, frozenset):
            digest.update(repr(sorted(map(repr, piece))).encode())
        else:
            digest.update(repr(piece).encode())
    _add(digest, function.__defaults__ or ())
    _add(digest, function.__kwdefaults__ or {})
    for _, content in closure(function):
        _add(digest, content)
