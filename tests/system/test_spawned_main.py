"""Functions and classes of the main script reach worker processes from a process started by multiprocessing's spawn."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.system

SCRIPT = """
import multiprocessing, pickle
from dataclasses import dataclass
import numpy as np
import penstock as ps

@dataclass
class Pair:
    a: int
    b: int

FACTOR = 7

def seven(x):
    return Pair(x * FACTOR, -x)

def rank():
    made = ps.Dataset.range(4).map(seven)
    for way in ("process", "inline"):
        assert [(one.a, one.b) for one in made.iterator(executor=way)] == [(7 * x, -x) for x in range(4)]
    assert all(isinstance(one, Pair) for one in made.iterator(executor="process"))
    assert [one.a for one in pickle.loads(pickle.dumps(made))] == [0, 7, 14, 21]

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=rank)
    child.start()
    child.join()
    raise SystemExit(child.exitcode)
"""


def test_the_main_script_reaches_workers_of_a_spawned_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
