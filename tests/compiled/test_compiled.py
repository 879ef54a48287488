"""Kernels that are not compiled yet: the plain versions run meanwhile and give the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.compiled import Compiled, kernel_files, plain_versions, wait_for_kernels
from penstock.compiled import module as compiled_module
from penstock.compiled.kernel_files import note_of
from penstock.image.resizing import sampling
from penstock.io import batch
from penstock.io.kernels.tfrecord.scan import scan
from penstock.io.tfrecord import framing
from penstock.physical.kernels import native, reference

PIPELINE = """
import hashlib, sys
import numpy as np
import penstock as ps

def prepare(record):
    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}
    row = ps.io.parse_single_example(record, features)
    return ps.image.resize(ps.image.decode_jpeg(row["image"], channels=3), (24, 32)) / 255.0, row["label"]

ds = ps.TFRecordDataset(sys.argv[1]).map(prepare, num_parallel_calls=2).shuffle(5).batch(4)
digest = hashlib.sha256()
for images, labels in ds:
    digest.update(images.tobytes() + labels.tobytes())
print(digest.hexdigest(), "numba" in sys.modules)
"""


def digest_of(path: Path, cache: Path) -> list[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", "-c", PIPELINE, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


def test_the_first_use_on_a_machine_gives_what_later_ones_give(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "photos.tfrecord"
    with ps.io.TFRecordWriter(path) as writer:
        for label in range(9):
            photo = ps.io.encode_jpeg(rng.integers(0, 256, (40, 50, 3), np.uint8))
            writer.write(ps.io.encode_example({"image": photo, "label": label}))
    cold, ran_compiled = digest_of(path, tmp_path / "cache")
    assert ran_compiled == "False"  # it did not wait for numba
    for name in (
        "penstock.io.kernels.tfrecord.scan",
        "penstock.io.kernels.example.parse",
        "penstock.image.resizing.bilinear_native",
    ):
        script = f"from penstock.compiled import compile_kernels; compile_kernels({name!r})"
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        subprocess.run([sys.executable, "-c", script], env=environment, timeout=120, check=True)
    assert digest_of(path, tmp_path / "cache") == [cold, "True"]


def test_a_module_that_does_not_compile_leaves_the_plain_version_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "broken_kernels.py").write_text("raise OSError('no compiler here')\n")
    monkeypatch.syspath_prepend(tmp_path)
    broken = Compiled("broken_kernels")
    assert broken.ready() is None
    wait_for_kernels()
    with pytest.warns(RuntimeWarning, match="broken_kernels, which could not be compiled: OSError: no compiler here"):
        assert broken.ready() is None
    assert broken.ready() is None  # said once
    assert not broken.is_coming


def test_a_module_is_compiled_in_a_child_and_then_loaded(tmp_path, monkeypatch):
    source = tmp_path / "slow_kernels.py"
    source.write_text("ran = []\n\ndef warm_up():\n    ran.append(True)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    slow = Compiled("slow_kernels")
    assert slow.ready() is None
    module = slow.get()
    assert note_of("slow_kernels").exists()
    assert module.ran == []  # the child has run it, not we
    assert Compiled("slow_kernels").ready() is module
    source.write_text(source.read_text() + "changed = True\n")
    assert not note_of("slow_kernels").exists()


@pytest.fixture
def go(tmp_path):
    """What the kernels wait for; in any case they get it, as all others wait behind them."""
    wait_for_kernels()
    yield tmp_path / "go"
    (tmp_path / "go").touch()


def test_plain_versions_are_named_with_their_reason_and_the_log_says_so_when_they_serve_for_long(
    tmp_path, monkeypatch, caplog, go
):
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists():\n    time.sleep(0.01)\n"
    (tmp_path / "late_kernels.py").write_text(waits)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    late = Compiled("late_kernels")
    assert late.ready() is None
    assert plain_versions() == ["late_kernels: being compiled, as it was never on this machine"]
    text = ps.Dataset.range(3).explain(analyze=True, seconds=0.05)
    assert "in place of kernels: measure again when these are compiled\n  late_kernels: being compiled" in text
    found = json.loads(ps.Dataset.range(3).explain(analyze=True, seconds=0.05, format="json"))
    assert found["plain_versions"] == plain_versions()
    assert caplog.records == []
    caplog.set_level("INFO", "penstock.compiled")  # silent by default
    monkeypatch.setattr(compiled_module, "_PATIENCE", 0.0)
    assert late.ready() is late.ready() is None
    assert [record.name for record in caplog.records] == ["penstock.compiled"]  # said once
    assert "serve until late_kernels" in caplog.text
    go.touch()
    wait_for_kernels()
    assert late.ready() is not None
    assert plain_versions() == []
    assert caplog.records[-1].getMessage().startswith("All kernels that were asked for are compiled")


@pytest.mark.parametrize("most", [False, True])
def test_what_still_serves_later_is_asked_for_again_once(tmp_path, monkeypatch, go, most):
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists():\n    time.sleep(0.01)\n"
    (tmp_path / "still_kernels.py").write_text(waits)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    asked, ask_again = [], compiled_module.COMPILER.ask_again
    monkeypatch.setattr(
        compiled_module.COMPILER,
        "ask_again",
        lambda one, most: asked.append((one.name, most)) or ask_again(one, most=most),
    )
    still = Compiled("still_kernels", most=most)
    assert still.ready(asks=False) is None
    assert plain_versions() == []
    monkeypatch.setattr(compiled_module, "_AGAIN", 60.0)
    assert still.ready() is still.ready() is None
    assert still.is_coming
    assert asked == []
    monkeypatch.setattr(compiled_module, "_AGAIN", 0.0)
    assert still.ready(asks=False) is None
    assert asked == []  # another one will do its work
    assert still.ready() is still.ready() is None
    assert asked == [("still_kernels", most)]
    go.touch()
    wait_for_kernels()
    assert still.ready() is not None
    assert not still.is_coming


def test_what_another_process_has_compiled_serves_while_the_own_child_is_not_done(tmp_path, monkeypatch, go):
    waits = (
        f"import os, pathlib, time\nwhile os.getpid() != {os.getpid()} and not pathlib.Path({str(go)!r}).exists():\n"
    )
    (tmp_path / "compiled_elsewhere.py").write_text(f"{waits}    time.sleep(0.01)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    kernels = Compiled("compiled_elsewhere")
    assert kernels.ready() is None
    monkeypatch.setattr(compiled_module, "_AGAIN", 0.0)
    assert kernels.ready() is None
    note_of("compiled_elsewhere").parent.mkdir(exist_ok=True)
    note_of("compiled_elsewhere").touch()
    monkeypatch.setattr(compiled_module, "_AGAIN", 60.0)
    assert kernels.ready() is None  # it looks now and then
    monkeypatch.setattr(compiled_module, "_AGAIN", 0.0)
    assert kernels.ready() is not None
    assert plain_versions() == []
    go.touch()
    wait_for_kernels()


def test_kernels_of_another_processor_do_not_count_as_compiled(monkeypatch):
    name = "penstock.physical.kernels.native"
    here = note_of(name)
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    chosen = note_of(name)
    monkeypatch.delenv("NUMBA_CPU_NAME")
    monkeypatch.setattr(kernel_files, "processor", lambda: "another")
    assert len({here, chosen, note_of(name)}) == 3
    monkeypatch.undo()
    assert note_of(name) == here


class NotYet:
    def ready(self, *, asks: bool = True) -> None:
        return None


@given(
    st.lists(st.binary(max_size=30), max_size=6),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.integers(0, 40),
    st.integers(1, 4),
    st.integers(0, 2),
)
def test_the_plain_scan_says_what_the_compiled_one_says(records, changes, cut, room, check):
    import crc32c

    stream = bytearray()
    for record in records:
        header, footer = framing.frame(len(record), crc32c.crc32c(record))
        stream += header + record + footer
    for place, value in changes:
        if place < len(stream):
            stream[place] = value
    buffer = np.frombuffer(bytes(stream[: max(len(stream) - cut, 0)]), np.uint8)
    at = 0
    while True:
        found = [(np.zeros(room, np.int64), np.zeros(room, np.int64)) for _ in range(2)]
        plain = framing.plain_scan(buffer, at, 50, check, *found[0])
        assert tuple(plain) == tuple(scan(buffer, at, 50, check, *found[1]))
        np.testing.assert_array_equal(found[0], found[1])
        at = plain[1]
        if plain[2] != framing.FINE or plain[0] == 0:
            break


@pytest.mark.parametrize("bad", [None, 3])
def test_plain_columns_are_the_compiled_ones(monkeypatch, bad):
    features = {
        "a": ps.io.FixedLenFeature((), np.int64),
        "b": ps.io.FixedLenFeature((2,), np.float32),
        "c": ps.io.FixedLenFeature((), bytes, b"default"),
        "d": ps.io.FixedLenFeature((2,), bytes),
    }
    rows = [{"a": i, "b": [i, 0.5], "d": [b"x" * i, b"\0"]} | ({"c": b"here"} if i % 2 else {}) for i in range(6)]
    if bad is not None:
        rows[bad]["b"] = [1.0]
    records = [ps.io.encode_example(row) for row in rows]

    def outcome() -> object:
        try:
            return ps.io.parse_example(records, features)
        except ps.errors.PenstockError as error:
            return str(error)

    compiled = outcome()
    monkeypatch.setattr(batch, "_KERNEL", NotYet())
    plain = outcome()
    if isinstance(compiled, str):
        assert plain == compiled
        assert "element 3" in compiled
        return
    for name, value in compiled.items():
        assert plain[name].dtype == value.dtype
        np.testing.assert_array_equal(plain[name], value)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_the_plain_resize_is_the_compiled_one(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (2, 17, 23, 3), np.uint8)
    scale = {} if dtype == np.uint8 else {"divide": 255.0}
    found = []
    for _ in range(2):
        out = np.zeros((2, 9, 31, 3), dtype)
        sampling.resize_bilinear_into(images, out, flip_left_right="after", **scale)
        single = np.zeros((9, 31, 3), dtype)
        sampling.resize_bilinear_into(images[0], single, flip_up_down="before", **scale)
        found.append((out, single))
        monkeypatch.setattr(sampling, "_BILINEAR", NotYet())
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, compiled)


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(7, 9))
def test_the_shuffle_loops_agree(picks, capacity):
    chosen = np.array(picks, np.int64)
    plain, fast = reference.reservoir(chosen, capacity), native.reservoir(chosen, capacity)
    np.testing.assert_array_equal(plain[0], fast[0])
    assert dict(zip(*map(np.ndarray.tolist, plain[1:]), strict=True)) == dict(
        zip(*map(np.ndarray.tolist, fast[1:]), strict=True)
    )
    falling = np.array([pick % (len(picks) - i) for i, pick in enumerate(picks)], np.int64)
    np.testing.assert_array_equal(reference.drain(falling), native.drain(falling))
