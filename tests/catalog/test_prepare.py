"""Preparation: the same bytes whatever happens on the way, gone on with after a kill, one at a time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

from penstock.catalog import Builder, DatasetInfo, Each, Skipped, features, load, making, prepare, spool
from penstock.catalog.info import shard_name
from penstock.catalog.progress import Reporter
from penstock.catalog.spool import Spool
from penstock.catalog.writer import default_shards, write_shards
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.io import storage
from penstock.store.lock import take_lease


class Squares(Builder):
    """Squares of 0 to `count` - 1; some are skipped."""

    VERSION = "1.0.0"
    made = 0

    def __init__(self, *, count=40, each=True, skipped=(), allowed=0, **keywords):
        super().__init__(**keywords)
        self.count, self.each, self.skipped, self.allowed = count, each, skipped, allowed

    def _info(self):
        return DatasetInfo(features=features.FeaturesDict({"n": np.int64, "text": features.Text()}))

    def _split_generators(self):
        items = range(self.count)
        return {"train": Each(items, self.make) if self.each else (self.make(n) for n in items)}

    def make(self, n):
        type(self).made += 1
        if n in self.skipped:
            return Skipped(f"{n}.txt", "it is odd")
        return f"{n}.txt", {"n": n * n, "text": str(n)}

    def _num_shards(self, split):
        return 3

    def _max_skipped(self, split):
        return self.allowed


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(params=["each", "each, by the engine", "generator", "generator, by threads"])
def each(request, monkeypatch):
    """Whether examples are made of an Each; all in one thread, or all but the first three by others."""
    how, _, others = request.param.partition(",")
    monkeypatch.setattr(making, "_CHEAP", 0.0 if others else 60.0)
    if others:
        monkeypatch.setattr(making, "_LONG", 0.0)
        monkeypatch.setattr(making, "_CHUNK", 1)
    return how == "each"


def test_in_parallel_and_one_after_the_other_give_the_same_bytes(tmp_path, monkeypatch):
    class Turning(Squares):
        """Its items are dear from number `turn` on."""

        def make(self, n):
            if n == self.turn:
                monkeypatch.setattr(making, "_CHEAP", 0.0)
            return super().make(n)

    found = []
    for turn, each in ((40, True), (0, True), (7, True), (38, True), (0, False)):
        monkeypatch.setattr(making, "_CHEAP", 60.0)
        Turning.turn, Turning.made = turn, 0
        made = Turning(data_dir=tmp_path / f"{turn} {each}", each=each)
        made.download_and_prepare()
        assert Turning.made == 40
        found.append({name: content for name, content in contents(made.data_path).items() if "tfrecord" in name})
    assert found == [found[0]] * 5
    assert sorted(int(row["n"]) for row in made.as_dataset("train")) == [n * n for n in range(40)]


def test_what_cannot_be_used_is_counted_and_listed(tmp_path, each):
    made = Squares(data_dir=tmp_path, each=each, skipped=(3, 5), allowed=2)
    made.download_and_prepare()
    wanted = {"count": 2, "inputs": {"3.txt": "it is odd", "5.txt": "it is odd"}}
    assert made.info.metadata == {"skipped": {"train": wanted}}
    assert made.info.splits["train"].num_examples == 38


def test_more_of_it_than_was_expected_is_an_error(tmp_path, each):
    with pytest.raises(DataLossError) as raised:
        Squares(data_dir=tmp_path, each=each, skipped=(3, 5), allowed=1).download_and_prepare()
    assert_golden("catalog_prepare_skipped", str(raised.value))
    assert list((tmp_path / "squares").iterdir()) == []


# Prepares in a process that kills itself once so many items were made; then says how many the second run makes.
KILLED = """
import os, signal, sys, time
import penstock.catalog.prepare as prepare
import penstock.catalog.spool as spool
from tests.catalog.test_prepare import Squares
spool._LONGEST_WAITING = 0.0  # hands over each example at once

class Dying(Squares):
    def make(self, n):
        found = super().make(n)
        if Squares_alive and n == 390:
            time.sleep(60)  # the others go on, and the kill comes from the parent
        return found

Squares_alive = sys.argv[2] == "die"
builder = Dying(data_dir=sys.argv[1], count=400, each=sys.argv[3] == "each")
print("begin", flush=True)
builder.download_and_prepare()
print("made", Dying.made, flush=True)
"""


@pytest.mark.system
@pytest.mark.parametrize("how", ["each", "generator"])
def test_after_kill_9_it_goes_on_where_it_was(tmp_path, how):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])}
    run = [sys.executable, str(script), str(tmp_path / "data")]
    with subprocess.Popen([*run, "die", how], stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            assert process.stdout.readline() == "begin\n"
            work = tmp_path / "data" / "dying" / "incomplete.1.0.0" / "train.spool"
            while sum(path.stat().st_size for path in work.glob("*.index")) // 48 < 100:
                assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
    done = sum(path.stat().st_size for path in work.glob("*.index")) // 48
    assert done >= 100
    finished = subprocess.run(
        [*run, "live", how], stdout=subprocess.PIPE, env=environment, text=True, check=True, timeout=60
    )
    made = int(finished.stdout.split()[-1])
    if how == "each":
        assert made <= 400 - done  # in threads exactly; what other processes made is not counted here
    other = Squares(data_dir=tmp_path / "other", count=400)
    other.download_and_prepare()
    shards = {name.replace("squares", "dying"): content for name, content in contents(other.data_path).items()}
    found = contents(tmp_path / "data" / "dying" / "1.0.0")
    assert {name for name in found if "tfrecord" in name} == {name for name in shards if "tfrecord" in name}
    assert all(found[name] == content for name, content in shards.items() if "tfrecord" in name)


def test_what_the_system_takes_in_parts_is_written_whole(tmp_path, monkeypatch):
    class Slowly:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, content):
            return self.file.write(content[:5])

    opened = spool._appended
    monkeypatch.setattr(spool, "_appended", lambda path: Slowly(opened(path)))
    with Spool(tmp_path, "train") as written:
        for number in range(50):
            written.add(number, b"record %d" % number, number)
        found = {record for place in written.places() for record in written.records(*place)}
    assert found == {b"record %d" % number for number in range(50)}


TOGETHER = """
import sys
from tests.catalog.test_prepare import Squares

class Slow(Squares):
    def make(self, n):
        if n == 0:
            print("working", flush=True)
            sys.stdin.readline()
        return super().make(n)

Slow(data_dir=sys.argv[1], each=False).download_and_prepare()
print("made", Slow.made, flush=True)
"""


@pytest.mark.system
def test_two_processes_do_not_do_the_same_work(tmp_path):
    script = tmp_path / "together.py"
    script.write_text(TOGETHER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])}
    start = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "env": environment,
        "text": True,
    }
    run = [sys.executable, str(script), str(tmp_path / "data")]
    with subprocess.Popen(run, **start) as first:
        try:
            assert first.stdout.readline() == "working\n"
            with subprocess.Popen(run, **start) as second:
                try:
                    assert "another process prepares it" in second.stderr.readline()
                    printed, _ = first.communicate("go\n", timeout=60)
                    waited, _ = second.communicate("go\n", timeout=60)
                finally:
                    second.kill()
        finally:
            first.kill()
    assert printed == "made 40\n"
    assert waited == "made 0\n"


def test_another_version_of_the_builder_begins_anew(tmp_path):
    made = Squares(data_dir=tmp_path, each=False)
    work = tmp_path / "squares" / "incomplete.1.0.0"
    with Spool(work / "train.spool", "train") as spool:
        spool.add("0.txt", b"what an older builder made of it", 0)
    (work / "plan.json").write_text("{}")
    made.download_and_prepare()
    assert sorted(int(row["n"]) for row in made.as_dataset("train")) == [n * n for n in range(40)]


def test_a_full_disk_is_told_and_gone_on_with(tmp_path, monkeypatch):
    made, write = Squares(data_dir=tmp_path), Spool.flush
    calls = []

    def full(spool):
        calls.append(spool)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(spool)

    monkeypatch.setattr(Spool, "flush", full)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 3_000_000})())
    with pytest.raises(FailedPreconditionError) as raised:
        made.download_and_prepare()
    assert_golden("catalog_prepare_disk_full", str(raised.value))
    assert [path.name for path in (tmp_path / "squares").iterdir()] == ["incomplete.1.0.0"]
    made.download_and_prepare()
    assert made.info.splits["train"].num_examples == 40


@pytest.mark.parametrize("made", [3, (1, 2, 3), {"n": 1}])
def test_what_is_no_pair_is_refused(tmp_path, made):
    class Odd(Squares):
        def make(self, n):
            return made

    for each in (True, False):
        with pytest.raises(InvalidTypeError, match="must yield pairs of a key and an example"):
            Odd(data_dir=tmp_path, each=each).download_and_prepare()


def test_a_key_that_comes_twice_names_itself(tmp_path):
    class Twice(Squares):
        def make(self, n):
            return "same" if n in (3, 4) else str(n), {"n": n, "text": ""}

    with pytest.raises(InvalidArgumentError, match="the key 'same' came twice in split 'train'"):
        Twice(data_dir=tmp_path).download_and_prepare()


# -- the spool -------------------------------------------------------------------------------------------------------

RECORDS = st.dictionaries(st.text(max_size=5), st.binary(max_size=50), max_size=30)


@settings(max_examples=40)
@given(RECORDS, st.integers(0, 30), st.integers(0, 60))
def test_what_a_kill_cuts_off_is_made_again(tmp_path_factory, records, kept, cut):
    folder = tmp_path_factory.mktemp("spool")
    with Spool(folder / "s", "train") as spool:
        for number, (key, record) in enumerate(list(records.items())[:kept]):
            spool.add(key, record, number)
    for path in sorted((folder / "s").iterdir())[cut % 64 : cut % 64 + 1]:  # the end of one of the files has gone
        path.write_bytes(path.read_bytes()[: -(cut % 7 + 1)])
    with Spool(folder / "s", "train") as spool:
        done = set(spool.numbers().tolist())
        assert done <= set(range(kept))
        assert spool.count == len(done)
        for number, (key, record) in enumerate(records.items()):
            if number not in done:
                spool.add(key, record, number)
        with Reporter().step("") as step:
            written = write_shards(spool, folder, "d", "train", step, 2)
    assert written.num_examples == len(records)
    assert written.num_bytes == sum(map(len, records.values()))
    from penstock import TFRecordDataset

    count = written.num_shards
    files = [str(folder / shard_name("d", "train", number, count)) for number in range(count)]
    assert sorted(TFRecordDataset(files)) == sorted(records.values())


@given(st.integers(0, 2**44), st.integers(1, 10**8))
def test_shards_are_as_many_as_tfds_writes(num_bytes, num_examples):
    shards = default_shards(num_bytes, num_examples)
    total = num_bytes + 16 * num_examples
    assert 1 <= shards <= num_examples
    if 1 < shards <= 1024:
        assert shards & (shards - 1) == 0
        assert total // shards >= 64 << 20


# -- the command line ------------------------------------------------------------------------------------------------


def test_a_builder_of_ones_own_is_prepared_by_its_module(tmp_path, monkeypatch, capsys):
    from penstock.cli import main

    (tmp_path / "my_data_of_tests.py").write_text(
        textwrap.dedent(
            """
            from penstock.catalog import Builder, BuilderConfig, DatasetInfo, features

            class MyData(Builder):
                VERSION = "1.0.0"

                def _info(self):
                    return DatasetInfo(features=features.FeaturesDict({"x": int}))

                def _split_generators(self, dl_manager):
                    assert dl_manager.name == "my_data"
                    return {"train": ((n, {"x": n}) for n in range(3))}

            class Sized(MyData):
                BUILDER_CONFIGS = (BuilderConfig(name="small"), BuilderConfig(name="big"))

                def _split_generators(self):
                    return {"test": [(0, {"x": 1 if self.builder_config.name == "big" else 0})]}
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["prepare", "my_data_of_tests:MyData", "--data-dir", str(tmp_path)]) == 0
    assert "my_data train: 3 examples, " in capsys.readouterr().out
    assert len(load("my_data", split="train", data_dir=tmp_path)) == 3
    assert main(["prepare", "my_data_of_tests:Sized/big", "--data-dir", str(tmp_path)]) == 0
    assert "sized test: 1 example, " in capsys.readouterr().out
    assert load("sized/big", split="test", data_dir=tmp_path)[0]["x"] == 1
    assert main(["prepare", "my_data_of_tests:Sized/huge"]) == 1
    assert "has no config 'huge'" in capsys.readouterr().err
    assert main(["prepare", "my_data_of_tests:Other"]) == 1
    assert "has no class 'Other'" in capsys.readouterr().err
    assert main(["prepare", "not_there_at_all:Other"]) == 1
    assert "there is no module 'not_there_at_all'" in capsys.readouterr().err
    assert Path.cwd() == tmp_path


CHEAP, SLOW = 5e-5, 2e-4


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        ([0.3, *[CHEAP] * 40], None),  # the first imports what it needs
        ([CHEAP, SLOW, SLOW, SLOW, *[CHEAP] * 40], None),  # another process was in between
        ([CHEAP, *[CHEAP, SLOW, CHEAP] * 20], None),
        ([CHEAP, 0.2, *[CHEAP] * 40], None),
        ([SLOW] * 40, 17),
        ([CHEAP] * 20 + [SLOW] * 20, 28),
        ([0.3, 0.03, 0.03, 0.03], 3),  # nobody waits for sixteen of those
        ([1.0, 1.0, 1.0], 3),
    ],
)
def test_what_is_dear_is_left_to_others(seconds, at):
    with making._Here() as here:
        found = None
        for number, took in enumerate(seconds, 1):
            here._note(took)
            if here.is_dear:
                found = number
                break
    assert found == at


def test_it_is_called_here_once_it_was_cheap(monkeypatch):
    monkeypatch.setattr(making, "_CHEAP", 1e9)
    with making._Here() as here:
        threads = [here(1, threading.get_ident) for _ in range(4)]
    assert threads[0] == threads[1] != threading.get_ident()
    assert threads[2:] == [threading.get_ident()] * 2


def behind(url):
    system = fsspec.filesystem("memory")
    return {name.rpartition("/")[2]: system.cat(name) for name in system.find(url)}


def test_what_is_prepared_behind_a_url_is_what_is_prepared_here(tmp_path, monkeypatch):
    """Also where sending is ended by an error: what was sent is not sent again, and nobody finds a part of it."""
    url, sent = "memory://prepare-test", []
    copied = prepare._copy

    def some(file, target):
        if len(sent) == 2:
            sent.append("failed")
            raise ConnectionError("the network is gone")
        copied(file, target)
        sent.append(Path(target).name)

    monkeypatch.setattr(prepare, "_SENDERS", 1)
    monkeypatch.setattr(prepare, "_copy", some)
    Squares.made = 0
    there = Squares(data_dir=url)
    with pytest.raises(ConnectionError):
        there.download_and_prepare(download_dir=tmp_path / "downloads")
    assert not there.is_prepared
    there.download_and_prepare(download_dir=tmp_path / "downloads")
    assert Squares.made == 40
    assert sent[2] == "failed"
    assert len(sent) == len(set(sent))
    assert sent[-1] == "dataset_info.json"
    assert list((tmp_path / "downloads").iterdir()) == []
    here = Squares(data_dir=tmp_path)
    here.download_and_prepare()
    assert behind(str(there.data_path)) == contents(here.data_path)
    assert [int(x["n"]) for x in there.as_dataset("train")] == [int(x["n"]) for x in here.as_dataset("train")]
    before = len(sent)
    Squares(data_dir=url).download_and_prepare()
    assert len(sent) == before


def test_who_comes_second_to_a_url_leaves_what_is_there(tmp_path, monkeypatch):
    url, copied = "memory://prepare-second-test", prepare._copy
    first, second = (Squares(data_dir=url) for _ in range(2))

    def other_was_faster(file, target):
        monkeypatch.setattr(prepare, "_copy", copied)
        first.download_and_prepare(download_dir=tmp_path / "first")
        copied(file, target)

    monkeypatch.setattr(prepare, "_SENDERS", 1)
    monkeypatch.setattr(prepare, "_copy", other_was_faster)
    second.download_and_prepare(download_dir=tmp_path / "second")
    assert len(list(second.as_dataset("train"))) == 40
    assert [list((tmp_path / each).iterdir()) for each in ("first", "second")] == [[], []]


def test_what_is_being_removed_behind_a_url_is_waited_for(tmp_path, monkeypatch, capsys):
    """And what a removal takes away while others send is sent again."""
    there, copied, sent = Squares(data_dir="memory://prepare-removed-test"), prepare._copy, []
    lease = take_lease(str(there.data_path))

    def removed_behind(file, target):
        assert lease._over.is_set()
        copied(file, target)
        sent.append(Path(target).name)
        if len(sent) == 1:
            storage.remove(target)

    monkeypatch.setattr(prepare, "_copy", removed_behind)
    monkeypatch.setattr(prepare, "time", SimpleNamespace(sleep=lambda seconds: lease.release()))
    there.download_and_prepare(download_dir=tmp_path)
    assert "squares: what was there before is being removed; waiting for that" in capsys.readouterr().err
    assert sent.count(sent[0]) == 2
    assert len(list(there.as_dataset("train"))) == 40
