"""Data that lives elsewhere: sources, saved sets, snapshots, caches and large states on every kind of server.

`make test` asks the memory of this process and a web server. `make remote` installs what the others need, and asks S3
and Google's storage as moto and gcp-storage-emulator speak them; `make test-hdfs` a real HDFS, by both of its ways.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import fsspec
import numpy as np
import pytest
from tests.remote import hdfs_rig, servers

import penstock as ps
from penstock import errors
from penstock.cli import main
from penstock.io.remote.system import full_name
from penstock.testing import assert_same_elements

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]
RIG = os.environ.get("PENSTOCK_HDFS")
KINDS = ["memory", *(["hdfs", "webhdfs"] if RIG else ["s3", "gs"])]
seen_by_other_processes = pytest.mark.parametrize("server", KINDS[1:], indirect=True)


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    with hdfs_rig.running(Path(RIG), tmp_path_factory.mktemp("hdfs")) as found:
        yield found


@pytest.fixture(scope="module", params=KINDS)
def server(request):
    """The URL of a place that can be written to."""
    kind = request.param
    with ExitStack() as stack:
        if kind == "memory":
            yield "memory://everywhere"
        elif kind in ("hdfs", "webhdfs"):
            yield request.getfixturevalue("hdfs")[kind == "webhdfs"]
        else:
            packages = {"s3": ("s3fs", "moto"), "gs": ("gcsfs", "gcp_storage_emulator")}[kind]
            if "PENSTOCK_REMOTE_TESTS" not in os.environ:
                pytest.skip("part of `make remote`")
            for package in packages:
                pytest.importorskip(package)
            yield stack.enter_context({"s3": servers.s3, "gs": servers.gs}[kind]())


@pytest.fixture
def place(server, request):
    """A folder of a test's own there."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    yield f"{server}/{name}"
    system, path = fsspec.core.url_to_fs(f"{server}/{name}")
    system.invalidate_cache()
    if system.exists(path):
        system.rm(path, recursive=True)


def records(count=60, size=4000):
    noise = np.random.default_rng(0)
    return [noise.bytes(size) for _ in range(count)]


def write(name, wanted):
    with ps.io.TFRecordWriter(name) as writer:
        for record in wanted:
            writer.write(record)


def square(x):
    return x * x


def test_sources_are_read(place):
    wanted = records()
    for part in range(3):
        write(f"{place}/part-{part}.tfrecord", wanted[part * 20 : part * 20 + 20])
    names = ps.Dataset.list_files(f"{place}/part-*.tfrecord", shuffle=False)
    assert list(names.interleave(ps.TFRecordDataset, cycle_length=1)) == wanted
    reading = iter(ps.TFRecordDataset([f"{place}/part-{part}.tfrecord" for part in range(3)]))
    assert [next(reading) for _ in range(25)] == wanted[:25]
    again = iter(ps.TFRecordDataset([f"{place}/part-{part}.tfrecord" for part in range(3)]))
    again.load_state_dict(reading.state_dict())
    assert list(again) == wanted[25:]
    with pytest.raises(errors.NotFoundError):
        list(ps.TFRecordDataset(f"{place}/part-9.tfrecord"))


def test_what_is_replaced_while_it_is_read_is_found(place):
    wanted = records(1500, 4000)  # more than is read ahead
    write(f"{place}/a.tfrecord", wanted)
    reading = iter(ps.TFRecordDataset(f"{place}/a.tfrecord"))
    assert next(reading) == wanted[0]
    write(f"{place}/a.tfrecord", wanted[::-1][:1200])
    with pytest.raises(errors.DataLossError):
        list(reading)


def test_saved_sets_are_written_and_replaced(place):
    ps.Dataset.range(30).map(square).save(f"{place}/saved")
    ps.Dataset.range(100).map(square).save(f"{place}/saved", shard_func=lambda x: x % 3)
    saved = ps.Dataset.load(f"{place}/saved")
    assert sorted(int(x) for x in saved) == [x * x for x in range(100)]
    assert len(saved) == 100
    assert len({int(x) for x in saved.shuffle(ps.ALL).take(50)}) == 50
    system, path = fsspec.core.url_to_fs(f"{place}/saved")
    system.invalidate_cache()
    assert len(system.find(path)) == 3  # a manifest and a file for each of two shards: what was there before is gone
    with pytest.raises(KeyError):
        ps.Dataset.range(9).map(lambda x: {}[x]).save(f"{place}/saved")
    assert len(ps.Dataset.load(f"{place}/saved")) == 100


@pytest.mark.parametrize("step", ["snapshot", "cache"])
def test_passes_go_on_behind_each_other(place, step, tmp_path):
    name = str(tmp_path / "calls")

    def counted(x):
        with Path(name).open("a") as calls:
            calls.write("x")
        return x * x

    def kept():
        return getattr(ps.Dataset.range(80).map(counted), step)(f"{place}/{step}")

    with iter(kept()) as elements:
        assert [int(next(elements)) for _ in range(9)] == [x * x for x in range(9)]
        state = elements.state_dict()
    assert [int(x) for x in kept()] == [x * x for x in range(80)]
    assert Path(name).stat().st_size == 80
    assert len(kept()) == 80
    assert int(kept()[7]) == 49
    rest = iter(kept())
    rest.load_state_dict(state)
    assert [int(x) for x in rest] == [x * x for x in range(9, 80)]
    assert Path(name).stat().st_size == 80


@seen_by_other_processes
def test_a_pass_that_is_killed_leaves_what_it_has_made(place):
    script = (
        "import os, penstock as ps, penstock.store.entry_writer as w, penstock.store.journal as j\n"
        "w._BYTES = 1\n"
        "append = j.JournalWriter.append\n"
        "def dying(self, commits, commit):\n"
        "    os._exit(1) if commits else append(self, commits, commit)\n"
        "j.JournalWriter.append = dying\n"
        f"list(ps.Dataset.range(50).map(lambda x: x * x).snapshot({place + '/snapshot'!r}))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 1
    entry = ps.Dataset.load(next(iter_files(f"{place}/snapshot", "manifest.json")))
    assert 0 < len(list(entry)) < 50
    dataset = ps.Dataset.range(50).map(lambda x: x * x).snapshot(f"{place}/snapshot")
    assert [int(x) for x in dataset] == [x * x for x in range(50)]


def iter_files(url, name):
    """The folders below a URL in which there is a file of that name."""
    system, path = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    for found in system.find(path):
        if found.endswith(f"/{name}"):
            yield full_name(system, found, url, path).removesuffix(f"/{name}")


@seen_by_other_processes
def test_workers_write_a_saved_set(place):
    dataset = ps.Dataset.range(500).shuffle(50).map(square).batch(10)
    ps.service.distributed_save(dataset, f"{place}/saved", workers=2)
    assert_same_elements(list(ps.Dataset.load(f"{place}/saved")), list(dataset.iterator(epoch=0)))


@seen_by_other_processes
def test_workers_read_from_there(place):
    wanted = records()
    write(f"{place}/a.tfrecord", wanted)
    assert list(ps.TFRecordDataset(f"{place}/a.tfrecord").map(lambda x: x[::-1]).distribute(workers=2)) == [
        record[::-1] for record in wanted
    ]


def test_large_states_go_there(place):
    dataset = ps.Dataset.range(20).scan(b"x" * 6000, lambda state, x: (state, x))
    elements = iter(dataset)
    assert [int(next(elements)) for _ in range(5)] == [0, 1, 2, 3, 4]
    state = elements.state_dict(f"{place}/state")
    again = iter(dataset)
    again.load_state_dict(state)
    assert [int(x) for x in again] == list(range(5, 20))


def test_prepared_data_sets_are_read_from_there(place, tmp_path):
    kwargs = {"builder_kwargs": {"num_examples": 24}, "split": "train[25%:]"}
    local = ps.catalog.load("shapes", data_dir=tmp_path, **kwargs)
    system, path = fsspec.core.url_to_fs(place)
    system.put(f"{tmp_path}/", f"{path}/", recursive=True)
    there = ps.catalog.load("shapes", data_dir=place, **kwargs)
    assert_same_elements(list(there), list(local))
    assert len(there) == len(local)
    assert_same_elements([there[5]], [local[5]])
    (version,) = iter_files(place, "dataset_info.json")
    assert ps.catalog.builder_from_directory(version).info.name == "shapes"
    with pytest.raises(errors.NotFoundError):
        ps.catalog.builder_from_directory(f"{place}/shapes")


def test_data_sets_are_prepared_there(place, tmp_path, capsys):
    """And caches listed and removed, by the command line."""
    kwargs = {"builder_kwargs": {"num_examples": 16}, "split": "train"}
    where = {"download_and_prepare_kwargs": {"download_dir": tmp_path / "downloads"}}
    there = ps.catalog.load("shapes", data_dir=f"{place}/sets", **kwargs, **where)
    assert_same_elements(list(there), list(ps.catalog.load("shapes", data_dir=tmp_path, **kwargs)))
    assert main(["catalog", "remove", "shapes/16_examples", "--data-dir", f"{place}/sets", "--yes"]) == 0
    assert not list(iter_files(f"{place}/sets", "dataset_info.json"))
    list(ps.Dataset.range(9).map(lambda x: x).cache(f"{place}/kept"))
    capsys.readouterr()
    assert main(["cache", "ls", f"{place}/kept", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["elements"], entry["complete"], entry["writer"]) == (9, True, None)
    assert entry["bytes"] > 0
    assert main(["cache", "rm", f"{place}/kept", "--older-than", "1"]) == 0
    assert main(["cache", "rm", f"{place}/kept", entry["key"]]) == 0
    assert main(["cache", "ls", f"{place}/kept"]) in (0, 1)  # a file system with folders has an empty one
    assert entry["key"][:12] not in capsys.readouterr().out.rpartition("removed")[2]


@pytest.mark.skipif("PENSTOCK_REMOTE_TESTS" not in os.environ, reason="part of `make remote`")
@pytest.mark.parametrize("seed", range(3))
def test_one_request_in_a_hundred_fails_and_nothing_is_missing(seed):
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    wanted = records(800, 20_000)
    with servers.s3("--faults", "0.01", "--seed", str(seed)) as place:
        names = [f"{place}/faults/{part}.tfrecord" for part in range(8)]
        for part, name in enumerate(names):
            write(name, wanted[part * 100 : part * 100 + 100])
        for _ in range(3):
            assert list(ps.Dataset.list_files(names, shuffle=False).flat_map(ps.TFRecordDataset)) == wanted
        kept = ps.TFRecordDataset(names).snapshot(f"{place}/faults/snapshot")
        assert list(kept) == list(kept) == wanted
        ps.TFRecordDataset(names).save(f"{place}/faults/saved")
        assert list(ps.Dataset.load(f"{place}/faults/saved")) == wanted


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "whole"])
def test_a_web_server_is_read_with_ranges_and_without(tmp_path, ranges):
    pytest.importorskip("aiohttp")
    wanted = records(300, 4000)
    write(tmp_path / "a.tfrecord", wanted)
    ps.Dataset.range(50).save(tmp_path / "saved")
    with servers.web(tmp_path, ranges=ranges) as url:
        assert list(ps.TFRecordDataset(f"{url}/a.tfrecord")) == wanted
        reading = iter(ps.TFRecordDataset(f"{url}/a.tfrecord"))
        assert [next(reading) for _ in range(200)] == wanted[:200]
        again = iter(ps.TFRecordDataset(f"{url}/a.tfrecord"))
        again.load_state_dict(reading.state_dict())
        assert list(again) == wanted[200:]
        assert [int(x) for x in ps.Dataset.load(f"{url}/saved")] == list(range(50))
        with pytest.raises(errors.InvalidArgumentError, match="web servers are read-only"):
            ps.Dataset.range(3).save(f"{url}/new")
        with pytest.raises(errors.InvalidArgumentError, match="web servers are read-only"):
            ps.catalog.load("shapes", data_dir=f"{url}/new")
