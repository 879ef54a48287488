"""SavedWriter: files that stay, and files that are removed."""

import dataclasses

import fsspec
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.store import saved_writer
from penstock.store.saved_writer import SavedWriter


def writer_in(folder, count=3):
    writer = SavedWriter(str(folder), plan="p", codec=None)
    writer.add(Block.from_elements(list(range(count))))
    return writer


def runs_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def loaded(folder):
    return [int(x) for x in ps.Dataset.load(folder)]


def test_an_interrupt_after_the_manifest_was_written_keeps_the_files(tmp_path, monkeypatch):
    write_manifest = saved_writer.write_manifest

    def interrupted(*args, **kwargs):
        write_manifest(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(saved_writer, "write_manifest", interrupted)
    writer = writer_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        writer.commit()
    writer.discard()
    assert loaded(tmp_path) == [0, 1, 2]


def test_after_the_commit_files_stay_while_the_manifest_is_away(tmp_path):
    writer = writer_in(tmp_path)
    writer.commit()
    (tmp_path / "manifest.json").rename(tmp_path / "aside")
    writer.discard()
    (tmp_path / "aside").rename(tmp_path / "manifest.json")
    assert loaded(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("names", ["f0", "0f"])
def test_at_a_url_the_files_of_a_replaced_save_are_removed(names, monkeypatch):
    system = fsspec.filesystem("memory")
    for name, count in zip(names, (3, 5), strict=True):
        monkeypatch.setattr(saved_writer, "token_hex", lambda _, name=name: name * 12)
        writer = writer_in("memory://saved-writer-test", count)
        writer.commit()
        writer.discard()
    assert loaded("memory://saved-writer-test") == [0, 1, 2, 3, 4]
    runs = {path.split("/")[2] for path in system.find("/saved-writer-test")}
    assert runs == {"manifest.json", f"data-{names[1] * 12}"}
    system.rm("/saved-writer-test", recursive=True)


def test_files_without_a_manifest_are_removed(tmp_path):
    writer = writer_in(tmp_path)
    writer._write(0)
    assert len(runs_in(tmp_path)) == 1
    writer.discard()
    writer.discard()
    assert runs_in(tmp_path) == []


def test_files_that_no_worker_has_reported_are_removed(tmp_path):
    other = writer_in(tmp_path)
    other._write(0)
    writer = SavedWriter(str(tmp_path), plan="p", codec=None)
    run = tmp_path / writer.run()
    (tmp_path / other._run).rename(tmp_path / "aside")
    (chunk,) = other._chunks
    name = f"{run.name}/{chunk.file.partition('/')[2]}"
    (tmp_path / "aside" / chunk.file.partition("/")[2]).rename(tmp_path / name)
    (run / "shard_00000_00001.arrow").write_bytes(b"stray")
    writer.adopt([dataclasses.replace(chunk, file=name)], ps.TensorSpec((), int))
    writer.commit()
    writer.discard()
    assert [path.name for path in run.iterdir()] == [name.partition("/")[2]]
    assert loaded(tmp_path) == [0, 1, 2]
