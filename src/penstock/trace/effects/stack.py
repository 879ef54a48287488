"""The stack of values that instructions work on."""

from __future__ import annotations

from penstock.trace.effects.values import Null, Value


def pop(stack: list[Value], count: int) -> list[Value]:
    """The last values of a stack, the lowest first."""
    if not count:
        return []
    found = stack[-count:]
    del stack[-count:]
    return found


def is_null(value: Value) -> bool:
    return len(value) == 1 and isinstance(value[0], Null)
