"""Folders of a user's files as data sets: pictures by class, COCO, tables."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.catalog.archives import jpeg, seen
from tests.golden.golden import assert_golden

import penstock as ps
from penstock import catalog
from penstock.cli import main
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def pictures(tmp_path):
    names = [f"train/{kind}/{n}.jpg" for kind in ("dog", "cat") for n in range(5)] + ["test/bird/7.JPEG"]
    files = {name: jpeg(number) for number, name in enumerate(names)}
    others = {"train/dog/about.txt": b"", "train/.cache/a.jpg": b"", "train/cat/.1.jpg": b"", "notes.md": b""}
    return write(tmp_path / "photos", files | others), files


def test_image_folder_is_read_in_the_order_of_tfds(pictures):
    folder, files = pictures
    train, info = catalog.load("image_folder", data_dir=folder, split="train", with_info=True)
    names = sorted(name for name in files if name.startswith("train"))
    random.Random("train").shuffle(names)
    assert [Path(row["image/filename"].decode()).relative_to(folder).as_posix() for row in train] == names
    assert info.features["label"].names == ["bird", "cat", "dog"]
    assert {name: split.num_examples for name, split in info.splits.items()} == {"test": 1, "train": 10}
    assert (info.name, info.supervised_keys) == ("image_folder", ("image", "label"))
    for number in (0, 9, -1):
        name = names[number]
        np.testing.assert_array_equal(train[number]["image"], seen(files[name]))
        assert info.features["label"].int2str(int(train[number]["label"])) == name.split("/")[1]
    every = catalog.load("image_folder", data_dir=folder, as_supervised=True)
    assert [(image.shape, int(label)) for image, label in every["test"]] == [(seen(files["test/bird/7.JPEG"]).shape, 0)]


def names_of(dataset):
    return [row["image/filename"] for row in dataset]


def test_slices_shuffles_decoders_and_batches_are_those_of_a_prepared_set(pictures):
    folder, files = pictures

    def load(split, **settings):
        return catalog.load("image_folder", data_dir=folder, split=split, **settings)

    whole = names_of(load("train"))
    assert [names_of(part) for part in load(["train[:30%]", "train[3:]"])] == [whole[:3], whole[3:]]
    assert names_of(load("train[8:]+test")) == [*whole[8:], *names_of(load("test"))]
    assert sum(map(len, load(catalog.even_splits("train", 3)))) == 10
    shuffled = load("train", shuffle_files=True, read_config=catalog.ReadConfig(shuffle_seed=3))
    assert names_of(shuffled) != whole
    assert sorted(names_of(shuffled)) == sorted(whole)
    assert shuffled[2]["image/filename"] == next(iter(shuffled.skip(2)))["image/filename"]
    assert sorted(names_of(load("train").shuffle(ps.ALL, seed=1))) == sorted(whole)
    files_only = load("train", decoders={"image": catalog.SkipDecoding()})
    assert {bytes(row["image"]) for row in files_only} == {data for name, data in files.items() if "train" in name}
    assert list(load("train", decoders=catalog.PartialDecoding(["label"]))[0]) == ["label"]
    batches = load("train", batch_size=4, decoders=catalog.PartialDecoding(["label"]))
    assert [len(batch["label"]) for batch in batches] == [4, 4, 2]
    with pytest.raises(InvalidArgumentError, match="no split 'valid'"):
        load("valid")


def test_what_is_wrong_with_an_image_folder_is_told(pictures, tmp_path):
    folder, _ = pictures

    def told(key, **settings):
        with pytest.raises((NotFoundError, InvalidArgumentError)) as raised:
            catalog.load("image_folder", **settings)
        assert_golden(key, str(raised.value).replace(str(tmp_path), "…"))

    told("catalog_image_folder_no_folder", data_dir=tmp_path / "nowhere")
    told("catalog_image_folder_not_named")
    told("catalog_image_folder_of_classes", data_dir=folder / "train")
    with pytest.raises(InvalidArgumentError, match=r"no data set 'imagefolder'.*\n.*'image_folder'"):
        catalog.load("imagefolder", data_dir=folder)


def test_the_commands_leave_a_users_files_alone(pictures, capsys):
    folder, files = pictures
    for action in ("remove", "verify"):
        assert main(["catalog", action, "image_folder", "--data-dir", str(folder)]) != 0
        assert "your own files" in capsys.readouterr().err
    assert all((folder / name).is_file() for name in files)
    assert main(["catalog", "info", "image_folder", "--data-dir", str(folder)]) == 0
    assert "bird, cat, dog" in capsys.readouterr().out


def coco(images, annotations, names=("person", "bird")):
    categories = [{"id": 10 * number + 1, "name": name} for number, name in enumerate(names)]
    return json.dumps({"images": images, "annotations": annotations, "categories": categories}).encode()


IMAGES = [
    {"id": 9, "file_name": "b.jpg", "height": 10, "width": 20},
    {"id": 4, "file_name": "a.jpg", "height": 10, "width": 20},
]
ANNOTATIONS = [
    {"id": 3, "image_id": 4, "category_id": 11, "bbox": [2, 1, 4, 5], "area": 19.75, "iscrowd": 0},
    {"id": 1, "image_id": 4, "category_id": 1, "bbox": [10, 5, 11, 5], "area": 55, "iscrowd": 1},  # sticks out
]


@pytest.mark.parametrize("layout", ["coco", "images", "beside"])
def test_coco_folder_gives_what_tfds_gives_of_coco(tmp_path, layout):
    place = {"coco": "val2017", "images": "images/val2017", "beside": "val2017"}[layout]
    path = "val2017/_annotations.coco.json" if layout == "beside" else "annotations/instances_val2017.json"
    files = {f"{place}/a.jpg": jpeg(1), f"{place}/b.jpg": jpeg(2), path: coco(IMAGES, ANNOTATIONS)}
    files["annotations/captions_val2017.json"] = b"{}"
    write(tmp_path, files)
    found, info = catalog.load("coco_folder", data_dir=tmp_path, split="val2017", with_info=True)
    first, second = found
    assert [(int(row["image/id"]), row["image/filename"]) for row in found] == [(4, b"a.jpg"), (9, b"b.jpg")]
    np.testing.assert_array_equal(first["image"], seen(jpeg(1)))
    assert {name: values.tolist() for name, values in first["objects"].items() if name != "bbox"} == {
        "area": [55, 19],
        "id": [1, 3],
        "is_crowd": [True, False],
        "label": [0, 1],
    }
    np.testing.assert_allclose(first["objects"]["bbox"], [[0.5, 0.5, 1, 1], [0.1, 0.1, 0.6, 0.3]], rtol=1e-6)
    assert second["objects"]["bbox"].shape == (0, 4)
    assert info.features["objects"]["label"].names == ["person", "bird"]


def test_a_coco_split_to_test_has_no_objects(tmp_path):
    write(
        tmp_path, {"test/a.jpg": jpeg(1), "test/b.jpg": jpeg(2), "annotations/image_info_test.json": coco(IMAGES, [])}
    )
    write(tmp_path, {"train/a.jpg": jpeg(1), "annotations/instances_train.json": coco(IMAGES[1:], ANNOTATIONS)})
    found = catalog.load("coco_folder", data_dir=tmp_path)
    assert {name: [len(row["objects"]["id"]) for row in split] for name, split in found.items()} == {
        "test": [0, 0],
        "train": [2],
    }


@pytest.mark.parametrize(
    ("files", "key"),
    [
        ({"a.txt": b""}, "nothing"),
        ({"annotations/instances_x.json": coco(IMAGES, ANNOTATIONS)}, "no_pictures"),
        ({"annotations/instances_x.json": b'{"images": [{"id": 1}]}', "x/a.jpg": b""}, "not_coco"),
        ({"annotations/instances_x.json": coco([], []), "x/_annotations.coco.json": coco([], [])}, "twice"),
        (
            {"a/_annotations.coco.json": coco([], [], ["cat"]), "b/_annotations.coco.json": coco([], [], ["dog"])},
            "other_classes",
        ),
    ],
)
def test_what_is_wrong_with_a_coco_folder_is_told(tmp_path, files, key):
    write(tmp_path, files)
    with pytest.raises((NotFoundError, DataLossError, InvalidArgumentError)) as raised:
        catalog.load("coco_folder", data_dir=tmp_path)
    assert_golden(f"catalog_coco_folder_{key}", str(raised.value).replace(str(tmp_path), "…"))


def tables(folder, kind, names):
    """A table of two rows under each name; `x` counts on."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"x": [2 * number, 2 * number + 1], "f": [0.1, 0.2], "text": ["a,b", f"n{number}"]})
        writer = pa.csv.write_csv if kind == "csv" else pa.parquet.write_table
        writer(table, folder / name)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_are_split_by_the_names_of_files_and_folders(tmp_path, kind):
    names = ["test.{0}", "data/train-00001-of-00002.{0}", "data/train-00000-of-00002-ab12.{0}", "my valid/a.{0}"]
    tables(tmp_path, kind, [name.format(kind) for name in names])
    write(tmp_path, {"README.md": b"", f"_part.{kind}": b"", f"data/.hidden.{kind}": b""})
    found, info = catalog.load(f"{kind}_folder", data_dir=tmp_path, with_info=True)
    rows = {split: [int(row["x"]) for row in found[split]] for split in found}
    assert rows == {"test": [0, 1], "train": [4, 5, 2, 3], "my_valid": [6, 7]}
    assert {name: split.num_examples for name, split in info.splits.items()} == {"my_valid": 2, "test": 2, "train": 4}
    assert found["test"][1] == {"x": 1, "f": 0.2, "text": b"n0"}
    assert found["test"][1]["f"].dtype == np.float64
    assert {name: type(feature).__name__ for name, feature in info.features.items()} == {
        "x": "Tensor",
        "f": "Tensor",
        "text": "Text",
    }
    settings = {"builder_kwargs": {"supervised_keys": ("text", "x"), "columns": ["x", "text"]}, "as_supervised": True}
    part = catalog.load(f"{kind}_folder", data_dir=tmp_path, split="train[1:3]+test[50%:]", **settings)
    assert [(text, int(x)) for text, x in part] == [(b"n2", 5), (b"a,b", 2), (b"n0", 1)]
    assert sorted(int(row["x"]) for row in found["train"].shuffle(ps.ALL)) == [2, 3, 4, 5]
    with pytest.raises(InvalidArgumentError, match="not decoded"):
        catalog.load(f"{kind}_folder", data_dir=tmp_path, decoders={"x": catalog.SkipDecoding()})


def test_a_null_is_an_error_or_replaced(tmp_path):
    write(tmp_path, {"train.csv": b"x,y\n1,2\n,3\n"})
    with pytest.raises(InvalidArgumentError, match="null"):
        list(catalog.load("csv_folder", data_dir=tmp_path, split="train"))
    rows = catalog.load("csv_folder", data_dir=tmp_path, split="train", builder_kwargs={"fill_null": {"x": -1}})
    assert [int(row["x"]) for row in rows] == [1, -1]


def test_what_is_wrong_with_tables_is_told(tmp_path):
    with pytest.raises(NotFoundError) as raised:
        catalog.load("csv_folder", data_dir=write(tmp_path / "a", {"x.txt": b""}))
    assert_golden("catalog_csv_folder_nothing", str(raised.value).replace(str(tmp_path), "…"))
    with pytest.raises(DataLossError, match="cannot be read"):
        catalog.load("csv_folder", data_dir=write(tmp_path / "b", {"train.csv": b"x,y\n1\n"}))
    with pytest.raises(InvalidArgumentError, match="same columns"):
        catalog.load("csv_folder", data_dir=write(tmp_path / "c", {"train_0.csv": b"x\n1\n", "train_1.csv": b"x\na\n"}))


def test_times_have_a_feature_that_is_only_named(tmp_path):
    pa.parquet.write_table(pa.table({"t": pa.array([0, 1], pa.timestamp("s"))}), tmp_path / "train.parquet")
    rows, info = catalog.load("parquet_folder", data_dir=tmp_path, split="train", with_info=True)
    assert rows[1]["t"] == np.datetime64("1970-01-01T00:00:01")
    assert type(info.features["t"]).__name__ == "UnknownFeature"


def test_folders_are_no_data_sets_to_be_prepared(pictures):
    made = catalog.builder("image_folder", data_dir=pictures[0])
    made.download_and_prepare()
    assert made.is_prepared
    assert "image_folder" not in catalog.list_builders()
    with pytest.raises(FailedPreconditionError):
        catalog.builder("mnist", data_dir=pictures[0]).as_dataset("train")
