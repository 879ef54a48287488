"""A function's code as texts that stay the same when it moves, or its documentation changes."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def pieces_of_code(function: FunctionType, constant: Callable[[Any], str]) -> Iterator[str]:
    """Instructions, names and constants, also of the functions inside."""
    yield from _pieces(function.__code__, constant, int(_is_documentation(function)))


def _pieces(code: CodeType, constant: Callable[[Any], str], first: int = 0) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_flags))
    for value in code.co_consts[first:]:
        if isinstance(value, CodeType):
            yield from _pieces(value, constant)
        else:
            yield constant(value)


def _is_documentation(function: FunctionType) -> bool:
    """Whether the first constant is the docstring, and nothing else."""
    code = function.__code__
    if function.__doc__ is None or code.co_consts[:1] != (function.__doc__,):
        return False
    return not any(step.opcode in dis.hasconst and step.arg == 0 for step in dis.get_instructions(code))
