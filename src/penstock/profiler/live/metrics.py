"""Metrics of running iterations, for Prometheus and for OpenTelemetry. Both export the same metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from penstock.errors import optional_package
from penstock.profiler.live.snapshot import snapshot, want

_FRESH = 0.5  # seconds for which a snapshot is reused: a scrape reads all metrics at once
_OF_STEPS = "penstock_step_"


class Metric(NamedTuple):
    """A metric: the value `key` of each pipeline, or of each step.

    `counter` is True if it only grows while its plan is observed; otherwise it is a gauge.
    """

    name: str
    text: str
    unit: str
    counter: bool
    key: str

    @property
    def labels(self) -> list[str]:
        """Names of the labels."""
        return ["pipeline", "defined_at", *(["step"] if self.name.startswith(_OF_STEPS) else [])]

    def of(self, told: dict[str, Any]) -> Iterator[tuple[dict[str, str], float]]:
        """Yield labels and values of a snapshot."""
        for each in told["pipelines"]:
            labels = {"pipeline": each["name"], "defined_at": each["defined_at"]}
            if self.name.startswith(_OF_STEPS):
                for row in each["rows"]:
                    if row[self.key] is not None:
                        yield labels | {"step": row["name"]}, float(row[self.key])
            else:
                yield labels, float(each[self.key])


METRICS = (
    Metric("penstock_elements", "Elements (batches) that the loop received.", "", True, "elements"),
    Metric("penstock_waited_seconds", "Time that the loop waited for data.", "s", True, "waited"),
    Metric("penstock_waited_share", "Share of the last seconds that the loop waited.", "1", False, "waited_share"),
    Metric("penstock_passes", "Iterations started.", "", True, "passes"),
    Metric("penstock_running", "1 while an iteration runs.", "", False, "running"),
    Metric("penstock_step_elements", "Elements that a step yielded.", "", True, "elements"),
    Metric("penstock_step_failures", "Elements of a step that failed.", "", True, "failed"),
    Metric("penstock_step_cpu_seconds", "CPU time of a step.", "s", True, "cpu_seconds"),
    Metric("penstock_step_held_bytes", "Bytes in a step's buffers.", "By", False, "held"),
    Metric("penstock_step_room_bytes", "Bytes that a step may compute ahead.", "By", False, "room"),
    Metric("penstock_step_bottleneck", "1 for the bottleneck step.", "", False, "bottleneck"),
)


class _Latest:
    """A cached snapshot."""

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
    """The collector object that a registry calls."""

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
                family.add_metric([labels[name] for name in metric.labels], value)
            yield family

    def _family(self, metric: Metric) -> Any:
        kind = self._core.CounterMetricFamily if metric.counter else self._core.GaugeMetricFamily
        return kind(metric.name, metric.text, labels=metric.labels)


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
