"""Measurement of pipelines and reports about them: explanations, lint, live views and recordings."""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Profiler", "annotate", "opentelemetry_meters", "prometheus_collector", "step"]
_LIVE = ("opentelemetry_meters", "prometheus_collector")

if TYPE_CHECKING:
    from penstock.profiler.live.metrics import opentelemetry_meters as opentelemetry_meters
    from penstock.profiler.live.metrics import prometheus_collector as prometheus_collector
    from penstock.profiler.recording.profiler import Profiler as Profiler
    from penstock.profiler.recording.profiler import annotate as annotate
    from penstock.profiler.recording.profiler import step as step
else:

    def __getattr__(name: str) -> Any:
        if name in _LIVE:
            return getattr(importlib.import_module("penstock.profiler.live.metrics"), name)
        if name in __all__:
            return getattr(importlib.import_module("penstock.profiler.recording.profiler"), name)
        raise AttributeError(f"module 'penstock.profiler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
