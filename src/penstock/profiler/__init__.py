"""What ran and what it cost, told to a person."""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Profiler", "annotate", "step"]

if TYPE_CHECKING:
    from penstock.profiler.recording.profiler import Profiler as Profiler
    from penstock.profiler.recording.profiler import annotate as annotate
    from penstock.profiler.recording.profiler import step as step
else:

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return getattr(importlib.import_module("penstock.profiler.recording.profiler"), name)
        message = f"module 'penstock.profiler' has no attribute {name!r}"
        raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(__all__)
