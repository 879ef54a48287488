"""Settings that outlive a process: read back unchanged, or not at all."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.runtime.autotune import remembered
from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.autotune.remembered import Remembered, cache_folder, machine_key, recall, remember

PLAN = "0123456789abcdef" * 2
MAP = Remembered(Knobs(3, "process", 1 << 20, 0.0025), "processes gave 1.9 × threads", 812.5, 2400.0)
BATCH = Remembered(Knobs(1), "the consumer is slower", 40.0, 12.5)
FOUND = {"map(decode)": MAP, "batch(32)": BATCH}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Set the folder of the settings, in a home folder of the test."""
    monkeypatch.setenv("PENSTOCK_REMEMBER", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remembered._known.clear()
    yield tmp_path / "penstock" / "tuning"
    remembered._known.clear()


def anew(plan=PLAN):
    """Return what a new process finds."""
    remembered._known.clear()
    return recall(plan)


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def signed(body, version=1):
    return json.dumps({"format": version, "check": remembered._check(body), "body": body})


# -- write and read


def test_what_was_found_comes_back_in_the_next_process():
    remember(PLAN, FOUND)
    assert recall(PLAN) == FOUND
    assert anew() == FOUND
    assert anew("another plan") == {}


def test_names_and_reasons_are_any_text():
    odd = {'map(<lambda>)\n"é\ud800…': replace(MAP, reason="½ of “it”")}
    remember(PLAN, odd)
    assert anew() == odd


def test_later_findings_replace_earlier_ones_of_the_same_segment():
    remember(PLAN, FOUND)
    better = replace(MAP, knobs=Knobs(2))
    remember(PLAN, {"map(decode)": better})
    assert recall(PLAN) == anew() == {"map(decode)": better, "batch(32)": BATCH}


def test_what_is_given_out_may_be_changed(cache):
    remember(PLAN, FOUND)
    recall(PLAN).clear()
    assert recall(PLAN) == FOUND


def test_it_is_read_once(cache):
    remember(PLAN, FOUND)
    assert anew() == FOUND
    only_file(cache).unlink()
    assert recall(PLAN) == FOUND
    assert recall("another plan") == {}
    remember("another plan", FOUND)
    assert recall("another plan") == FOUND


def test_a_run_that_repeats_another_writes_nothing(cache):
    remember(PLAN, FOUND)
    only_file(cache).unlink()
    remember(PLAN, {"map(decode)": replace(MAP, elements_per_second=1600.0, cpu_us=10.0, reason="again")})
    remember(PLAN, {})
    assert list(cache.iterdir()) == []
    remember(PLAN, {"map(decode)": replace(MAP, knobs=Knobs(9))})
    assert only_file(cache).exists()


def test_settings_expire(cache):
    remember(PLAN, FOUND)
    now = time.time()
    os.utime(only_file(cache), (now, now - 0.9 * remembered._EXPIRES))
    assert anew() == FOUND
    os.utime(only_file(cache), (now, now - 1.1 * remembered._EXPIRES))
    assert anew() == {}
    remember(PLAN, FOUND)
    assert anew() == FOUND


@pytest.mark.parametrize(
    "unsound",
    [
        replace(MAP, elements_per_second=float("inf")),
        replace(MAP, cpu_us=float("nan")),
        replace(MAP, cpu_us=-1.0),
        replace(MAP, reason="x" * 5000),
        replace(MAP, knobs=replace(MAP.knobs, parallelism=-1)),
        replace(MAP, knobs=replace(MAP.knobs, window=1 << 70)),
        replace(MAP, knobs=replace(MAP.knobs, executor=None)),
    ],
)
def test_what_cannot_have_been_measured_is_not_remembered(unsound):
    remember(PLAN, {"map(decode)": unsound, "batch(32)": BATCH})
    assert recall(PLAN) == anew() == {"batch(32)": BATCH}


def test_many_plans_of_one_process_are_not_all_held(monkeypatch):
    monkeypatch.setattr(remembered, "_KNOWN", 10)
    for number in range(35):
        remember(f"plan {number}", FOUND)
        assert len(remembered._known) <= 10
    assert recall("plan 3") == FOUND


# -- the switch


def test_the_switch_stops_reading_and_writing(cache, monkeypatch):
    remember(PLAN, FOUND)
    monkeypatch.setenv("PENSTOCK_REMEMBER", "0")
    assert recall(PLAN) == {}
    remember("another plan", FOUND)
    assert recall("another plan") == {}
    monkeypatch.delenv("PENSTOCK_REMEMBER")
    assert recall(PLAN) == FOUND
    assert anew("another plan") == {}
    assert len(list(cache.iterdir())) == 1


# -- files of other programs, and incomplete files


def test_every_cut_leaves_nothing(cache):
    remember(PLAN, FOUND)
    path = only_file(cache)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert anew() == {}


def test_every_damaged_byte_leaves_all_or_nothing(cache):
    remember(PLAN, FOUND)
    path = only_file(cache)
    content = bytearray(path.read_bytes())
    lost = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x04
        path.write_bytes(damaged)
        found = anew()
        assert found in ({}, FOUND)
        lost += not found
    assert lost > 0.6 * len(content)  # the rest is space between the words


ENTRY = {
    "knobs": {"parallelism": 1, "executor": "thread", "window": 1, "block_seconds": 0.1},
    "reason": "",
    "elements_per_second": 1.0,
    "cpu_us": 1.0,
}


def body(**changes):
    return {"plan": PLAN, "machine": machine_key(), "segments": {"map": ENTRY}} | changes


def knobs(**changes):
    return body(segments={"map": ENTRY | {"knobs": ENTRY["knobs"] | changes}})


def test_a_file_as_it_should_be_is_read(cache):
    remember(PLAN, FOUND)
    only_file(cache).write_text(signed(body()))
    assert list(anew()) == ["map"]


@pytest.mark.parametrize(
    "content",
    [
        lambda: "",
        lambda: "\x00\xff",
        lambda: "null",
        lambda: "[]",
        lambda: "7",
        lambda: "[" * 100_000,
        lambda: '{"format": 1}',
        lambda: json.dumps({"format": 1, "check": "", "body": body()}),
        lambda: signed(body(), version=2),
        lambda: signed(body(), version=None),
        lambda: signed(body(plan="another")),
        lambda: signed(body(machine="another")),
        lambda: signed(body(segments=[])),
        lambda: signed(body(segments={"map": 3})),
        lambda: signed(body(segments={"map": {**ENTRY, "more": 1}})),
        lambda: signed(body(segments={"map": {"knobs": ENTRY["knobs"]}})),
        lambda: signed(body(segments={"map": {**ENTRY, "reason": 1}})),
        lambda: signed(body(segments={"map": {**ENTRY, "cpu_us": True}})),
        lambda: signed(body(segments={"map": {**ENTRY, "knobs": []}})),
        lambda: signed(knobs(parallelism=True)),
        lambda: signed(knobs(parallelism=2.0)),
        lambda: signed(knobs(parallelism="2")),
        lambda: signed(knobs(window=-1)),
        lambda: signed(knobs(block_seconds=float("nan"))),
        lambda: signed(knobs(executor=7)),
        lambda: signed(knobs(colour="blue")),
        lambda: signed([]),
        lambda: signed(body(more="x" * (1 << 19))),
    ],
)
def test_files_of_another_making_are_as_if_absent(cache, content):
    remember(PLAN, FOUND)
    only_file(cache).write_text(content(), encoding="latin-1")
    assert anew() == {}
    remember(PLAN, FOUND)
    assert anew() == FOUND


def test_a_folder_in_the_place_of_the_file(cache):
    remember(PLAN, FOUND)
    path = only_file(cache)
    path.unlink()
    path.mkdir()
    assert anew() == {}
    remember(PLAN, FOUND)
    assert recall(PLAN) == FOUND
    assert list(cache.iterdir()) == [path]  # no temporary file is left


def test_a_cache_that_cannot_be_written_is_as_if_absent(tmp_path, monkeypatch):
    for number, home in enumerate([tmp_path / "file" / "below", tmp_path / "file", "/proc/self"]):
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        plan = f"{PLAN}{number}"
        assert recall(plan) == {}
        remember(plan, FOUND)
        assert recall(plan) == FOUND  # this process has it in memory
        assert anew(plan) == {}


def test_without_a_home_nothing_is_remembered(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    remember(PLAN, FOUND)
    assert recall(PLAN) == {}


# -- where files are


@pytest.mark.parametrize(
    ("platform", "variables", "wanted"),
    [
        ("linux", {}, "HOME/.cache"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "HOME/.cache"),
        ("linux", {"XDG_CACHE_HOME": "/elsewhere"}, "/elsewhere"),
        ("darwin", {}, "HOME/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("win32", {}, "HOME/AppData/Local"),
    ],
)
def test_each_system_has_its_own_place(monkeypatch, tmp_path, platform, variables, wanted):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder("tuning")) == f"{wanted.replace('HOME', str(tmp_path))}/penstock/tuning"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes are those of POSIX")
def test_files_are_the_user_s_own(cache):
    remember(PLAN, FOUND)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert only_file(cache).stat().st_mode & 0o777 == 0o600


# -- how many files


def ages(folder, count):
    """Write files for several plans, the first one the oldest."""
    begin = time.time_ns() - 10**12
    for number in range(count):
        remember(f"plan {number}", FOUND)
        newest = max((path for path in folder.iterdir()), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, ns=(begin + number * 10**9, begin + number * 10**9))


def known_plans(count):
    return [number for number in range(count) if anew(f"plan {number}")]


def test_the_oldest_files_go(cache, monkeypatch):
    monkeypatch.setattr(remembered, "_MOST_FILES", 5)
    ages(cache, 9)
    assert known_plans(9) == [4, 5, 6, 7, 8]


def test_files_that_are_too_large_together_go_too(cache, monkeypatch):
    remember(PLAN, FOUND)
    size = only_file(cache).stat().st_size
    monkeypatch.setattr(remembered, "_MOST_OF_ONE", 2 * size)
    monkeypatch.setattr(remembered, "_MOST_BYTES", 6 * size)
    os.utime(only_file(cache), ns=(0, 0))
    ages(cache, 9)
    assert known_plans(9) == [4, 5, 6, 7, 8]  # the rest is room for a newest file of twice the size


def test_a_plan_of_too_many_segments_is_not_written(cache, monkeypatch):
    monkeypatch.setattr(remembered, "_MOST_OF_ONE", 100)
    remember(PLAN, FOUND)
    assert not cache.exists()
    assert recall(PLAN) == FOUND


def test_what_a_killed_writer_left_goes_with_the_oldest_and_other_files_stay(cache, monkeypatch):
    monkeypatch.setattr(remembered, "_MOST_FILES", 3)
    cache.mkdir(parents=True)
    for name in ("tmpabc.tmp", "notes.txt"):
        (cache / name).write_text("x")
        os.utime(cache / name, ns=(0, 0))
    ages(cache, 5)
    assert known_plans(5) == [2, 3, 4]
    assert [path.name for path in cache.iterdir() if path.suffix != ".json"] == ["notes.txt"]


# -- the machine


def test_another_machine_has_its_own_settings(monkeypatch):
    remember(PLAN, FOUND)
    monkeypatch.setattr(remembered, "_machine", lambda: "another machine")
    assert anew() == {}
    remember(PLAN, {"map(decode)": BATCH})
    assert anew() == {"map(decode)": BATCH}


def test_a_machine_is_told_by_what_a_setting_depends_on(monkeypatch):
    remembered._machine.cache_clear()
    monkeypatch.setattr(remembered, "granted_cores", lambda: 2.5)
    assert machine_key().startswith("2.5 cores of ")
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}, penstock " in machine_key()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert machine_key().endswith("without GIL")
    remembered._machine.cache_clear()


@pytest.mark.parametrize(
    ("cpuinfo", "wanted"),
    [
        (
            "processor\t: 0\nmodel\t\t: 49\nmodel name\t: A Processor @ 2 GHz\n\nmodel name\t: B\n",
            "A Processor @ 2 GHz ",
        ),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n", "0x41 0xd0c "),
        ("nothing", ""),
        (None, ""),
    ],
)
def test_the_processor_s_name(tmp_path, cpuinfo, wanted):
    if cpuinfo is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/cpuinfo").write_text(cpuinfo)
    assert remembered._processor(tmp_path) == wanted + remembered.platform.machine()


# -- several processes

WRITER = """
import sys
from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.autotune.remembered import Remembered, remember
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, 101):
    found = Remembered(Knobs(number), sys.argv[2] * number, 1.0, 1.0)
    remember(sys.argv[1], {"map(decode)": found})
"""


@pytest.mark.system
def test_two_processes_that_write_at_once_and_one_that_reads():
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, PLAN, letter], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for letter in "ab"
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    while any(writer.poll() is None for writer in writers):
        for found in anew().values():
            assert found.reason in ("a" * found.knobs.parallelism, "b" * found.knobs.parallelism)
    assert [writer.wait() for writer in writers] == [0, 0]
    for writer in writers:
        writer.stdin.close()
        writer.stdout.close()
    assert anew()["map(decode)"].knobs.parallelism == 100
