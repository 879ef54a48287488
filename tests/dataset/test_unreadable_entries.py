"""Manifests and folders that are damaged, lost, or none: caches are made anew, snapshots say what to do."""

import os
import shutil

import pytest
from tests.dataset.entries import (
    COUNT,
    KINDS,
    RANGE,
    WANTED,
    begin,
    by_kind,
    close,
    damage,
    entry_of,
    entry_of_writing,
    is_complete,
    square,
    squares,
    values,
)
from tests.positions import given, positions, stage_of, texts

import penstock as ps
from penstock import errors
from penstock.store.lock import take


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)


# -- manifests


def lose(path):
    path.unlink()


def of_another_format(path):
    import crc32c

    text = path.read_bytes().replace(b'"format": 2', b'"format": 1').rpartition(b',\n "crc32c"')[0]
    path.write_bytes(text + b',\n "crc32c": %d\n}\n' % crc32c.crc32c(text))


MANIFESTS = {
    "a bit": (damage, "checksum"),
    "cut short": (lambda path: os.truncate(path, 50), "cannot be read"),
    "empty": (lambda path: os.truncate(path, 0), "cannot be read"),
    "of something else": (lambda path: path.write_text("[]"), "cannot be read"),
    "of another format": (of_another_format, "format 1"),
    "lost": (lose, "there is no manifest.json"),
}


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("stopped", [8, COUNT + 1])
def test_a_cache_whose_manifest_cannot_be_read_is_made_anew(name, stopped, tmp_path, caplog):
    begin(squares().cache(tmp_path), stopped)
    entry = entry_of(tmp_path)
    spoil, said = MANIFESTS[name]
    spoil(entry / "manifest.json")
    assert int(squares().cache(tmp_path).at(3)) == WANTED[3]
    caplog.clear()
    assert values(squares().cache(tmp_path)) == WANTED
    (text,) = [record.message for record in caplog.records]
    assert text.startswith(f"{entry}: the stored elements (")
    assert said in text
    assert "kB) are computed and written again" in text
    assert is_complete(tmp_path)
    caplog.clear()
    assert values(squares().cache(tmp_path)) == WANTED
    assert sorted(values(squares().cache(tmp_path).shuffle(ps.ALL))) == WANTED
    assert not caplog.records


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name != "lost"])
def test_a_snapshot_whose_manifest_cannot_be_read_says_what_to_do(name, tmp_path):
    ds = squares().snapshot(tmp_path)
    values(ds)
    entry = entry_of(tmp_path)
    spoil, said = MANIFESTS[name]
    spoil(entry / "manifest.json")
    for ask in (lambda: values(ds), lambda: values(squares().snapshot(tmp_path)), lambda: ds.at(0)):
        with pytest.raises((errors.DataLossError, errors.FailedPreconditionError), match=said) as caught:
            ask()
        assert caught.value.context.file == str(entry / "manifest.json")
        assert caught.value.context.where.startswith(__file__)
        assert f"Delete the folder {str(entry)!r}" in caught.value.hint
    shutil.rmtree(entry)
    assert values(ds) == WANTED


def test_a_manifest_that_is_damaged_when_the_lock_is_taken_leaves_it_free(tmp_path, monkeypatch):
    begin(squares().snapshot(tmp_path), 5)
    entry = entry_of(tmp_path)

    def spoiled(folder):
        (entry / "manifest.json").write_text("[]")
        return take(folder)

    monkeypatch.setattr("penstock.store.snapshot_store.take", spoiled)
    assert values(squares().snapshot(tmp_path)) == WANTED
    lock = take(str(entry))
    assert lock is not None
    lock.release()


def test_an_entry_that_becomes_unreadable_ends_a_follower_once(tmp_path):
    begin(squares().snapshot(tmp_path), 6)
    stage = stage_of(ps.Dataset.load(entry_of(tmp_path), wait=True))
    manifest = entry_of(tmp_path) / "manifest.json"
    elements = given(stage, 2)
    assert int(next(elements)) == 0
    manifest.write_text("[]")
    found = texts(elements)
    assert found[-1] == "DataLossError"
    assert found.count("DataLossError") == 1


@pytest.mark.parametrize(("kind", "said"), [("snapshot", "continues without the files in"), ("cache", "written again")])
def test_a_pass_goes_on_without_an_entry_that_becomes_unreadable(kind, said, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("penstock.physical.storage._LOOK", 0.0)
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1 << 24)  # so that there is nothing to read meanwhile
    ds = KINDS[kind](tmp_path)
    one, other = iter(ds), iter(ds)
    assert int(next(one)) == int(next(other)) == 0
    (entry_of_writing(tmp_path) / "manifest.json").write_text("[]")
    assert values(other) == WANTED[1:]
    assert said in caplog.text
    one.close()


# -- what may not be read


@by_kind
def test_a_folder_of_somebody_else_s_disturbs_no_other_pipeline(kind, tmp_path, monkeypatch):
    values(squares().cache(tmp_path))
    close(monkeypatch, entry_of(tmp_path))
    assert values(KINDS[kind](tmp_path, RANGE(5))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("stopped", [8, COUNT + 1])
def test_a_cache_that_may_not_be_read_is_made_in_the_pass(stopped, tmp_path, monkeypatch, caplog):
    begin(squares().cache(tmp_path), stopped)
    entry = entry_of(tmp_path)
    close(monkeypatch, entry)
    ds = squares().cache(tmp_path)
    assert values(ds) == values(ds) == WANTED
    assert int(ds.at(3)) == WANTED[3]
    said = [record.message for record in caplog.records]
    assert (
        sum(
            text.startswith(f"{entry}: the stored elements are computed again, as they cannot be read") for text in said
        )
        == 1
    )
    assert any("nothing is written to" in text for text in said)


def test_a_snapshot_that_may_not_be_read_is_an_error_on_the_users_line(tmp_path, monkeypatch):
    values(squares().snapshot(tmp_path))
    close(monkeypatch, entry_of(tmp_path))
    ds = squares().snapshot(tmp_path)
    for ask in (lambda: values(ds), lambda: ds.at(0)):
        with pytest.raises(PermissionError) as caught:
            ask()
        assert "manifest.json" in str(caught.value)
        assert any(__file__ in note for note in caught.value.__notes__)


def test_a_file_of_a_cache_that_may_not_be_read_is_made_once_more(tmp_path, monkeypatch):
    values(squares().cache(tmp_path))

    def refused(name):
        raise PermissionError(13, "Permission denied", name)

    with monkeypatch.context() as patched:
        patched.setattr("penstock.store.chunk_files._whole", refused)
        assert values(squares().cache(tmp_path)) == WANTED
        with pytest.raises(PermissionError):
            values(ps.Dataset.load(entry_of(tmp_path)))
    assert values(squares().cache(tmp_path)) == WANTED


# -- folders that go, or are none


@by_kind
@pytest.mark.parametrize("stopped", [9, COUNT + 1])
def test_a_folder_that_is_removed_while_a_pass_reads_it(kind, stopped, tmp_path):
    begin(KINDS[kind](tmp_path), stopped)
    stage = stage_of(KINDS[kind](tmp_path))
    elements = given(stage, 2)
    first = [int(next(elements)) for _ in range(3)]
    shutil.rmtree(entry_of(tmp_path))
    assert first + texts(elements) == WANTED
    stage.close()
    assert values(KINDS[kind](tmp_path)) == WANTED
    assert is_complete(tmp_path)


def test_a_cache_that_is_removed_goes_on_by_number(tmp_path):
    values(squares().cache(tmp_path))
    ds = squares().cache(tmp_path)
    assert int(ds.at(0)) == 0
    shutil.rmtree(tmp_path)
    assert [int(ds.at(number)) for number in range(COUNT)] == WANTED


def test_in_free_order_files_that_are_gone_end_the_pass_with_an_error(tmp_path):
    """What was read from them is not known any more, so nobody can tell what is left."""
    options = ps.Options(deterministic=False)
    ds = RANGE(40).map(square, num_parallel_calls=2).snapshot(tmp_path).with_options(options)
    begin(ds, 9)
    stage = stage_of(ds)
    elements = given(stage, 2)
    next(elements)
    shutil.rmtree(entry_of(tmp_path))
    found = texts(elements)
    assert found[-1] == "FailedPreconditionError"
    stage.close()


@by_kind
def test_what_is_no_folder(kind, tmp_path, caplog):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(errors.InvalidArgumentError, match=f"{kind} writes into a folder, and .* is a file"):
        KINDS[kind](tmp_path / "file")
    ds = KINDS[kind](tmp_path / "kept")
    values(ds)
    entry = entry_of(tmp_path / "kept")
    shutil.rmtree(entry)
    entry.write_text("mine")
    assert values(ds) == values(KINDS[kind](tmp_path / "kept")) == WANTED
    assert "nothing is written" in caplog.text
    assert entry.read_text() == "mine"


@by_kind
def test_an_element_that_fails_in_the_middle_is_tried_again_by_the_next_pass(kind, tmp_path):
    switch = tmp_path / "switch"
    switch.touch()

    def failing(x):
        if x == 7 and switch.exists():
            raise ValueError("seven")
        return x * x

    ds = KINDS[kind](tmp_path / "kept", RANGE(COUNT).map(failing))
    for _ in range(2):
        assert texts(positions(ds)) == [*WANTED[:7], "ValueError", *WANTED[8:]]
    switch.unlink()
    assert values(ds) == WANTED
    assert is_complete(tmp_path / "kept")


@by_kind
def test_pipelines_of_different_kinds_of_elements_share_a_path(kind, tmp_path):
    text = RANGE(3).map(lambda x: (x, b"x" * int(x)))
    for _ in range(2):
        assert values(KINDS[kind](tmp_path)) == WANTED
        assert [row for _, row in KINDS[kind](tmp_path, text)] == [b"", b"x", b"xx"]
