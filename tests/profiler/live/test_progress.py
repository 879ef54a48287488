"""`ps.progress`: its counts, its output, and that it changes nothing."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.profiler.live import progress as module


class Clock:
    """Each reading of this clock is a moment later."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_elements_pass_and_waiting_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=Clock(1.0)))
    ds = ps.Dataset.range(10).batch(3)
    shown = ps.progress(ds, bar="off")
    assert [batch.tolist() for batch in shown] == [batch.tolist() for batch in ds]
    assert (shown.total, len(shown), shown.count) == (4, 4, 4)
    assert shown.waited == 5  # a clock reading before and after each of four elements and the end
    assert len(list(shown)) == 4  # iterates again from the start
    assert shown.count == 4


@pytest.mark.parametrize(
    ("data", "total"),
    [
        (ps.Dataset.range(3).repeat(), None),
        (ps.Dataset.range(3).filter(lambda x: x > 1), None),
        ([1, 2, 3], 3),
        (iter([1, 2]), 2),
        ((x for x in "ab"), None),
    ],
)
def test_the_length_is_that_of_the_data_where_it_is_known(data: object, total: int | None) -> None:
    shown = ps.progress(data, bar="off")  # type: ignore[arg-type]
    assert shown.total == total
    if total is None:
        with pytest.raises(InvalidTypeError, match="not known"):
            len(shown)
    assert ps.progress(data, total=7, bar="off").total == 7  # type: ignore[arg-type]


def test_lines_say_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=Clock(5.0)))
    list(ps.progress(range(4), desc="epoch 1", bar="lines"))
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("epoch 1: 1 of 4 (25 %), ")
    assert last.startswith("epoch 1: 4 of 4 (100 %), ")
    assert "waits " in last


@pytest.mark.parametrize("bar", ["rich", "tqdm"])
def test_a_bar_ends_where_the_pass_ended(bar: str, capsys: pytest.CaptureFixture[str]) -> None:
    if bar == "tqdm":
        pytest.importorskip("tqdm")
    list(ps.progress(ps.Dataset.range(5), desc="epoch 1", bar=bar))
    said = capsys.readouterr().err
    assert "epoch 1" in said
    assert "5/5" in said
    assert "waits" in said


def test_a_notebook_without_widgets_has_a_line_that_moves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module._Line, "every", 0.0)
    monkeypatch.setattr(module, "_chosen", lambda bar: "line")
    list(ps.progress(range(4), desc="epoch 1"))
    shown = capsys.readouterr().err
    assert shown.count("\r") == 5
    assert shown.endswith("\n")
    assert [part.split(",")[0] for part in shown.split("\r")[1:4]] == [
        f"epoch 1: {n} of 4 ({25 * n} %)" for n in (1, 2, 3)
    ]


def test_a_loop_that_is_left_closes_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(module._Shown, "close", lambda self, now: closed.append(self.of.count))
    for number in ps.progress(range(9), bar="off"):
        if number == 2:
            break
    assert closed == [3]


def test_auto_is_lines_in_a_log_and_the_program_s_own_tqdm_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._chosen("auto") == "lines"
    monkeypatch.setattr(module, "in_notebook", lambda: True)
    monkeypatch.setattr(module, "has_widgets", lambda: False)
    assert module._chosen("auto") == "line"
    monkeypatch.setattr(module, "bars_are_seen", lambda: True)
    monkeypatch.delitem(sys.modules, "tqdm", raising=False)
    assert module._chosen("auto") == "rich"
    monkeypatch.setitem(sys.modules, "tqdm", sys)
    assert module._chosen("auto") == "tqdm"
    monkeypatch.setenv("PENSTOCK_PROGRESS", "0")
    assert module._chosen("rich") == "off"


def test_an_iterator_keeps_its_place() -> None:
    ds = ps.Dataset.range(10)
    iterator = ds.iterator(epoch=0)
    for element in ps.progress(iterator, bar="off"):
        if element == 4:
            break
    again = ds.iterator(epoch=0)
    again.load_state_dict(iterator.state_dict())
    assert np.array_equal(list(again), [5, 6, 7, 8, 9])


def test_wrong_arguments_teach() -> None:
    with pytest.raises(InvalidTypeError, match="for batch in"):
        ps.progress(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="'auto', 'rich'"):
        ps.progress([1], bar="ascii")
    with pytest.raises(InvalidArgumentError, match="total"):
        ps.progress([1], total=-1)
