"""The documentation site in a browser: pages at two widths, dark and light, and the search. For `make browser`."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="make browser installs playwright")

SITE = Path(__file__).parents[2] / "build" / "site" / "html"
PAGES = ["index", "tutorial/first-pipeline", "reference/api/penstock.Dataset", "reference/api/penstock.io"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not SITE.exists():
        pytest.skip("make docs builds the site")
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=os.fspath(SITE))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(params=["light", "dark"])
def scheme(request: Any) -> str:
    return request.param


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_their_width_and_ask_no_other_host(browser, shots, address, scheme, width, name):
    asked = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{name}.html", wait_until="networkidle")
    page.screenshot(path=shots / f"site-{name.replace('/', '-')}-{width}-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    page.close()


@pytest.mark.parametrize("query", ["ImageFolder", "DDP", "resume", "bottleneck"])
def test_the_search_finds(browser, shots, address, query):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/index.html", wait_until="networkidle")
    page.wait_for_function("document.documentElement.classList.contains('js')")
    typed = page.locator("dialog input[type=text]")
    for _ in range(60):  # the script that listens to the keys may not run yet
        page.keyboard.press("Control+k")
        with contextlib.suppress(sync_api.TimeoutError):
            typed.wait_for(timeout=2000)
            break
    typed.fill(query)
    found = page.locator("dialog a", has_text=query).first
    found.wait_for()
    page.screenshot(path=shots / f"site-search-{query}.png")
    assert found.get_attribute("href")
    page.close()
