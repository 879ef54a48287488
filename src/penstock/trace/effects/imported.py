"""What another process gets by importing a module anew, and not as it is here."""

from __future__ import annotations

import dis
import sys
from types import FunctionType
from typing import Any

from penstock.trace.effects.watched import codes


def is_imported(thing: Any) -> bool:
    """Whether a function or class is sent by its name: one that its module has under that name."""
    name, module = thing.__qualname__, sys.modules.get(thing.__module__)
    if module is None or thing.__module__ == "__main__" or "<locals>" in name:
        return False
    outermost, *inner = name.split(".")
    found = vars(module).get(outermost)
    for part in inner:
        found = vars(found).get(part) if isinstance(found, type) else None
    return found is thing


def assigning(names: dict[str, Any], name: str) -> str | None:
    """The function of a module, given by its names, that assigns to a global of that name."""
    for value in list(names.values()):
        if type(value) is FunctionType and value.__globals__ is names:
            for code in codes(value.__code__):
                if name in code.co_names and _assigns(code, name):
                    return value.__name__
    return None


def _assigns(code: Any, name: str) -> bool:
    return any(step.opname == "STORE_GLOBAL" and step.argval == name for step in dis.get_instructions(code))
