"""Progress: bars on a terminal, lines in a log, and nothing where it is switched off."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import ClassVar

import pytest

from penstock.catalog import disable_progress_bar, enable_progress_bar, progress
from penstock.catalog.progress import Reporter
from penstock.profiler.live import progress as live
from penstock.viz.rows import table


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_log_gets_a_line_every_ten_seconds_and_no_control_characters():
    log, clock = io.StringIO(), Clock()
    with Reporter(stream=log, clock=clock).step("it: generating train", 100) as step:
        for _ in range(50):
            clock.now += 1
            step.advance()
    lines = log.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[0] == "it: generating train: 10 of 100 examples (10%), 1 examples/s, 0:01:30 left"
    assert all(character.isprintable() for line in lines for character in line)


def test_what_an_earlier_run_has_done_is_no_speed():
    log, clock = io.StringIO(), Clock()
    with Reporter(stream=log, clock=clock).step("it", 200) as step:
        step.take_up(100)
        clock.now = 10.0
        step.advance(20)
    assert log.getvalue() == "it: 120 of 200 examples (60%), 2 examples/s, 0:00:40 left\n"


def test_sizes_are_written_as_such():
    log, clock = io.StringIO(), Clock()
    with Reporter(stream=log, clock=clock).step("it: downloading", None, "bytes") as step:
        clock.now = 10.0
        step.advance(20_000_000)
        step.expect(50_000_000)
        clock.now = 20.0
        step.advance(5_000_000)
    assert log.getvalue().splitlines() == [
        "it: downloading: 20 MB, 2 MB/s",
        "it: downloading: 25 MB of 50 MB (50%), 1.25 MB/s, 0:00:20 left",
    ]


@pytest.mark.parametrize("how", ["function", "variable"])
def test_it_can_be_switched_off(monkeypatch, how):
    log, clock = io.StringIO(), Clock()
    if how == "function":
        disable_progress_bar()
    else:
        monkeypatch.setenv("PENSTOCK_PROGRESS", "0")
    try:
        progress = Reporter(stream=log, clock=clock)
        with progress.step("it", 10) as step:
            clock.now = 30.0
            step.advance()
        progress.say("done")
        progress.note("waiting")
    finally:
        enable_progress_bar()
    assert log.getvalue() == ""


IN_A_TERMINAL = """
from penstock.catalog.progress import Reporter
progress = Reporter()
assert progress.is_terminal
with progress.step("first", 10) as one, progress.step("second", 2000000, "bytes") as two:
    one.advance(5)
    two.advance(1000000)
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_a_terminal_gets_bars():
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    environment.pop("PENSTOCK_PROGRESS", None)
    with subprocess.Popen([sys.executable, "-c", IN_A_TERMINAL], stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other side has closed
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0
    os.close(ours)
    assert b"first" in shown
    assert b"5 of 10 examples (50%)" in shown
    assert b"1 MB of 2 MB (50%)" in shown


class _Kernel:
    """What there is of IPython in a notebook."""

    config: ClassVar[dict] = {"IPKernelApp": {}}

    @staticmethod
    def get_ipython():
        return _Kernel


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_has_bars_where_it_can_show_them(monkeypatch, widgets):
    monkeypatch.setitem(sys.modules, "IPython", _Kernel)
    monkeypatch.setattr(live, "has_widgets", lambda: widgets)
    assert Reporter().is_terminal is widgets


def test_what_a_bar_shows_last_is_how_the_step_ended(monkeypatch):
    seen = []

    class Bars:
        def start(self): ...

        def add_task(self, title, total, text):
            return 0

        def update(self, task, completed, total, text):
            self.last = text

        def refresh(self):
            seen.append(self.last)

        def stop(self):
            seen.append("stop")

    monkeypatch.setattr(progress, "rich_bars", Bars)
    clock = Clock()
    shown = Reporter(clock=clock)
    shown.is_shown = shown.is_terminal = True
    with shown.step("it", 3) as step:
        step.advance(3)
    clock.now = 5.0
    with shown.step("it", 50_000_000, "bytes") as step:
        step.take_up(20_000_000)
        clock.now = 7.0
        step.advance(20_000_000)
    assert seen == ["3 of 3 examples (100%)", "stop", "40 MB of 50 MB (80%), 10 MB/s", "stop"]


def test_a_table_in_a_notebook_is_shown_once(monkeypatch, capsys):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(table([{"name": b"Rex", "age": 7}])) == "name  age\nRex     7"
    assert capsys.readouterr().out == ""
