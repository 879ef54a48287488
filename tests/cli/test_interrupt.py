"""Ctrl-C in a real process: status 130, one line, no data that looks whole, no message from a dying interpreter."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# Says when the first picture is drawn, so that the signal comes in the middle of the work.
PREPARE = """
import os
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background has its children ignore it
from penstock.catalog.builders.shapes import builder
from penstock.cli import main

draw = builder.render

def telling(*arguments):
    os.write(1, b"drawing\\n")  # in one piece: several workers draw
    return draw(*arguments)

builder.render = telling
sys.exit(main(["prepare", "shapes", "--examples", "100000", "--data-dir", sys.argv[1]]))
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process alone")
def test_ctrl_c_while_preparing(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PREPARE, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "drawing\n"
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()  # without effect on a process that has ended, as it must have
    assert errors == "penstock: interrupted\n"
    assert process.returncode == 130
    left = [path.name for path in (tmp_path / "shapes" / "100000_examples").iterdir()]
    assert left == ["incomplete.1.0.0"]  # what the next call goes on with
