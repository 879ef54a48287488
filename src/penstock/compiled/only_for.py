"""only_for: a kernel for arguments of the given types alone, compiled when its module is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def only_for(signature: Any) -> Callable[[F], F]:
    """Compile a function of `penstock.compiled.kernel` for `signature`, or load it; other arguments are refused.

    What a caller may write to is accepted where only reading is needed. So one version serves both, and that a module
    was imported means that no call compiles.
    """

    def compiled(function: F) -> F:
        dispatcher: Any = function
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return function

    return compiled
