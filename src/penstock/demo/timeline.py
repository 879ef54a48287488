"""The timeline: where training steps and pipeline stages ran, the naive loop above the pipelined, on one time scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from penstock.demo.loop import TRAIN, WAIT, Run, Span
from penstock.viz.picture import Colour, Picture


class Kind(NamedTuple):
    """A group of spans that share a colour."""

    title: str
    colour: Colour
    words: tuple[str, ...]


KINDS = (
    Kind("training step", (37, 99, 235), (TRAIN,)),
    Kind("waiting for data", (252, 205, 205), (WAIT,)),
    Kind("parse, decode, resize", (245, 158, 11), ("map",)),
    Kind("read records", (16, 185, 129), ("interleave", "TFRecord", "list_files")),
    Kind("cache, shuffle, batch", (139, 92, 246), ("",)),
)
_IDLE: Colour = (241, 245, 249)
_GREY: Colour = (100, 116, 139)
_WIDTH, _LEFT, _RIGHT, _LANE, _GAP = 1500, 150, 30, 22, 5
# Spans are laid out on this many cells per pixel, then averaged: short ones show as a share of colour.
_CELLS = 16
_MOST_LANES = 8


def draw_timeline(naive: Run, pipelined: Run, zoom: float = 0.6) -> Picture:
    """Two panels: both runs whole, and `zoom` seconds out of the first epoch of each."""
    runs = (naive, pipelined)
    lanes = [_lanes(run) for run in runs]
    rows = sum(map(len, lanes))
    height = 140 + 2 * (rows * (_LANE + _GAP) + 2 * 32 + 50)
    picture = Picture(_WIDTH, height)
    ratio = naive.seconds / pipelined.seconds
    picture.text(24, 38, f"penstock demo: {ratio:.1f} times as fast, the same batches", size=22)
    _legend(picture, 66)
    longest = max(run.seconds for run in runs)
    y = _panel(picture, 104, f"all epochs ({longest:.1f} s)", runs, lanes, [0.0, 0.0], longest)
    starts = [max(run.epochs[0].seconds / 2 - zoom / 2, 0.0) for run in runs]
    title = f"{zoom:g} s from the middle of the first epoch"
    _panel(picture, y + 36, title, runs, lanes, starts, zoom)
    return picture


def kind_of(label: str) -> Kind:
    """The kind that a span's label belongs to: the first one of whose words it holds.

    >>> kind_of("map(prepare) · batch(32)").title
    'parse, decode, resize'
    """
    return next(kind for kind in KINDS if any(word in label for word in kind.words))


def _legend(picture: Picture, y: float) -> None:
    x = 24.0
    for kind in KINDS:
        picture.rectangle(x, y - 11, 14, 14, kind.colour)
        picture.text(x + 20, y, kind.title, size=13)
        x += 44 + 8.2 * len(kind.title)


def _lanes(run: Run) -> list[tuple[str, list[Span]]]:
    """Spans of the training loop, then of workers; threads that ended before another began share its lane."""
    loop = next(span.thread for span in run.spans if span.label == TRAIN)
    threads: dict[str, list[Span]] = {loop: []}
    for span in run.spans:
        threads.setdefault(span.thread, []).append(span)
    workers: list[list[Span]] = []
    for spans in sorted((threads[name] for name in threads if name != loop), key=_began):
        free = next((lane for lane in workers if max(span.stop for span in lane) <= _began(spans)), None)
        if free is None:
            workers.append(list(spans))
        else:
            free.extend(spans)
    shown = enumerate(workers[: _MOST_LANES - 1], start=1)
    return [("training loop", threads[loop]), *((f"worker {number}", spans) for number, spans in shown)]


def _began(spans: Sequence[Span]) -> float:
    return min(span.start for span in spans)


def _panel(
    picture: Picture,
    y: float,
    title: str,
    runs: Sequence[Run],
    lanes: Sequence[list[tuple[str, list[Span]]]],
    starts: Sequence[float],
    length: float,
) -> float:
    """Draw one panel with its top at `y`; returns where it ends."""
    picture.text(24, y + 4, title, size=15)
    y += 14
    for run, threads, start in zip(runs, lanes, starts, strict=True):
        y += 24
        picture.text(24, y, f"{run.title}: {run.waiting / run.seconds:.0%} of the time waiting for data", size=13)
        y += 8
        for name, spans in threads:
            picture.text(_LEFT - 10, y + _LANE - 7, name, size=12, colour=_GREY, anchor="end")
            _lane(picture, y, spans, start, length)
            y += _LANE + _GAP
    return _axis(picture, y, length)


def _lane(picture: Picture, y: float, spans: Sequence[Span], start: float, length: float) -> None:
    width = _WIDTH - _LEFT - _RIGHT
    palette = np.array([kind.colour for kind in KINDS] + [_IDLE], np.float64)
    cells = np.full(width * _CELLS, len(KINDS))
    per_second = width * _CELLS / length
    # A stage contains the stages it pulls from: the shorter ones are laid over the longer.
    for span in sorted(spans, key=lambda span: span.start - span.stop):
        first, last = round((span.start - start) * per_second), round((span.stop - start) * per_second)
        cells[max(first, 0) : max(last, 0)] = KINDS.index(kind_of(span.label))
    mixed = palette[cells].reshape(width, _CELLS, 3).mean(axis=1)
    # Steps of 8 in each channel: neighbours that look the same become one rectangle.
    rounded = np.minimum(np.rint(mixed / 8) * 8, 255).astype(int).tolist()
    x = _LEFT
    for colour, pixels in groupby(rounded):
        count = len(list(pixels))
        picture.rectangle(x, y, count, _LANE, (colour[0], colour[1], colour[2]))
        x += count


def _axis(picture: Picture, y: float, length: float) -> float:
    """Draw the time scale; returns where it ends."""
    width = _WIDTH - _LEFT - _RIGHT
    step = next(
        size
        for power in range(-3, 6)
        for size in (10.0**power, 2 * 10.0**power, 5 * 10.0**power)
        if length / size <= 12
    )
    picture.rectangle(_LEFT, y + 4, width, 1, _GREY)
    for number in range(int(length / step) + 1):
        x = _LEFT + width * number * step / length
        picture.rectangle(x, y + 4, 1, 6, _GREY)
        moment = number * step
        label = f"{moment * 1e3:.0f} ms" if length < 1.5 else f"{moment:g} s"
        picture.text(x, y + 24, label, size=11, colour=_GREY, anchor="middle")
    return y + 36
