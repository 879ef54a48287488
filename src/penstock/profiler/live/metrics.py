"""Metrics: what is measured of the passes that run, for Prometheus and for OpenTelemetry; both tell the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import optional_package
from penstock.profiler.live.snapshot import snapshot, want

_FRESH = 0.5  # seconds that a snapshot serves: a scrape asks for all metrics at once
Labels = dict[str, str]
Values = Iterable[tuple[Labels, float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """`counter`: it only grows, while the plan is told of; else it is what is so now."""

    name: str
    text: str
    unit: str
    counter: bool
    of: Callable[[dict[str, Any]], Values]


def _pipelines(key: str) -> Callable[[dict[str, Any]], Values]:
    def values(told: dict[str, Any]) -> Values:
        return [(_labels(each), float(each[key])) for each in told["pipelines"]]

    return values


def _steps(key: str) -> Callable[[dict[str, Any]], Values]:
    def values(told: dict[str, Any]) -> Values:
        return [
            (_labels(each) | {"step": row["name"]}, float(row[key]))
            for each in told["pipelines"]
            for row in each["rows"]
            if row[key] is not None
        ]

    return values


def _labels(each: dict[str, Any]) -> Labels:
    return {"pipeline": each["name"], "defined_at": each["defined_at"]}


METRICS = (
    Metric("penstock_elements", "Elements (batches) that the loop got.", "", True, _pipelines("elements")),
    Metric("penstock_waited_seconds", "Time that the loop waited for data.", "s", True, _pipelines("waited")),
    Metric("penstock_waited_share", "Of the last seconds: the share waited.", "1", False, _pipelines("waited_share")),
    Metric("penstock_passes", "Passes that have begun.", "", True, _pipelines("passes")),
    Metric("penstock_running", "1 while an iteration runs.", "", False, _pipelines("running")),
    Metric("penstock_step_elements", "Elements that a step made.", "", True, _steps("elements")),
    Metric("penstock_step_failures", "Elements of a step that failed.", "", True, _steps("failed")),
    Metric("penstock_step_cpu_seconds", "CPU time of a step.", "s", True, _steps("cpu_seconds")),
    Metric("penstock_step_held_bytes", "Bytes in a step's buffers.", "By", False, _steps("held")),
    Metric("penstock_step_room_bytes", "Bytes that a step may make ahead.", "By", False, _steps("room")),
    Metric("penstock_step_bottleneck", "1 for the step that holds the others back.", "", False, _steps("bottleneck")),
)


class _Latest:
    """A snapshot that is fresh enough."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = -_FRESH
        self._told: dict[str, Any] = {"pipelines": []}

    def get(self) -> dict[str, Any]:
        with self._lock:
            if time.monotonic() - self._at >= _FRESH:
                self._told, self._at = snapshot(), time.monotonic()
            return self._told


def prometheus_collector() -> Any:
    """Create a collector of the iterations of this process for `prometheus_client`, and start to observe them.

    Counters: elements, waiting time, CPU seconds and failures of each step. Gauges: the memory of buffers, the share of
    waiting time, and the step that is the bottleneck. Labels: `pipeline` (the line that defines it) and `step`.

    Returns:
        The collector.

    Raises:
        MissingDependencyError: If the extra `prometheus` is not installed.

    Example:
        >>> from prometheus_client import REGISTRY, start_http_server  # doctest: +SKIP
        >>> REGISTRY.register(ps.profiler.prometheus_collector())  # doctest: +SKIP
        >>> start_http_server(9100, addr="127.0.0.1")  # doctest: +SKIP
    """
    core = optional_package("prometheus_client.core", "Offering metrics", "prometheus")
    want()
    return _Collector(core)


class _Collector:
    """What a registry asks."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._latest = _Latest()

    def describe(self) -> Iterator[Any]:
        return (self._family(metric) for metric in METRICS)

    def collect(self) -> Iterator[Any]:
        told = self._latest.get()
        for metric in METRICS:
            family = self._family(metric)
            for labels, value in metric.of(told):
                family.add_metric([labels[name] for name in self._names(metric)], value)
            yield family

    def _family(self, metric: Metric) -> Any:
        kind = self._core.CounterMetricFamily if metric.counter else self._core.GaugeMetricFamily
        return kind(metric.name, metric.text, labels=self._names(metric))

    def _names(self, metric: Metric) -> list[str]:
        return ["pipeline", "defined_at", *(["step"] if metric.name.startswith("penstock_step_") else [])]


def opentelemetry_meters(meter_provider: Any = None) -> Any:
    """Create OpenTelemetry meters of the iterations of this process, and start to observe them.

    The observable counters and gauges have the names of `prometheus_collector`, with dots: `penstock.step.elements`.

    Args:
        meter_provider: A meter provider. Default: the one that the program has set.

    Returns:
        The meter.

    Raises:
        MissingDependencyError: If the extra `otel` is not installed.

    Example:
        >>> import penstock as ps
        >>> meter = ps.profiler.opentelemetry_meters()  # doctest: +SKIP
    """
    metrics = optional_package("opentelemetry.metrics", "Offering metrics", "otel")
    meter = metrics.get_meter("penstock", meter_provider=meter_provider)
    latest = _Latest()
    want()
    for metric in METRICS:
        make = meter.create_observable_counter if metric.counter else meter.create_observable_gauge
        name = metric.name.replace("_step_", ".step.").replace("penstock_", "penstock.")
        make(name, callbacks=[_callback(metric, latest, metrics)], unit=metric.unit, description=metric.text)
    return meter


def _callback(metric: Metric, latest: _Latest, metrics: Any) -> Callable[[Any], list[Any]]:
    def observe(options: Any) -> list[Any]:
        return [metrics.Observation(value, labels) for labels, value in metric.of(latest.get())]

    return observe
