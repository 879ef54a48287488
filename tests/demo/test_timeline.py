"""Timeline and picture: spans land where they belong, and both files can be read."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from penstock.demo.loop import TRAIN, WAIT, Epoch, Span, TrainingRun, since
from penstock.demo.timeline import KINDS, _number_of, draw_timeline
from penstock.profiler.views.picture import Picture, rgb

TRAINING, WAITING, DECODING = (rgb(kind.colour) for kind in KINDS[:3])


@pytest.fixture
def runs():
    """A naive run of two seconds, half of it decoding, and a pipelined one of one second beside a worker."""
    slow = [Span("Main", WAIT, 0, 1), Span("Main", "map(prepare)", 0, 1), Span("Main", TRAIN, 1, 2)]
    fast = [
        Span("Main", TRAIN, 0, 1),
        Span("pool-0", "map(prepare) · batch(32)", 0, 0.5),
        Span("pool-1", "shuffle(512)", 0.6, 1),  # begins when the other has ended: the same lane
    ]
    return (
        TrainingRun("naive", (Epoch(2.0, 0.1, 1.0, 1, 0.5, 0.9),), tuple(slow), ""),
        TrainingRun("pipelined", (Epoch(1.0, 0.0, 0.0, 1, 0.5, 0.9),), tuple(fast), ""),
    )


def colours(picture, row):
    return {tuple(pixel) for pixel in picture.pixels()[row].tolist()}


def lanes(picture):
    """Rows of the picture in the middle of each lane, of the first panel."""
    pixels = picture.pixels()
    near = (np.abs(pixels.astype(int) - TRAINING).sum(2) < 24).sum(1)
    return [row for row in range(90, len(near)) if near[row] > 200]


def test_the_naive_loop_decodes_first_and_trains_then(runs):
    picture = draw_timeline(*runs)
    row = lanes(picture)[5]
    pixels = picture.pixels()[row]
    left, right = pixels[150 + 330], pixels[150 + 990]
    assert np.abs(left.astype(int) - DECODING).max() <= 8
    assert np.abs(right.astype(int) - TRAINING).max() <= 8


def test_the_picture_says_how_much_faster(runs):
    texts = [shape.text for shape in draw_timeline(*runs).shapes if hasattr(shape, "text")]
    assert "penstock demo: 2.0 times as fast, the same batches" in texts
    assert texts.count("training loop") == 4
    assert texts.count("worker 1") == 2


def test_both_files_are_written_and_can_be_read(runs, tmp_path):
    import cv2

    png, svg = draw_timeline(*runs).save(tmp_path / "new" / "timeline.png")
    picture = cv2.imread(str(png))
    root = ET.parse(svg).getroot()
    assert picture.shape[:2] == (int(root.get("height")), int(root.get("width")))
    assert root.tag.endswith("svg")


def test_rectangles_are_where_they_were_put():
    picture = Picture(20, 10)
    picture.rectangle(5, 2, 10, 4, (0, 0, 255))
    blue = (picture.pixels() == (0, 0, 255)).all(axis=2)
    assert blue.sum() == 40
    assert blue[2:6, 5:15].all()


def test_svg_keeps_its_texts_harmless():
    picture = Picture(20, 10)
    picture.text(0, 5, "a < b & c")
    assert "a &lt; b &amp; c" in picture.svg()


@pytest.mark.parametrize(
    ("label", "title"),
    [
        (TRAIN, "training step"),
        (WAIT, "waiting for data"),
        ("interleave(TFRecordDataset, cycle_length=4)", "read records"),
        ("map(prepare) · batch(32)", "parse, decode, resize"),
        ("shuffle(1024)", "cache, shuffle, batch"),
    ],
)
def test_stages_belong_to_kinds(label, title):
    assert KINDS[_number_of(label)].title == title


def test_pauses_are_left_out():
    pauses = [(2.0, 5.0), (8.0, 9.0)]
    assert [since(moment, 1.0, pauses) for moment in (1.0, 2.0, 3.0, 5.0, 6.0, 10.0)] == [0, 1, 1, 1, 2, 5]
