"""Every connector: what goes in comes out, from `features.json` alone, singly and in sequences."""

from __future__ import annotations

import io
import json
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.block.structure import flatten
from penstock.catalog import PartialDecoding, SkipDecoding, features, make_decoder
from penstock.catalog.features import FeaturesDict
from penstock.catalog.features.from_json import feature_of, load_features
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError, UnimplementedError

PICTURE = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
PNG = ps.io.encode_png(PICTURE)


def wav(samples, width=2, channels=1):
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(samples.tobytes())
    return content.getvalue()


# Feature, value, what comes back (None for the value itself).
CASES = {
    "image": (features.Image(), PICTURE, None),
    "image bytes": (features.Image(), PNG, PICTURE),
    "image 16": (features.Image(shape=(2, 3, 1), dtype=np.uint16), np.full((2, 3, 1), 60000, np.uint16), None),
    "image float": (features.Image(shape=(2, 3, 1), dtype=np.float32), np.full((2, 3, 1), 0.1, np.float32), None),
    "mask": (features.LabeledImage(labels=["a", "b"]), np.ones((2, 3, 1), np.uint8), None),
    "label": (features.ClassLabel(names=["a", "b"]), "b", 1),
    "label bytes": (features.ClassLabel(names=["a", "b"]), b"b", 1),
    "text": (features.Text(), "ä", "ä".encode()),
    "scalar": (features.Scalar(np.uint64), 2**64 - 1, None),
    "strings": (features.Tensor(shape=(2,), dtype=str), ["a", b"b"], np.array([b"a", b"b"], object)),
    "open": (features.Tensor(shape=(2, None), dtype=np.int16), [[1, 2, 3], [4, 5, 6]], None),
    "open, empty": (features.Tensor(shape=(None, 2), dtype=np.int16), np.empty((0, 2), np.int16), None),
    "bytes": (features.Tensor(shape=(2,), dtype=np.float64, encoding="bytes"), [0.1, 1e300], None),
    "zlib": (features.Tensor(shape=(None, None), dtype=np.int8, encoding="zlib"), [[1, 2], [3, 4]], None),
    "optional": (features.Scalar(np.int32, optional=True), None, np.iinfo(np.int32).min),
    "optional text": (features.Scalar(bytes, optional=True), None, b""),
    "box": (features.BBoxFeature(), features.BBox(0.0, 0.25, 0.5, 1.0), np.array([0, 0.25, 0.5, 1], np.float32)),
    "numbers": (features.Sequence(np.int64), [1, 2, 3], None),
    "no numbers": (features.Sequence(np.float32), [], np.empty(0, np.float32)),
    "no texts": (features.Sequence(features.Text()), [], np.empty(0, object)),
    "texts": (features.Sequence(features.Text()), ["a", "b"], np.array([b"a", b"b"], object)),
    "images": (features.Sequence(features.Image()), [PICTURE, PICTURE], np.stack([PICTURE, PICTURE])),
    "no images": (features.Sequence(features.Image()), [], np.empty((0, 0, 0, 3), np.uint8)),
    "arrays": (features.Sequence(features.Tensor(shape=(2,), dtype=np.int8)), [[1, 2], [3, 4]], None),
    "zlib in a sequence": (
        features.Sequence(features.Tensor(shape=(2,), dtype=np.float64, encoding="zlib")),
        [[1.5, 2.0], [3.0, 4.0]],
        None,
    ),
    "video": (features.Video(shape=(None, 2, 3, 3)), [PICTURE, PNG], np.stack([PICTURE, PICTURE])),
    "audio": (features.Audio(dtype=np.int16), np.arange(5, dtype=np.int16), None),
    "audio file": (features.Audio(dtype=np.int16), wav(np.arange(5, dtype="<i2")), np.arange(5, dtype=np.int16)),
    "audio kept": (
        features.Audio(shape=(None, 2), dtype=np.int16, lazy_decode=True),
        wav(np.arange(6, dtype="<i2"), channels=2),
        np.arange(6, dtype=np.int16).reshape(3, 2),
    ),
    "translation": (features.Translation(["de", "en"]), {"de": "a", "en": "b"}, {"de": b"a", "en": b"b"}),
    "nested": (
        features.FeaturesDict({"a": {"b": np.int64}, "c": features.Text()}),
        {"a": {"b": 3}, "c": "x"},
        {"a": {"b": 3}, "c": b"x"},
    ),
    "dicts": (
        features.Sequence({"n": np.int64, "t": features.Text()}),
        [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}],
        {"n": np.array([1, 2]), "t": np.array([b"a", b"b"], object)},
    ),
    "dict of lists": (features.Sequence({"n": np.int64}), {"n": [1, 2]}, {"n": np.array([1, 2])}),
    "no dicts": (features.Sequence({"n": np.int64}), [], {"n": np.empty(0, np.int64)}),
    "steps": (features.Dataset({"n": np.int64}), [{"n": 1}], {"n": np.array([1])}),
}


def same(left, right):
    if isinstance(right, dict):
        assert left.keys() == right.keys()
        for key in right:
            same(left[key], right[key])
    else:
        assert np.shape(left) == np.shape(right)
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", CASES)
def test_what_goes_in_comes_out(name, tmp_path):
    feature, value, wanted = CASES[name]
    written = FeaturesDict({"it/self": feature})
    record = written.serialize({"it/self": value})
    written.save_metadata(tmp_path)
    read = load_features(tmp_path)
    assert read.entry() == written.entry()
    back = read.deserialize(record)["it/self"]
    same(back, value if wanted is None else wanted)
    leaves, told = (
        flatten(ps.Dataset.range(1).map(lambda _: {"self": back})[0])[0],
        flatten({"self": read["it/self"].spec()})[0],
    )
    for leaf, spec in zip(leaves, told, strict=True):
        assert spec.admits(leaf), (spec, leaf)
    if isinstance(getattr(feature, "dtype", bytes), np.dtype):
        assert np.asarray(back).dtype == feature.dtype


RAGGED = st.lists(st.lists(st.integers(-9, 9), max_size=3), max_size=3)


@given(RAGGED)
def test_sequences_of_sequences_come_back_ragged(value):
    dict_ = FeaturesDict({"x": features.Sequence(features.Sequence(np.int32))})
    back = dict_.deserialize(dict_.serialize({"x": value}))["x"]
    assert back.to_list() == value
    assert back.dtype == np.int32


@given(st.lists(RAGGED, max_size=3))
def test_and_so_do_deeper_ones(value):
    deep = features.Sequence(features.Sequence(features.Sequence({"n": np.int64})))
    dict_ = FeaturesDict({"x": deep})
    rows = [[[{"n": n} for n in inner] for inner in row] for row in value]
    assert dict_.deserialize(dict_.serialize({"x": rows}))["x"]["n"].to_list() == value


@given(st.lists(st.lists(st.text(max_size=3), max_size=3), max_size=3))
def test_ragged_texts_and_the_names_in_the_record(value):
    dict_ = FeaturesDict({"x": features.Sequence({"w": features.Sequence(features.Text())})})
    record = dict_.serialize({"x": [{"w": words} for words in value]})
    assert dict_.deserialize(record)["x"]["w"].to_list() == [[word.encode() for word in words] for words in value]
    names = ["x/w/ragged_flat_values", "x/w/ragged_row_lengths_0"]
    assert sorted(ps.io.decode_example(record)) == names


def test_names_of_classes_lie_where_tfds_looks_for_them(tmp_path):
    label = features.ClassLabel(names=["cat", "dog"])
    dict_ = FeaturesDict(
        {"label": label, "objects": features.Sequence({"kind": label, "mask": features.LabeledImage(labels=["x"])})}
    )
    dict_.save_metadata(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "features.json",
        "label.labels.txt",
        "objects-kind.labels.txt",
        "objects-mask.labels.txt",
    ]
    read = load_features(tmp_path)
    assert read["objects"]["kind"].str2int("dog") == 1
    assert read["objects"]["mask"].names == ["x"]


def test_features_json_of_older_tfds_is_read():
    kind = "tensorflow_datasets.core.features."
    tensor = {"type": kind + "tensor_feature.Tensor", "content": {"shape": [None, 2], "dtype": "int64"}}
    label = {"type": kind + "class_label_feature.ClassLabel", "content": '{"numClasses": "3"}', "proto_cls": "x"}
    found = feature_of("", {"type": kind + "features_dict.FeaturesDict", "content": {"a": tensor, "b": label}})
    assert found["a"].shape == (None, 2)
    assert found["b"].num_classes == 3


def test_decoders_stand_in():
    dict_ = FeaturesDict({"image": features.Image(), "list": features.Sequence({"image": features.Image()})})
    record = dict_.serialize({"image": PICTURE, "list": [{"image": PICTURE}] * 2})

    @make_decoder()
    def size(stored, feature):
        assert isinstance(feature, features.Image)
        return len(stored)

    back = dict_.deserialize(record, {"image": SkipDecoding(), "list": {"image": size}})
    assert back["image"] == PNG
    assert back["list"]["image"].tolist() == [len(PNG)] * 2


def test_parts_can_be_read_alone():
    dict_ = FeaturesDict(
        {"a": np.int64, "b": {"c": np.int64, "d": np.int64}, "e": features.Sequence({"f": np.int64, "g": np.int64})}
    )
    record = dict_.serialize({"a": 1, "b": {"c": 2, "d": 3}, "e": [{"f": 4, "g": 5}]})
    wanted = {"a": True, "b": {"d"}, "e": {"f": True, "g": False}}
    back = PartialDecoding(wanted).of(dict_).deserialize(record)
    same(back, {"a": 1, "b": {"d": 3}, "e": {"f": np.array([4])}})


UNKNOWN = {"pythonClassName": "their.own.Molecule", "jsonFeature": {"json": "{}"}}


def some_dict(**more):
    return FeaturesDict({"a": np.int64, "text": features.Text(), **more})


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("part_missing", lambda: some_dict().part(["a", "image"])),
        ("part_of_text", lambda: some_dict().part({"text": {"x"}})),
        ("part_kind", lambda: some_dict().part(3)),
        (
            "decoder_unknown",
            lambda: some_dict().deserialize(some_dict().serialize({"a": 1, "text": ""}), {"x": SkipDecoding()}),
        ),
        ("unknown_connector", lambda: some_dict(m=feature_of("m", UNKNOWN)).codec),
        (
            "sequence_lengths",
            lambda: FeaturesDict({"s": features.Sequence({"a": np.int64, "b": np.int64})}).serialize(
                {"s": {"a": [1], "b": []}}
            ),
        ),
        ("sequence_length", lambda: FeaturesDict({"s": features.Sequence(np.int64, length=2)}).serialize({"s": [1]})),
        ("sequence_single", lambda: FeaturesDict({"s": features.Sequence(np.int64)}).serialize({"s": 1})),
        (
            "two_unknown_sizes",
            lambda: FeaturesDict({"s": features.Sequence(features.Tensor(shape=(None,), dtype=np.int64))}).codec,
        ),
        (
            "images_of_two_sizes",
            lambda: FeaturesDict({"s": features.Sequence(features.Image())}).deserialize(
                FeaturesDict({"s": features.Sequence(features.Image())}).serialize({"s": [PICTURE, PICTURE[:1]]})
            ),
        ),
        ("box_not_relative", lambda: features.BBoxFeature().encode_example([0, 0, 20, 30], "box")),
        ("box_order", lambda: features.BBoxFeature().encode_example([0.5, 0, 0.4, 1], "box")),
        ("audio_mp3", lambda: features.Audio().encode_example(b"ID3...", "sound")),
        ("video_file", lambda: features.Video().encode_example("a.mp4", "video")),
        (
            "translation_language",
            lambda: features.TranslationVariableLanguages(["en"]).encode_example({"fr": "x"}, "t"),
        ),
        ("zlib_damaged", lambda: features.Tensor(shape=(1,), dtype=np.int64, encoding="zlib").decode_example(b"no")),
        ("nested_no_dict", lambda: FeaturesDict({"d": {"a": np.int64}}).serialize({"d": 3})),
        ("nested_missing", lambda: FeaturesDict({"d": {"a": np.int64, "b": np.int64}}).serialize({"d": {"a": 3}})),
        ("optional_missing", lambda: some_dict().serialize({"a": None, "text": ""})),
    ],
)
def test_what_cannot_be_is_answered(name, call):
    with pytest.raises((InvalidArgumentError, InvalidTypeError, UnimplementedError, DataLossError)) as raised:
        call()
    assert_golden(f"catalog_feature_{name}", str(raised.value))


def test_an_unknown_connector_does_not_keep_the_others_from_being_read():
    known = some_dict()
    record = known.serialize({"a": 1, "text": "x"})
    entry = json.loads(json.dumps(known.entry()))
    entry["featuresDict"]["features"]["m"] = UNKNOWN
    found = feature_of("", entry)
    same(PartialDecoding(["a"]).of(found).deserialize(record), {"a": 1})
    features.register("their.own.Molecule", lambda entry: features.Scalar(bytes, optional=True))
    try:
        same(feature_of("", entry).deserialize(record), {"a": 1, "text": b"x", "m": b""})
    finally:
        from penstock.catalog.features.from_json import _OWN

        del _OWN["their.own.Molecule"]
