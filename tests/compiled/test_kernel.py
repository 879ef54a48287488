"""What a kernel is made of: a change in any file of it compiles it anew, and nothing else does."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core.runtime import _nrt_python, rtsys

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


PARTS = """
import numpy as np
from penstock.compiled.kernel import helper, inlined, kernel, maker, specialised

@inlined
def add(values, i, n):
    values[i] += n

@helper
def add_to_all(values, n):
    for i in range(values.size):
        add(values, i, n)

@specialised
def times(n, factor):
    return n * factor

@maker
def counted(size):
    made = np.zeros(size, np.int64), np.ones((2, size))
    return made

@kernel
def total(size):
    ints, floats = counted(size)
    add_to_all(ints, 1)
    add_to_all(floats[0], 2)
    add_to_all(floats[1], 3)
    found = 0.0
    for i, n in enumerate(ints):
        found += times(n, 2) + times(n, 3) + floats[0, i] + floats[1, i]
    return found

@helper
def view(values):
    return values[1:]

@kernel
def returns_a_view(size):
    return view(np.zeros(size)).size

@helper
def asks_a_maker(size):
    return counted(size)[0].size

@kernel
def nobody_counts(size):
    return asks_a_maker(size)

@helper
def makes(size):
    return np.zeros(size).size

@kernel
def is_no_maker(size):
    return makes(size)
"""
TOTAL = 10 * (2 + 3 + 3 + 4)


def parts(folder):
    (folder / "parts.py").write_text(PARTS)
    for name in ("made.parts", "made"):
        sys.modules.pop(name, None)
    return importlib.import_module("made.parts")


def test_a_part_is_compiled_once_for_all_values_or_for_each_constant(made):
    module = parts(made)
    assert module.total(10) == TOTAL
    assert len(module.add_to_all.signatures) == 2  # of ints and of floats
    assert len(module.times.signatures) == 2


def test_references_to_arrays_are_counted_where_there_are_any(made):
    module = parts(made)
    rtsys.initialize(numba.core.registry.cpu_target.target_context)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    assert module.total(10) == TOTAL
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


@pytest.mark.parametrize("name", ["returns_a_view", "nobody_counts", "is_no_maker"])
def test_an_array_that_nobody_would_count_is_an_error_when_it_is_compiled(made, name):
    with pytest.raises((TypeError, numba.TypingError), match=r"use maker|NRT required|Only accept returning"):
        getattr(parts(made), name)(10)


LEAN = """
import re, sys
from numba.core.codegen import CPUCodeLibrary
from penstock.compiled import lean

add, written = CPUCodeLibrary.add_ir_module, {}

def add_and_note(self, module):
    if self.name in ("add", "add_to_all", "times", "counted", "total"):
        text = re.sub(r"(numba\\.dynamic\\.globals\\.)[0-9a-f]+", r"\\1", str(module))
        text = re.sub(r"(pickle[a-z]+\\.)\\d+", r"\\1", text)
        text = re.sub(r"(?<=inttoptr \\(i64 )\\d+|B\\d+v\\d+|0x[0-9a-f]+|^; ModuleID.*|\\d+(?= x i8\\])", "", text)
        written.setdefault(self.name, []).append(re.sub(r"_ZN\\w+", "", text))
    return add(self, module)

CPUCodeLibrary.add_ir_module = add_and_note

def all_written():
    written.clear()
    sys.modules.pop("made.parts", None)
    from made.parts import total
    total._cache = type(total)(lambda: 0)._cache  # keeps nothing
    print(total(10))
    return {name: list(texts) for name, texts in written.items()}

first = all_written()
otherwise = lean.short_writing, lean.short_arrays, lean.parts_once, lean.short_calls
lean.short_writing = lean.short_arrays = lean.parts_once = lean.short_calls = lambda: None
lean.make_lean()
second = all_written()
assert first.keys() == second.keys() and len(first) == 5
assert first == second
plain = lean.without_scipy, lean.remembered_calls, lean.remembered_sizes, lean.quick_flags
for change in (*plain, lean.refreshed_once, lean.no_events):
    change()  # each fits this numba
lean.short_analyses()
for change in otherwise:
    change()
all_written()
"""


def test_a_process_that_only_compiles_writes_for_llvm_what_numba_would(made):
    (made / "parts.py").write_text(PARTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(made.parent), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", LEAN], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(float(TOTAL))] * 3


ITEMS = """
import numpy as np
from penstock.compiled.kernel import helper, kernel, maker  # numpy's own has others

@helper
def items(line, square, cube, flags, at, by):
    found = line[at] + line[-1] * line[np.uint8(2)] + square[at, -2] * square[at - 1][by] + cube[1, at, 0]
    line[-2] = found
    square[by, at] = flags[-1] + found
    cube[at - 1][by][0] = line[3]
    flags[at] = found > 3
    flags[-2] = not flags[0]
    part = cube[0]
    part[2, -1] = part[0, 0] + line.size + square.size + cube.size + flags.size + part.size + part[1].size
    return found

@helper
def each_of(pair, step):
    (first, (second, third)), sum_ = pair, 0.0
    for i in range(0, first.size, step):
        sum_ += first[i] * (i + 1)
    return sum_ + second[1, 0] + third

@helper
def counted(first, last, step):
    forwards, backwards, by_three, seen = 0, 0, 0, 0
    for i in range(first, last):
        forwards = forwards * 3 + i
        for k in range(i):
            if k == 4:
                break
            seen += k
    for i in range(last, first, -2):
        backwards = backwards * 3 + i
    for i in range(first, last, 3):
        by_three = by_three * 5 + i
    for i in range(first, last, step):
        seen = seen * 7 + i
    for k in range(np.uint64(3), np.uint64(max(last, 0))):
        seen += np.int64(k)
    return forwards, backwards, by_three, seen

@helper
def last_of(size):
    n = -1
    for n in range(size):
        pass
    return n

@maker
def sums(lines):
    made = np.zeros(lines.shape[0])
    for i in range(lines.shape[0]):
        line = lines[i]
        for value in line:
            made[i] += value
    return made

@kernel
def all_of(line, square, cube, flags, strided, columns, at, by):
    found = items(line, square, cube, flags, at, by)
    found += items(strided, columns, cube, flags, at, by)
    found += each_of((line, (square, 2.5)), 1) + each_of((strided, (columns, 1)), 2)
    return found, sums(square), sums(columns)[-1], sums(cube[1])

@kernel
def ranges(first, last, step):
    return counted(first, last, step), last_of(first), last_of(last)
"""
SHORT = """
import numpy as np
from numba.core.runtime import _nrt_python, rtsys
from penstock.compiled import lean

lean.make_lean()
from made import items
from made.items import all_of, ranges

source = open(items.__file__).read().partition("numpy's own has others")[2]
numpys = dict.fromkeys(("helper", "kernel", "maker"), lambda function: function) | {"np": np}
exec(source, numpys)

def given():
    rng = np.random.default_rng(0)
    line, wide, flags = rng.integers(0, 9, 8).astype(np.float32), rng.integers(0, 9, 16) * 0.5, np.arange(5) % 2 == 0
    square, cube, long = rng.integers(0, 99, (4, 5)), rng.integers(0, 99, (2, 3, 4)), rng.integers(0, 99, (4, 10))
    return line, square, cube, flags, wide[::2], long[:, ::2]

for at, by in ((1, 0), (1, 2), (2, -1)):
    compiled, plain = given(), given()
    results = zip(all_of(*compiled, at, by), numpys["all_of"](*plain, at, by), strict=True)
    for ours, theirs in (*results, *zip(compiled, plain, strict=True)):
        assert np.array_equal(ours, theirs), (at, by)
for first, last in ((0, 0), (0, 1), (5, 2), (-7, 9), (3, 20)):
    for step in (1, 2, 7, -1, -3):
        assert ranges(first, last, step) == numpys["ranges"](first, last, step)
try:
    ranges(0, 1, 0)
except ValueError as error:
    print(error)
_nrt_python.memsys_enable_stats()
before = rtsys.get_allocation_stats()
for _ in range(3):
    all_of(*given(), 1, 0)
after = rtsys.get_allocation_stats()
assert after.alloc - before.alloc == after.free - before.free > 0
"""


def test_what_is_written_shortly_does_what_numpy_does(made):
    (made / "items.py").write_text(ITEMS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(made.parent), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", SHORT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "must not be zero" in done.stdout  # a part that fails ends the kernel
