"""Builder: what lands on disk depends on the examples alone, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from penstock.catalog import Builder, DatasetInfo, Each, Skipped, builder, features, list_builders, load
from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, InvalidTypeError


class Numbers(Builder):
    """`count` numbers as text and as int64, generated in `order`."""

    VERSION = "1.2.0"

    def __init__(self, *, order=range(10), shards=3, **keywords):
        super().__init__(**keywords)
        self.order, self.shards = list(order), shards
        self.generated = 0

    def _info(self):
        values = {"number": features.Scalar(dtype=np.int64), "text": features.Text()}
        return DatasetInfo(features=features.FeaturesDict(values), supervised_keys=("text", "number"))

    def _split_generators(self):
        return {"train": self._generate_examples(self.order), "test": self._generate_examples(self.order[:4])}

    def _generate_examples(self, numbers):
        for number in numbers:
            self.generated += 1
            yield f"key {number}", {"number": number, "text": str(number)}

    def _num_shards(self, split):
        return self.shards


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def numbers(tmp_path):
    made = Numbers(data_dir=tmp_path)
    made.download_and_prepare()
    return made


def test_files_lie_as_tfds_lays_them(numbers, tmp_path):
    assert numbers.data_path == tmp_path / "numbers" / "1.2.0"
    assert sorted(contents(numbers.data_path)) == [
        "dataset_info.json",
        "features.json",
        *(f"numbers-test.tfrecord-0000{shard}-of-00003" for shard in range(3)),
        *(f"numbers-train.tfrecord-0000{shard}-of-00003" for shard in range(3)),
    ]
    assert [path.name for path in numbers.data_path.parent.iterdir()] == ["1.2.0"]


def test_dataset_info_json_holds_the_lengths_of_the_shards(numbers):
    stored = json.loads((numbers.data_path / "dataset_info.json").read_text())
    train = stored["splits"][0]
    assert (stored["name"], stored["version"], stored["fileFormat"]) == ("numbers", "1.2.0", "tfrecord")
    assert stored["supervisedKeys"] == {"tuple": {"items": [{"featureKey": "text"}, {"featureKey": "number"}]}}
    assert (train["name"], train["shardLengths"]) == ("train", ["3", "4", "3"])
    assert train["filepathTemplate"] == "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    assert numbers.info.splits["train"].num_examples == 10
    assert int(train["numBytes"]) == numbers.info.splits["train"].num_bytes > 0


def test_the_order_on_disk_is_that_of_md5_of_split_and_key(numbers):
    stored = [int(row["number"]) for row in load_in_file_order(numbers)]
    assert stored == sorted(range(10), key=lambda n: hashlib.md5(b"train" + f"key {n}".encode()).digest())


def load_in_file_order(made):
    from penstock.io.tfrecord.reader import RecordReader

    for path in made.info.splits["train"].filepaths:
        with RecordReader(str(path)) as reader:
            while (chunk := reader.read(100, 1 << 20)) is not None:
                yield from map(made.info.features.deserialize, chunk.records())


def test_the_order_of_generation_leaves_no_trace(numbers, tmp_path):
    other = Numbers(data_dir=tmp_path / "other", order=reversed(range(10)))
    other.download_and_prepare()
    ours, theirs = contents(numbers.data_path), contents(other.data_path)
    train = [name for name in ours if "train" in name]
    assert {name: ours[name] for name in train} == {name: theirs[name] for name in train}


def test_prepared_data_is_used_again(numbers, tmp_path):
    again = Numbers(data_dir=tmp_path)
    again.download_and_prepare()
    assert again.generated == 0


def test_more_shards_than_examples_are_not_written(tmp_path):
    made = Numbers(data_dir=tmp_path, order=range(2), shards=20)
    made.download_and_prepare()
    assert made.info.splits["train"].shard_lengths == (1, 1)


@pytest.mark.parametrize(
    ("splits", "error"),
    [
        (lambda: {"train": []}, "split 'train' of 'odd' has no examples"),
        (lambda: {"train": Each([], lambda item: (item, {"x": item}))}, "split 'train' of 'odd' has no examples"),
        (lambda: {"train": [Skipped("a.jpg", "broken")]}, "has no examples; 1 input was skipped"),
        (dict, "must return a dict from the name of each split to its examples, got none"),
        (lambda: [(1, {"x": 1})], "must return a dict from the name of each split to its examples, got list"),
        (lambda: {"tr ain": [(1, {"x": 1})]}, "a split cannot be called 'tr ain'"),
        (lambda: {"all": [(1, {"x": 1})]}, "a split cannot be called 'all'"),
    ],
)
def test_what_splits_cannot_be_is_told_and_leaves_nothing(tmp_path, splits, error):
    class Odd(Builder):
        VERSION = "1.0.0"

        def _info(self):
            return DatasetInfo(features={"x": np.int64})

        def _split_generators(self):
            return splits()

        def _max_skipped(self, split):
            return None

    with pytest.raises((InvalidArgumentError, InvalidTypeError)) as raised:
        Odd(data_dir=tmp_path).download_and_prepare()
    assert error in str(raised.value)
    assert list((tmp_path / "odd").iterdir()) == []


def test_what_describes_a_builder_is_checked(tmp_path):
    class Odd(Numbers):
        VERSION = "1.0"

    with pytest.raises(InvalidArgumentError, match=r"Odd must have a VERSION of three numbers, got '1\.0'"):
        Odd(data_dir=tmp_path)

    class Plain(Numbers):
        def _info(self):
            return {"number": np.int64}

    with pytest.raises(InvalidTypeError, match=r"_info\(\) must return a DatasetInfo, got dict"):
        Plain(data_dir=tmp_path).download_and_prepare()
    with pytest.raises(InvalidTypeError, match="FeaturesDict takes a dict of features, got list"):
        DatasetInfo(features=[np.int64])


@pytest.mark.parametrize("each", [True, False])
def test_without_shuffling_the_keys_give_the_order(tmp_path, each):
    class InOrder(Numbers):
        def _info(self):
            return replace(super()._info(), disable_shuffling=True)

        def _split_generators(self):
            return {"train": Each(self.order, self.one) if each else map(self.one, self.order)}

        def one(self, number):
            return number, {"number": number, "text": str(number)}

    made = InOrder(data_dir=tmp_path, order=[30, 2, -1, 9, 100, 11, -20])
    made.download_and_prepare()
    assert [int(row["number"]) for row in made.as_dataset("train")] == [-20, -1, 2, 9, 11, 30, 100]
    assert json.loads((made.data_path / "dataset_info.json").read_text())["disableShuffling"] is True

    class ByName(InOrder):
        def one(self, number):
            return f"key {number}", {"number": number, "text": str(number)}

    with pytest.raises(InvalidTypeError, match="with disable_shuffling a key must be a number"):
        ByName(data_dir=tmp_path).download_and_prepare()


def test_a_key_that_comes_twice_is_an_error_and_leaves_nothing(tmp_path):
    made = Numbers(data_dir=tmp_path, order=[1, 2, 1])
    with pytest.raises(InvalidArgumentError, match="'key 1' came twice in split 'train'"):
        made.download_and_prepare()
    assert list((tmp_path / "numbers").iterdir()) == []
    assert not made.is_prepared


def test_after_an_interrupt_the_next_call_goes_on(tmp_path):
    class Interrupted(Numbers):
        interrupt = True

        def _generate_examples(self, numbers):
            for number, pair in enumerate(super()._generate_examples(numbers)):
                if number == 40 and Interrupted.interrupt:
                    raise KeyboardInterrupt
                yield pair

    made = Interrupted(data_dir=tmp_path, order=range(50))
    with pytest.raises(KeyboardInterrupt):
        made.download_and_prepare()
    assert [path.name for path in (tmp_path / "interrupted").iterdir()] == ["incomplete.1.2.0"]
    assert not made.is_prepared
    Interrupted.interrupt = False
    made.download_and_prepare()
    assert [path.name for path in (tmp_path / "interrupted").iterdir()] == ["1.2.0"]
    assert sorted(int(row["number"]) for row in made.as_dataset("train")) == list(range(50))


def test_a_builder_that_asks_for_itself_is_told(tmp_path):
    class Snake(Numbers):
        def _generate_examples(self, numbers):
            Snake(data_dir=tmp_path).download_and_prepare()
            yield from super()._generate_examples(numbers)

    with pytest.raises(FailedPreconditionError, match="'snake' is being prepared, and asks for itself"):
        Snake(data_dir=tmp_path).download_and_prepare()


@pytest.mark.parametrize("key", [1.5, None, True, ("a",)])
def test_a_key_must_be_text_bytes_or_a_number(tmp_path, key):
    class Keyed(Numbers):
        def _generate_examples(self, numbers):
            yield key, {"number": 0, "text": ""}

    with pytest.raises(InvalidTypeError, match="a key must be a str, bytes or an int"):
        Keyed(data_dir=tmp_path).download_and_prepare()


def test_as_dataset_gives_every_example_once_and_knows_how_many(numbers):
    train = numbers.as_dataset("train")
    assert len(train) == 10
    assert sorted((int(row["number"]), row["text"]) for row in train) == [(n, str(n).encode()) for n in range(10)]


def test_as_dataset_gives_the_same_order_each_time(numbers):
    train = numbers.as_dataset("train")
    first = [int(row["number"]) for row in train]
    assert first == [int(row["number"]) for row in train]
    assert first == [int(row["number"]) for row in Numbers(data_dir=numbers.data_path.parents[1]).as_dataset("train")]


def test_shuffle_files_gives_the_same_examples(numbers):
    shuffled = numbers.as_dataset("train", shuffle_files=True)
    assert sorted(int(row["number"]) for row in shuffled) == list(range(10))


def test_supervised_pairs_and_batches(numbers):
    pairs = numbers.as_dataset("test", as_supervised=True)
    assert all(text == str(number).encode() for text, number in pairs)
    batches = list(numbers.as_dataset("train", as_supervised=True, batch_size=4))
    assert [len(number) for _, number in batches] == [4, 4, 2]


def test_splits_come_as_they_are_asked_for(numbers):
    assert sorted(numbers.as_dataset()) == ["test", "train"]
    assert [len(split) for split in numbers.as_dataset(["train", "test"])] == [10, 4]
    assert {key: len(split) for key, split in numbers.as_dataset({"a": "test"}).items()} == {"a": 4}


def test_bad_questions_are_answered(numbers, tmp_path):
    with pytest.raises(
        InvalidArgumentError, match=r"no split 'valid'(.|\n)*'train' with 10 examples and 'test' with 4 examples"
    ):
        numbers.as_dataset("valid")
    with pytest.raises(FailedPreconditionError, match="'numbers' is not prepared"):
        Numbers(data_dir=tmp_path / "elsewhere").as_dataset("train")


def test_a_missing_shard_is_named(numbers):
    (numbers.data_path / "numbers-train.tfrecord-00001-of-00003").unlink()
    with pytest.raises(FailedPreconditionError, match="1 of 3 shards are missing, the first is numbers-train"):
        numbers.as_dataset("train")


def test_a_damaged_info_file_is_named(numbers):
    (numbers.data_path / "dataset_info.json").write_text("{}")
    with pytest.raises(DataLossError, match=r"dataset_info.json does not describe(.|\n)*in file .*dataset_info.json"):
        _ = numbers.info


def test_supervised_keys_must_be_features():
    with pytest.raises(InvalidArgumentError, match="supervised_keys must name features, got 'y'"):
        DatasetInfo(features=features.FeaturesDict({"x": features.Text()}), supervised_keys=("x", "y"))


def test_as_supervised_needs_supervised_keys(tmp_path):
    class Plain(Numbers):
        def _info(self):
            return DatasetInfo(features=super()._info().features)

    made = Plain(data_dir=tmp_path)
    made.download_and_prepare()
    with pytest.raises(InvalidArgumentError, match="names no supervised_keys"):
        made.as_dataset("train", as_supervised=True)


def test_progress_is_one_line_per_split_away_from_a_terminal(tmp_path, capfd):
    Numbers(data_dir=tmp_path).download_and_prepare()
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["numbers: train: 10 examples", "numbers: test: 4 examples"]


def test_the_catalog_knows_its_names(tmp_path):
    assert "shapes" in list_builders()
    with pytest.raises(InvalidArgumentError, match=r"no data set 'shaeps'(.|\n)*Did you mean 'shapes'"):
        builder("shaeps")
    with pytest.raises(FailedPreconditionError, match="not prepared"):
        load("shapes", data_dir=tmp_path, download=False)
