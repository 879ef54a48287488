"""A stable digest of a plan: the same in every process for the same steps, parameters, functions and sources."""

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
    """32 hexadecimal digits that change when the plan, under these options, gives anything else.

    Functions count by their bytecode, constants, defaults and closures; of long lists and dicts the first items count;
    functions they call, and the contents of files and arrays, do not. Nor does what changes no order: how many calls
    run in parallel, which executor makes them, how far a prefetch reads ahead, which steps were fused. Of steps in free
    order it counts which of them run together.
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
    """Label and digest of every step by itself, the source first: what tells two plans apart in words."""
    found = []
    for node in _in_order(plan):
        digest = _Digest()
        _add_parameters(digest, node)
        found.append([node.label[:80], digest.hash.hexdigest()[:8]])
    return found[::-1]


def _in_order(plan: Node) -> Iterator[Node]:
    """The steps of a plan that change something."""
    return (node for node in plan.walk() if not isinstance(node, Prefetch))


def _parts(node: Node, *, free: bool) -> Iterator[Node | str]:
    """The steps that became this one; in free order, what runs together is told as well."""
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
_MOST_ITEMS = 1000  # of a container a function closes over: it is digested for every pass


class _Digest:
    """A hash, and the functions and containers it is inside: they may hold each other."""

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
            if not (field.name == "buffer_size" and isinstance(value, Source)):  # of reading
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


# a live object; who does the work, how much at a time, and whether in order where several do: see `_parts`
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
