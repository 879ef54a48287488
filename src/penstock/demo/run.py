"""The function `run_demo` prepares data, trains naively, trains with the pipeline, and compares."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import penstock as ps
from penstock import catalog
from penstock.demo import pipelines
from penstock.demo.loop import Learner, SimulatedAccelerator, TrainingRun, train
from penstock.demo.model import SmallNet
from penstock.demo.report import DemoReport
from penstock.demo.settings import Settings
from penstock.demo.timeline import draw_timeline

Pipeline = Callable[[Sequence[str], Settings], ps.Dataset]


def run_demo(settings: Settings, report: DemoReport | None = None) -> bool:
    """Run the demo and print the results. Return True if both loops got the same batches and results.

    The prepared data goes to a folder in `settings.data_dir`, and the timeline to `settings.out`.
    """
    report = report or DemoReport()
    start = time.perf_counter()
    files, held_out, classes = _prepared(settings, report)

    def trained(title: str, steps: str, pipeline: Pipeline, *, inline: bool) -> TrainingRun:
        learner = _learner(settings, classes)
        on_epoch = report.begin(title, steps)
        return train(title, pipeline(files, settings), learner, settings.epochs, held_out, on_epoch, inline=inline)

    naive = trained("naive", "read, decode, resize, train: one by one, in every epoch", pipelines.naive, inline=True)
    pipelined = trained(
        "pipelined", "interleave, map, cache, shuffle, batch, prefetch", pipelines.pipelined, inline=False
    )
    agree = report.compare(naive, pipelined)
    png, svg = draw_timeline(naive, pipelined).save(settings.out)
    report.say(f"Timeline: {png.absolute()} (and {svg.name})")
    report.say(f"[dim]The demo took {time.perf_counter() - start:.1f} s.[/dim]")
    return agree


def _learner(settings: Settings, classes: int) -> Learner:
    if settings.step_ms is not None:
        return SimulatedAccelerator(settings.step_ms)
    return SmallNet(classes, seed=settings.seed)


def _prepared(
    settings: Settings, report: DemoReport
) -> tuple[list[str], tuple[NDArray[np.float32], NDArray[np.int64]], int]:
    """Return the training files, the held-out images in memory, and the number of classes."""
    start = time.perf_counter()
    builder = catalog.builder("shapes", data_dir=settings.data_dir, num_examples=settings.examples)
    found = builder.is_prepared
    builder.download_and_prepare()
    info = builder.info
    train_split = info.splits["train"]
    done = "found" if found else "prepared"
    size = f"{train_split.num_examples} pictures, {train_split.num_bytes / 1e6:.0f} MB, {train_split.num_shards} shards"
    report.say(f"{done} [bold]{info.name}[/bold]: {size} ({time.perf_counter() - start:.1f} s)")
    report.say(f"[dim]{builder.data_path}[/dim]")
    files = {name: [str(path) for path in split.filepaths] for name, split in info.splits.items()}
    start = time.perf_counter()
    held_out = _in_memory(files["test"])
    report.say(f"held-out images decoded ({time.perf_counter() - start:.1f} s)")
    return files["train"], held_out, _num_classes(info)


def _in_memory(files: list[str]) -> tuple[Any, Any]:
    batches = list(ps.TFRecordDataset(files).map(pipelines.prepare, num_parallel_calls=ps.AUTOTUNE).batch(64))
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def _num_classes(info: catalog.DatasetInfo) -> int:
    label = info.features["label"]
    assert isinstance(label, catalog.features.ClassLabel)
    assert label.num_classes is not None
    return label.num_classes
