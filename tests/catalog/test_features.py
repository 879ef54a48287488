"""Features: what goes in comes out, and what does not fit is refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import features
from penstock.catalog.features import Audio, BBoxFeature, ClassLabel, FeaturesDict, Image, Scalar, Tensor, Text, Video
from penstock.catalog.features.from_json import feature_of
from penstock.errors import InvalidArgumentError, InvalidTypeError


def round_trip(feature, value):
    one = FeaturesDict({"value": feature})
    return one.deserialize(one.serialize({"value": value}))["value"]


@given(st.integers(-(2**63), 2**63 - 1))
def test_int64_comes_back(number):
    back = round_trip(Scalar(dtype=np.int64), number)
    assert back == number
    assert back.dtype == np.int64


@given(st.integers(0, 2**64 - 1))
def test_uint64_comes_back(number):
    assert round_trip(Scalar(dtype=np.uint64), np.uint64(number)) == number


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.float32])
def test_a_tensor_comes_back_with_its_dtype_and_shape(dtype):
    value = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    back = round_trip(Tensor(shape=(2, 3), dtype=dtype), value)
    assert back.dtype == value.dtype
    np.testing.assert_array_equal(back, value)


@given(st.text())
def test_text_comes_back_as_utf8(text):
    assert round_trip(Text(), text) == text.encode()


def test_a_png_comes_back_bit_for_bit():
    picture = np.random.default_rng(0).integers(0, 256, (7, 5, 3), np.uint8)
    np.testing.assert_array_equal(round_trip(Image(), picture), picture)


def test_a_jpeg_comes_back_nearly():
    picture = np.full((16, 24, 3), 90, np.uint8)
    back = round_trip(Image(encoding_format="jpeg"), picture)
    assert back.shape == (16, 24, 3)
    assert np.abs(back.astype(int) - 90).max() <= 3


def test_a_path_is_stored_as_it_is(tmp_path):
    picture = Image().encode_example(np.zeros((2, 2, 3), np.uint8), "image")
    path = tmp_path / "picture.png"
    path.write_bytes(picture)
    assert Image().encode_example(path, "image") == picture


def test_class_names_and_numbers_are_the_same():
    label = ClassLabel(names=["cat", "dog"])
    assert [label.int2str(label.str2int(name)) for name in ("cat", "dog")] == ["cat", "dog"]
    assert round_trip(label, "dog") == round_trip(label, 1) == 1
    assert round_trip(label, -1) == -1


@pytest.mark.parametrize(
    ("feature", "value", "kind", "text"),
    [
        (ClassLabel(names=["cat", "dog"]), "cow", InvalidArgumentError, "no class 'cow'; the classes are 'cat', 'dog'"),
        (ClassLabel(num_classes=3), 3, InvalidArgumentError, "'value' must be from 0 to 2, or -1 for unknown, got 3"),
        (ClassLabel(num_classes=3), 1.0, InvalidTypeError, "the name or the number of a class, got float"),
        (Text(), 3, InvalidTypeError, "'value' must be a str or bytes, got int"),
        (Scalar(dtype=np.int64), [1, 2], InvalidArgumentError, r"'value' must have shape \(\), got \(2,\)"),
        (Scalar(dtype=np.uint8), 256, InvalidArgumentError, "'value' holds values that uint8 cannot hold"),
        (Scalar(dtype=np.int64), 1.5, InvalidTypeError, "'value' must be of dtype int64, got float64"),
        (Image(), np.zeros((2, 2, 1), np.uint8), InvalidArgumentError, "'value' must be uint8 of shape"),
        (Image(), np.zeros((2, 2), np.uint8), InvalidArgumentError, "'value' must be uint8 of shape"),
        (
            Image(encoding_format="png"),
            b"GIF89a",
            InvalidArgumentError,
            "'value' must be PNG, but its bytes begin with b'GIF8'",
        ),
        (Image(), 3, InvalidTypeError, "an array, encoded bytes or a path, got int"),
    ],
)
def test_what_does_not_fit_is_refused(feature, value, kind, text):
    with pytest.raises(kind, match=text):
        FeaturesDict({"value": feature}).serialize({"value": value})


def test_missing_and_extra_features_are_named():
    features = FeaturesDict({"a": Text(), "b": Text()})
    with pytest.raises(InvalidArgumentError, match="missing: b; extra: c"):
        features.serialize({"a": "", "c": ""})


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClassLabel(num_classes=1, names=["a"]),
        lambda: ClassLabel(names=["a", "a"]),
        lambda: Image(shape=(None, None, 2)),
        lambda: Image(encoding_format="gif"),
        lambda: Image(shape=(None, None, 4), encoding_format="jpeg"),
        lambda: Tensor(shape=(-1,), dtype=np.int64),
        lambda: Tensor(shape=(), dtype=np.complex64),
        lambda: Tensor(shape=(None, None), dtype=np.int64),
        lambda: Tensor(shape=(), dtype=np.int64, encoding="gzip"),
        lambda: Tensor(shape=(), dtype=bytes, encoding="zlib"),
        lambda: BBoxFeature(bbox_format="YX"),
        lambda: Video(shape=(None, None, 3)),
        lambda: Audio(shape=()),
        lambda: FeaturesDict({"a": 3}),
    ],
)
def test_a_feature_that_cannot_be_is_refused_when_made(make):
    with pytest.raises((InvalidArgumentError, InvalidTypeError)):
        make()


def test_features_json_is_as_tfds_writes_it(tmp_path):
    features = FeaturesDict(
        {
            "image": Image(encoding_format="jpeg"),
            "image/filename": Text(),
            "label": ClassLabel(names=["cat", "dog"]),
            "box": Tensor(shape=(4,), dtype=np.float32),
            "count": Scalar(dtype=np.int32),
        }
    )
    root = "tensorflow_datasets.core.features."
    assert features.entry() == {
        "pythonClassName": root + "features_dict.FeaturesDict",
        "featuresDict": {
            "features": {
                "image": {
                    "pythonClassName": root + "image_feature.Image",
                    "image": {
                        "shape": {"dimensions": ["-1", "-1", "3"]},
                        "dtype": "uint8",
                        "encodingFormat": "jpeg",
                    },
                },
                "image/filename": {"pythonClassName": root + "text_feature.Text", "text": {}},
                "label": {
                    "pythonClassName": root + "class_label_feature.ClassLabel",
                    "classLabel": {"numClasses": "2"},
                },
                "box": {
                    "pythonClassName": root + "tensor_feature.Tensor",
                    "tensor": {"shape": {"dimensions": ["4"]}, "dtype": "float32", "encoding": "none"},
                },
                "count": {
                    "pythonClassName": root + "scalar.Scalar",
                    "tensor": {"shape": {}, "dtype": "int32", "encoding": "none"},
                },
            }
        },
    }
    features.save_metadata(tmp_path)
    assert (tmp_path / "label.labels.txt").read_text() == "cat\ndog\n"


def test_what_features_mean_is_kept_as_tfds_keeps_it():
    told = features.FeaturesDict(
        {
            "age": features.Scalar(np.int64, doc=features.Documentation("In years.", value_range="0 to 120")),
            "words": features.Sequence(features.Text(doc="One of them."), doc="What was said."),
            "image": features.Image(doc="A photograph."),
            "x": features.Text(),
        }
    )
    entries = told.entry()["featuresDict"]["features"]
    assert entries["age"]["description"] == "In years."
    assert entries["age"]["valueRange"] == "0 to 120"
    assert entries["words"]["description"] == "What was said."
    assert entries["words"]["sequence"]["feature"]["description"] == "One of them."
    assert entries["x"].keys() == {"pythonClassName", "text"}
    again = feature_of("", told.entry())
    assert again.entry() == told.entry()
    assert again["image"].doc == features.Documentation("A photograph.")
    assert repr(again["image"]) == "Image(shape=(None, None, 3), dtype=uint8, description=A photograph.)"
    with pytest.raises(InvalidTypeError, match="doc must be text or a Documentation, got int"):
        features.Text(doc=3)


def test_shapes_and_dtypes_are_nests_by_name():
    nested = features.FeaturesDict(
        {
            "image": features.Image(),
            "boxes": features.Sequence({"box": features.BBoxFeature(), "label": features.ClassLabel(num_classes=3)}),
            "ragged": features.Sequence(features.Sequence(np.int32), length=2),
            "clip": features.Video(shape=(8, None, None, 1)),
        }
    )
    assert nested.shape == {
        "image": (None, None, 3),
        "boxes": {"box": (None, 4), "label": (None,)},
        "ragged": (2, None),
        "clip": (8, None, None, 1),
    }
    assert nested.dtype == {
        "image": np.uint8,
        "boxes": {"box": np.float32, "label": np.int64},
        "ragged": np.int32,
        "clip": np.uint8,
    }


def test_classes_without_names_are_called_by_their_numbers(tmp_path):
    digits = features.ClassLabel(num_classes=3)
    assert (digits.names, digits.has_names) == (["0", "1", "2"], False)
    digits.names = ["none", "one", "two"]
    assert (digits.str2int("two"), digits.has_names) == (2, True)
    (tmp_path / "names.txt").write_text("cat\n dog \n\n", encoding="utf-8")
    assert features.ClassLabel(names_file=tmp_path / "names.txt").names == ["cat", "dog"]
    unknown = features.ClassLabel()
    with pytest.raises(InvalidArgumentError, match="the classes of feature 'label' are not known yet"):
        unknown.encode_example(0, "label")
    unknown.names = ["a"]
    assert unknown.encode_example("a", "label") == 0
    for both in ({"num_classes": 2, "names": ["a", "b"]}, {"names": ["a", "a"]}):
        with pytest.raises(InvalidArgumentError):
            features.ClassLabel(**both)
    with pytest.raises(InvalidArgumentError, match="there must be 1 names, got 2"):
        unknown.names = ["a", "b"]
    with pytest.raises(InvalidTypeError, match="names must be a list of texts"):
        unknown.names = "ab"


def test_a_text_may_be_missing():
    kept = features.FeaturesDict({"title": features.Text(optional=True)})
    assert [kept.deserialize(kept.serialize({"title": title})) for title in (None, "ü")] == [
        {"title": b""},
        {"title": "ü".encode()},
    ]
    assert feature_of("", kept.entry()).deserialize(kept.serialize({"title": None})) == {"title": b""}


def test_none_is_no_dtype():
    with pytest.raises(InvalidTypeError, match="feature 'x' must be a Feature, got None"):
        features.FeaturesDict({"x": None})
