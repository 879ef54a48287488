"""Export of metrics, and the table in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FailedPreconditionError, InvalidArgumentError, MissingDependencyError
from penstock.profiler.live import metrics
from penstock.profiler.live.snapshot import no_longer, observed, snapshot


@pytest.fixture
def _off_again() -> Iterator[None]:
    """An observer for a collector runs as long as the process. The tests end it."""
    yield
    no_longer()
    assert not observed()


def _run() -> None:
    for _ in range(2):
        assert len(list(ps.Dataset.range(20).map(lambda x: x).batch(5))) == 4


def test_counters_count_all_elements_of_all_passes() -> None:
    with ps.monitor():
        before: dict[Any, float] = {}
        for round_ in range(1, 3):
            _run()
            told = snapshot()
            now = {
                (metric.name, *labels.values()): value
                for metric in metrics.METRICS
                if metric.counter
                for labels, value in metric.of(told)
            }
            assert all(now[key] >= value for key, value in before.items())
            found = {(key[0], key[-1]): value for key, value in now.items()}
            assert found["penstock_step_elements", "map#1"] == 40 * round_
            assert found["penstock_step_elements", "batch#1"] == 8 * round_
            (elements,) = (value for key, value in now.items() if key[0] == "penstock_elements")
            assert elements == 8 * round_
            before = now


@pytest.mark.usefixtures("_off_again")
def test_prometheus_reads_it() -> None:
    client = pytest.importorskip("prometheus_client")
    registry = client.CollectorRegistry()
    registry.register(ps.profiler.prometheus_collector())
    _run()
    text = client.generate_latest(registry).decode()
    (line,) = (
        line for line in text.splitlines() if line.startswith("penstock_step_elements_total") and "map#1" in line
    )
    assert float(line.split()[-1]) == 40
    assert "penstock_running{" in text


@pytest.mark.usefixtures("_off_again")
def test_opentelemetry_reads_it() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    ps.profiler.opentelemetry_meters(sdk.MeterProvider([reader]))
    _run()
    (resource,) = reader.get_metrics_data().resource_metrics
    found = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    points = {point.attributes["step"]: point.value for point in found["penstock.step.elements"].data.data_points}
    assert points["map#1"] == 40


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [
        ("prometheus_client.core", "prometheus_collector", "prometheus"),
        ("opentelemetry.metrics", "opentelemetry_meters", "otel"),
    ],
)
def test_without_the_library_it_says_what_to_install(
    module: str, make: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=extra):
        getattr(ps.profiler, make)()
    assert not observed()


class _Handle:
    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, value: Any) -> None:
        self.shown.append(value._repr_html_())


def test_a_notebook_shows_this_data_set_only(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = _Handle()

    def display(value: Any, *, display_id: bool) -> _Handle:
        handle.update(value)
        return handle

    ipython, shown = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = object  # type: ignore[attr-defined]
    shown.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    ds = ps.Dataset.range(9).batch(3)
    with ds.monitor(seconds=3600), iter(ds) as elements, iter(ps.Dataset.range(5).repeat(2)) as others:
        next(elements), next(others)
    assert len(handle.shown) == 2
    assert "batch#1" not in handle.shown[0]
    with ds.monitor(seconds=3600) as table:
        with iter(ds) as elements, iter(ps.Dataset.range(5).repeat(2)) as others:
            next(elements), next(others)
            table._show()
        table.stop()
        table.stop()
    assert "batch#1" in handle.shown[3]
    assert "repeat#1" not in handle.shown[3]
    assert not observed()


def test_outside_of_a_notebook_it_says_what_to_do() -> None:
    with pytest.raises(FailedPreconditionError, match=r"ps\.monitor"):
        ps.Dataset.range(3).monitor()
    with pytest.raises(InvalidArgumentError, match="seconds"):
        ps.Dataset.range(3).monitor(seconds=0)
    assert not observed()
