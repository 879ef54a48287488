"""kill -9 while entries are written: the next process gets the right elements without help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = int(os.environ.get("PENSTOCK_CRASHES", "15"))


@pytest.fixture(scope="module")
def child():
    program = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("crash_child.py"))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_after_a_kill_the_elements_are_right(seed, writers, child, tmp_path):
    child.stdin.write(f"{tmp_path} {seed} {writers}\n")
    child.stdin.flush()
    assert child.stdout.readline() == "right\n"
