"""uncounted: kernels and helpers that leave the references to their arrays uncounted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def uncounted(function: F) -> F:
    """Let a function of `penstock.compiled.kernel` not count, which takes most of the time where calls are small.

    Who calls it from Python holds the arrays. It makes none, and calls such functions only.
    """
    compiled: Any = function
    compiled.targetoptions["_nrt"] = False
    return function
