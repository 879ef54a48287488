"""The demo end to end: both loops get the same batches and results, and the picture is there."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from penstock.demo import Settings, run_demo
from penstock.demo.loop import Epoch, TrainingRun
from penstock.demo.report import DemoReport
from penstock.errors import InvalidArgumentError


def told(settings):
    text = io.StringIO()
    return run_demo(settings, DemoReport(Console(file=text, width=100))), text.getvalue()


def test_both_loops_agree(tmp_path):
    settings = Settings(str(tmp_path), examples=48, epochs=2, batch_size=16, out=tmp_path / "timeline.png")
    agree, text = told(settings)
    assert agree, text
    assert "the same batches in the same order, so loss and accuracy are the same to the last digit" in " ".join(
        text.split()
    )
    assert (tmp_path / "timeline.png").stat().st_size > 5000
    assert (tmp_path / "timeline.svg").exists()
    # Each epoch's loss and accuracy stand in the text twice: once for each loop.
    rows = [line.split() for line in text.splitlines() if line.strip()[:2] in ("1 ", "2 ")]
    assert len(rows) == 4
    assert [row[-2:] for row in rows[:2]] == [row[-2:] for row in rows[2:]]


def test_a_simulated_step_has_no_accuracy(tmp_path):
    settings = Settings(str(tmp_path), examples=32, epochs=2, step_ms=1.0, out=tmp_path / "timeline.svg")
    agree, text = told(settings)
    assert agree, text
    assert "loss and accuracy are the same" not in text


def run(**changes):
    made = TrainingRun("naive", (Epoch(2.0, 0.1, 1.0, 10, 0.5, 0.9),), (), "same")
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (run(digest="other"), "The batches differ between the two runs"),
        (run(epochs=(Epoch(2.0, 0.1, 1.0, 10, 0.5000001, 0.9),)), "the results differ"),
    ],
)
def test_a_disagreement_is_told(other, text):
    printed = io.StringIO()
    assert not DemoReport(Console(file=printed, width=200)).compare(run(), other)
    assert text in printed.getvalue()


@pytest.mark.parametrize("setting", [{"epochs": 0}, {"examples": -1}, {"batch_size": 0}, {"step_ms": -1.0}])
def test_settings_are_checked(setting):
    with pytest.raises(InvalidArgumentError, match=next(iter(setting))):
        Settings(**setting)
