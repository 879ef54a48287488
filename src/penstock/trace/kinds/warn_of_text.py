"""warn_of_text: says, at a function's first Block, that it compares text, which is bytes, with str."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from penstock.block.block import Block
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
    if not any(getattr(spec, "dtype", None) is bytes for spec in specs):
        return
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return
    element = block.structure.build(specs)
    with _LOCK:
        read_with = _READ.setdefault(code, set())
        if tuple(specs) in read_with:
            return
        read_with.add(tuple(specs))
    for found in _mismatches(function, element, unpacks=block.structure.unpacks):
        with _LOCK:
            if found.where in _TOLD:
                continue
            _TOLD.add(found.where)
        file, _, line = found.where.rpartition(":")
        message = f"The function {found.message}. Text is bytes, as in tf.data: write {found.mended}."
        warnings.warn_explicit(message, TextWarning, file, int(line))


def _mismatches(function: Callable[..., Any], element: Any, *, unpacks: bool) -> list[Any]:
    from penstock.trace.kinds.findings import Mismatch  # seldom needed, and large with what reads code
    from penstock.trace.kinds.reader import read
    from penstock.trace.kinds.values import kind_of_spec

    arguments = [kind_of_spec(part) for part in (element if unpacks else (element,))]
    try:
        return [found for found in read(function, arguments) if isinstance(found, Mismatch)]
    except Exception:  # code that is read may hold anything
        return []
