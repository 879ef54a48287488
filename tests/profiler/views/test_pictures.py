"""Plans and timelines as figures: their shapes, positions and colours."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from tests.profiler import figures

import penstock as ps
from penstock.errors import InvalidArgumentError
from penstock.profiler.views.chart import (
    SpanKind,
    TimelineRow,
    bar_chart,
    line_chart,
    painted,
    panel,
    side_by_side,
    time_axis,
)
from penstock.profiler.views.picture import PALETTE, LineShape, Picture, Rectangle, TextShape, style
from penstock.profiler.views.plan import plan_picture, plot


def _texts(picture: Picture) -> list[str]:
    return [shape.text for shape in picture.shapes if isinstance(shape, TextShape)]


def _at(picture: Picture, text: str) -> tuple[float, float]:
    return next((shape.x, shape.y) for shape in picture.shapes if isinstance(shape, TextShape) and shape.text == text)


def test_a_plan_is_drawn_as_written_and_as_it_runs() -> None:
    ds = ps.Dataset.range(40).map(lambda x: x + 1).skip(0).shuffle(10).batch(4)
    picture = ds.plot().picture
    texts = _texts(picture)
    assert texts[0] == "plan: 10 elements"
    assert texts.count("shuffle(10)") == 2
    assert any("removed, or merged" in text for text in texts)  # skip(0)
    assert any(text.startswith("• drop_no_ops: skip(0)") for text in texts)
    written, runs = (x for x in (16 + 16, 16 + 420 + 16))
    order = {at: [] for at in (written, runs)}
    for shape in picture.shapes:
        if isinstance(shape, TextShape) and shape.bold and shape.x in order:
            order[shape.x].append(shape.text.partition("(")[0])
    assert order[written][:5] == ["range", "map", "skip", "shuffle", "batch"]
    assert order[runs][:4] == ["range", "shuffle", "map", "batch"]  # the shuffle moves before the map


def test_without_rewrites_there_is_one_column() -> None:
    picture = ps.Dataset.range(4).plot().picture
    assert "as written" not in _texts(picture)
    assert picture.width < 600


def test_what_was_measured_is_drawn_and_the_bottleneck_marked() -> None:
    picture = plan_picture(figures.serial(), "map#1", None)
    texts = _texts(picture)
    assert "64 % of the work" in texts or "66 % of the work" in texts
    (marked,) = [shape for shape in picture.shapes if isinstance(shape, Rectangle) and shape.outline == "bad"]
    assert marked.y < _at(picture, "map#1 (decode)")[1] < marked.y + marked.height


def test_the_latest_figures_of_a_data_set_are_drawn() -> None:
    ds = ps.Dataset.range(100).map(lambda x: x + 1).batch(10)
    assert not any("a second" in text for text in _texts(ds.plot().picture))
    ds.plot(analyze=True, seconds=0.05)
    assert any("elements a second" in text for text in _texts(ds.plot().picture))


def test_inputs_of_a_join_stand_apart_and_all_lead_to_it() -> None:
    ds = ps.Dataset.zip(*(ps.Dataset.range(10 + n) for n in range(3)))
    picture = ds.plot().picture
    left = [_at(picture, f"range(0, {10 + n}, 1)")[0] for n in range(3)]
    assert left == [left[0], left[0] + 22, left[0] + 44]
    ends = [shape.points[-1][1] for shape in picture.shapes if isinstance(shape, LineShape) and len(shape.points) == 2]
    assert [ends.count(end) for end in sorted(set(ends))] == [3, 1]  # three into the zip, one into the consumer


def test_a_plan_of_hundreds_of_steps_is_drawn() -> None:
    ds = ps.Dataset.range(4)
    for _ in range(300):
        ds = ds.map(lambda x: x + 1)
    assert ds.plot().picture.height > 300 * 40


def test_a_plot_is_written_by_the_ending_of_its_name(tmp_path: Path) -> None:
    ds = ps.Dataset.range(4).batch(2)
    made = ds.plot(tmp_path / "new" / "plan.svg")
    root = ET.parse(tmp_path / "new" / "plan.svg").getroot()
    assert int(root.get("height", "0")) == made.picture.height
    assert made.save(tmp_path / "plan.png").read_bytes()[1:4] == b"PNG"
    assert made._repr_svg_().startswith("<svg")
    with pytest.raises(InvalidArgumentError, match=r"must end in \.svg or \.png"):
        made.save(tmp_path / "plan.jpg")
    with pytest.raises(InvalidArgumentError, match="path"):
        ds.plot("s3://bucket/plan.svg")
    with pytest.raises(InvalidArgumentError, match=r"plot\(analyze=True, seconds=3\)"):
        ds.plot(seconds=3)


def test_labels_from_elsewhere_are_text() -> None:
    options = ps.Options()
    options.dataset_name = "<script>"
    found = plot(ps.Dataset.range(3)._plan, options, None)
    assert "&lt;script&gt;" in found.svg
    assert "<script" not in found.svg


def test_named_colours_differ_on_a_dark_page() -> None:
    sheet = style()
    for name, (light, dark) in PALETTE.items():
        assert f".f-{name}{{fill:{light}}}" in sheet.partition("@media")[0]
        assert f".f-{name}{{fill:{dark}}}" in sheet.partition("@media")[2]


def test_spans_share_a_pixel_by_the_time_they_take() -> None:
    half = np.array([[0, 0, 4]])
    assert painted(half, 0, 8, 1) == [(0, 1, 0, 0.5)]
    assert painted(np.array([[0, 20, 5]]), 0, 8, 1) == []  # outside
    assert painted(np.empty((0, 3), np.int64), 0, 8, 4) == []


def test_rows_that_do_not_overlap_are_one() -> None:
    spans = [np.array([[0, start, 5]]) for start in (0, 3, 6)]
    rows = side_by_side([TimelineRow(f"t{n}", each) for n, each in enumerate(spans)])
    assert [(row.title, len(row.spans)) for row in rows] == [("worker 1", 2), ("worker 2", 1)]


def test_charts_of_nothing_and_of_one_value_are_drawn() -> None:
    for picture in (
        line_chart("none", [], [], ("1", 1.0), "h0"),
        line_chart("one", [0.5], [1.0], ("1", 1.0), "h0"),
        bar_chart("none", [], []),
        bar_chart("many", [1] * 30, [2.0**n / 1e6 for n in range(30)]),
    ):
        ET.fromstring(picture.svg())
    picture = Picture(400, 200)
    end = panel(picture, (100, 0, 300), [TimelineRow("a", np.array([[0, 0, 10]]))], [SpanKind("work", "h1")], (0, 10))
    assert time_axis(picture, 100, end, 300, 1e-8) > end
    work = next(shape for shape in picture.shapes if isinstance(shape, Rectangle) and shape.colour == "h1")
    assert (work.x, work.width, work.title) == (100, 300, "work")


def test_a_rectangle_may_let_the_ground_through() -> None:
    picture = Picture(10, 10)
    picture.rectangle(0, 0, 10, 10, (0, 0, 0), opacity=0.5)
    assert abs(int(picture.pixels()[5, 5, 0]) - 128) <= 1
    assert 'fill-opacity="0.5"' in picture.svg()
