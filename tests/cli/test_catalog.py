"""`penstock catalog`: what it prints, what it leaves on disk, and with which status it ends."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress

import fsspec
import pytest

from penstock.cli import main
from penstock.store.lock import take_lease


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    assert main(["catalog", "prepare", "shapes", "--examples", "8", "--data-dir", str(folder)]) == 0
    return folder


@pytest.fixture
def data_dir(made, tmp_path):
    return shutil.copytree(made, tmp_path / "data")


def _shard(data_dir):
    return next(data_dir.rglob("*-train.tfrecord-00000-*"))


def test_list_shows_what_is_there_and_what_could_be(data_dir, capsys):
    assert main(["catalog", "list", "--data-dir", str(data_dir)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["data", "set", "examples", "size", "folder"]
    assert any(line.startswith("shapes/8_examples/1.0.0") and " 10 " in line for line in lines)
    assert any(line.split() == ["mnist", "not", "prepared;", "11.6", "MB", "to", "download"] for line in lines)


def test_list_as_json_names_a_damaged_one(data_dir, capsys):
    next(data_dir.rglob("dataset_info.json")).write_text("{")
    assert main(["catalog", "list", "--prepared", "--json", "--data-dir", str(data_dir)]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["config"], row["version"], row["prepared"]) == ("shapes", "8_examples", "1.0.0", True)
    assert "does not describe a prepared data set" in row["problem"]


def test_list_of_nothing(tmp_path, capsys):
    assert main(["catalog", "list", "--prepared", "--data-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing is prepared\n"


def test_info_names_features_and_splits(data_dir, capsys):
    assert main(["catalog", "info", "shapes", "--data-dir", str(data_dir)]) == 0
    printed = capsys.readouterr().out
    assert "label: ClassLabel" in printed
    assert [line.split()[:2] for line in printed.splitlines() if line.startswith(("train", "test"))] == [
        ["train", "8"],
        ["test", "2"],
    ]
    assert main(["catalog", "info", "shapes", "--json", "--data-dir", str(data_dir)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["prepared"]
    assert told["splits"][0]["shardLengths"]


def test_info_of_what_is_not_prepared(tmp_path, capsys):
    assert main(["catalog", "info", "mnist", "--data-dir", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "folder: not prepared\n  download: 11.6 MB\n" in told
    assert [line.split() for line in told.splitlines() if line.startswith(("train", "test"))] == [
        ["train", "60,000"],
        ["test", "10,000"],
    ]
    assert main(["catalog", "info", "emnist/digits", "--json", "--data-dir", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["expectedExamples"] == {"train": 240_000, "test": 40_000}
    assert main(["catalog", "info", "emnist", "--data-dir", str(tmp_path)]) == 0
    assert "configs: byclass, bymerge, balanced, letters, digits, mnist\n" in capsys.readouterr().out


def test_verify_counts_whole_examples(data_dir, capsys):
    assert main(["catalog", "verify", "shapes", "--decode", "--data-dir", str(data_dir)]) == 0
    printed = capsys.readouterr()
    assert "train: 8 of 8 examples are whole" in printed.out
    assert "test: 2 of 2 examples are whole" in printed.out


def test_verify_finds_a_changed_byte(data_dir, capsys):
    shard = _shard(data_dir)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    assert main(["catalog", "verify", "shapes", "--data-dir", str(data_dir)]) == 1
    printed = capsys.readouterr()
    assert "train: 7 of 8 examples are whole" in printed.out
    assert printed.err.count(str(shard)) == 1


def test_verify_finds_a_missing_shard(data_dir, capsys):
    shard = _shard(data_dir)
    shard.unlink()
    assert main(["catalog", "verify", "shapes", "--data-dir", str(data_dir)]) == 1
    printed = capsys.readouterr()
    assert "train: 7 of 8" in printed.out  # an example a shard
    assert printed.err.startswith(f"penstock: There is no file {str(shard)!r}")
    assert printed.err.count("\n") == 1


def test_remove_asks_and_leaves_nothing(data_dir, capsys):
    arguments = ["catalog", "remove", "shapes", "--data-dir", str(data_dir)]
    assert main(arguments) == 1
    assert "Give --yes." in capsys.readouterr().err
    assert _shard(data_dir).exists()
    assert main([*arguments, "--yes"]) == 0
    assert capsys.readouterr().out.startswith(f"removed {data_dir / 'shapes' / '8_examples' / '1.0.0'}")
    assert not (data_dir / "shapes").exists()
    assert main([*arguments, "--yes"]) == 1
    assert "`penstock catalog prepare shapes` writes it" in capsys.readouterr().err


def test_what_lies_behind_a_url_is_listed_verified_and_removed(data_dir, capsys):
    system, place = fsspec.filesystem("memory"), "memory://cli-catalog-test/shapes/8_examples/1.0.0"
    system.put(str(data_dir / "shapes"), "/cli-catalog-test/shapes", recursive=True)
    try:
        where = ["shapes/8_examples", "--data-dir", "memory://cli-catalog-test"]
        assert main(["catalog", "verify", *where]) == 0
        assert "train: 8 of 8 examples are whole" in capsys.readouterr().out
        assert main(["catalog", "list", "--prepared", "--json", *where[1:]]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["name"], row["config"], row["folder"]) == ("shapes", "8_examples", place)
        assert main(["catalog", "remove", *where]) == 1
        assert "Give --yes." in capsys.readouterr().err
        lease = take_lease(place)
        assert main(["catalog", "remove", *where, "--yes"]) == 1
        assert f"{place} is being removed, or prepared, by another process" in capsys.readouterr().err
        lease.release()
        assert main(["catalog", "remove", *where, "--yes"]) == 0
        assert capsys.readouterr().out.startswith(f"removed {place}, ")
        assert not system.find("/cli-catalog-test")
    finally:
        with suppress(FileNotFoundError):
            system.rm("/cli-catalog-test", recursive=True)
