"""Check that tensorflow-datasets and penstock.catalog read each other's data sets, value for value.

    python benchmarks/tfds_interop.py

The program needs the bench environment with tensorflow-datasets, and no network. Each side prepares the same examples,
with all connectors, by its own builder. Then each side reads the other's folder through its metadata alone
(`builder_from_directory`). The program compares values, dtypes, class names, supervised keys, lengths of shards, the
order of the examples, and slices of splits. penstock also reads ArrayRecord and Parquet written by tfds. The exit
status is 1 if anything differs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

import penstock as ps
from penstock import catalog
from penstock.catalog import features as ours

theirs = tfds.features
COUNT = 37
SLICES = ["train", "train[:10]", "train[25%:75%]", "train[-7:]", "train[1shard:]", "train[:33%]+test[50%:]", "all"]


def random(number):
    return np.random.default_rng(number)


def random_image(number, height=5, width=7, channels=3, dtype=np.uint8):
    if dtype == np.float32:
        return random(number).random((height, width, channels)).astype(np.float32)
    return random(number).integers(0, np.iinfo(dtype).max, (height, width, channels), dtype, endpoint=True)


def connectors(made):
    """Return name → (feature, function from the number of an example to its value), with the features of `made`."""
    box = made.BBox if made is ours else theirs.BBox
    return {
        "image_png": (made.Image(shape=(None, None, 3)), lambda n: random_image(n, 3 + n % 4)),
        "image_gray": (made.Image(shape=(5, 7, 1)), lambda n: random_image(n, channels=1)),
        "image_rgba": (made.Image(shape=(5, 7, 4)), lambda n: random_image(n, channels=4)),
        "image_16": (
            made.Image(shape=(5, 7, 1), dtype=np.uint16),
            lambda n: random_image(n, channels=1, dtype=np.uint16),
        ),
        "image_float": (
            made.Image(shape=(5, 7, 1), dtype=np.float32),
            lambda n: random_image(n, channels=1, dtype=np.float32),
        ),
        "image_jpeg_bytes": (
            made.Image(shape=(None, None, 3), encoding_format="jpeg"),
            lambda n: ps.image.encode_jpeg(random_image(n, 16, 24)),
        ),
        "image_any": (
            made.Image(shape=(None, None, 3), encoding_format=None),
            lambda n: ps.image.encode_png(random_image(n)),
        ),
        "labeled_image": (
            made.LabeledImage(labels=["ground", "cat", "dog"], shape=(None, None, 1)),
            lambda n: (random_image(n, channels=1) % 3).astype(np.uint8),
        ),
        "class_label": (made.ClassLabel(names=["zero", "one", "two"]), lambda n: ["zero", 1, "two"][n % 3]),
        "class_number": (made.ClassLabel(num_classes=50), lambda n: n),
        "text": (made.Text(doc="What it says."), lambda n: f"Käse {n}"),
        "scalar_int32": (
            made.Scalar(np.int32, doc=made.Documentation("A number.", value_range="-5 to 31")),
            lambda n: n - 5,
        ),
        "scalar_uint64": (made.Scalar(np.uint64), lambda n: np.uint64(2**64 - 1 - n)),
        "scalar_bool": (made.Scalar(np.bool_), lambda n: n % 2 == 0),
        "scalar_float32": (made.Scalar(np.float32), lambda n: n / 3),
        "tensor": (made.Tensor(shape=(2, 3), dtype=np.float32), lambda n: random(n).random((2, 3)).astype(np.float32)),
        "tensor_open": (made.Tensor(shape=(None, 2), dtype=np.int64), lambda n: np.arange(2 * (n % 4)).reshape(-1, 2)),
        "tensor_strings": (made.Tensor(shape=(2,), dtype=np.object_), lambda n: [f"a{n}", b"\xff"]),
        "tensor_bytes": (
            made.Tensor(shape=(2, 2), dtype=np.float64, encoding="bytes"),
            lambda n: random(n).random((2, 2)),
        ),
        "tensor_zlib": (
            made.Tensor(shape=(None, None), dtype=np.int16, encoding="zlib"),
            lambda n: np.full((n % 3 + 1, n % 5 + 1), n, np.int16),
        ),
        "tensor_optional": (
            made.Tensor(shape=(), dtype=np.int64, optional=True),
            lambda n: None if n % 3 == 0 else np.int64(n),
        ),
        "bbox": (made.BBoxFeature(), lambda n: box(ymin=0.1, xmin=n / 100, ymax=0.5, xmax=1.0)),
        "sequence": (made.Sequence(made.Scalar(np.int64)), lambda n: list(range(n % 5))),
        "sequence_fixed": (made.Sequence(made.Scalar(np.float32), length=3), lambda n: [n, 0.5, 1.0]),
        "sequence_text": (made.Sequence(made.Text()), lambda n: [f"w{i}" for i in range(n % 4)]),
        "sequence_images": (
            made.Sequence(made.Image(shape=(5, 7, 3))),
            lambda n: [random_image(n + i) for i in range(n % 3)],
        ),
        "sequence_dict": (
            made.Sequence({"bbox": made.BBoxFeature(), "label": made.ClassLabel(names=["a", "b"]), "id": made.Text()}),
            lambda n: [
                {"bbox": box(ymin=0.0, xmin=0.25, ymax=1.0, xmax=0.5), "label": "ab"[i % 2], "id": f"{n}-{i}"}
                for i in range(n % 4)
            ],
        ),
        "sequence_sequence": (
            made.Sequence(made.Sequence(made.Scalar(np.int64))),
            lambda n: [list(range(i)) for i in range(n % 4)],
        ),
        "sequence_deep": (
            made.Sequence(made.Sequence(made.Sequence(made.Scalar(np.int32)))),
            lambda n: [[[i, j] for j in range(i)] for i in range(n % 4)],
        ),
        "sequence_dict_ragged": (
            made.Sequence({"words": made.Sequence(made.Text()), "n": made.Scalar(np.int64)}),
            lambda n: [{"words": ["x"] * i, "n": i} for i in range(n % 3)],
        ),
        "nested": (
            made.FeaturesDict(
                {"inner": {"value": made.Scalar(np.int64), "name": made.Text()}, "flag": made.Scalar(np.bool_)}
            ),
            lambda n: {"inner": {"value": n, "name": str(n)}, "flag": n % 2 == 1},
        ),
        "video": (made.Video(shape=(None, 5, 7, 3)), lambda n: [random_image(n + i) for i in range(1 + n % 3)]),
        "audio": (
            made.Audio(shape=(None,), dtype=np.int16, sample_rate=8000),
            lambda n: np.arange(n, dtype=np.int16),
        ),
        "audio_zlib": (
            made.Audio(shape=(None, 2), dtype=np.int32, encoding="zlib"),
            lambda n: np.arange(2 * n, dtype=np.int32).reshape(-1, 2) if made is ours else None,
        ),
        "translation": (made.Translation(languages=["de", "en"]), lambda n: {"de": f"ä{n}", "en": f"a{n}"}),
        "translation_variable": (
            made.TranslationVariableLanguages(languages=["de", "en"]),
            lambda n: {"en": ["b", "a"][: 1 + n % 2], "de": f"c{n}"},
        ),
        "name/with_slash": (made.Text(), lambda n: str(n)),
    }


# Features that tfds cannot write or read itself, so that there is nothing to compare.
NOT_COMPARED = {
    "audio_zlib": "tfds's Audio stores given arrays without encoding them, and fails",
}


def chosen(made):
    return {name: pair for name, pair in connectors(made).items() if name not in NOT_COMPARED}


def examples(made, numbers):
    for number in numbers:
        yield f"key {number}", {name: value(number) for name, (_, value) in chosen(made).items()}


class Everything(catalog.Builder):
    """All connectors, written by penstock."""

    VERSION = "1.0.0"

    def _info(self):
        every = {name: feature for name, (feature, _) in chosen(ours).items()}
        return catalog.DatasetInfo(
            features=ours.FeaturesDict(every),
            description="All connectors.",
            supervised_keys=("image_png", "class_label"),
            homepage="https://example.org/",
            citation="none",
            license="CC0",
        )

    def _split_generators(self):
        return {"train": examples(ours, range(COUNT)), "test": examples(ours, range(COUNT, COUNT + 10))}

    def _num_shards(self, split):
        return 4 if split == "train" else 1


def tfds_builder(folder):
    """Return a tfds builder with all connectors."""

    class Everything(tfds.core.GeneratorBasedBuilder, skip_registration=True):
        VERSION = tfds.core.Version("1.0.0")
        pkg_dir_path = Path(folder)

        def _info(self):
            every = {name: feature for name, (feature, _) in chosen(theirs).items()}
            return tfds.core.DatasetInfo(
                builder=self,
                features=theirs.FeaturesDict(every),
                description="All connectors.",
                supervised_keys=("image_png", "class_label"),
                homepage="https://example.org/",
                citation="none",
                license="CC0",
            )

        def _split_generators(self, dl_manager):
            return {"train": examples(theirs, range(COUNT)), "test": examples(theirs, range(COUNT, COUNT + 10))}

        def _generate_examples(self):
            raise AssertionError

    return Everything


def plain(value):
    """Convert a value of either library to one form: arrays, bytes, and lists for ragged values."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tf.RaggedTensor | ps.RaggedTensor):
        return value.to_list()
    if isinstance(value, tf.Tensor):
        return value.numpy()
    return value


def differences(left, right, path=""):
    """Return the differences of two values as texts."""
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return [f"{path}: {sorted(left)} and {sorted(right)}"]
        return [text for key in left for text in differences(left[key], right[key], f"{path}/{key}")]
    if isinstance(left, list) or isinstance(right, list):
        return [] if left == right else [f"{path}: {left} and {right}"]
    one, other = np.asarray(left), np.asarray(right)
    if one.dtype.kind not in "OS" and one.dtype != other.dtype:
        return [f"{path}: {one.dtype} and {other.dtype}"]
    same = one.shape == other.shape and np.array_equal(one.astype(object), other.astype(object))
    return [] if same else [f"{path}: {one.shape} {str(one)[:60]} and {other.shape} {str(other)[:60]}"]


def compare(name, folder):
    """Read `folder` with both libraries. Return the differences, and print them."""
    mine, other = catalog.builder_from_directory(folder), tfds.builder_from_directory(str(folder))
    found = []
    for split in SLICES:
        left = [plain(row) for row in mine.as_dataset(split)]
        right = [
            plain(row) for row in other.as_dataset(split=split, read_config=tfds.ReadConfig(assert_cardinality=True))
        ]
        if len(left) != len(right):
            found.append(f"{split}: {len(left)} and {len(right)} examples")
        for number, (one, two) in enumerate(zip(left, right, strict=False)):
            found += [f"{split}, example {number}{text}" for text in differences(one, two)]
    for split in ("train", "test"):
        lengths = [list(builder.info.splits[split].shard_lengths) for builder in (mine, other)]
        if lengths[0] != lengths[1] or mine.info.splits[split].num_bytes != int(other.info.splits[split].num_bytes):
            found.append(f"{split}: shards {lengths}")
    for label in ("class_label", "labeled_image"):
        if list(mine.info.features[label].names) != list(other.info.features[label].names):
            found.append(f"{label}: names")
    for what in ("name", "version", "description", "homepage", "citation", "supervised_keys"):
        if str(getattr(mine.info, what)) != str(getattr(other.info, what)):
            found.append(f"info.{what}: {getattr(mine.info, what)!r} and {getattr(other.info, what)!r}")
    raw = next(iter(mine.as_dataset("train", decoders={"image_png": catalog.SkipDecoding()})))["image_png"]
    raw_other = next(iter(other.as_dataset(split="train", decoders={"image_png": tfds.decode.SkipDecoding()})))
    found += differences(raw, raw_other["image_png"].numpy(), "skip decoding")
    partial = {"image_png": True, "sequence_dict": {"label"}}
    one = plain(next(iter(mine.as_dataset("train", decoders=catalog.PartialDecoding(partial)))))
    two = next(iter(other.as_dataset(split="train", decoders=tfds.decode.PartialDecoding(partial))))
    found += differences(one, plain(two), "partial decoding")
    print(f"{name}: {'the same' if not found else f'{len(found)} differences'}")
    for text in found[:20]:
        print(f"  {text}")
    return found


def read_format(folder, file_format, written):
    """Let tfds write another format of shards, and read it with penstock. Return the differences."""
    builder = tfds_builder(folder)(data_dir=str(Path(folder, file_format)), file_format=file_format)
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=4))
    mine = catalog.builder_from_directory(builder.data_dir)
    found = []
    for split in SLICES:
        left, right = ([plain(row) for row in one.as_dataset(split)] for one in (mine, written))
        if len(left) != len(right):
            found.append(f"{file_format}, {split}: {len(left)} and {len(right)} examples")
        for number, (one, two) in enumerate(zip(left, right, strict=False)):
            found += [f"{file_format}, {split}, example {number}{text}" for text in differences(one, two)]
    print(f"{file_format} written by tfds: {'the same' if not found else f'{len(found)} differences'}")
    for text in found[:10]:
        print(f"  {text}")
    return found


def main():
    import json

    found = []
    with tempfile.TemporaryDirectory() as folder:
        written = Everything(data_dir=Path(folder, "ours"))
        written.download_and_prepare()
        found += compare("written by penstock", written.data_path)
        builder = tfds_builder(folder)(data_dir=str(Path(folder, "theirs")))
        builder.download_and_prepare(
            download_config=tfds.download.DownloadConfig(
                compute_stats=tfds.download.ComputeStatsMode.SKIP, num_shards=4
            )
        )
        other = Path(builder.data_dir)
        found += compare("written by tfds", other)
        # compare the order on disk and the metadata of the two prepared data sets
        rows = [
            [bytes(row["text"]) for row in catalog.builder_from_directory(path).as_dataset("train")]
            for path in (written.data_path, other)
        ]
        if rows[0] != rows[1]:
            found.append("the examples have another order")
        for file_format in ("array_record", "parquet"):
            found += read_format(folder, file_format, written)
        one, two = (json.loads((path / "features.json").read_text()) for path in (written.data_path, other))
        if one != two:
            found.append("features.json differs")
            for name in chosen(ours):
                pair = [entry["featuresDict"]["features"][name] for entry in (one, two)]
                if pair[0] != pair[1]:
                    print(f"  features.json: {name}: {pair[0]} and {pair[1]}")
        one, two = (json.loads((path / "dataset_info.json").read_text()) for path in (written.data_path, other))
        for key in sorted({*one, *two} - {"moduleName", "splits", "releaseNotes"}):
            if one.get(key) != two.get(key):
                print(f"  dataset_info.json: {key}: {one.get(key)!r} and {two.get(key)!r}")
                found.append(f"dataset_info.json: {key}")
    print(f"{len(chosen(ours))} connectors, {len(SLICES)} splits: {'all the same' if not found else 'DIFFERENT'}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
