"""syntax: Python's parser and compiler, called so that no other thread comes between.

They count how deep a tree is in one place for all threads, and raise SystemError where two of them work at the same
time ("AST constructor recursion depth mismatch", CPython up to 3.12). Both are C code, which keeps the GIL, but for a
garbage collection that runs somebody's Python: so there is none meanwhile.
"""

from __future__ import annotations

import ast
import contextlib
import gc
from collections.abc import Iterator
from types import CodeType

from penstock.forked import new_rlock

_LOCK = new_rlock()


def parsed(text: str) -> ast.Module:
    """`ast.parse(text)`.

    >>> ast.unparse(parsed("a+b"))
    'a + b'
    """
    with _alone():
        return ast.parse(text)


def parsed_expression(text: str) -> ast.Expression:
    """`ast.parse(text, mode="eval")`, which `ast.literal_eval` takes."""
    with _alone():
        return ast.parse(text, mode="eval")


def compiled_tree(module: ast.Module, file: str, flags: int) -> CodeType:
    """The code of a tree; the `__future__` features are those in `flags` only."""
    with _alone():
        made: CodeType = compile(module, file, "exec", flags=flags, dont_inherit=True)
        return made


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with _LOCK:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()
