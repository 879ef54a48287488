"""The data-set functions of `keras.utils` without Keras; orders and splits written here are those that Keras gives."""

import wave
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

NAMES = [
    "b/1.txt",
    "b/sub/3.txt",
    "b/sub-x/9.txt",
    "b/10.TXT",
    "a/2.txt",
    "a/.h.txt",
    "c/x.md",
    ".hid/1.txt",
    "a/q.txt",
]
ORDER = ["a/.h.txt", "a/2.txt", "a/q.txt", "b/1.txt", "b/10.TXT", "b/sub/3.txt", "b/sub-x/9.txt"]
SHUFFLED = ["b/10.TXT", "b/sub-x/9.txt", "b/1.txt", "a/.h.txt", "a/2.txt", "b/sub/3.txt", "a/q.txt"]  # by Keras, seed 4


@pytest.fixture
def texts(tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def read(ds):
    return [(text.decode(), label.tolist()) for text, label in ds]


def test_files_and_labels_come_in_the_order_of_keras(texts, capsys):
    ds = ps.text_dataset_from_directory(texts, shuffle=False, batch_size=None)
    assert capsys.readouterr().out == "Found 7 files belonging to 3 classes.\n"
    assert read(ds) == [(name, "abc".index(name[0])) for name in ORDER]
    assert ds.class_names == ["a", "b", "c"]
    assert ds.file_paths == [f"{texts}/{name}" for name in ORDER]
    assert ds.element_spec == (ps.TensorSpec((), bytes), ps.TensorSpec((), np.int32))


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ({"class_names": ["b", "a"], "label_mode": "binary"}, [[0.0]] * 4 + [[1.0]] * 3),
        ({"label_mode": "categorical"}, [[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]] * 4),
        ({"labels": [5, 6, 7, 8, 9, 10, 11, 12]}, [5, 6, 7, 8, 9, 10, 11, 12]),  # of ".hid", too, as Keras has it
    ],
)
def test_labels(texts, settings, labels):
    ds = ps.text_dataset_from_directory(texts, shuffle=False, batch_size=None, verbose=False, **settings)
    assert [label for _, label in read(ds)] == labels


def test_no_labels_and_cut_texts(texts, capsys):
    ds = ps.text_dataset_from_directory(texts / "b", labels=None, shuffle=False, max_length=4)
    assert [batch.tolist() for batch in ds] == [[b"b/1.", b"b/10", b"b/su", b"b/su"]]
    assert ds.class_names is None
    assert capsys.readouterr().out == "Found 4 files.\n"


def test_subsets_are_those_of_keras(texts):
    settings = {"batch_size": None, "seed": 4, "validation_split": 0.3, "verbose": False}
    train, held = ps.text_dataset_from_directory(texts, subset="both", **settings)
    assert [Path(path).relative_to(texts).as_posix() for path in train.file_paths + held.file_paths] == SHUFFLED
    assert [text for text, _ in read(held)] == SHUFFLED[5:]
    assert sorted(read(train)) == sorted((name, "abc".index(name[0])) for name in SHUFFLED[:5])
    alone = ps.text_dataset_from_directory(texts, subset="training", **settings)
    assert alone.file_paths == train.file_paths
    assert read(alone) != read(alone)  # another order in each epoch


@pytest.mark.parametrize(
    "settings",
    [
        {"label_mode": "binary"},
        {"label_mode": "ints"},
        {"labels": [1, 2]},
        {"labels": [1] * 8, "class_names": ["a"]},
        {"class_names": ["z"]},
        {"validation_split": 0.5},
        {"subset": "training", "validation_split": 1.5, "seed": 1},
        {"subset": "training", "validation_split": 0.5},
        {"subset": "test", "validation_split": 0.5, "seed": 1},
    ],
)
def test_settings_without_meaning(texts, settings):
    with pytest.raises(ps.errors.InvalidArgumentError):
        ps.text_dataset_from_directory(texts, verbose=False, **settings)


def test_a_directory_without_files(texts):
    with pytest.raises(ps.errors.NotFoundError, match=r"Names end in \.txt"):
        ps.text_dataset_from_directory(texts / "c", verbose=False)


@pytest.fixture
def images(tmp_path):
    for number, shape in enumerate([(4, 8, 3), (8, 4, 3)]):
        (tmp_path / f"{number}.png").write_bytes(ps.image.encode_png(np.arange(96).reshape(shape).astype(np.uint8)))
    return tmp_path


def test_images_are_decoded_and_resized(images):
    kept = [ps.image.decode_image((images / f"{number}.png").read_bytes()) for number in (0, 1)]
    settings = {"labels": None, "shuffle": False, "verbose": False}

    def only(**more):
        (batch,) = ps.image_dataset_from_directory(images, **settings, **more)
        return batch

    assert only().shape == (2, 256, 256, 3)
    assert only(image_size=(4, 8), color_mode="grayscale").shape == (2, 4, 8, 1)
    assert only(image_size=4, color_mode="rgba", data_format="channels_first").shape == (2, 4, 4, 4)
    np.testing.assert_array_equal(only(image_size=(4, 8))[0], kept[0].astype(np.float32))
    cropped = only(image_size=4, crop_to_aspect_ratio=True, interpolation="nearest")
    np.testing.assert_array_equal(cropped, [kept[0][:, 2:6], kept[1][2:6]])
    np.testing.assert_array_equal(only(image_size=8, pad_to_aspect_ratio=True)[1, :, 2:6], kept[1].astype(np.float32))
    with pytest.raises(ps.errors.InvalidArgumentError):
        only(crop_to_aspect_ratio=True, pad_to_aspect_ratio=True)


def test_sounds(tmp_path):
    for length in (3, 5):
        with wave.open(str(tmp_path / f"{length}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(np.full(length, 1 << 14, "<i2").tobytes())
    settings = {"labels": None, "shuffle": False, "verbose": False}
    (padded,) = ps.audio_dataset_from_directory(tmp_path, **settings)
    assert padded.dtype == np.float32
    assert padded[..., 0].tolist() == [[0.5] * 3 + [0.0] * 2, [0.5] * 5]
    (cut,) = ps.audio_dataset_from_directory(tmp_path, output_sequence_length=4, **settings)
    assert cut[..., 0].tolist() == [[0.5] * 3 + [0.0], [0.5] * 4]
    (ragged,) = ps.audio_dataset_from_directory(tmp_path, ragged=True, **settings)
    assert ragged.to_list() == [[[0.5]] * 3, [[0.5]] * 5]


def test_sounds_are_resampled(tmp_path):
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    content = ps.audio.encode_wav(np.full((80, 1), 0.5), 8000)
    (tmp_path / "80.wav").write_bytes(content)
    (found,) = ps.audio_dataset_from_directory(tmp_path, labels=None, verbose=False, sampling_rate=16000)
    np.testing.assert_array_equal(found[0], ps.audio.decode(content, 16000).audio)
    assert found.shape == (1, 160, 1)


def test_windows_of_an_array():
    settings = {"sequence_stride": 2, "sampling_rate": 3, "start_index": 2, "end_index": 18}
    (batch,) = ps.timeseries_dataset_from_array(np.arange(20.0), np.arange(20), 5, **settings)
    assert [part.tolist() for part in batch] == [[[2.0, 5.0, 8.0, 11.0, 14.0], [4.0, 7.0, 10.0, 13.0, 16.0]], [2, 4]]
    values = np.arange(20).reshape(10, 2)
    pairs = list(ps.timeseries_dataset_from_array(values, np.arange(7), 5, batch_size=None))
    assert [int(target) for _, target in pairs] == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(pairs[5][0], values[5:])
    fewer = ps.timeseries_dataset_from_array(values, np.arange(3), 5, batch_size=None)
    assert len(fewer) == 3
    mixed = ps.timeseries_dataset_from_array(np.arange(9), None, 2, shuffle=True, seed=1, batch_size=None)
    assert sorted(int(window[0]) for window in mixed) == list(range(8)) != [int(window[0]) for window in mixed]
    for wrong in ({"sequence_length": 11}, {"sequence_length": 2, "sampling_rate": 0}):
        with pytest.raises(ps.errors.InvalidArgumentError):
            ps.timeseries_dataset_from_array(values, None, **wrong)


def test_windows_take_no_memory():
    values = np.zeros(1 << 20, np.float32)
    ds = ps.timeseries_dataset_from_array(values, None, 1 << 10)
    assert np.shares_memory(ds._plan.input.source.columns[0].array, values)
    assert next(iter(ds)).shape == (128, 1 << 10)


def test_split_dataset_by_the_order_of_keras():
    left, right = ps.split_dataset(np.arange(10), left_size=0.3, shuffle=True, seed=3)
    assert [int(x) for x in left] == [1, 5, 6]
    assert [int(x) for x in right] == [0, 9, 4, 7, 2, 8, 3]


def test_split_dataset_keeps_batches_and_structure():
    rows = ps.Dataset.from_tensor_slices({"x": np.arange(10), "s": list("abcdefghij")}).batch(2)
    left, right = ps.split_dataset(rows, left_size=3, right_size=2)
    assert [(batch["x"].tolist(), batch["s"].tolist()) for batch in left] == [([0, 1], [b"a", b"b"]), ([2], [b"c"])]
    assert [batch["x"].tolist() for batch in right] == [[8, 9]]
    left, right = ps.split_dataset([np.arange(4), np.arange(4) * 2], right_size=0.75)
    assert ([*map(tuple, left)], len(right)) == ([(0, 0)], 3)


def test_split_dataset_reads_a_shuffled_data_set_once():
    left, right = ps.split_dataset(ps.Dataset.range(50).shuffle(50), left_size=0.5)
    both = {int(x) for x in left} | {int(x) for x in right}
    assert both == set(range(50))


@pytest.mark.parametrize("sizes", [(None, None), (0, None), (None, 10), (1.0, None), (0.01, None), (5, 6), (0.6, 0.6)])
def test_split_dataset_into_no_two_parts(sizes):
    with pytest.raises(ps.errors.InvalidArgumentError):
        ps.split_dataset(np.arange(10), *sizes)
