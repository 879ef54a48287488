"""Prepared folders: found, read without their builder, and of a slice only the shards that it needs."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock import catalog
from penstock.catalog import Builder, BuilderConfig, DatasetInfo, PartialDecoding, ReadConfig, SkipDecoding, features
from penstock.catalog.shards import ShardsSource, Stretch, _Order
from penstock.errors import InvalidArgumentError, PenstockError


class Numbers(Builder):
    """0 to 99, and 0 to 9, with their squares."""

    VERSION = "1.2.0"
    BUILDER_CONFIGS = (BuilderConfig(name="plain"), BuilderConfig(name="other", description="As plain."))

    def _info(self):
        kinds = {"number": np.int64, "square": np.int64, "image": features.Image(shape=(2, 2, 1))}
        return DatasetInfo(features=features.FeaturesDict(kinds), supervised_keys=("number", "square"), license="CC0")

    def _split_generators(self):
        return {"train": self._generate_examples(100), "test": self._generate_examples(10)}

    def _generate_examples(self, count):
        for n in range(count):
            yield n, {"number": n, "square": n * n, "image": np.full((2, 2, 1), n, np.uint8)}

    def _num_shards(self, split):
        return 7


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    catalog.disable_progress_bar()
    Numbers(data_dir=folder).download_and_prepare()
    catalog.enable_progress_bar()
    return folder


@pytest.fixture
def folder(data_dir, tmp_path):
    shutil.copytree(data_dir / "numbers" / "plain" / "1.2.0", tmp_path / "numbers" / "plain" / "1.2.0")
    return tmp_path / "numbers" / "plain" / "1.2.0"


def load(data_dir, split, **more):
    return catalog.load("numbers", split=split, data_dir=data_dir, download=False, **more)


def numbers(dataset):
    return [int(row["number"]) for row in dataset]


def test_a_folder_is_read_without_its_builder(data_dir):
    train, info = load(data_dir, "train", with_info=True)
    assert (len(train), info.full_name, info.license) == (100, "numbers/plain/1.2.0", "CC0")
    assert info.supervised_keys == ("number", "square")
    assert sorted(numbers(train)) == list(range(100))
    assert all(square == number * number for number, square in load(data_dir, "test", as_supervised=True))


def test_slices_of_the_folder_order_add_up(data_dir):
    in_order = ReadConfig(interleave_cycle_length=1)
    whole = numbers(load(data_dir, "train", read_config=in_order))
    parts = load(data_dir, ["train[:13%]", "train[13:50]", "train[50:]"], read_config=in_order)
    assert [n for part in parts for n in numbers(part)] == whole
    assert numbers(load(data_dir, catalog.ReadInstruction("train", from_=-5), read_config=in_order)) == whole[-5:]


def test_a_slice_opens_the_shards_that_it_needs_alone(folder):
    for number in (0, 1, 2, 4, 5, 6):
        (folder / f"numbers-train.tfrecord-0000{number}-of-00007").write_bytes(b"rubbish")
    data_dir = folder.parents[2]
    third = load(data_dir, "train[3shard]")
    assert len(numbers(third)) == len(third) == 14
    assert len(load(data_dir, "train")) == 100  # known from the metadata


def test_elements_have_numbers(data_dir):
    train = load(data_dir, "train[7:77]")
    in_turn = numbers(train)
    assert [int(train[i]["number"]) for i in (0, 69, 33)] == [in_turn[i] for i in (0, 69, 33)]
    shuffled = numbers(train.shuffle(ps.ALL, seed=1))
    assert shuffled != in_turn
    assert sorted(shuffled) == sorted(in_turn)


def test_batches_and_shuffled_files(data_dir):
    assert [len(batch["number"]) for batch in load(data_dir, "train", batch_size=32)] == [32, 32, 32, 4]
    shuffled = load(data_dir, "train", shuffle_files=True, read_config=ReadConfig(shuffle_seed=3))
    epochs = [numbers(shuffled), numbers(shuffled)]
    assert len(shuffled) == 100
    assert [sorted(epoch) for epoch in epochs] == [list(range(100))] * 2


def test_what_is_skipped_and_left_out(data_dir):
    image = next(iter(load(data_dir, "train", decoders={"image": SkipDecoding()})))["image"]
    assert image.startswith(b"\x89PNG")
    assert sorted(next(iter(load(data_dir, "train", decoders=PartialDecoding(["square"]))))) == ["square"]
    record = next(iter(load(data_dir, "train", decoders=SkipDecoding())))
    assert sorted(ps.io.decode_example(record)) == ["image", "number", "square"]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(2, 5), st.integers(1, 9))
def test_shards_are_read_in_the_order_of_interleave(lengths, cycle, block):
    order = _Order.of(lengths, cycle, block)
    found = (
        list(zip(*(part.tolist() for part in order.places(np.arange(sum(lengths)))), strict=True))
        if sum(lengths)
        else []
    )
    starts = np.cumsum([0, *lengths])
    wanted = ps.Dataset.range(len(lengths)).interleave(
        lambda i: ps.Dataset.range(starts[i], starts[i + 1]), cycle_length=cycle, block_length=block
    )
    assert [int(starts[shard]) + row for shard, row in found] == [int(n) for n in wanted]


def test_opening_many_shards_is_cheap():
    source = ShardsSource(tuple(Stretch(f"nowhere-{i}", 0, 1000, 1000) for i in range(1000)))
    assert source.cardinality == 1_000_000


def test_parquet_shards_are_read(folder):
    info = json.loads((folder / "dataset_info.json").read_text())
    rows = [load(folder.parents[2], split, decoders=SkipDecoding()) for split in ("train[0shard]", "train[1shard]")]
    wanted = [numbers(load(folder.parents[2], split)) for split in ("train[0shard]", "train[1shard]")]
    for shard, records in enumerate(rows):
        table = pa.table({"data": pa.array(list(records), pa.binary())})
        pq.write_table(table, folder / f"numbers-train.parquet-0000{shard}-of-00002", row_group_size=4)
    info["fileFormat"] = "parquet"
    info["splits"] = [{**info["splits"][0], "shardLengths": [str(len(part)) for part in wanted]}]
    (folder / "dataset_info.json").write_text(json.dumps(info))
    read = catalog.builder_from_directory(folder).as_dataset("train", read_config=ReadConfig(interleave_cycle_length=1))
    assert numbers(read) == wanted[0] + wanted[1]
    assert int(read[17]["number"]) == (wanted[0] + wanted[1])[17]


def test_several_folders_are_looked_in_and_read_as_one(folder, tmp_path):
    assert len(load([tmp_path / "nothing", folder.parents[2]], "train")) == 100
    both = catalog.builder_from_directories([folder, folder])
    assert sorted(numbers(both.as_dataset("test"))) == sorted([*range(10)] * 2)
    assert both.info.splits["train"].num_examples == 200


def test_a_split_knows_its_files(folder):
    splits = catalog.builder_from_directory(folder).info.splits
    train = splits["train"]
    assert train.filenames == [f"numbers-train.tfrecord-{number:05d}-of-00007" for number in range(7)]
    assert list(train.filepaths) == [folder / name for name in train.filenames]
    lengths = list(train.shard_lengths)
    assert [file[1:] for file in train.file_instructions] == [(0, length, length) for length in lengths]
    part = splits[f"train[{lengths[0] - 2}:{lengths[0] + 3}]"]
    assert part.file_instructions == [
        (str(train.filepaths[0]), lengths[0] - 2, 2, lengths[0]),
        (str(train.filepaths[1]), 0, 3, lengths[1]),
    ]
    assert (part.filenames, part.num_examples, part.num_shards) == (train.filenames[:2], 5, 2)


@pytest.mark.parametrize("shuffle_files", [False, True])
def test_examples_can_have_ids(data_dir, shuffle_files):
    config = catalog.ReadConfig(add_tfds_id=True)
    train, info = load(data_dir, "train[3:]", read_config=config, shuffle_files=shuffle_files, with_info=True)
    assert train.element_spec["tfds_id"] == ps.TensorSpec((), bytes)
    found = {row["tfds_id"].decode(): int(row["number"]) for row in train}
    assert len(found) == 97
    for file in info.splits["train"].filepaths:
        rows = [info.features.deserialize(record) for record in ps.TFRecordDataset(file)]
        for number, row in enumerate(rows):
            first = file.name.endswith("00000-of-00007")
            assert found.get(f"{file.name}__{number}") == (None if first and number < 3 else int(row["number"]))


def test_the_folder_of_tfds_is_known_by_its_variable(data_dir, tmp_path, monkeypatch):
    monkeypatch.delenv("PENSTOCK_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    assert len(load(None, "train")) == 100
    monkeypatch.setenv("PENSTOCK_DATA_DIR", str(tmp_path / "elsewhere"))
    assert len(load(None, "train")) == 100


def test_the_newest_version_that_fits_is_taken(folder):
    for version in ("1.10.0", "2.0.0"):
        shutil.copytree(folder, folder.with_name(version))
        info = folder.with_name(version) / "dataset_info.json"
        info.write_text(info.read_text().replace("1.2.0", version))
    found = {
        name: catalog.builder(name, data_dir=folder.parents[2]).info.version
        for name in ("numbers", "numbers/plain", "numbers:1.*.*", "numbers/plain:1.2.0", "Numbers:2.0.*")
    }
    assert list(found.values()) == ["2.0.0", "2.0.0", "1.10.0", "1.2.0", "2.0.0"]


def test_a_registered_builder_is_known_by_name_config_and_version(tmp_path):
    from penstock.catalog import registry

    catalog.register(Numbers)
    try:
        assert "numbers" in catalog.list_builders()
        made = catalog.builder("numbers/other:1.*.*", data_dir=tmp_path)
        assert made.data_path == tmp_path / "numbers" / "other" / "1.2.0"
        assert made.info.config_description == "As plain."
        for name in ("numbers/small", "numbers:3.*.*"):
            with pytest.raises(PenstockError) as raised:
                catalog.builder(name, data_dir=tmp_path)
            assert_golden(f"catalog_name_{name[8:].replace('*', 'x')}", str(raised.value))
    finally:
        del registry._registered["numbers"]


def test_a_builder_of_an_installed_package_is_known_by_its_entry_point(tmp_path, monkeypatch):
    class Entry:
        name = "numbers"

        def load(self):
            return Numbers

    groups = {"penstock.builders": [Entry()]}
    monkeypatch.setattr("penstock.catalog.registry.entry_points", lambda group: groups.get(group, []))
    assert "numbers" in catalog.list_builders()
    assert isinstance(catalog.builder("numbers", data_dir=tmp_path), Numbers)


def _edit(folder, **changes):
    path = folder / "dataset_info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _two_configs(folder):
    shutil.copytree(folder.parent, folder.parents[1] / "second")


def _unknown_format(folder):
    _edit(folder, fileFormat="riegeli")


def _fewer(folder):
    shard = folder / "numbers-test.tfrecord-00000-of-00007"
    shard.write_bytes(b"")


def _no_features(folder):
    (folder / "features.json").unlink()


@pytest.mark.parametrize(
    ("name", "change", "call"),
    [
        ("unknown_name", None, lambda d: catalog.load("numbres", data_dir=d)),
        ("bad_name", None, lambda d: catalog.load("num bers", data_dir=d)),
        ("bad_version", None, lambda d: catalog.load("numbers:1.2", data_dir=d)),
        ("not_so", None, lambda d: catalog.load("numbers/other", data_dir=d)),
        ("several_configs", _two_configs, lambda d: catalog.load("numbers", data_dir=d)),
        ("not_there", None, lambda d: catalog.builder_from_directory(d / "numbers")),
        ("format", _unknown_format, lambda d: load(d, "train")),
        ("fewer_records", _fewer, lambda d: list(load(d, "test"))),
        ("no_features", _no_features, lambda d: load(d, "train")),
        ("unknown_split", None, lambda d: load(d, "valid")),
        ("decoders", None, lambda d: load(d, "train", decoders=3)),
        ("decoders_name", None, lambda d: load(d, "train", decoders={"picture": SkipDecoding()})),
    ],
)
def test_bad_questions_are_answered(folder, name, change, call, monkeypatch):
    monkeypatch.setattr("penstock.catalog.registry._registered", {})  # what a page of the documentation has registered
    if change is not None:
        change(folder)
    with pytest.raises(PenstockError) as raised:
        call(folder.parents[2])
    assert_golden(f"catalog_read_{name}", str(raised.value))


def test_a_config_that_there_is_not(tmp_path):
    catalog.load("shapes", data_dir=tmp_path, builder_kwargs={"num_examples": 4})
    assert len(catalog.load("shapes/4_examples", data_dir=tmp_path, split="train")) == 4
    with pytest.raises(InvalidArgumentError) as raised:
        catalog.load("shapes/5_examples", data_dir=tmp_path)
    assert_golden("catalog_read_no_config", str(raised.value))
    with pytest.raises(InvalidArgumentError, match="Its configs are 'byclass', 'bymerge'"):
        catalog.load("emnist/nothing", data_dir=tmp_path)
