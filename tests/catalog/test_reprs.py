"""How features and what is known of a data set are shown: word for word as tfds shows them, where it shows the same."""

import numpy as np
from tests.golden.golden import assert_golden

from penstock.catalog import DatasetInfo
from penstock.catalog import features as F
from penstock.catalog.features.from_json import feature_of
from penstock.catalog.info import SplitInfo

# The golden text is what tensorflow-datasets 4.9.10 prints of the same features.
EACH = {
    "image": F.Image(shape=(28, 28, 1)),
    "im2": F.Image(),
    "im3": F.Image(shape=(None, None, 4), dtype=np.uint16, encoding_format="png"),
    "label": F.ClassLabel(num_classes=10),
    "lab2": F.ClassLabel(names=["a", "b"]),
    "text": F.Text(),
    "tensor": F.Tensor(shape=(None, 3), dtype=np.float32),
    "tz": F.Tensor(shape=(2,), dtype=np.int64, encoding="zlib"),
    "topt": F.Tensor(shape=(), dtype=np.int64, optional=True),
    "scalar": F.Scalar(dtype=np.int64),
    "sopt": F.Scalar(dtype=np.int32, optional=True),
    "bytes": F.Scalar(dtype=np.object_),
    "plain": np.int64,
    "bool": np.bool_,
    "str": np.object_,
    "seq": F.Sequence(F.Text()),
    "seq3": F.Sequence(np.int64, length=3),
    "seqd": F.Sequence({"a": np.int64, "bbox": F.BBoxFeature()}),
    "seqseq": F.Sequence(F.Sequence(np.float32)),
    "d": {"x": F.Text(), "y": np.int64},
    "bbox": F.BBoxFeature(),
    "video": F.Video(shape=(None, 64, 64, 3)),
    "audio": F.Audio(sample_rate=16000),
    "audio2": F.Audio(file_format="wav", lazy_decode=True),
    "mask": F.LabeledImage(labels=["a", "b"], shape=(None, None, 1)),
    "tr": F.Translation(languages=["en", "fr"]),
    "trv": F.TranslationVariableLanguages(languages=["en", "fr"]),
    "ds": F.Dataset({"r": np.float32}),
    "ds2": F.Dataset(np.int64),
    "seqimg": F.Sequence(F.Image(shape=(8, 8, 3))),
    "empty": F.Sequence({}),
}


def test_features_are_shown_as_tfds_shows_them():
    assert_golden("catalog_repr_features", repr(F.FeaturesDict(EACH)))


def test_a_feature_of_ones_own_has_no_address():
    class Ratio(F.Scalar):
        def __init__(self):
            super().__init__(np.float32)

    assert repr(Ratio()) == "Ratio(shape=(), dtype=float32)"
    assert repr(feature_of("x", {"pythonClassName": "a.b.Graph", "jsonFeature": {}})) == "UnknownFeature(a.b.Graph)"


def test_what_is_known_of_a_data_set():
    splits = {"train": SplitInfo("train", (30, 20), 2_000_000), "test": SplitInfo("test", (5,), 1000)}
    described = DatasetInfo(
        features=F.FeaturesDict({"image": F.Image(), "label": F.ClassLabel(names=["cat", "dog"])}),
        description="Cats\nand dogs.",
        supervised_keys=("image", "label"),
        homepage="https://example.org",
        citation="@article{pets}",
        license="CC BY 4.0",
        name="pets",
        config_name="small",
        config_description="A tenth.",
        version="1.0.0",
        download_size=3_000_000,
        splits=splits,
    )
    assert_golden("catalog_repr_info", repr(described))
    assert_golden("catalog_repr_described", repr(DatasetInfo(features=F.FeaturesDict({"x": np.int64}), name="plain")))
    assert repr(described.splits["train[:50%]"]) == "<SubSplitInfo 'train[:50%]' num_examples=25, num_shards=1>"
