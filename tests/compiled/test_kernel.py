"""What a kernel is made of: a change in any file of it compiles it anew, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiled.kernel_files import digest, note_of, source_files

ENTRY = """
from penstock.compiled.kernel import kernel
from made.steps import (
    step,
)

@kernel
def twice(value):
    return step(step(value))
"""
STEPS = """
from numba import njit
from made import numbers

SIZE = numbers.SIZE

@njit
def step(value):
    return value + SIZE
"""
RUN = "from made.entry import twice; print(twice(1), sum(twice.stats.cache_hits.values()))"


@pytest.fixture
def made(tmp_path, monkeypatch):
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "entry.py").write_text(ENTRY)
    (folder / "steps.py").write_text(STEPS)
    (folder / "numbers.py").write_text("SIZE = 1\n")
    (folder / "other.py").write_text("from made.entry import twice\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def run(folder: Path) -> tuple[int, int]:
    """What the kernel gives in a process of its own, and how often it came from the disk."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder.parent), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result, hits = done.stdout.split()
    return int(result), int(hits)


def test_a_kernel_is_compiled_anew_when_a_file_that_it_imports_from_changes(made):
    assert run(made) == (3, 0)
    assert run(made) == (3, 1)
    (made / "numbers.py").write_text("SIZE = 10\n")  # two imports away
    assert run(made) == (21, 0)
    assert run(made) == (21, 1)


def test_a_kernel_stays_when_its_files_are_only_written_again_or_others_change(made):
    run(made)
    for file in made.glob("*.py"):
        os.utime(file, ns=(1, 1))
    (made / "other.py").write_text("")
    assert run(made) == (3, 1)


def test_the_files_of_a_module_are_those_it_imports_from(made):
    assert [file.name for file in source_files("made.entry")] == ["entry.py", "steps.py", "__init__.py", "numbers.py"]
    assert [file.name for file in source_files("made.other")][:2] == ["other.py", "entry.py"]
    assert "made.entry" not in sys.modules


@pytest.mark.parametrize("name", ["entry", "steps", "numbers"])
def test_both_the_digest_and_the_note_that_it_was_compiled_look_at_each_file(made, name):
    before = digest("made.entry"), note_of("made.entry")
    (made / f"{name}.py").write_text((made / f"{name}.py").read_text() + "# and more\n")
    after = digest("made.entry"), note_of("made.entry")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert after[1].parent == made.parent / "cache"
