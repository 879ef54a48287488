"""Image files in directories: selection, order and labels."""

import os

import numpy as np
import pytest
from tests.golden.golden import assert_golden
from tests.sources.numbers import everything_by_number
from tests.sources.passes import everything

import penstock as ps
from penstock import errors


@pytest.fixture
def folder(tmp_path):
    """Write two classes whose names sort differently as words and as paths, and files that are no images of a class."""
    names = ["a/2.PNG", "a/1.jpg", "a/deep/er/0.jpeg", "a-b/1.bmp", "top.png", "a/notes.txt", "a/.hidden.png"]
    for name in [*names, ".git/x.png"]:
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "images"


def plain(found):
    return [(image, int(label)) for image, label in found]


def test_files_are_sorted_by_class_and_path(folder):
    ds = ps.ImageFolderDataset(folder)
    assert ds.class_names == ["a", "a-b"]
    wanted = [(b"a/1.jpg", 0), (b"a/2.PNG", 0), (b"a/deep/er/0.jpeg", 0), (b"a-b/1.bmp", 1)]
    assert plain(everything_by_number(ds)) == wanted
    assert ds.element_spec == (ps.TensorSpec((), bytes), ps.TensorSpec((), np.int64))
    assert len(ds) == 4
    assert isinstance(ds, ps.Dataset)


def test_class_names_give_the_order_of_labels(folder):
    ds = ps.ImageFolderDataset(folder, class_names=["a-b", "a"])
    assert ds.class_names == ["a-b", "a"]
    assert [label for _, label in plain(ds)] == [1, 1, 1, 0]


def test_without_labels_all_images_are_elements(folder):
    ds = ps.ImageFolderDataset(folder, labels=None)
    assert everything_by_number(ds) == [b"a/1.jpg", b"a/2.PNG", b"a/deep/er/0.jpeg", b"a-b/1.bmp", b"top.png"]
    assert ds.class_names is None


def test_given_labels_stand_beside_the_files(folder):
    labels = np.array([5, 4, 3, 2, 1], np.int8)
    assert [label for _, label in plain(ps.ImageFolderDataset(folder, labels=labels))] == [5, 4, 3, 2, 1]


def test_other_extensions(folder):
    assert plain(ps.ImageFolderDataset(folder / "..", extensions=["txt"]))[0][0] == b"a/notes.txt"


def test_a_relative_directory_and_one_with_odd_characters(folder, monkeypatch):
    odd = folder.parent / "od[d]*"
    folder.rename(odd)
    monkeypatch.chdir(folder.parent)
    for name in (odd, "od[d]*", "./od[d]*/", os.fsencode(odd)):
        assert len(ps.ImageFolderDataset(name)) == 4


def test_a_file_that_cannot_be_read_is_one_failure(folder):
    ds = ps.ImageFolderDataset(folder)
    (folder / "a" / "2.PNG").unlink()
    found = everything_by_number(ds)
    assert isinstance(found[1], errors.NotFoundError)
    assert plain(found[2:]) == [(b"a/deep/er/0.jpeg", 0), (b"a-b/1.bmp", 1)]


def test_files_know_where_they_were_read(folder):
    block = ps.ImageFolderDataset(folder)._plan.source.open().read(4)
    assert block.origin.at(3) == (str(folder / "a-b" / "1.bmp"), 0)


def test_large_files_are_handed_over_as_they_come(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.png").write_bytes(bytes(700_000))
    source = ps.ImageFolderDataset(tmp_path, labels=None)._plan.source
    assert source.open().read(4).size == 2
    assert len(everything(ps.ImageFolderDataset(tmp_path, labels=None))) == 4


def test_images_of_a_url(folder):
    import fsspec

    system = fsspec.filesystem("memory")
    system.put(str(folder), "/image-folder-test", recursive=True)
    try:
        ds = ps.ImageFolderDataset("memory://image-folder-test")
        assert ds.class_names == ["a", "a-b"]
        assert plain(everything_by_number(ds)) == plain(ps.ImageFolderDataset(folder))
    finally:
        system.rm("/image-folder-test", recursive=True)


ARGUMENTS = {
    "missing": lambda folder: ps.ImageFolderDataset(folder / "missing"),
    "empty_class": lambda folder: (folder / "zebra").mkdir() or ps.ImageFolderDataset(folder),
    "class_names": lambda folder: ps.ImageFolderDataset(folder, class_names=["a", "b"]),
    "class_names_beside_labels": lambda folder: ps.ImageFolderDataset(folder, None, ["a", "b"]),
    "labels_count": lambda folder: ps.ImageFolderDataset(folder, labels=[1, 2]),
    "labels_text": lambda folder: ps.ImageFolderDataset(folder, labels="int"),
    "labels_float": lambda folder: ps.ImageFolderDataset(folder, labels=[0.5] * 5),
    "extensions": lambda folder: ps.ImageFolderDataset(folder, extensions=".png"),
    "directory_number": lambda folder: ps.ImageFolderDataset(3),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name, folder):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](folder)
    assert_golden(f"argument_image_folder_{name}", f"{type(caught.value).__name__}: {caught.value}")
