"""warn_of_text: says, when a function is first called, that it compares text, which is bytes, with str."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from penstock.block.block import Block
from penstock.block.spec import LeafSpec, spec_of
from penstock.block.structure import flatten
from penstock.errors import TextWarning
from penstock.forked import new_lock

_LOCK = new_lock()
_READ: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()  # by their code, and what they are given
_TOLD: set[str] = set()  # the lines of which the process has been warned


def warn_of_text(function: Callable[..., Any], block: Block) -> None:
    """A TextWarning for each line on which the function compares texts of these elements with str, once in a process.

    Elements without text cost a look at their specs. With text the function is read, once for each kind of element.
    """
    specs = block.specs()
    if _have_text(specs):
        element = block.structure.build(specs)
        _warn(function, specs, element if block.structure.unpacks else (element,))


def warn_of_text_in(function: Callable[..., Any], *arguments: Any) -> None:
    """The same of a function that is about to be called with these arguments, elements or states."""
    leaves, structure = flatten(arguments)
    specs = [spec_of(leaf) for leaf in leaves]
    if _have_text(specs):
        _warn(function, specs, structure.build(specs))


def _have_text(specs: Sequence[LeafSpec]) -> bool:
    return any(getattr(spec, "dtype", None) is bytes for spec in specs)


def _warn(function: Callable[..., Any], specs: Sequence[LeafSpec], arguments: Sequence[Any]) -> None:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return
    with _LOCK:
        read_with = _READ.setdefault(code, set())
        if tuple(specs) in read_with:
            return
        read_with.add(tuple(specs))
    for found in _mismatches(function, arguments):
        with _LOCK:
            if found.where in _TOLD:
                continue
            _TOLD.add(found.where)
        file, _, line = found.where.rpartition(":")
        message = f"The function {found.message}. Text is bytes, as in tf.data: write {found.mended}."
        warnings.warn_explicit(message, TextWarning, file, int(line))


def _mismatches(function: Callable[..., Any], arguments: Sequence[Any]) -> list[Any]:
    from penstock.trace.kinds.reader import read
    from penstock.trace.kinds.values import (
        Mismatch,  # seldom needed, and large with what reads code
        kind_of_spec,
    )

    try:
        found = read(function, [kind_of_spec(part) for part in arguments])
        return [one for one in found if isinstance(one, Mismatch)]
    except Exception:  # code that is read may hold anything
        return []
