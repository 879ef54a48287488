"""What is looked at in a browser, looked at in one: reports, the live page, plans, TensorBoard. For `make browser`.

A headless Chromium opens each page, reads the verdict's words off it, and leaves a screenshot in PENSTOCK_SCREENSHOTS.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps

pytest.importorskip("playwright.sync_api", reason="make browser installs playwright")

PATIENCE = 60_000  # milliseconds that a page may take on a busy machine


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose scripts may not fail."""
    made = browser.new_page(viewport={"width": 1200, "height": 900})
    made.set_default_timeout(PATIENCE)
    failed: list[str] = []
    made.on("pageerror", lambda error: failed.append(str(error)))
    made.failed = failed
    yield made
    made.close()


def _waiting(milliseconds: float) -> Any:
    def wait(number: Any) -> Any:
        threading.Event().wait(milliseconds / 1e3)
        return number

    return wait


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that waits for a slow function."""
    ds = ps.Dataset.range(400).map(_waiting(2)).batch(8)
    with ps.profiler.Profiler(tmp_path_factory.mktemp("logs"), run="run") as profiler:
        for _ in ds:
            with ps.profiler.annotate("forward"):
                threading.Event().wait(0.002)
            ps.profiler.step()
    return profiler.folder


@pytest.fixture(scope="module")
def verdict(profiled: Path) -> dict[str, Any]:
    (found,) = json.loads((profiled / "summary.json").read_text())["pipelines"]
    assert found["verdict"]["input_bound"] == "yes"
    return found["verdict"]


def _fits(page: Any) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 480])
def test_a_report_says_the_verdict_and_needs_nothing_else(page, profiled, verdict, shots, scheme, width):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((profiled / "report.html").as_uri())
    said = page.inner_text(".verdict")
    for sentence in (*verdict["sentences"], *verdict["changes"]):
        assert sentence in said
    assert page.locator("svg[aria-label=timeline] rect").count() > 20
    assert "forward" in page.locator("svg[aria-label=timeline]").text_content()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 23, 42)"
    )
    assert _fits(page)
    assert len(asked) == 1
    assert page.failed == []
    page.screenshot(path=shots / f"report-{scheme}-{width}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("steps", [1, 60])
def test_a_report_of_few_and_of_many_steps(page, tmp_path, shots, scheme, steps):
    ds = ps.Dataset.range(300)
    for _ in range(steps - 1):
        ds = ds.map(lambda x: x + 1)
    with ps.profiler.Profiler(tmp_path) as profiler:
        for _ in ds:
            pass
    page.emulate_media(color_scheme=scheme)
    page.goto((profiler.folder / "report.html").as_uri())
    assert page.locator("table").first.locator("tr").count() == steps + 1
    assert _fits(page)
    page.screenshot(path=shots / f"report-{steps}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plan_is_drawn(page, tmp_path, shots, scheme):
    left = ps.Dataset.range(200).map(lambda x: x * 2).skip(0).shuffle(20).batch(4)
    ds = ps.Dataset.zip(left, ps.Dataset.range(50).interleave(lambda x: ps.Dataset.range(4).map(lambda y: y + 1)))
    ds.plot(tmp_path / "plan.svg", analyze=True, seconds=0.3)
    page.emulate_media(color_scheme=scheme)
    page.goto((tmp_path / "plan.svg").as_uri())
    said = page.locator("svg").text_content()
    for text in ("as written", "as it runs", "shuffle#1 (20)", "the loop that takes the elements", "drop_no_ops"):
        assert text in said
    page.screenshot(path=shots / f"plan-{scheme}.png")


LIVE = """
import threading
import penstock as ps
ps.monitor()
def wait(number):
    threading.Event().wait(0.002)
    return number
ds = ps.Dataset.range(10**9).map(wait)
for _ in range({steps}):
    ds = ds.map(lambda x: x + 1)
for number, _ in enumerate(ds.batch(4)):
    if not number:
        print("on", flush=True)
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("steps", [0, 60])
def test_the_live_page_goes_on(page, shots, scheme, steps):
    program = [sys.executable, "-c", LIVE.format(steps=steps)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as training:
        try:
            training.stdout.readline()
            command = [sys.executable, "-m", "penstock.cli", "top", str(training.pid), "--web"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
                try:
                    page.emulate_media(color_scheme=scheme)
                    page.goto(top.stdout.readline().strip())
                    page.get_by_text("nput-bound").first.wait_for()
                    before = page.inner_text("h2")
                    page.locator("h2").filter(has_not_text=before).wait_for()  # it is refreshed
                    assert page.locator("tr").count() >= steps + 4
                    assert _fits(page)
                    assert page.failed == []
                    page.screenshot(path=shots / f"top-{steps}-{scheme}.png")
                    training.kill()
                    page.locator("#gone").filter(has_text=str(training.pid)).wait_for()
                finally:
                    top.kill()
        finally:
            training.kill()


# -- TensorBoard


@pytest.fixture(scope="module")
def tensorboard(profiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that shows the profiled run."""
    pytest.importorskip("tensorboard", reason="make browser installs TensorBoard")
    logs = tmp_path_factory.mktemp("shown") / "logs"
    shutil.copytree(profiled.parent, logs)  # its plugin writes beside what it reads
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logs), "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [*command, "--port", str(port), "--load_fast=false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + PATIENCE / 1e3
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None, "TensorBoard has ended"
                assert time.monotonic() < until, "TensorBoard does not answer"
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def test_tensorboard_shows_the_verdict_as_text(page, tensorboard, verdict, shots):
    page.goto(f"{tensorboard}/#text")
    page.get_by_text(verdict["sentences"][0]).wait_for()
    page.screenshot(path=shots / "tensorboard-text.png")


def test_tensorboard_shows_scalars_of_each_stage(page, tensorboard, shots):
    page.goto(f"{tensorboard}/#timeseries")
    page.get_by_text("pipeline 1 map#1").first.wait_for()
    page.screenshot(path=shots / "tensorboard-scalars.png")


@pytest.mark.parametrize(
    ("tool", "text"),
    [("input_pipeline_analyzer", "input-bound"), ("trace_viewer@", "MainThread"), ("overview_page", "ms")],
)
def test_tensorboard_profiles(page, tensorboard, shots, tool, text):
    pytest.importorskip("xprof", reason="make browser installs xprof")
    host = socket.gethostname()
    address = f"{tensorboard}/data/plugin/profile/index.html?run=run&tag={tool.replace('@', '%40')}&host={host}"
    page.goto(address)
    until = time.monotonic() + PATIENCE / 1e3
    while not any(frame.get_by_text(text).count() for frame in page.frames):
        assert time.monotonic() < until, [frame.locator("body").inner_text()[:500] for frame in page.frames]
        page.wait_for_timeout(200)
    page.screenshot(path=shots / f"tensorboard-{tool.strip('@')}.png")


def test_what_the_profile_plugin_makes_of_a_run(profiled, tmp_path):
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data", reason="make browser installs xprof")
    shutil.copytree(profiled.parent / "plugins", tmp_path / "plugins")
    (path,) = (tmp_path / "plugins").rglob("*.xplane.pb")

    def asked(tool: str) -> Any:
        return json.loads(convert.xspace_to_tool_data([str(path)], tool, {"use_saved_result": False})[0])

    _, steps, stages, *_ = asked("input_pipeline_analyzer")
    assert "HIGHLY input-bound" in steps["p"]["input_conclusion"]
    assert len(steps["rows"]) == 48  # of 50: it leaves out the first and the last
    assert 14 < float(steps["p"]["infeed_time_ms_avg"]) < 200  # 8 calls of 2 ms, on a machine that may be busy
    names = {row["c"][0]["v"]: row["c"][-1]["v"] for row in stages["rows"]}
    assert names["range(0, 400, 1)"] == "Demanded file read"
    assert names["map(wait)"] == "Preprocessing"
    events = asked("trace_viewer@")["traceEvents"]
    assert sum(event.get("name") == "forward" for event in events) == 50
    assert {"memory of the process (bytes)", "pipeline 1: waiting for data (percent)"} <= {
        event["name"] for event in events if event["ph"] == "C"
    }
