"""The monitor and `penstock top`: answers, reported figures, and the end of connections and iterations."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import penstock as ps
from penstock.cli.main import main
from penstock.cli.top import drawn
from penstock.errors import FailedPreconditionError, NotFoundError
from penstock.profiler.live import table
from penstock.profiler.live.html import body
from penstock.profiler.live.monitor import ask, folder, monitored, path_of
from penstock.profiler.live.snapshot import observed, snapshot
from penstock.profiler.live.web import Page
from penstock.runtime import profiled


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as short:  # a socket's path has at most 107 bytes, and tmp_path may be longer
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        monkeypatch.setattr("tempfile.tempdir", short)
        yield
    assert profiled.recording is None
    assert not observed()


def _dataset() -> ps.Dataset:
    return ps.Dataset.range(4000).shuffle(50, seed=1).map(lambda x: x + 1, num_parallel_calls=2).batch(4)


def test_a_running_pass_is_told_of_and_elements_are_the_same() -> None:
    plain = [batch.tolist() for batch in _dataset().iterator(epoch=0)]
    with ps.monitor():
        assert monitored() == [os.getpid()]
        iterator = _dataset().iterator(epoch=0)
        first = [next(iterator).tolist() for _ in range(100)]
        (told,) = ask(os.getpid())["pipelines"]
        assert told["running"]
        assert told["elements"] >= 100
        names = [row["name"] for row in told["rows"]]
        assert names == ["batch#1", "map#1", "shuffle#1", "range#1"]
        made = {row["name"]: row["elements"] for row in told["rows"]}
        assert made["range#1"] >= made["map#1"] >= 400
        assert first + [batch.tolist() for batch in iterator] == plain
        (told,) = ask(os.getpid())["pipelines"]
        assert not told["running"]
        assert told["elements"] == 1000
    assert monitored() == []
    assert list(folder().iterdir()) == []


def test_what_a_buffer_holds_is_told() -> None:
    with ps.monitor(), iter(ps.Dataset.range(400).shuffle(50)) as elements:
        next(elements)
        (told,) = snapshot()["pipelines"]
        assert [row["held"] for row in told["rows"]] == [400, 0]  # 50 numbers of 8 bytes


def test_two_passes_at_once_are_two_pipelines_and_a_second_monitor_is_the_first() -> None:
    with ps.monitor() as first:
        assert ps.monitor() is first
        ds = _dataset()
        with iter(ds) as one, iter(ds) as two, iter(ps.Dataset.zip(ds, _dataset())) as three:
            next(one), next(two), next(three)
            told = snapshot()["pipelines"]
            assert [each["name"] for each in told] == ["pipeline 1", "pipeline 2", "pipeline 3"]
            assert all(each["running"] for each in told)
            assert sum(row["name"].startswith("zip") for row in told[2]["rows"]) == 1
            drawn_as = [row["prefix"] for row in told[2]["rows"]]
            assert drawn_as[:2] == ["", "└ "]  # zip, and its inputs
            assert drawn_as.count("└ ") == 2


def test_a_wait_that_is_not_over_counts() -> None:
    go_on, inside = threading.Event(), threading.Event()

    def stuck(x):
        inside.set()
        go_on.wait()
        return x

    with ps.monitor():
        loop = threading.Thread(target=lambda: list(ps.Dataset.range(1).map(stuck)))
        loop.start()
        inside.wait()
        (told,) = snapshot()["pipelines"]
        later = snapshot()["pipelines"][0]
        go_on.set()
        loop.join()
    assert told["running"]
    assert told["waited_share"] > 0.99
    assert later["waited"] > told["waited"] > 0


def test_a_profiler_beside_it_sees_what_begins_while_it_is_on(tmp_path: Path) -> None:
    with ps.monitor():
        with ps.profiler.Profiler(tmp_path / "logs") as profiler:
            assert len(list(ps.Dataset.range(8).batch(2))) == 4
            assert [each["elements"] for each in snapshot()["pipelines"]] == [4]
        assert len(list(ps.Dataset.range(6).batch(2))) == 3
        assert [each["elements"] for each in snapshot()["pipelines"]] == [3]
    (told,) = json.loads((profiler.folder / "summary.json").read_text())["pipelines"]
    assert told["steps"] == 4


def test_the_folder_is_this_users_alone(tmp_path: Path) -> None:
    with ps.monitor():
        assert stat.S_IMODE(folder().stat().st_mode) == 0o700
    made = folder()
    made.chmod(0o755)
    with pytest.raises(FailedPreconditionError, match="is not a private folder"):
        ps.monitor()
    made.rmdir()
    made.symlink_to(tmp_path)
    with pytest.raises(FailedPreconditionError, match="is not a private folder"):
        ask(1)


_PROGRAM = """
import os, sys
import penstock as ps
iterator = iter(ps.Dataset.range(1000).map(lambda x: x).batch(2))
next(iterator)
print("ready", flush=True)
if sys.argv[1:]:
    child = os.fork()
    if not child:
        print(os.getpid(), len(list(ps.Dataset.range(4))), flush=True)
        sys.stdin.read()
        os._exit(0)
    os.waitpid(child, 0)
sys.stdin.read()
"""


def _program(*arguments: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments],
        env={**os.environ, "PENSTOCK_MONITOR": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


@pytest.mark.system
def test_a_killed_process_is_gone_and_its_socket_too(capsys: pytest.CaptureFixture[str]) -> None:
    with _program() as started:
        assert monitored() == [started.pid]
        assert main(["top", "--once"]) == 0
        assert "batch#1" in capsys.readouterr().out
        started.send_signal(signal.SIGKILL)
        started.wait()
        assert path_of(started.pid).exists()
        assert monitored() == []
        assert not path_of(started.pid).exists()
        with pytest.raises(NotFoundError, match="no process"):
            ask(started.pid)


@pytest.mark.system
def test_a_forked_child_does_not_answer() -> None:
    with _program("fork") as started:
        assert started.stdout is not None
        child = int(started.stdout.readline().split()[0])
        assert monitored() == [started.pid]
        with pytest.raises(NotFoundError, match="not monitored"):
            ask(child)
        assert ask(started.pid)["pid"] == started.pid
        started.kill()
        started.wait()
        assert monitored() == []  # the child has released the socket
        assert started.stdin is not None
        started.stdin.close()


def test_errors_teach(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top"]) == 1
    assert "PENSTOCK_MONITOR=1" in capsys.readouterr().out
    assert main(["top", str(os.getpid())]) == 1
    assert "ps.monitor()" in capsys.readouterr().err
    assert main(["top", str(1 << 22)]) == 1
    assert "There is no process" in capsys.readouterr().err
    assert main(["top", "--seconds", "0"]) == 1
    assert "between 0.1 and 3600" in capsys.readouterr().err


def test_who_says_nothing_or_nonsense_harms_nobody() -> None:
    with ps.monitor():
        path = str(path_of(os.getpid()))
        for said in (b"", b"\n", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(10) == b""
        assert ask(os.getpid())["pipelines"] == []


def _told(stages: int) -> dict:
    ds = ps.Dataset.range(40).map(lambda x: x + 1, num_parallel_calls=2)
    for _ in range(stages):
        ds = ds.filter(lambda x: x >= 0)
    with ps.monitor(), iter(ds) as elements:
        next(elements)
        return snapshot()


@pytest.mark.parametrize("stages", [0, 58])
def test_it_is_right_in_80_columns(stages: int) -> None:
    told = _told(stages)
    console = Console(width=80, record=True, file=StringIO())
    console.print(drawn(told, 80))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("#" in line and "second" not in line for line in lines) >= stages + 2
    rows = table.rows(told["pipelines"][0])
    for room in (3, 10, 20):
        shown = table.fitted(rows, room)
        assert len(shown) <= max(room, min(len(rows), 5))
        assert [row for row in rows if row.bottleneck] == [row for row in shown if row.bottleneck]
        left_out = sum(int(row.cells[0].split()[1]) for row in shown if row.cells[0].startswith("…"))
        assert left_out + sum(not row.cells[0].startswith("…") for row in shown) == len(rows)


def test_text_from_elsewhere_is_text() -> None:
    def same(x):
        return x

    same.__name__ = "<i>\x1b[2J"
    ds = ps.Dataset.range(4).map(same)
    with ps.monitor(), iter(ds) as elements:
        next(elements)
        told = snapshot()
    assert "<i>?[2J" in told["pipelines"][0]["rows"][0]["label"]
    assert "<i>?" not in body(told)
    assert "&lt;i&gt;?[2J" in body(told)


def test_the_page_asks_for_its_token_and_its_name() -> None:
    with ps.monitor(), iter(_dataset()) as elements, Page(os.getpid()) as page:
        next(elements)
        serving = threading.Thread(target=page.serve)
        serving.start()

        def get(path: str, host: str) -> tuple[int, str]:
            connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
            connection.request("GET", path, headers={"Host": host})
            answer = connection.getresponse()
            found = answer.status, answer.read().decode()
            connection.close()
            return found

        try:
            right, here = f"/?token={page.token}", f"127.0.0.1:{page.port}"
            status, text = get(right, here)
            assert status == 200
            assert "batch#1" in text
            assert not re.search(r"(src|href)=.?http", text)
            assert get(f"/live?token={page.token}", here)[0] == 200
            assert get(right, f"localhost:{page.port}")[0] == 200
            assert get("/", here)[0] == 403
            assert get("/?token=%C3%A9", here)[0] == 403
            assert get("/live?token=" + page.token[:-1], here)[0] == 403
            assert get(right, "evil.example")[0] == 403
            assert get(f"/elsewhere?token={page.token}", here)[0] == 404
        finally:
            page.stop()
            serving.join()
