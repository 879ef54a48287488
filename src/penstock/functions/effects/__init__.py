"""What a function does beside giving its result, read from its bytecode. Nothing of it is run.

`why_visible` gives the first thing it does that somebody could notice. In it `values` are what is known of a value,
`interpreter` goes through the code, `reading`, `calling` and `methods` are the world that it finds around it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any

from penstock.functions.effects.calling import Calling
from penstock.functions.effects.interpreter import Frame
from penstock.functions.effects.objects import Watched
from penstock.functions.effects.values import OWN, Arguments, Known, Value, Visible
from penstock.functions.ownership import is_users


def why_visible(function: Any, watched: list[Watched]) -> str | None:
    """What it does that could be noticed, or None; and into `watched` what this was read from."""
    return _verdict(function, Calling(watched))


def why_visible_here(
    function: Any, given: Mapping[str, Any] = MappingProxyType({}), *, alike: bool = False
) -> str | None:
    """The same in this process, where globals are what they are now.

    `given` are arguments that others have as well; the others are the function's own. What only another process would
    find otherwise, as the order of a set or an accelerator, counts where it must be `alike` in every process.
    """
    named: dict[str, Value] = {
        name: (Known(value, name if name.isidentifier() else "a value"),) for name, value in given.items()
    }
    try:
        return _verdict(function, _Here([], alike=alike), named)
    except Exception as error:  # code that is read may hold anything
        return f"it cannot be looked through ({type(error).__name__})"


class _Here(Calling):
    """The world as this process has it."""

    def imported_anew(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Nothing is."""


def _verdict(function: Any, world: Calling, named: dict[str, Value] | None = None) -> str | None:
    elements = Arguments(named=named or {}, rest=OWN)
    try:
        if type(function) is FunctionType and is_users(function):
            if function.__code__.co_flags & inspect.CO_GENERATOR:
                return "it is a generator"
            world.entered(function, elements)
        else:
            spelled = _name_of(function)
            frame = Frame((lambda: None).__code__, {}, {}, (), world)
            world.call(frame, world.reached(function, spelled), elements)
    except Visible as why:
        return f"it {why}"
    return None


def _name_of(function: Any) -> str:
    """What a callable is called, without asking it."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is functools.partial:
        function = function.func
    return str(function.__name__) if type(function) in (FunctionType, BuiltinFunctionType) else type(function).__name__
