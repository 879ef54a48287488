"""The profiler from the user's side: its files, its messages, and its behaviour if it cannot work."""

from __future__ import annotations

import gzip
import html
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import FailedPreconditionError
from penstock.io.tfrecord.reader import RecordReader
from penstock.profiler.recording import sampler
from penstock.profiler.recording.profiler import Recording
from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.write import write_views


def _profiled(logs: Path, ds: ps.Dataset) -> dict:
    with ps.profiler.Profiler(logs) as profiler:
        for _ in ds:
            pass
    return json.loads((profiler.folder / "summary.json").read_text())


def test_all_views_are_written_and_say_the_same(tmp_path: Path) -> None:
    ds = ps.Dataset.range(200).map(lambda x: sum(range(int(x) + 500))).batch(5)
    with ps.profiler.Profiler(tmp_path, run="one") as profiler:
        for _ in ds:
            with ps.profiler.annotate("forward"):
                threading.Event().wait(0.0005)
            ps.profiler.step()
    folder = profiler.folder
    told = json.loads((folder / "summary.json").read_text())
    (found,) = told["pipelines"]
    assert found["steps"] == 40
    assert told["steps_marked"] == 40
    assert sum(found["waits"]["histogram"]) >= 1
    page = (folder / "report.html").read_text()
    assert html.escape(found["verdict"]["sentences"][0]) in page
    assert "http" not in page  # the page loads nothing from elsewhere
    trace = json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes()))["traceEvents"]
    assert sum(event.get("name") == "forward" for event in trace) == 40
    assert sum(event.get("name") == "step" for event in trace) == 40
    (events,) = folder.glob("events.out.tfevents.*")
    with RecordReader(events) as reader:
        text = b"".join(b"".join(chunk.records()) for chunk in iter(lambda: reader.read(1000, 1 << 24), None))
    assert found["verdict"]["sentences"][0].encode() in text
    (plane,) = (tmp_path / "plugins" / "profile" / "one").glob("*.xplane.pb")
    assert b"/host:CPU" in plane.read_bytes()


def test_sums_are_exact_over_passes(tmp_path: Path) -> None:
    ds = ps.Dataset.range(60).map(lambda x: x + 1).batch(4)
    with ps.profiler.Profiler(tmp_path) as profiler:
        for _ in range(3):
            assert len(list(ds)) == 15
        for number, _ in enumerate(ds):
            if number == 3:
                break
    (found,) = json.loads((profiler.folder / "summary.json").read_text())["pipelines"]
    assert found["waits"]["passes"] == 4
    assert found["waits"]["whole_passes"] == 3
    assert found["steps"] >= 49


def test_elements_are_the_same_while_it_is_on(tmp_path: Path) -> None:
    ds = ps.Dataset.range(500).shuffle(50, seed=3).map(lambda x: x * 2, num_parallel_calls=2).batch(7)
    plain = [batch.tolist() for batch in ds.iterator(epoch=0)]
    with ps.profiler.Profiler(tmp_path):
        iterator = ds.iterator(epoch=0)
        first = [next(iterator).tolist() for _ in range(5)]
        state = iterator.state_dict()
        again = ds.iterator(epoch=0)
        again.load_state_dict(state)
        assert first + [batch.tolist() for batch in again] == plain


def test_what_a_shuffle_took_in_before_the_first_element_is_recorded(tmp_path: Path) -> None:
    def numbers():
        yield from range(120)

    (found,) = _profiled(tmp_path, ps.Dataset.from_generator(numbers).shuffle(120))["pipelines"]
    assert found["start"]["made"]["from_generator#1"] == 120


def test_what_takes_long_before_the_first_element_is_named_by_its_own_step(tmp_path: Path) -> None:
    def slow(x: int) -> int:
        threading.Event().wait(0.005)
        return x

    ds = ps.Dataset.range(16).map(slow, num_parallel_calls=2).batch(8)  # the two maps run as one
    (found,) = _profiled(tmp_path, ds)["pipelines"]
    busy = found["start"]["busy"]
    assert max(busy, key=lambda name: busy[name]) == "map#1"
    assert busy["map#1"] > 0.03


def test_the_page_shows_the_plan_as_written_and_no_path_of_this_machine(tmp_path: Path) -> None:
    ds = ps.Dataset.range(64).map(lambda x: x + 1).shuffle(16, seed=1).batch(4)
    with ps.profiler.Profiler(tmp_path, run="one") as profiler:
        for _ in ds:
            pass
    page = (profiler.folder / "report.html").read_text()
    assert "as written" in page
    assert ">rewritten<" in page
    assert str(Path(__file__).parent) not in page
    assert f"{Path(__file__).name}:" in page


def test_a_slow_loop_is_not_input_bound(tmp_path: Path) -> None:
    with ps.profiler.Profiler(tmp_path) as profiler:
        for _ in ps.Dataset.range(400).batch(20):
            threading.Event().wait(0.02)
    (found,) = json.loads((profiler.folder / "summary.json").read_text())["pipelines"]
    assert found["verdict"]["kind"] == "consumer"
    assert found["verdict"]["input_bound"] == "no"


def test_a_step_that_sleeps_waits_also_where_every_wake_up_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, a late wake-up looks as if another thread held the lock. The sleeper did not hold it."""
    monkeypatch.setattr(sampler, "_PATIENCE", -1.0)

    def slow() -> Iterator[int]:
        for number in range(60):
            threading.Event().wait(0.005)
            yield number

    (found,) = _profiled(tmp_path, ps.Dataset.from_generator(slow))["pipelines"]
    (step,) = found["analysis"]["steps"]
    assert step["waiting"] > 0.8 * step["wall"] > 0.004


def test_two_at_once_warn_and_the_first_goes_on(tmp_path: Path) -> None:
    second = ps.profiler.Profiler(tmp_path)
    with ps.profiler.Profiler(tmp_path) as first:
        with pytest.warns(UserWarning, match="already runs in this process"):
            second.start()
        assert len(list(ps.Dataset.range(4))) == 4
        second.stop()
    assert (first.folder / "report.html").exists()
    assert not second.folder.exists()


def test_a_folder_that_cannot_be_written_warns_and_the_loop_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="No profile can be written"), ps.profiler.Profiler(tmp_path / "file"):
        assert len(list(ps.Dataset.range(4))) == 4


def _until_it_ends(recording: Recording, write: Callable[..., None]) -> None:
    recording._store.add_spans = write  # type: ignore[method-assign]
    recording._thread.join()


def test_a_disk_that_fails_ends_the_profile_and_not_the_loop(tmp_path: Path) -> None:
    profiler = ps.profiler.Profiler(tmp_path).start()
    recording = profiler._recording
    assert recording is not None

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.warns(UserWarning, match="ends here"):
        _until_it_ends(recording, full)
    assert len(list(ps.Dataset.range(100).batch(10))) == 10
    profiler.stop()
    assert Recorded(profiler.folder).about["run"] == profiler.run


def test_a_forked_child_records_nothing(tmp_path: Path) -> None:
    with ps.profiler.Profiler(tmp_path) as profiler, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about a fork of a process with threads
        child = os.fork()
        if not child:
            os._exit(len(list(ps.Dataset.range(8).batch(2))))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        assert len(list(ps.Dataset.range(8).batch(4))) == 2
    (found,) = json.loads((profiler.folder / "summary.json").read_text())["pipelines"]
    assert found["steps"] == 2


_ENDLESS = """
import json, pathlib
import penstock as ps
state = pathlib.Path({logs!r}, "k", "state.json")
def recorded():
    return state.exists() and any(each["waits"]["steps"] for each in json.loads(state.read_text())["pipelines"])
ps.profiler.Profiler({logs!r}, run="k").start()
told = False
for _ in ps.Dataset.range(1000).repeat().map(lambda x: sum(range(int(x)))).batch(64):
    if not told and recorded():
        told = True
        print("on", flush=True)
"""


def test_what_a_killed_process_leaves_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen([sys.executable, "-c", _ENDLESS.format(logs=str(tmp_path))], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    for file in (tmp_path / "k" / "spans").iterdir():
        with file.open("ab") as torn:
            torn.write(b"torn")
    with (tmp_path / "k" / "samples.jsonl").open("a") as torn_line:
        torn_line.write('{"at": 1')
    assert main(["report", str(tmp_path / "k")]) == 0
    assert "bound" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "k"), str(tmp_path / "k")]) == 0
    assert "about the same" in capsys.readouterr().out


def test_the_environment_profiles_a_whole_program(tmp_path: Path) -> None:
    program = "import penstock as ps; list(ps.Dataset.range(100).batch(5))"
    wanted = os.environ | {"PENSTOCK_PROFILE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=wanted)
    (report,) = tmp_path.glob("*/report.html")
    assert "bound" in report.read_text()


def test_spans_and_samples_stay_bounded(tmp_path: Path) -> None:
    from penstock.profiler.recording.store import Store

    store = Store(tmp_path)
    for number in range(60):
        store.add_spans([0, 0, number, 1] * (1 << 15))
    for number in range(5000):
        store.add_sample({"at": number})
    assert len(list((tmp_path / "spans").iterdir())) <= 17
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert len(lines) <= 1024
    assert (json.loads(lines[0])["at"], json.loads(lines[-1])["at"]) == (0, 4999)


def test_stop_without_start_teaches() -> None:
    with pytest.raises(FailedPreconditionError, match="not started"):
        ps.profiler.Profiler("logs").stop()


def test_no_run_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "no folder of a profiled run" in capsys.readouterr().err


def test_sixty_steps_and_none(tmp_path: Path) -> None:
    ds = ps.Dataset.range(40)
    for _ in range(57):
        ds = ds.map(lambda x: x + 1).filter(lambda x: x >= 0)
    (found,) = _profiled(tmp_path / "many", ds)["pipelines"]
    assert len(found["analysis"]["steps"]) > 60
    with ps.profiler.Profiler(tmp_path / "none") as profiler:
        pass
    assert write_views(profiler.folder)["pipelines"] == []


def test_a_report_that_cannot_be_written_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ps.profiler.Profiler(tmp_path, run="one"):
        list(ps.Dataset.range(40).batch(4))

    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert main(["report", str(tmp_path / "one")]) == 0
    said = capsys.readouterr()
    assert "bound" in said.out
    assert "could not be written" in said.err
    assert not list(tmp_path.rglob(".*.new"))


def test_the_pauses_before_later_passes_are_not_the_loops_work(tmp_path: Path) -> None:
    def slow():
        threading.Event().wait(0.05)
        yield from range(5)

    with ps.profiler.Profiler(tmp_path) as profiler:
        for _ in range(4):
            for _ in ps.Dataset.from_generator(slow):
                pass
    (found,) = json.loads((profiler.folder / "summary.json").read_text())["pipelines"]
    assert found["analysis"]["consumer_seconds"] < 0.01  # of 15 elements after three pauses of 0.05 s
    assert "slow side" not in found["verdict"]["text"]


def test_a_worker_process_is_a_process_of_its_own_in_a_trace(tmp_path: Path) -> None:
    from penstock.profiler.recording.store import Store
    from penstock.profiler.views.trace import trace

    store = Store(tmp_path)
    names, tracks = ["wait for data", "step", 'map("a")'], ["MainThread", "worker process 4711"]
    store.put("about.json", {"run": "r", "pid": 1, "began": 0.0, "names": names, "tracks": tracks})
    store.add_spans([0, 0, 0, 1000, 1, 2, 2500, 500])
    recorded = Recorded(tmp_path)
    events = json.loads("".join(trace(recorded, recorded.spans())))["traceEvents"]
    spans = [(each["pid"], each["tid"], each["name"], each["ts"]) for each in events if each["ph"] == "X"]
    assert spans == [(1, 0, "wait for data", 0.0), (4711, 1, 'map("a")', 2.5)]
    assert {each["args"]["name"] for each in events if each["name"] == "process_name"} == {"r", "worker process 4711"}
