"""Take the screenshots of docs/see-it.md with a headless Chromium, and draw its figures.

    python tools/figures/screens.py         # in the environment of `make browser`

The screenshot of TensorBoard needs TensorBoard. Without it the old screenshot is not replaced.
"""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import make_it_fast as program
from filled import ROOT
from PIL import Image
from playwright.sync_api import sync_playwright
from timeline import titled

import penstock as ps
from penstock.catalog import builder
from penstock.profiler.views.picture import Picture

FIGURES = ROOT / "docs" / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 120  # seconds
COLOURS = 96  # colours in a screenshot

TRAINING = """
import sys
sys.path.insert(0, {examples!r})
import make_it_fast as program
import penstock as ps
ps.monitor()
files = ps.Dataset.list_files({files!r}, seed=0)
print("on", flush=True)
program.train(program.threads(files), 600)
"""


def small(png: bytes, path: Path) -> None:
    """Write a screenshot with few colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def show(data: Path) -> None:
    """Draw one image of the data set `shapes` and eleven random variants."""
    made = builder("shapes", data_dir=data, num_examples=8)
    made.download_and_prepare()
    first, _ = next(iter(made.as_dataset("train", as_supervised=True)))

    def vary(number: Any) -> Any:
        image = ps.image.random_flip_left_right(first)
        image = ps.image.random_crop(image, (300, 400, 3))
        image = ps.image.random_hue(image, 0.2)
        image = ps.image.random_brightness(image, 0.2)
        return image, number

    variants = ps.Dataset.range(8).map(vary)
    small(variants.show(8, columns=4, size=150).png, FIGURES / "see-show.png")


def plan(files: Any) -> None:
    """Draw the plan of the whole program with its measurements."""
    ds = program.fast(files)
    ds.plot(FIGURES / "see-plan.svg", analyze=True, seconds=2)
    document = (FIGURES / "see-plan.svg").read_text(encoding="utf-8")
    label = "The plan as written and as it runs, with the rate of each step"
    document = document.replace("<style>", f"<title>{label}</title>\n<style>", 1)
    (FIGURES / "see-plan.svg").write_text(document, encoding="utf-8")


def diagram() -> None:
    """Draw elements, Blocks, stages and the consumer."""
    picture = Picture(800, 250)
    picture.text(20, 24, "You see elements and batches. Inside, Blocks of elements move from stage to stage.", size=14)
    boxes = {
        20: ("Source", "TFRecord files"),
        330: ("Stage", "decode, flip, batch"),
        640: ("Consumer", "your training loop"),
    }
    for x, (title, text) in boxes.items():
        picture.rectangle(x, 44, 140, 56, "idle", outline="soft")
        picture.text(x + 70, 68, title, size=13, anchor="middle", bold=True)
        note(picture, x + 70, 88, text)
    for left, right, text in ((164, 326, "Blocks"), (474, 636, "batches")):
        picture.line([(left, 72), (right, 72)], "text", width=1.5)
        picture.line([(right - 6, 68), (right, 72), (right - 6, 76)], "text", width=1.5)
        picture.text((left + right) / 2, 62, text, size=12, anchor="middle")
    for row in range(2):  # Blocks of eight elements
        for column in range(8):
            picture.rectangle(182 + 16 * column, 112 + 20 * row, 13, 13, "h3")
    for row, hue in enumerate(("h0", "h1")):
        note(picture, 350, 123 + 20 * row, f"thread {row + 1}")
        for column in range(6):
            picture.rectangle(378 + 16 * column, 112 + 20 * row, 13, 13, hue)
    for column, hue in enumerate(("h0", "h0", "h1", "h1")):
        picture.rectangle(500 + 28 * column, 114, 25, 25, hue)
    for column in range(2):
        picture.rectangle(645 + 66 * column, 116, 62, 20, "step")
    for x, text in ((245, "in a buffer"), (400, "a Block in each thread"), (555, "in order"), (710, "training steps")):
        note(picture, x, 168, text)
    picture.line([(710, 184), (710, 200), (90, 200), (90, 184)], "soft", width=1.2)
    picture.line([(86, 190), (90, 184), (94, 190)], "soft", width=1.2)
    note(picture, 400, 220, "A full buffer makes the stage before it wait.")
    note(picture, 400, 238, "AUTOTUNE sets the number of threads and the size of the buffers.")
    label = "Diagram: Blocks of elements move from the source through a stage with two threads to the training loop"
    (FIGURES / "see-blocks.svg").write_text(titled(picture, label), encoding="utf-8")


def note(picture: Picture, x: float, y: float, text: str) -> None:
    picture.text(x, y, text, size=12, colour="soft", anchor="middle")


@contextmanager
def browser() -> Iterator[Any]:
    found = os.environ.get("PENSTOCK_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def report(chromium: Any, folder: Path) -> None:
    page = chromium.new_page(viewport={"width": 1040, "height": 900})
    page.set_default_timeout(PATIENCE * 1e3)
    page.goto((folder / "report.html").as_uri())
    small(page.screenshot(), FIGURES / "see-report.png")
    page.close()


def top(chromium: Any, images: str) -> None:
    """Show a running training in the web page of `penstock top`."""
    code = TRAINING.format(examples=str(ROOT / "examples"), files=images)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as training:
        command = [sys.executable, "-m", "penstock.cli", "top", str(training.pid), "--web"]
        training.stdout.readline()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as shown:
            try:
                page = chromium.new_page(viewport={"width": 1040, "height": 480})
                page.set_default_timeout(PATIENCE * 1e3)
                page.goto(shown.stdout.readline().strip())
                page.get_by_text("nput-bound").first.wait_for()
                for _ in range(6):  # wait until the figures of the first seconds are gone
                    before = page.inner_text("h2")
                    page.locator("h2").filter(has_not_text=before).wait_for()
                small(page.screenshot(), FIGURES / "see-top.png")
                page.close()
            finally:
                shown.kill()
                training.kill()


def tensorboard(chromium: Any, logs: Path) -> None:
    """Show the verdict of a recorded run in TensorBoard."""
    if importlib.util.find_spec("tensorboard") is None:
        print("see-tensorboard.png is not replaced: TensorBoard is not installed")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logs), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--load_fast=false"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + PATIENCE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert time.monotonic() < until, "TensorBoard does not answer"
                    time.sleep(0.2)
            page = chromium.new_page(viewport={"width": 1100, "height": 420})
            page.set_default_timeout(PATIENCE * 1e3)
            page.goto(f"http://127.0.0.1:{port}/#text")
            page.get_by_text("nput-bound").first.wait_for()
            small(page.screenshot(), FIGURES / "see-tensorboard.png")
            page.close()
        finally:
            server.kill()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        (folder / "images").mkdir()
        program.write_images(folder / "images")
        images = f"{folder}/images/*.tfrecord"
        files = ps.Dataset.list_files(images, seed=0)
        diagram()
        show(folder / "data")
        plan(files)
        with ps.profiler.Profiler(folder / "logs", run="first"):
            program.train(program.slow(files).with_options(program.AS_WRITTEN), 6)
        report(chromium, folder / "logs" / "first")
        tensorboard(chromium, folder / "logs")
        top(chromium, images)


if __name__ == "__main__":
    main()
